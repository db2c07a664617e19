"""What is said of a pair is what the engine then does: on real models, tiny ones with vocabularies of every kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forespeak.engines.engine import Loaded, LoadRequest, LoadSettings
from forespeak.engines.llamacpp.engine import LlamaEngine
from forespeak.engines.parity_result import ParityRequest, ParityResult
from forespeak.pairing.compatibility import compatibility, refusal
from forespeak.pairing.parity import check, context_needed
from forespeak.speculation.trace import Source
from forespeak.ui.disk_models import DiskModels
from models.gguf_writer import CONTROL, NORMAL, UNUSED, USER_DEFINED, ModelFile
from tiny_llama import vocabulary, write_llama

CHECK = ParityRequest((Source.DRAFT_MODEL,), tokens=12, prompts=1)
Change = Callable[[ModelFile], ModelFile]


def text(token: int, new: str) -> Change:
    def change(file: ModelFile) -> ModelFile:
        tokens = list(file.tokens)
        tokens[token % len(tokens)] = new
        return replace(file, tokens=tokens)

    return change


def kind(token: int, new: int) -> Change:
    def change(file: ModelFile) -> ModelFile:
        assert file.types is not None
        kinds = list(file.types)
        kinds[token % len(kinds)] = new
        return replace(file, types=kinds)

    return change


def swapped(one: int, other: int) -> Change:
    def change(file: ModelFile) -> ModelFile:
        tokens = list(file.tokens)
        one_, other_ = one % len(tokens), other % len(tokens)
        tokens[one_], tokens[other_] = tokens[other_], tokens[one_]
        return replace(file, tokens=tokens)

    return change


def appended(count: int, name: str, new: int) -> Change:
    def change(file: ModelFile) -> ModelFile:
        assert file.types is not None
        tokens = [*file.tokens, *(name.format(len(file.tokens) + index) for index in range(count))]
        return replace(file, tokens=tokens, types=[*file.types, *[new] * count])

    return change


def told(**more: Any) -> Change:
    return lambda file: replace(file, settings={**file.settings, **more})


def with_field(**fields: Any) -> Change:
    return lambda file: replace(file, **fields)


def entry(key: str, item: str) -> Change:
    return lambda file: replace(file, entries={**file.entries, key: item})


TOKENS = st.sampled_from([0, 3, 4, 5, 139, 200, 256, 260, 263, -1, -2])
CHANGES = st.one_of(
    st.builds(text, TOKENS, st.just("xyz")),
    st.builds(text, st.sampled_from([-1, -2]), st.just("</s>")),
    st.builds(kind, TOKENS, st.sampled_from([NORMAL, CONTROL, USER_DEFINED, UNUSED])),
    st.builds(swapped, TOKENS, TOKENS),
    st.builds(appended, st.sampled_from([1, 5, 130]), st.just("[PAD{}]"), st.sampled_from([NORMAL, UNUSED])),
    st.builds(appended, st.sampled_from([1, 130]), st.just("<tool_{}>"), st.sampled_from([USER_DEFINED, CONTROL])),
    st.builds(told, add_bos_token=st.booleans()),
    st.builds(told, add_eos_token=st.booleans()),
    st.builds(told, bos_token_id=TOKENS.filter(lambda token: token >= 0)),
    st.builds(told, eos_token_id=st.sampled_from([264, 265])),
    st.builds(told, padding_token_id=st.sampled_from([264, 265])),
    st.builds(with_field, merges=st.sampled_from([["t h"], ["i n", "t h", "th e"]])),
    st.builds(with_field, pre=st.sampled_from(["gpt-2", "qwen2"])),
    st.builds(entry, st.just("tokenizer.chat_template"), st.just("{{ messages[0].content }}")),
)


@pytest.fixture(scope="module")
def engine() -> Iterator[LlamaEngine]:
    engine = LlamaEngine(refusal)
    yield engine
    engine.close()


def load(engine: LlamaEngine, target: Path, draft: Path) -> Loaded:
    loaded = engine.load(
        LoadRequest(target, draft, LoadSettings(512, reproducible=True, threads=1)), lambda _: None, lambda: False
    )
    assert loaded is not None
    return loaded


def parity(engine: LlamaEngine) -> ParityResult:
    with engine.bench(context_needed(CHECK)) as bench:
        return check(bench, CHECK)


class Folder:
    """A new folder for every pair: two files written within one tick of the clock look alike to the caches."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._made = 0

    def pair(self, target: ModelFile, draft: ModelFile, noise: float = 0.1) -> tuple[Path, Path]:
        self._made += 1
        folder = self._root / str(self._made)
        folder.mkdir()
        return write_llama(target, folder / "target.gguf"), write_llama(draft, folder / "draft.gguf", noise=noise)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("pairs"))


def changed(changes: list[Change]) -> ModelFile:
    file = vocabulary()
    for change in changes:
        file = change(file)
    return file


seen: Counter[bool] = Counter()


@settings(
    max_examples=110,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    both=st.lists(CHANGES, max_size=1),
    ours=st.lists(CHANGES, max_size=1),
    theirs=st.lists(CHANGES, max_size=3),
    noise=st.sampled_from([0.0, 0.1, 0.5]),
)
def test_a_verdict_is_what_the_engine_then_does(
    engine: LlamaEngine, folder: Folder, both: list[Change], ours: list[Change], theirs: list[Change], noise: float
) -> None:
    target, draft = folder.pair(changed([*both, *ours]), changed([*both, *theirs]), noise)
    if not compatibility(target, target).usable:
        return  # damaged by the changes: no model at all
    verdict = compatibility(target, draft)
    loaded = load(engine, target, draft)
    seen[verdict.usable] += 1
    fit = DiskModels(target.parent).fit(target, draft)
    assert fit.fits is verdict.usable
    assert (loaded.draft is not None) is verdict.usable, loaded.draft_problem
    if not verdict.usable:
        assert loaded.draft_problem == verdict.reason == fit.full
        return
    result = parity(engine)
    assert result.faults == 0
    assert result.equal + result.ties == result.planned == 2
    assert result.tested > 0


def test_both_kinds_of_pairs_were_met() -> None:
    """Else the property above shows nothing."""
    if not seen:
        pytest.skip("the property was not tested in this run")
    assert seen[True] >= 25
    assert seen[False] >= 25


@pytest.mark.parametrize(
    "change",
    [
        appended(500, "[PAD{}]", UNUSED),
        appended(1, "<tool_{}>", USER_DEFINED),
        appended(300, "more{}", NORMAL),
        with_field(merges=["t h"]),
    ],
    ids=["padded far beyond llama.cpp's limit", "a tool token more", "300 tokens more", "other merges"],
)
def test_accepted_by_us_alone_and_right(engine: LlamaEngine, folder: Folder, change: Change) -> None:
    """The draft has more tokens than the target; however many, the words stay the same."""
    target, draft = folder.pair(vocabulary(), change(vocabulary()))
    assert load(engine, target, draft).draft is not None
    result = parity(engine)
    assert result.faults == 0
    assert sum(case.accepted for case in result.cases) > 0


def test_padding_on_the_targets_side_is_never_read_by_the_draft(engine: LlamaEngine, folder: Folder) -> None:
    """A target whose scores reach beyond the draft's last token: it may even write padding, being random."""
    target, draft = folder.pair(appended(5, "[PAD{}]", UNUSED)(vocabulary()), vocabulary())
    assert load(engine, target, draft).draft is not None
    result = parity(engine)
    assert result.faults == 0


def test_a_tokenizer_of_another_kind_is_refused_with_the_same_words(engine: LlamaEngine, folder: Folder) -> None:
    target, draft = folder.pair(vocabulary(), vocabulary(model="llama"))
    verdict = compatibility(target, draft)
    assert load(engine, target, draft).draft_problem == verdict.reason
    assert "SentencePiece in the draft" in verdict.reason

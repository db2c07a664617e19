"""Our verdicts against llama.cpp's own rule: on real vocabularies, and on synthetic ones that pull them apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from forespeak.models.gguf import read_header
from forespeak.models.vocabulary import cached_vocabulary, read_vocabulary
from forespeak.pairing.compatibility import compatibility
from forespeak.pairing.verdict import Obstacle, Verdict, VerdictKind
from forespeak.pairing.vocabularies import compare
from models.field_data import VOCABULARIES, needs_field_data
from pairing.llama_rule import justification, llama_rule, synthetic

FITTING = {
    ("qwen2", "qwen35"): VerdictKind.SAME,
    ("qwen35", "qwen2"): VerdictKind.SAME,
    ("llama-spm", "phi-3"): VerdictKind.DIFFERS,
}
"""The pairs of different real vocabularies that may work together."""

OTHER_THAN_LLAMA = {
    ("phi-3", "llama-spm"): "the target can write token 32000, which the draft cannot read: llama.cpp then stops",
}
"""The pairs of real vocabularies on which llama.cpp's rule says something else, and why ours does not."""


@needs_field_data
def test_the_real_vocabularies() -> None:
    table = {(a, b): compatibility(VOCABULARIES[a], VOCABULARIES[b]) for a in VOCABULARIES for b in VOCABULARIES}
    assert {pair for pair, found in table.items() if found.evidence["vocabularies_fit"] and pair[0] != pair[1]} == set(
        FITTING
    )
    for pair, found in table.items():
        assert not found.usable
        assert found.obstacle is Obstacle.VOCABULARY_ONLY
        if pair[0] == pair[1] or pair in FITTING:
            assert found.kind is FITTING.get(pair, VerdictKind.SAME)
    assert "Token 32000 “<|endoftext|>” of the target is unknown to the draft" in table["phi-3", "llama-spm"].reason
    assert table["llama-bpe", "qwen2"].kind is VerdictKind.OTHER_TOKENIZER
    assert "Token 410 is “00” in the target and “ith” in the draft." in table["llama-bpe", "qwen2"].reason


@needs_field_data
def test_the_real_vocabularies_against_llama_cpp() -> None:
    vocabularies = {name: cached_vocabulary(path) for name, path in VOCABULARIES.items()}
    found = {}
    for target, ours in vocabularies.items():
        for draft, theirs in vocabularies.items():
            verdict = compare(ours, theirs)
            if verdict.usable != (llama_rule(ours, theirs) is None):
                found[target, draft] = justification(ours, theirs, verdict)
    assert found == OTHER_THAN_LLAMA


SYNTHETIC: dict[str, tuple[VerdictKind, bool, str | None]] = {
    "the same": (VerdictKind.SAME, True, None),
    "padding: 152,064 against 151,936": (VerdictKind.SAME_PADDED, True, None),
    "padding: 152,064 against none": (VerdictKind.SAME_PADDED, True, "the 421 tokens more are padding"),
    "token 3 differs": (VerdictKind.DIFFERS, False, "token 3 is other text"),
    "token 139 differs": (VerdictKind.DIFFERS, False, None),
    "the last token differs": (VerdictKind.DIFFERS, False, None),
    "begins texts with BOS": (VerdictKind.DIFFERS, False, None),
    "another BOS, added by neither": (VerdictKind.SAME, True, None),
    "another BOS, added by both": (VerdictKind.DIFFERS, False, None),
    "the same tokens in another order": (VerdictKind.OTHER_TOKENIZER, False, None),
    "merges differ": (VerdictKind.SAME, True, None),
    "a tool token added to the target": (VerdictKind.DIFFERS, False, "the target can write token 400"),
    "a tool token added to the draft": (VerdictKind.DIFFERS, True, None),
    "200 tokens added to the draft": (VerdictKind.DIFFERS, True, "the tokens more are the draft's"),
    "a command in one, text in the other": (VerdictKind.DIFFERS, False, "token 139 is a command to one"),
    "the end under another name": (VerdictKind.DIFFERS, True, "token 399 has the same function in both"),
    "unused tokens under other names": (VerdictKind.SAME, True, "token 400 is written by no text"),
    "262,144 tokens": (VerdictKind.SAME, True, None),
    "262,144 tokens, the last but one differs": (VerdictKind.DIFFERS, False, None),
}
"""Our verdict, and how the reason begins where llama.cpp's rule says otherwise."""


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Verdict, str | None, str | None]]:
    """Our verdict, llama.cpp's objection, and the justification of every synthetic case."""
    folder: Path = tmp_path_factory.mktemp("synthetic")
    found = {}
    for name, files in synthetic().items():
        target, draft = (
            read_vocabulary(read_header(file.write(folder / f"{side}.gguf")))
            for side, file in zip(("target", "draft"), files, strict=True)
        )
        ours = compare(target, draft)
        found[name] = (ours, llama_rule(target, draft), justification(target, draft, ours))
    return found


@pytest.mark.parametrize("name", list(SYNTHETIC))
def test_synthetic_vocabularies(verdicts: dict[str, tuple[Verdict, str | None, str | None]], name: str) -> None:
    ours, theirs, why = verdicts[name]
    kind, usable, other = SYNTHETIC[name]
    assert (ours.kind, ours.usable) == (kind, usable)
    assert (ours.usable != (theirs is None)) is (other is not None)
    if other is not None:
        assert why is not None
        assert why.startswith(other)


@needs_field_data
def test_the_rule_is_told_as_llama_cpp_tells_it() -> None:
    """The types by which its rule goes are those that its library reports; texts and flags are tested elsewhere."""
    llama_cpp = pytest.importorskip("llama_cpp")
    seen: dict[str, int] = {}
    for name in ("gpt-2", "phi-3"):
        params = llama_cpp.llama_model_default_params()
        params.vocab_only = True
        model = llama_cpp.llama_model_load_from_file(str(VOCABULARIES[name]).encode(), params)
        try:
            seen[name] = llama_cpp.llama_vocab_type(llama_cpp.llama_model_get_vocab(model))
        finally:
            llama_cpp.llama_model_free(model)
    assert seen == {"gpt-2": llama_cpp.LLAMA_VOCAB_TYPE_BPE, "phi-3": llama_cpp.LLAMA_VOCAB_TYPE_SPM}

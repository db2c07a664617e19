"""The check of parity and the memory of pairs, on real models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engines.llamacpp.conftest import accept_any_pair
from forespeak.engines.engine import ChatMessage, GenerationRequest, LoadRequest, LoadSettings, Role
from forespeak.engines.llamacpp.engine import LlamaEngine
from forespeak.engines.pair_knowledge import PairConditions, ReproducibleEngine
from forespeak.engines.parity_result import DifferenceKind, ParityRequest
from forespeak.errors import UserFacingError
from forespeak.pairing import parity
from forespeak.pairing.pair_memory import PairFiles
from forespeak.pairing.parity import REPRODUCIBLE_LIMIT, check, context_needed
from forespeak.pairing.self_test import SelfTest
from forespeak.speculation.events import Finished
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import Source, Step, text_of

PLACES = 48
"""Scores are measured at this many places instead of eighty: enough, since batches move them from the 33rd on."""
REQUEST = ParityRequest((Source.DRAFT_MODEL,), tokens=8, prompts=2)


@pytest.fixture(scope="module")
def chatting(q4_1: Path, f32: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaEngine]:
    """The starter pair as a chat has it, not in the reproducible setting, with a memory."""
    engine = LlamaEngine(accept_any_pair, PairFiles(tmp_path_factory.mktemp("kept") / "pairs"))
    assert engine.load(LoadRequest(f32, q4_1, LoadSettings(threads=2)), lambda _: None, lambda: False) is not None
    yield engine
    engine.close()


def test_the_starter_pair_writes_the_same_words(chatting: LlamaEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short part of the whole check, which `forespeak parity` runs."""
    monkeypatch.setattr(parity, "_MEASURED_TOKENS", PLACES)
    assert isinstance(chatting, ReproducibleEngine)
    with chatting.bench(context_needed(REQUEST)) as bench:
        result = check(bench, REQUEST)
    assert (result.equal, result.planned) == (4, 4)
    assert 0.0 < result.moved < REPRODUCIBLE_LIMIT / 2
    assert result.tested > 10
    assert result.engine.startswith("llama.cpp ")


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it does not matter how far batches move the scores, seconds are saved."""
    monkeypatch.setattr("forespeak.pairing.parity.batch_movement", lambda *_: 0.0)


@pytest.mark.usefixtures("unmeasured")
def test_a_draft_path_that_changes_tokens_is_found(chatting: LlamaEngine) -> None:
    with chatting.bench(context_needed(REQUEST)) as bench:
        honest = bench.generate

        def lying(request: GenerationRequest, cancelled: Any) -> Iterator[Any]:
            for event in honest(request, cancelled):
                if isinstance(event, Step) and event.accepted_count:
                    last = event.emitted[-1]
                    yield replace(event, emitted=(*event.emitted[:-1], replace(last, id=last.id ^ 1)))
                else:
                    yield event

        bench.generate = lying  # type: ignore[method-assign]
        result = check(bench, replace(REQUEST, prompts=1))
    assert result.faults == 2
    difference = result.first_difference
    assert difference is not None
    assert difference.kind is DifferenceKind.FAULT
    assert difference.moved < difference.limit == REPRODUCIBLE_LIMIT
    assert difference.alone.plain == pytest.approx(difference.batched.plain, abs=2 * REPRODUCIBLE_LIMIT)


@pytest.mark.usefixtures("unmeasured")
def test_the_chat_stays_as_it_was(chatting: LlamaEngine) -> None:
    request = GenerationRequest(
        (ChatMessage(Role.USER, "Name three rivers."),), sampling=SamplingSettings(temperature=0.0), max_tokens=8
    )
    steps = [event for event in chatting.generate(request, lambda: False) if isinstance(event, Step)]
    before = list(chatting.target.tokens)
    with chatting.bench(context_needed(REQUEST)) as bench:
        check(bench, replace(REQUEST, prompts=1, tokens=4))
    assert list(chatting.target.tokens) == before
    follow = (*request.messages, ChatMessage(Role.ASSISTANT, text_of(steps)), ChatMessage(Role.USER, "More."))
    finished = list(chatting.generate(replace(request, messages=follow), lambda: False))[-1]
    assert isinstance(finished, Finished)
    assert finished.stats.reused_prompt_tokens >= len(before) - 1


def test_quantised_targets_move_more_and_it_is_measured(q4_1: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their activations are quantised too, by other kernels for one token than for several."""
    monkeypatch.setattr(parity, "_MEASURED_TOKENS", PLACES)
    engine = LlamaEngine(accept_any_pair)
    request = ParityRequest((Source.DRAFT_MODEL,), tokens=8, prompts=1)
    try:
        assert engine.load(LoadRequest(q4_1, q4_1, LoadSettings(threads=2)), lambda _: None, lambda: False) is not None
        with engine.bench(context_needed(request)) as bench:
            result = check(bench, request)
    finally:
        engine.close()
    assert result.faults == 0
    assert result.moved < 2.0
    for difference in (each for case in result.cases for each in case.differences):
        assert difference.moved <= difference.limit


@pytest.mark.usefixtures("unmeasured")
def test_the_self_test_keeps_its_result_with_the_pair(chatting: LlamaEngine, tmp_path: Path) -> None:
    files = PairFiles(tmp_path / "pairs")
    result = SelfTest(files)(chatting, replace(REQUEST, prompts=1, tokens=6), lambda _: None, lambda: False)
    loaded = chatting.loaded_request
    assert loaded is not None
    assert files.parity(loaded.target, loaded.draft) == result
    # Stopped early, it does not take the place of a whole one.
    stopped = SelfTest(files)(chatting, REQUEST, lambda _: None, lambda: True)
    assert stopped.cases == ()
    assert files.parity(loaded.target, loaded.draft) == result


def test_nothing_is_checked_without_a_pair() -> None:
    with pytest.raises(UserFacingError, match="No model"), LlamaEngine(accept_any_pair).bench(100):
        pass


class Recorder:
    """A memory that counts."""

    def __init__(self) -> None:
        self.kept: dict[PairConditions, Mapping[str, Any]] = {}
        self.recalled: list[bool] = []

    def recall(self, conditions: PairConditions) -> Mapping[str, Any] | None:
        self.recalled.append(conditions in self.kept)
        return self.kept.get(conditions)

    def keep(self, conditions: PairConditions, learned: Mapping[str, Any], *, soon: bool = False) -> None:
        self.kept[conditions] = learned


def test_what_a_pair_learns_outlives_the_engine(q4_1: Path) -> None:
    memory = Recorder()
    ask = GenerationRequest((ChatMessage(Role.USER, "Count to five."),), (Source.DRAFT_MODEL,), max_tokens=8)
    pair = LoadRequest(q4_1, q4_1, LoadSettings(context_length=512, threads=2))
    engine = LlamaEngine(accept_any_pair, memory)
    engine.load(pair, lambda _: None, lambda: False)
    assert memory.kept == {}
    for _ in engine.generate(ask, lambda: False):
        pass
    engine.close()
    (conditions,) = memory.kept
    assert (conditions.target, conditions.draft, conditions.threads) == (q4_1, q4_1, 2)
    learned = memory.kept[conditions]["drafting"]
    # As if the machine were exactly as fast as then: what was kept holds, whatever else runs beside this test.
    timings = memory.kept[conditions]["timings"]
    assert len(timings) == 2
    assert all(0.0 < seconds < 60.0 for seconds in timings)
    again = LlamaEngine(accept_any_pair, memory)
    again._costs._quick_timings = lambda *models: list(timings)  # type: ignore[method-assign]
    again.load(pair, lambda _: None, lambda: False)
    assert again._drafting.learned() == learned
    again.close()
    assert memory.recalled == [False, True]

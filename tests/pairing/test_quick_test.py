"""The quick test over an engine whose replies take made-up time, and over the real one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from compare.timed_engine import DRAFT, MODEL, PROMPT_SECONDS, TARGET, TimedEngine, steady
from forespeak.compare.waiting import WaitingEngine
from forespeak.engines.engine import Engine, GenerationRequest, LoadSettings, Notice, Start
from forespeak.engines.host import EngineProcess
from forespeak.errors import UserFacingError
from forespeak.pairing.candidate_report import report_lines
from forespeak.pairing.candidates import Candidates
from forespeak.pairing.compatibility import Judge
from forespeak.pairing.model_names import parse_name
from forespeak.pairing.offers import Offer, Place
from forespeak.pairing.quick_prompts import quick_prompts
from forespeak.pairing.quick_test import (
    LEAST_TOKENS,
    MOST_TOKENS,
    SECONDS,
    Done,
    Happening,
    Loading,
    PromptTested,
    QuickResult,
    QuickTest,
    Ready,
    Writing,
    run,
)
from forespeak.speculation.events import Event
from forespeak.speculation.trace import Source
from tiny_llama import vocabulary, write_llama

TEST = QuickTest(TARGET, DRAFT, (MODEL,), "code")
ABOUT = Offer("big", Place.HERE, parse_name("big"), 0)


def happenings(
    engine: TimedEngine, test: QuickTest = TEST, cancelled: Callable[[], bool] = lambda: False
) -> list[Happening]:
    loading: list[Happening] = []
    return [*run(test, engine, cancelled, loading.append, engine.clock), *loading]


def result_of(found: list[Happening]) -> QuickResult:
    (result,) = [each.result for each in found if isinstance(each, Done)]
    return result


def test_a_draft_that_doubles_the_speed() -> None:
    engine = TimedEngine()
    found = happenings(engine)
    result = result_of(found)
    assert result.complete
    assert not result.stopped
    assert [each.prompt for each in result.prompts] == list(quick_prompts("code"))
    assert result.plain_rate == pytest.approx(10.0)
    assert result.speculative_rate == pytest.approx(20.0)
    assert result.speed_up is not None
    assert result.speed_up.low <= result.speed_up.value <= result.speed_up.high
    assert result.speed_up.value == pytest.approx(2.0)
    assert all(each.same_words and each.tested > 0 for each in result.prompts)
    assert result.acceptance == pytest.approx(0.5, abs=0.02)
    assert 0.5 * SECONDS < result.seconds < 1.1 * SECONDS


def test_both_ways_write_as_much_and_take_turns() -> None:
    engine = TimedEngine()
    happenings(engine)
    warm_up, measured = engine.requests[:2], engine.requests[2:]
    assert [bool(request.sources) for request in warm_up] == [False, True]
    assert [bool(request.sources) for request in measured] == [False, True, True, False, False, True]
    for one, other in zip(measured[::2], measured[1::2], strict=True):
        assert one.max_tokens == other.max_tokens
        assert one.messages == other.messages
        assert one.sampling == other.sampling
        assert other.start is Start.WARM, "a prompt is read once"
    assert {request.draft_length for request in engine.requests} == {None}
    assert [request.start for request in measured[::2]] == [Start.WARM, Start.COLD, Start.COLD]


@pytest.mark.parametrize(("plain", "tokens"), [(0.001, MOST_TOKENS), (0.1, 32), (2.0, LEAST_TOKENS)])
def test_how_much_is_written_depends_on_the_machine(plain: float, tokens: int) -> None:
    engine = TimedEngine(steady(plain=plain, auto=plain / 2))
    result = result_of(happenings(engine))
    assert engine.requests[2].max_tokens == pytest.approx(tokens, abs=6)
    assert result.seconds < 1.75 * SECONDS


def test_a_machine_that_is_too_slow_still_tells_what_it_could() -> None:
    engine = TimedEngine(steady(plain=1.0, auto=0.5))
    result = result_of(happenings(engine))
    assert 1 <= len(result.prompts) < 3
    assert not result.complete
    assert not result.stopped
    assert result.speed_up is not None
    assert result.speed_up.value == pytest.approx(2.0)
    assert result.speed_up.high > 2.4, "little was measured"


def test_progress_tells_the_figures_so_far() -> None:
    engine = TimedEngine()
    found = happenings(engine)
    assert isinstance(found[0], Ready)
    assert any(isinstance(each, Loading) for each in found)
    writing = [each for each in found if isinstance(each, Writing)]
    assert {each.prompt for each in writing} == {None, *quick_prompts("code")}
    fractions = [each.fraction for each in writing]
    assert fractions == sorted(fractions)
    assert 0.0 <= fractions[0] < 0.2 < 0.6 < fractions[-1] <= 1.0
    speculating = [each for each in writing if each.speculating and each.tokens > 4]
    assert all(each.acceptance == pytest.approx(0.5) for each in speculating)
    assert all(each.tokens_per_second == pytest.approx(20.0, rel=0.1) for each in speculating)
    assert all(each.acceptance is None for each in writing if not each.speculating)
    assert writing[-1].text.startswith("x x ")
    assert sum(isinstance(each, PromptTested) for each in found) == 3


@pytest.mark.parametrize("after", [0.0, PROMPT_SECONDS * 2, 5.0, 11.0])
def test_a_cancel_keeps_what_is_finished(after: float) -> None:
    engine = TimedEngine()
    began = engine.now
    found = happenings(engine, cancelled=lambda: engine.now >= began + after)
    result = result_of(found)
    assert result.stopped
    assert not result.complete
    assert isinstance(next(each for each in reversed(found) if not isinstance(each, Loading)), Done)
    assert len(result.prompts) == (1 if after == 11.0 else 0)
    if not result.prompts:
        assert result.speed_up is None
        assert result.measurement() is None


def test_leaving_ends_the_reply_that_is_being_written() -> None:
    ended: list[GenerationRequest] = []

    class Watched(TimedEngine):
        def generate(self, request: GenerationRequest, cancelled: Callable[[], bool]) -> Iterator[Notice | Event]:
            try:
                yield from TimedEngine.generate(self, request, cancelled)
            finally:
                ended.append(request)

    engine = Watched()
    events = run(TEST, engine, clock=engine.clock)
    while not isinstance(next(events), Writing):
        pass
    assert not ended
    events.close()
    assert ended


@dataclass
class Brief(TimedEngine):
    """Has only a few words to say to all prompts but the first `talks`."""

    talks: int = 0

    def generate(self, request: GenerationRequest, cancelled: Callable[[], bool]) -> Iterator[Notice | Event]:
        talked_about = {each.text for each in quick_prompts("code")[: self.talks]}
        if request.messages[-1].content not in talked_about:
            request = replace(request, max_tokens=LEAST_TOKENS - 1)
        return TimedEngine.generate(self, request, cancelled)


@pytest.mark.parametrize("talks", [0, 1])
def test_replies_that_end_too_early_are_told_from_those_for_which_there_was_no_time(talks: int) -> None:
    result = result_of(happenings(Brief(talks=talks)))
    assert (len(result.prompts), result.too_short, result.planned) == (talks, 3 - talks, 3)
    assert not result.complete
    assert not result.stopped
    slow = result_of(happenings(TimedEngine(steady(plain=1.0, auto=0.5))))
    assert not slow.complete
    assert slow.too_short == 0
    told = report_lines(ABOUT, Candidates((), None), [result])[-1]
    assert told == f"{talks} of 3 prompts: the replies to {3 - talks} ended too early to be timed."
    told = report_lines(ABOUT, Candidates((), None), [replace(slow, too_short=1)])[-1]
    assert "ended too early to be timed, and there was no time for more." in told
    assert "there was no time" in report_lines(ABOUT, Candidates((), None), [slow])[-1]


def test_words_that_differ_are_told() -> None:
    result = result_of(happenings(TimedEngine(parts_at=5)))
    assert [each.same_words for each in result.prompts] == [False, False, False]


def test_what_cannot_draft_is_refused_in_words() -> None:
    with pytest.raises(UserFacingError, match="cannot draft") as caught:
        happenings(TimedEngine(draft_problem="Token 3 differs."))
    assert caught.value.why == "Token 3 differs."
    # A source that looks the text up needs no draft.
    test = QuickTest(TARGET, None, (Source.PROMPT_LOOKUP,), "documents")
    engine = TimedEngine()
    assert result_of(happenings(engine, test)).complete
    assert engine.loads[0].draft is None


def test_a_measurement_to_keep() -> None:
    result = result_of(happenings(TimedEngine()))
    kept = result.measurement("toy 1")
    assert kept is not None
    assert (kept.plain, kept.speculative) == (result.plain_rate, result.speculative_rate)
    ((kind, gain),) = kept.by_kind
    assert (kind, round(gain, 6)) == ("code", 2.0)
    assert kept.tokens == result.tokens == sum(each.tokens for each in result.prompts)
    assert kept.engine == "toy 1"
    assert "T" in kept.measured_at


def test_ratios_are_paired_and_their_spread_is_told() -> None:
    """Prompts on which a draft helps unequally: the range is wide, its middle the geometric mean."""
    texts = [prompt.text for prompt in quick_prompts("code")]
    gains = dict(zip(texts, (1.0, 2.0, 4.0), strict=True))

    def seconds(request: GenerationRequest) -> float:
        return 0.1 / gains[request.messages[-1].content] if request.sources else 0.1

    speed_up = result_of(happenings(TimedEngine(seconds))).speed_up
    assert speed_up is not None
    assert speed_up.value == pytest.approx(2.0)
    half = 1.886 * math.log(2.0) / math.sqrt(3.0)
    assert speed_up.high == pytest.approx(2.0 * math.exp(half))
    assert speed_up.low == pytest.approx(2.0 / math.exp(half))


def test_over_the_real_engine(tmp_path: Path) -> None:
    engines = pytest.importorskip("forespeak.engines.llamacpp.engine")
    target, draft = tmp_path / "target.gguf", tmp_path / "draft.gguf"
    for path, noise in ((target, 0.0), (draft, 0.05)):
        write_llama(vocabulary(), path, noise=noise)
    engine: Engine = engines.LlamaEngine(lambda _target, _draft: None)
    try:
        test = QuickTest(
            target, draft, (Source.DRAFT_MODEL,), "chat", 2.0, 3, load_settings=LoadSettings(1024, threads=1)
        )
        found = list(run(test, engine))
    finally:
        engine.close()
    result = result_of(found)
    assert result.prompts
    assert all(each.tested > 0 and 0 <= each.accepted <= each.tested for each in result.prompts)
    assert result.measurement() is not None


def test_over_an_engine_in_another_process(tmp_path: Path) -> None:
    """As the window runs it, with the check that remembers verdicts; a pair that is refused there has its reason."""
    pytest.importorskip("llama_cpp")
    target, draft, other = (tmp_path / f"{name}.gguf" for name in ("target", "draft", "other"))
    write_llama(vocabulary(), target)
    write_llama(vocabulary(), draft, noise=0.05)
    tokens = list(vocabulary().tokens)
    tokens[139] = "xyz"
    write_llama(replace(vocabulary(), tokens=tokens), other)
    judge = Judge(tmp_path / "verdicts")
    engine = WaitingEngine(
        lambda listen: EngineProcess(listen, log_path=tmp_path / "engine.log", pair_check=judge.refusal)
    )
    try:
        test = QuickTest(target, draft, (MODEL,), "json", 2.0, 3, load_settings=LoadSettings(1024, threads=1))
        result = result_of(list(run(test, engine)))
        assert result.prompts
        assert all(each.tested > 0 for each in result.prompts)
        with pytest.raises(UserFacingError) as caught:
            list(run(replace(test, draft=other), engine))
    finally:
        engine.close()
    assert caught.value.why == judge.verdict(target, other).reason

"""A comparison's view of an engine in another process: real children with a scripted engine in them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from compare.timed_engine import comparison
from forespeak.compare.plan import Pair, Prompt, Way
from forespeak.compare.runner import Runner
from forespeak.compare.waiting import WaitingEngine
from forespeak.engines.engine import (
    ChatMessage,
    ConversionRequest,
    Converted,
    GenerationRequest,
    LoadRequest,
    Progress,
    Role,
)
from forespeak.engines.host import EngineProcess
from forespeak.errors import UserFacingError
from forespeak.speculation.events import Finished
from forespeak.speculation.trace import FinishReason, Source, Step
from hosted_engine import refuse_pair, scripted_engine


def never() -> bool:
    return False


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[WaitingEngine]:
    engine = WaitingEngine(
        lambda listen: EngineProcess(
            listen, log_path=tmp_path / "engine.log", pair_check=refuse_pair, engine=scripted_engine
        )
    )
    yield engine
    engine.close()


def ask(script: str) -> GenerationRequest:
    return GenerationRequest((ChatMessage(Role.USER, script),))


def steps_of(engine: WaitingEngine, script: str) -> int:
    return sum(isinstance(event, Step) for event in engine.generate(ask(script), never))


def test_calls_wait_for_their_answers(engine: WaitingEngine) -> None:
    told: list[Progress] = []
    loaded = engine.load(LoadRequest(Path("model"), Path("other")), told.append, never)
    assert loaded is not None
    assert loaded.target.name == "model"
    assert loaded.draft_problem == "other does not suit model."
    assert told == [Progress(0.5, "Loading")]
    *steps, last = engine.generate(ask("3"), never)
    assert [type(step) for step in steps] == [Step] * 4
    assert isinstance(last, Finished)
    destination = Path("b.gguf")
    assert engine.convert(ConversionRequest(Path("a.gguf"), destination), told.append, never) == Converted(destination)


def test_failures_are_raised_and_the_next_request_is_served(engine: WaitingEngine) -> None:
    with pytest.raises(UserFacingError, match="No model is loaded"):
        steps_of(engine, "1")
    engine.load(LoadRequest(Path("model")), lambda _: None, never)
    with pytest.raises(UserFacingError) as caught:
        steps_of(engine, "raise")
    assert (caught.value.what, caught.value.why, caught.value.remedy) == ("What.", "Why.", "Remedy.")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        steps_of(engine, "bug")
    assert steps_of(engine, "2") == 3


def test_a_death_is_a_failure_after_which_the_pair_is_loaded_again(engine: WaitingEngine) -> None:
    engine.load(LoadRequest(Path("model")), lambda _: None, never)
    with pytest.raises(UserFacingError, match="stopped unexpectedly"):
        steps_of(engine, "exit")
    assert steps_of(engine, "2") == 3


def test_a_cancel_reaches_the_other_process(engine: WaitingEngine) -> None:
    assert engine.load(LoadRequest(Path("slow")), lambda _: None, lambda: True) is None
    engine.load(LoadRequest(Path("model")), lambda _: None, never)
    looks = itertools.count()
    *_, last = engine.generate(ask("for ever"), lambda: next(looks) > 2)
    assert isinstance(last, Finished)
    assert last.reason is FinishReason.CANCELLED


def test_nobody_waits_behind_a_reply_that_was_left(engine: WaitingEngine) -> None:
    engine.load(LoadRequest(Path("model")), lambda _: None, never)
    events = engine.generate(ask("for ever"), never)
    assert isinstance(next(events), Step)
    events.close()  # type: ignore[attr-defined]
    assert steps_of(engine, "1") == 2


def test_a_comparison_runs_over_it(engine: WaitingEngine) -> None:
    plan = comparison(
        pairs=(Pair(Path("model")),),
        ways=(Way((Source.PROMPT_LOOKUP,), 4),),
        prompts=(Prompt("own", "count", "5"), Prompt("own", "dies", "exit")),
        runs=1,
    )
    results = Runner(plan, engine, lambda _: None, never).run()
    assert results.complete
    assert [(run.task.prompt.name, run.failure is None, len(run.token_ids)) for run in results.runs] == [
        ("count", True, 6),
        ("count", True, 6),
        ("dies", False, 0),
        ("dies", False, 0),
    ]
    assert [run.identical for run in results.runs] == [None, True, None, None]

"""Events become a reply, and a listener that fails ends the generation."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from forespeak.engines.collect import collect
from forespeak.engines.engine import Notice
from forespeak.speculation.events import Event, Finished, PromptProgress
from forespeak.speculation.trace import FinishReason, GenerationStats, Origin, Step, Token

_STATS = GenerationStats(generated_tokens=2, tokens_per_second=68.44)


def events(*, finish: bool = True, closed: list[str] | None = None) -> Iterator[Notice | Event]:
    try:
        yield PromptProgress(3, 3, 0)
        yield Notice("a notice")
        yield Step(0, (Token(1, "a", Origin.TARGET),))
        yield Step(1, (Token(2, "b", Origin.TARGET),))
        if finish:
            yield Finished(FinishReason.LENGTH, _STATS)
    finally:
        if closed is not None:
            closed.append("closed")


def test_collecting_keeps_what_happened() -> None:
    heard: list[Step] = []
    collected = collect(events(), heard.append)
    assert collected.text == "ab"
    assert collected.notices == ("a notice",)
    assert collected.reason is FinishReason.LENGTH
    assert tuple(heard) == collected.steps


def test_a_generation_says_how_it_ends() -> None:
    with pytest.raises(RuntimeError):
        collect(events(finish=False))


def test_a_listener_that_fails_ends_the_generation_at_once() -> None:
    closed: list[str] = []

    def broken(step: Step) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError) as caught:
        collect(events(closed=closed), broken)
    assert closed == ["closed"]
    assert caught.value is not None

"""What a generation begins with: caches and knowledge kept, caches emptied, or all forgotten."""

from __future__ import annotations

import pytest

from forespeak.engines.drafting import Drafting
from forespeak.engines.engine import ChatMessage, GenerationRequest, Role, Start
from forespeak.engines.llamacpp.engine import LlamaEngine
from forespeak.speculation.events import Finished
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import GenerationStats


def stats_of(engine: LlamaEngine, start: Start) -> GenerationStats:
    request = GenerationRequest(
        (ChatMessage(Role.USER, "Name five rivers."),),
        sampling=SamplingSettings(temperature=0.0),
        max_tokens=4,
        start=start,
    )
    *_, last = engine.generate(request, lambda: False)
    assert isinstance(last, Finished)
    return last.stats


def test_caches_and_knowledge(engine: LlamaEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[Drafting] = []

    def forget(drafting: Drafting) -> None:
        forgotten.append(drafting)

    monkeypatch.setattr(Drafting, "forget", forget)
    stats_of(engine, Start.WARM)
    again = stats_of(engine, Start.WARM)
    assert again.reused_prompt_tokens == again.prompt_tokens - 1
    assert stats_of(engine, Start.COLD).reused_prompt_tokens == 0
    assert forgotten == []
    assert stats_of(engine, Start.FRESH).reused_prompt_tokens == 0
    assert len(forgotten) == 1

"""What a generation begins with: caches and knowledge kept, caches emptied, or as if the pair had just been loaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engines.llamacpp.conftest import accept_any_pair
from forespeak.engines.engine import ChatMessage, GenerationRequest, LoadRequest, LoadSettings, Role, Start
from forespeak.engines.llamacpp.engine import LlamaEngine
from forespeak.engines.pair_knowledge import PairConditions
from forespeak.speculation.events import Finished
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import GenerationStats, Source


def stats_of(engine: LlamaEngine, start: Start, temperature: float = 0.0) -> GenerationStats:
    request = GenerationRequest(
        (ChatMessage(Role.USER, "Name five rivers."),),
        (Source.DRAFT_MODEL,),
        sampling=SamplingSettings(temperature=temperature),
        max_tokens=4,
        start=start,
    )
    *_, last = engine.generate(request, lambda: False)
    assert isinstance(last, Finished)
    return last.stats


def test_caches(engine: LlamaEngine) -> None:
    stats_of(engine, Start.WARM)
    again = stats_of(engine, Start.WARM)
    assert again.reused_prompt_tokens == again.prompt_tokens - 1
    assert stats_of(engine, Start.COLD).reused_prompt_tokens == 0
    assert stats_of(engine, Start.FRESH).reused_prompt_tokens == 0


class Memory:
    def __init__(self) -> None:
        self.kept: Mapping[str, Any] = {}

    def recall(self, _conditions: PairConditions) -> Mapping[str, Any] | None:
        return self.kept or None

    def keep(self, _conditions: PairConditions, learned: Mapping[str, Any], *, soon: bool = False) -> None:
        self.kept = json.loads(json.dumps(learned))


def test_replies_that_begin_anew_change_nothing_of_what_is_kept(q4_1: Path) -> None:
    memory = Memory()
    engine = LlamaEngine(accept_any_pair, memory)
    engine.load(LoadRequest(q4_1, q4_1, LoadSettings(context_length=256)), lambda _: None, lambda: False)
    for temperature in (0.0, 0.8):
        stats_of(engine, Start.COLD, temperature)
    learned = memory.kept
    assert len(learned["drafting"]["models"]) == 2
    for _ in range(2):
        stats_of(engine, Start.FRESH)
    assert memory.kept == learned
    engine.close()
    assert memory.kept == learned

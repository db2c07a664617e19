"""Benches for parity checks without an engine: a toy target that drafts for itself, honest, lying or shaky."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from forespeak.engines.drafting import Drafting
from forespeak.engines.engine import GenerationRequest, Notice
from forespeak.speculation.decode import DecodeSettings, generate
from forespeak.speculation.events import Event
from forespeak.speculation.language_model import Logits
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.trace import Step
from scripted import ScriptedModel, letters, random_scores

SIZE = 20


class Shaky(ScriptedModel):
    """Scores of several tokens evaluated at once are moved by `by`: up and down in turn, so that ranks may change."""

    by = 0.0

    def evaluate(self, tokens: Sequence[int], outputs: int) -> Logits:
        rows = super().evaluate(tokens, outputs)
        if len(tokens) > 1:
            rows += np.where(np.arange(SIZE) % 2 == 0, self.by, -self.by).astype(np.float32)
        return rows


@dataclass
class Bench:
    """A target of random scores that drafts for itself, which every engine's bench could be."""

    target: ScriptedModel = field(default_factory=lambda: ScriptedModel(random_scores(SIZE, 1), letters(SIZE)))
    draft: ScriptedModel = field(default_factory=lambda: ScriptedModel(random_scores(SIZE, 1), letters(SIZE)))
    engine: str = "toy 1"
    change: Callable[[Step], Step] = lambda step: step
    asked: list[GenerationRequest] = field(default_factory=list)
    drafting: Drafting = field(default_factory=Drafting)

    def __post_init__(self) -> None:
        self.drafting.measure_target(self.target)
        self.drafting.measure_draft(self.draft)

    def prompt(self, request: GenerationRequest) -> list[int]:
        return [ord(letter) % SIZE for letter in request.messages[-1].content]

    def sampler(self, request: GenerationRequest) -> Sampler:
        return Sampler(request.sampling)

    def generate(self, request: GenerationRequest, cancelled: Callable[[], bool]) -> Iterator[Notice | Event]:
        self.asked.append(request)
        source, controller = self.drafting.prepare(request, self.draft, SIZE, cancelled)
        events = generate(
            self.target,
            source,
            self.prompt(request),
            self.sampler(request),
            controller,
            DecodeSettings(max_tokens=request.max_tokens),
            cancelled,
        )
        for event in events:
            yield self.change(event) if isinstance(event, Step) else event


def accepted_changed(step: Step) -> Step:
    """A draft path that emits another token than the one that was accepted."""
    if step.accepted_count < 2:
        return step
    tokens = list(step.emitted)
    tokens[1] = replace(tokens[1], id=(tokens[1].id + 1) % SIZE)
    return replace(step, emitted=tuple(tokens))


def nearly_tied(distance: float) -> Callable[[tuple[int, ...]], np.ndarray[tuple[int], np.dtype[np.float32]]]:
    """Random scores, but the token before the best, or behind it, is only `distance` below."""
    scores = random_scores(SIZE, 3)

    def tied(prefix: tuple[int, ...]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        row = scores(prefix).copy()
        best = int(np.argmax(row))
        row[best ^ 1] = row[best] - distance
        return row

    return tied


def shaky_bench(by: float, distance: float) -> Bench:
    target = Shaky(nearly_tied(distance), letters(SIZE))
    target.by = by
    return Bench(target=target, draft=ScriptedModel(nearly_tied(distance), letters(SIZE)))

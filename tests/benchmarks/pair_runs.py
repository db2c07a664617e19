"""What the benchmarks of loaded pairs share: the prompts, one run with its figures, and ratios of runs."""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.relatives import relative
from forespeak.compare.prompts import CATEGORIES, suite
from forespeak.engines import huge_pages
from forespeak.engines.engine import ChatMessage, GenerationRequest, LoadRequest, LoadSettings, Role
from forespeak.engines.llamacpp.engine import LlamaEngine
from forespeak.speculation.events import Finished
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import GenerationStats, Source, Step

TEXT_SOURCES = tuple(source for source in Source if not source.uses_model)

PAIR_PROMPTS = {category: next(p.text for p in suite() if p.category == category) for category in CATEGORIES}
"""One for each kind of reply: the first of the suite that comes with the program."""
REWRITINGS = {f"{prompt.category} {prompt.name}": prompt.text for prompt in suite() if prompt.category == "rewrite"}


@dataclass(frozen=True, slots=True)
class Run:
    """One reply: decode rate (tokens after the first per second after the first), and the whole request's rate."""

    rate: float
    wall_rate: float
    tokens: int
    drafted: int
    accepted: int

    @property
    def acceptance(self) -> float | None:
        return self.accepted / self.drafted if self.drafted else None

    @property
    def per_evaluation(self) -> float:
        """Tokens of a target evaluation, the prompt's counted as one: what the drafts are worth whatever they cost."""
        return self.tokens / (self.tokens - self.accepted)


def filters(temperature: float, seed: int = 0) -> SamplingSettings:
    """The sampling that all comparisons use: top-k 40, top-p 0.95, nothing else."""
    return SamplingSettings(temperature=temperature, top_k=40, top_p=0.95, min_p=0.0, seed=seed)


def load(target: str, draft: str | None, *, threads: int | None = None, context: int = 4096) -> LlamaEngine:
    """An engine with a pair of relatives. `threads` None: as the app does it, watching what others leave."""
    # The window's engine and the commands have huge pages.
    huge_pages.begin_again()
    engine = LlamaEngine(lambda _target, _draft: None)
    request = LoadRequest(relative(target), relative(draft) if draft else None, LoadSettings(context, threads=threads))
    loaded = engine.load(request, lambda _: None, lambda: False)
    assert loaded is not None
    if loaded.draft_problem:
        raise SystemExit(loaded.draft_problem)
    return engine


def ask(
    prompt: str,
    tokens: int,
    sampling: SamplingSettings,
    sources: tuple[Source, ...] = (),
    draft_length: int | None = None,
) -> GenerationRequest:
    return GenerationRequest(
        (ChatMessage(Role.USER, prompt),), sources, sampling, draft_length=draft_length, max_tokens=tokens
    )


def generate(engine: LlamaEngine, request: GenerationRequest) -> tuple[list[Step], GenerationStats, float]:
    """Steps, counts and wall-clock seconds of a reply whose prompt is read anew, by both models."""
    for model in (engine._target, engine._draft):
        if model is not None:
            model.truncate(0)
    steps: list[Step] = []
    started = time.perf_counter()
    for event in engine.generate(request, lambda: False):
        if isinstance(event, Step):
            steps.append(event)
        elif isinstance(event, Finished):
            return steps, event.stats, time.perf_counter() - started
    raise AssertionError("the generation did not finish")


def measure(engine: LlamaEngine, request: GenerationRequest) -> Run:
    _, stats, seconds = generate(engine, request)
    tested = stats.accepted_draft_tokens_count + stats.rejected_draft_tokens_count
    return Run(
        stats.tokens_per_second,
        stats.generated_tokens / seconds,
        stats.generated_tokens,
        tested,
        stats.accepted_draft_tokens_count,
    )


@dataclass(frozen=True, slots=True)
class Ratio:
    """Of paired runs: median, least, greatest."""

    median: float
    least: float
    greatest: float

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.least:.3f}–{self.greatest:.3f})"


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Run by run: what drifts with the time hits both of a pair."""
    each = [a / b for a, b in zip(ours, theirs, strict=True)]
    return Ratio(statistics.median(each), min(each), max(each))


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


def verdict(value: float, least: float) -> str:
    return f"{value:.3f}, wanted {least:.2f}: " + ("met" if value >= least else "MISSED")


def machine() -> str:
    """What figures were taken beside."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan
    return f"{os.cpu_count()} processors, load before the start {load:.2f}"


def warn_if_busy() -> None:
    """Two thread pools beside other work measure that work."""
    if hasattr(os, "getloadavg") and os.getloadavg()[0] > 0.5:
        print(f"Note: the machine is not idle ({machine()}).", file=sys.stderr)


def write_json(path: Path | None, value: object) -> None:
    if path is not None:
        path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
        print(f"Written to {path}.")

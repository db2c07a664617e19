"""Comparisons for tests and pictures: values as the page shows them, and a desk that measures nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from forespeak.compare.control import Control
from forespeak.compare.lanes import Lane, Plan
from forespeak.compare.plan import Prompt, Task, visits
from forespeak.compare.runner import Happening, Loading, PairFailed, Paused, Ran, Run, Running, Stepped, WentOn
from forespeak.engines.engine import Progress
from forespeak.errors import UserFacingError
from forespeak.speculation.trace import GenerationStats, Source, Step
from forespeak.ui.compare_prompt_files import read_prompts
from forespeak.ui.compare_values import (
    HistoryRow,
    LaneFigures,
    Rate,
    Recorded,
    ResultValues,
    SpeedUp,
    SpeedUps,
    Tone,
)
from forespeak.ui.replay import LaneRecording
from ui.scripted_engine import scripted_steps

TEXT = (
    "The Pythagorean theorem says that in a right-angled triangle the square of the longest side equals the sum of "
    "the squares of the other two sides, and it has been proved in hundreds of ways."
)
TARGET = Path("/models/llama-3.1-8b.gguf")
DRAFT = Path("/models/llama-3.2-1b.gguf")


def lane_recording(
    name: str, source: Source | None, text: str = TEXT, step_seconds: float = 0.02, first: float = 0.25
) -> LaneRecording:
    steps = tuple(
        replace(step, draft_seconds=0.004 if source and step.index else 0.0, target_seconds=step_seconds)
        for step in scripted_steps(text, source)
    )
    ends, at = [], first
    for number, step in enumerate(steps):
        at += step.draft_seconds + step.target_seconds if number else 0.0
        ends.append(at)
    tokens = sum(len(step.emitted) for step in steps[1:])
    return LaneRecording(name, source is None, steps, tuple(ends), tokens / (at - first))


def recorded(label: str = "stem: triangle", lanes: int = 2) -> Recorded:
    others = [
        lane_recording("Llama 3.2 1B · Auto", Source.DRAFT_MODEL, step_seconds=0.021),
        lane_recording("Prompt lookup · Auto", Source.PROMPT_LOOKUP, step_seconds=0.023),
    ]
    return Recorded(label, (lane_recording("Off", None), *others[: lanes - 1]))


_KINDS = (
    ("coding", 1.71, 1.62, 1.80),
    ("rewriting", 1.88, 1.74, 1.97),
    ("json", 1.52, 1.44, 1.61),
    ("math", 1.38, 1.30, 1.45),
    ("summaries", 1.24, 1.15, 1.32),
    ("multilingual", 1.12, 1.03, 1.20),
    ("writing", 0.99, 0.95, 1.01),
)


def values(
    comparison: str = "one", name: str = "Llama 3.1 8B: off against Llama 3.2 1B", **changes: object
) -> ResultValues:
    rows = tuple(SpeedUp(kind, ratio, low, high, f"{kind}: {ratio:.2f}×") for kind, ratio, low, high in _KINDS)
    plain = tuple(
        Rate(kind, 50.1 - place / 3, 49.0 - place / 3, 51.0 - place / 3) for place, (kind, *_) in enumerate(_KINDS)
    )
    fast = tuple(Rate(kind, 50.1 * ratio, 50.1 * low, 50.1 * high) for kind, ratio, low, high in _KINDS)
    shown = ResultValues(
        id=comparison,
        name=name,
        subtitle="10 prompts of 7 kinds · 200 tokens · temperature 0 · today 14:05 · RTX 3090 Ti",
        ratio=1.36,
        tone=Tone.GOOD,
        headline="Speculation is worth it here, most of all for code and rewriting.",
        details="10 prompts, 3 runs each, order balanced, same seed. 95 % interval 1.29 – 1.42.",
        advice="For creative writing switch it off, or draft two tokens at a time.",
        sameness="The words were the same in all 30 runs that were compared.",
        speed_ups=(SpeedUps("Llama 3.2 1B · Auto against Off", rows),),
        lanes=(
            LaneFigures("Off", True, plain),
            LaneFigures("Llama 3.2 1B · Auto", False, fast, (0.91, 0.78, 0.66, 0.55, 0.41), 0.17),
        ),
        table=(
            ("", "Off", "Llama 3.2 1B · Auto"),
            ("Tokens per second", "50.1", "68.4"),
            ("Speed-up", "–", "1.36× (1.29 – 1.42)"),
            ("Time to first token", "0.251 s", "0.254 s"),
            ("Time per token, median", "19.9 ms", "14.2 ms"),
            ("Drafts accepted", "–", "71 %"),
            ("Tokens from each check", "1.00", "3.42"),
            ("Peak memory", "9.1 GB", "10.4 GB"),
            ("Same words as the target alone", "–", "30 / 30"),
            ("Runs", "30", "30"),
        ),
        recorded=(recorded(), recorded("writing: letter")),
    )
    return replace(shown, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True)
class OpenedDouble:
    plan: Plan
    values: ResultValues


@dataclass
class RemovedDouble:
    back: Callable[[], None]

    def undo(self) -> None:
        self.back()


def plan_double(prompts: Sequence[Prompt] = (), private: bool = False) -> Plan:
    return Plan(
        TARGET,
        (Lane("Off"), Lane("Llama 3.2 1B · Auto", (Source.DRAFT_MODEL,), DRAFT)),
        tuple(prompts) or (Prompt("stem", "triangle", "What does Pythagoras say?", private=private),),
    )


@dataclass
class DeskDouble:
    """Keeps comparisons in memory; `gate` holds each run until it is set, step by step, `export_gate` each report."""

    kept: dict[str, tuple[str, OpenedDouble]] = field(default_factory=dict)
    measured: list[Plan] = field(default_factory=list)
    exported: list[tuple[str, str, Path, bool]] = field(default_factory=list)
    gate: threading.Event | None = None
    export_gate: threading.Event | None = None
    text: str = TEXT
    error: UserFacingError | None = None
    fault: Exception | None = None
    failing_pair: str = ""
    resumed: list[str] = field(default_factory=list)
    stops_after: int | None = None
    chatted: Callable[[], bool] = lambda: False

    def measure(self, plan: Plan, name: str, listen: Callable[[Happening], None], control: Control) -> str:
        self.measured.append(plan)
        self.chatted = control.chatted
        if self.error is not None:
            raise self.error
        if self.fault is not None:
            raise self.fault
        listen(Loading(0, Progress(0.4, "Reading the target")))
        if self.failing_pair:
            listen(PairFailed(0, self.failing_pair))
        done, total = 0, 0
        comparison = plan.comparison()
        tasks: list[Task] = []
        for pair in range(len(comparison.pairs)):
            for visit in visits(comparison, pair, comparison.ways_of(comparison.pairs[pair])):
                tasks += visit
        total = len(tasks)
        for task in tasks:
            if control.is_paused:
                listen(Paused())
                control.wait()
                listen(WentOn())
            if control.stopped():
                break
            listen(Running(task, done, total, 12.0 * (total - done)))
            source = task.way.sources[-1] if task.way.sources else None
            for step in scripted_steps(self.text, source):
                while self.gate is not None and not self.gate.wait(0.01) and not control.stopped():
                    pass
                if control.stopped():
                    break
                listen(Stepped(task, step))
            if control.stopped():
                break
            done += 1
            listen(Ran(_run_of(task, scripted_steps(self.text, source))))
        if not done:
            return ""
        number = f"c{len(self.kept) + 1}"
        shown = values(number, name or f"Comparison {len(self.kept) + 1}", resumable=done < total)
        self.kept[number] = (shown.name, OpenedDouble(plan, shown))
        return number

    def go_on(self, comparison: str, listen: Callable[[Happening], None], control: Control) -> str:
        self.resumed.append(comparison)
        shown = self.kept[comparison][1]
        self.kept[comparison] = (shown.values.name, replace(shown, values=replace(shown.values, resumable=False)))
        return comparison

    def rows(self, query: str) -> tuple[HistoryRow, ...]:
        return tuple(
            HistoryRow(key, name, "today 14:05", opened.values.headline)
            for key, (name, opened) in reversed(self.kept.items())
            if query.casefold() in name.casefold()
        )

    def open(self, comparison: str) -> OpenedDouble:
        if comparison not in self.kept:
            raise UserFacingError("There is no such comparison.", "Its file is gone.", "Look at the list.")
        name, opened = self.kept[comparison]
        return replace(opened, values=replace(opened.values, name=name))

    def rename(self, comparison: str, name: str) -> None:
        self.kept[comparison] = (name, self.kept[comparison][1])

    def remove(self, comparisons: tuple[str, ...]) -> RemovedDouble:
        gone = {each: self.kept.pop(each) for each in comparisons}
        return RemovedDouble(lambda: self.kept.update(gone))

    def read_prompts(self, path: Path) -> Sequence[Prompt]:
        return read_prompts(path)

    def export(
        self, comparison: str, kind: str, path: Path, private: bool, stopped: Callable[[], bool] = lambda: False
    ) -> None:
        while self.export_gate is not None and not self.export_gate.wait(0.01):
            if stopped():
                return
        self.exported.append((comparison, kind, path, private))
        path.write_text(kind, encoding="utf-8")


def _run_of(task: Task, steps: Sequence[Step]) -> Run:
    tokens = sum(len(step.emitted) for step in steps)
    seconds = sum(step.draft_seconds + step.target_seconds for step in steps[1:])
    stats = GenerationStats(
        generated_tokens=tokens, decode_seconds=seconds, tokens_per_second=(tokens - 1) / seconds if seconds else 0.0
    )
    return Run(task, 0, 0.0, seconds, stats=stats)

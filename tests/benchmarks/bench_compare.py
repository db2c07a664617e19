"""What comparisons find on a real engine: nothing where there is nothing, a twentieth where there is one.

    python tests/benchmarks/bench_compare.py [--times 20] [--only equal slowed stopwatch] [--json FILE]

About a minute for each comparison, of which there are 20 of each of two kinds: 40 minutes in all. Run alone.

- equal: the target alone against itself. Wanted: the interval holds 1 in at least 18 of 20.
- slowed: the second lane waits after each step for a twentieth of the step's time. Wanted: found in at least 18.
- stopwatch: tokens per second as a comparison tells them, against a clock outside of the engine, from the arrival of
  the first token to the end, in this process and over the pipe of an engine process. Wanted: within 3 % in each lane.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.pair_runs import machine, warn_if_busy, write_json
from benchmarks.relatives import relative
from forespeak.compare.control import Control
from forespeak.compare.lane_results import ComparisonResult
from forespeak.compare.lanes import Lane, Plan
from forespeak.compare.machine import machine_notes
from forespeak.compare.plan import Task
from forespeak.compare.prompts import ENGLISH, SHORT, suite_prompts
from forespeak.compare.runner import Happening, Running
from forespeak.compare.session import measure
from forespeak.compare.store import ComparisonStore
from forespeak.compare.waiting import WaitingEngine
from forespeak.engines.engine import Converted, Engine, GenerationRequest, Loaded, LoadRequest, Notice, Progress
from forespeak.engines.host import EngineProcess
from forespeak.engines.llamacpp.engine import LlamaEngine
from forespeak.speculation.events import Event, Finished
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import Source, Step

OFF, AGAIN = Lane("Off"), Lane("Off again")
SLOWER = 0.05


@dataclass(slots=True)
class Watched:
    """An engine with a stopwatch beside it; the second of two equal lanes may wait after each step.

    `seconds` are those from a reply's first token to its end, by its task.
    """

    engine: Engine
    slowed: bool = False
    task: Task | None = None
    seconds: dict[Task, float] = field(default_factory=dict)

    def hear(self, happening: Happening) -> None:
        if isinstance(happening, Running):
            self.task = happening.task

    def load(
        self, request: LoadRequest, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
    ) -> Loaded | None:
        return self.engine.load(request, progress, cancelled)

    def generate(self, request: GenerationRequest, cancelled: Callable[[], bool]) -> Iterator[Notice | Event]:
        task, first = self.task, None
        for event in self.engine.generate(request, cancelled):
            now = time.perf_counter()
            if isinstance(event, Step):
                first = first or now
                if self.slowed and task is not None and task.way.twin and event.index:
                    time.sleep(SLOWER * event.target_seconds)
            elif isinstance(event, Finished) and first is not None and task is not None:
                self.seconds[task] = now - first
            yield event

    def convert(self, *_: Any) -> Converted | None:
        raise NotImplementedError

    def close(self) -> None:
        self.engine.close()


def plan(repeats: int, tokens: int, *lanes: Lane) -> Plan:
    prompts = suite_prompts(["qa", "writing", "stem"], languages=[ENGLISH], answers=[SHORT], each=1)
    return Plan(
        relative("Q4_1"), lanes, prompts, repeats, tokens, sampling=SamplingSettings(temperature=0.8), threads=None
    )


def compare(engine: Watched, wanted: Plan) -> ComparisonResult:
    with tempfile.TemporaryDirectory() as folder:
        journal = ComparisonStore(Path(folder)).begin(wanted, machine_notes())
        return measure(wanted, engine, journal, engine.hear, Control())


def found(times: int, repeats: int, tokens: int, *, slowed: bool) -> list[dict[str, Any]]:
    """The over-all ratio of the second lane in each of `times` comparisons."""
    engine = Watched(inside(), slowed=slowed)
    records = []
    for number in range(times):
        cell = compare(engine, plan(repeats, tokens, OFF, AGAIN)).lanes[1].overall
        assert cell.ratio is not None
        assert cell.ratio.interval is not None
        low, high = cell.ratio.interval.low, cell.ratio.interval.high
        print(f"  {number + 1:2}  {cell.ratio.value:.3f} ({low:.3f}–{high:.3f})  {cell.verdict.kind.value}", flush=True)
        records.append({"value": cell.ratio.value, "low": low, "high": high, "verdict": cell.verdict.kind.value})
    engine.close()
    return records


def stopwatch(name: str, engine: Watched, repeats: int, tokens: int) -> dict[str, float]:
    """By lane, how far its median rate lies from the stopwatch's, as a share."""
    draft = relative("Q2_K")
    lanes = (OFF, Lane("Draft model", (Source.DRAFT_MODEL,), draft), Lane("Looked up", (Source.PROMPT_LOOKUP,)))
    result = compare(engine, plan(repeats, tokens, *lanes))
    engine.close()
    shares = {}
    for lane in result.lanes:
        places = result.plan.places[lane.lane]
        runs = [r for r in result.results.runs if (r.task.pair, r.task.temperature, r.task.way) in places and r.rate]
        told = statistics.median(run.rate or 0.0 for run in runs)
        clocked = statistics.median((run.stats.generated_tokens - 1) / engine.seconds[run.task] for run in runs)
        share = shares[lane.lane.name] = told / clocked - 1.0
        print(f"  {name:12} {lane.lane.name:12} {told:7.2f} tokens/s, by the stopwatch {clocked:7.2f}: {share:+.2%}")
    return shares


def any_pair(_target: Path, _draft: Path) -> None:
    """The relatives suit each other."""


def inside() -> Engine:
    return LlamaEngine(any_pair)


def process(folder: Path) -> Engine:
    return WaitingEngine(lambda listen: EngineProcess(listen, log_path=folder / "engine.log", pair_check=any_pair))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--only", nargs="+", choices=("equal", "slowed", "stopwatch"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    parts = options.only or ["equal", "slowed", "stopwatch"]
    print(machine())
    warn_if_busy()
    record: dict[str, Any] = {"machine": machine()}
    good = True
    if "equal" in parts:
        print("The target alone against itself")
        records = record["equal"] = found(options.times, options.repeats, options.tokens, slowed=False)
        held = sum(each["low"] <= 1.0 <= each["high"] for each in records)
        good &= told(f"the interval holds 1 in {held} of {options.times}", held >= 0.9 * options.times)
    if "slowed" in parts:
        print(f"A lane slowed by {SLOWER:.0%}")
        records = record["slowed"] = found(options.times, options.repeats, options.tokens, slowed=True)
        count = sum(each["verdict"] == "slower" for each in records)
        good &= told(f"found in {count} of {options.times}", count >= 0.9 * options.times)
    if "stopwatch" in parts:
        print("Against a stopwatch")
        with tempfile.TemporaryDirectory() as folder:
            shares = {
                "in process": stopwatch("in process", Watched(inside()), options.repeats, 4 * options.tokens),
                "over a pipe": stopwatch(
                    "over a pipe", Watched(process(Path(folder))), options.repeats, 4 * options.tokens
                ),
            }
        record["stopwatch"] = shares
        worst = max(abs(share) for lanes in shares.values() for share in lanes.values())
        good &= told(f"at most {worst:.1%} apart", worst <= 0.03)
    write_json(options.json, record)
    return 0 if good else 1


def told(words: str, met: bool) -> bool:
    print(f"{words}: {'met' if met else 'MISSED'}")
    return met


if __name__ == "__main__":
    sys.exit(main())

"""What comparisons find on a real engine: nothing where there is nothing, a twentieth where there is one.

    python tests/benchmarks/bench_compare.py [--times 20] [--minutes 12] [--only equal slowed stopwatch] [--json FILE]

Takes about `--minutes`, and a minute for the stopwatch; ends with one line that begins with VERDICT. Run alone.

- equal: the target alone against itself. Wanted: the interval holds 1 in at least 18 of 20.
- slowed: the second lane waits after each step for a twentieth of the step's time. Wanted: found in at least 18.
- stopwatch: tokens per second as a comparison tells them, against a clock outside of the engine, from the arrival of
  the first token to the end, in this process and over the pipe of an engine process. Wanted: within 3 % in each lane.

Each comparison is the product's own, with its order, seeds, statistics and journal: three short prompts, as many
repeats as the time allows, the prompt read once for both lanes. Equal and slowed ones take turns, so that whatever
happens to the machine meanwhile meets both; all of them use one load.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.pair_runs import machine, warn_if_busy, write_json
from benchmarks.relatives import relative
from forespeak.compare.control import Control
from forespeak.compare.lane_results import ComparisonResult
from forespeak.compare.lanes import Lane, Plan
from forespeak.compare.machine import BUSY_CORES, machine_notes
from forespeak.compare.plan import Task
from forespeak.compare.prompts import ENGLISH, SHORT, suite_prompts
from forespeak.compare.runner import Happening, Running
from forespeak.compare.session import measure
from forespeak.compare.store import ComparisonStore
from forespeak.compare.verdicts import VerdictKind
from forespeak.compare.waiting import WaitingEngine
from forespeak.engines.engine import Converted, Engine, GenerationRequest, Loaded, LoadRequest, Notice, Progress, Start
from forespeak.engines.host import EngineProcess
from forespeak.engines.llamacpp.engine import LlamaEngine
from forespeak.speculation.events import Event, Finished
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import Source, Step

OFF, AGAIN = Lane("Off"), Lane("Off again")
SLOWER = 0.05
CLOSE = 0.03
WANTED = 0.9
"""Of all comparisons of a kind"""
LEAST_REPEATS, MOST_REPEATS = 3, 12
"""With three prompts, fewer than three allow no 95 % interval; more than twelve tell nothing more of a twentieth."""


@dataclass(slots=True)
class Watched:
    """An engine with a stopwatch beside it; the second of two equal lanes may wait after each step.

    `seconds` are those from a reply's first token to its end, by its task.
    """

    engine: Engine
    slowed: bool = False
    task: Task | None = None
    loaded: tuple[LoadRequest, Loaded] | None = None
    seconds: dict[Task, float] = field(default_factory=dict)

    def hear(self, happening: Happening) -> None:
        if isinstance(happening, Running):
            self.task = happening.task

    def load(
        self, request: LoadRequest, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
    ) -> Loaded | None:
        """A pair that is loaded stays."""
        if self.loaded is not None and self.loaded[0] == request:
            return self.loaded[1]
        loaded = self.engine.load(request, progress, cancelled)
        self.loaded = None if loaded is None else (request, loaded)
        return loaded

    def generate(self, request: GenerationRequest, cancelled: Callable[[], bool]) -> Iterator[Notice | Event]:
        task, first = self.task, None
        for event in self.engine.generate(request, cancelled):
            now = time.perf_counter()
            if isinstance(event, Step):
                first = first or now
                if self.slowed and task is not None and task.way.twin and event.index:
                    # A sleep would take longer than it is asked to.
                    until = time.perf_counter() + SLOWER * event.target_seconds
                    while time.perf_counter() < until:
                        pass
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
        relative("Q4_1"), lanes, prompts, repeats, tokens, sampling=SamplingSettings(temperature=0.8), start=Start.WARM
    )


def compare(engine: Watched, wanted: Plan) -> ComparisonResult:
    with tempfile.TemporaryDirectory() as folder:
        journal = ComparisonStore(Path(folder)).begin(wanted, machine_notes())
        return measure(wanted, engine, journal, engine.hear, Control())


@dataclass(slots=True)
class Found:
    """The over-all ratio of the second lane in each comparison of a kind; and in how many runs others were busy."""

    slowed: bool
    records: list[dict[str, Any]] = field(default_factory=list)
    runs: int = 0
    disturbed: int = 0

    def add(self, result: ComparisonResult) -> None:
        cell = result.lanes[1].overall
        assert cell.ratio is not None
        assert cell.ratio.interval is not None
        low, high = cell.ratio.interval.low, cell.ratio.interval.high
        kind = "slowed" if self.slowed else "equal"
        words = f"{cell.ratio.value:.3f} ({low:.3f}–{high:.3f})  {cell.verdict.kind.value}"
        print(f"  {len(self.records) + 1:2}  {kind:6}  {words}", flush=True)
        self.records.append({"value": cell.ratio.value, "low": low, "high": high, "verdict": cell.verdict.kind.value})
        self.runs += len(result.results.runs)
        self.disturbed += sum(run.others_cores >= BUSY_CORES for run in result.results.runs)

    @property
    def right(self) -> int:
        """As it should be: an interval that holds 1, or a verdict that says slower."""
        if self.slowed:
            return sum(each["verdict"] == VerdictKind.SLOWER.value for each in self.records)
        return sum(each["low"] <= 1.0 <= each["high"] for each in self.records)

    @property
    def is_met(self) -> bool:
        return self.right >= WANTED * len(self.records)

    @property
    def words(self) -> str:
        what = f"a lane slowed by {SLOWER:.0%} found" if self.slowed else "off against off: no difference shown"
        return f"{what} in {self.right} of {len(self.records)} ({WANTED * len(self.records):.0f} wanted)"


def compared_often(kinds: Sequence[Found], times: int, minutes: float, tokens: int) -> None:
    """Each kind `times` times, in turn, in about so many minutes."""
    engine = Watched(inside())
    # The load and the first run of each prompt are not what later ones cost.
    compare(engine, plan(1, tokens, OFF, AGAIN))
    began = time.perf_counter()
    compare(engine, plan(2, tokens, OFF, AGAIN))
    seconds = (time.perf_counter() - began) / 2
    wanted = minutes * 60.0 / (times * len(kinds) * seconds)
    repeats = max(LEAST_REPEATS, min(MOST_REPEATS, round(wanted)))
    print(f"{repeats} repeats each, {seconds:.2f} s a repeat", flush=True)
    for _ in range(times):
        for kind in kinds:
            engine.slowed = kind.slowed
            kind.add(compare(engine, plan(repeats, tokens, OFF, AGAIN)))
    engine.close()


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
    parser.add_argument("--minutes", type=float, default=12.0)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--only", nargs="+", choices=("equal", "slowed", "stopwatch"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    parts = options.only or ["equal", "slowed", "stopwatch"]
    began = time.perf_counter()
    print(machine())
    warn_if_busy()
    record: dict[str, Any] = {"machine": machine()}
    said: list[str] = []
    good = True
    kinds = [Found(slowed) for name, slowed in (("equal", False), ("slowed", True)) if name in parts]
    if kinds:
        compared_often(kinds, options.times, options.minutes, options.tokens)
        for kind in kinds:
            record["slowed" if kind.slowed else "equal"] = kind.records
            said.append(kind.words)
            good &= kind.is_met
    if "stopwatch" in parts:
        print("Against a stopwatch")
        with tempfile.TemporaryDirectory() as folder:
            shares = {
                "in process": stopwatch("in process", Watched(inside()), 2, 3 * options.tokens),
                "over a pipe": stopwatch("over a pipe", Watched(process(Path(folder))), 2, 3 * options.tokens),
            }
        record["stopwatch"] = shares
        worst = max(abs(share) for lanes in shares.values() for share in lanes.values())
        said.append(f"at most {worst:.1%} from a stopwatch ({CLOSE:.0%} wanted)")
        good &= worst <= CLOSE
    runs, disturbed = sum(kind.runs for kind in kinds), sum(kind.disturbed for kind in kinds)
    if disturbed:
        said.append(f"other programs were busy in {disturbed} of {runs} runs")
    said.append(f"{(time.perf_counter() - began) / 60:.1f} minutes")
    write_json(options.json, record)
    print(f"VERDICT: {'met' if good else 'MISSED'}. {'; '.join(said)}.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

"""Whether a comparison sees what is there and nothing else, on a clock with the noise of a desktop computer."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from compare.lane_plans import OFF, measured, plan
from compare.timed_engine import TimedEngine, prompts
from forespeak.compare.lane_results import ComparisonResult
from forespeak.compare.lanes import Lane
from forespeak.compare.runner import Happening, Running
from forespeak.compare.verdicts import VerdictKind
from forespeak.engines.engine import GenerationRequest

AGAIN = Lane("Off again")
TIMES = 20


class Noise:
    """Seconds per token of a machine that drifts, jitters, and is now and then disturbed for the length of a run.

    A run's rate varies by 1.2 %; one in fifteen loses 8 % more on average; within a comparison the machine becomes
    slower by a tenth, as a warm one does.
    """

    def __init__(self, seed: int, slower: float) -> None:
        self._random = random.Random(seed)
        self._slower = slower
        self._runs = 0
        self.again = False

    def hear(self, happening: Happening) -> None:
        if isinstance(happening, Running):
            self.again = happening.task.way.twin > 0

    def seconds(self, _: GenerationRequest) -> float:
        self._runs += 1
        drift = 1.0 + 0.1 * min(1.0, self._runs / 60)
        disturbed = self._random.expovariate(1 / 0.08) if self._random.random() < 1 / 15 else 0.0
        return (
            0.1
            * drift
            * self._random.lognormvariate(0.0, 0.012)
            * (1 + disturbed)
            * (self._slower if self.again else 1.0)
        )


def compared(folder: Path, seed: int, slower: float) -> ComparisonResult:
    noise = Noise(seed, slower)
    wanted = plan(OFF, AGAIN, prompts=prompts("code", "prose", "list"), repeats=10)
    return measured(wanted, folder, TimedEngine(seconds=noise.seconds), listen=noise.hear)[0]


def overall(result: ComparisonResult) -> tuple[float, float, VerdictKind]:
    cell = result.lanes[1].overall
    assert cell.ratio is not None
    assert cell.ratio.interval is not None
    return cell.ratio.interval.low, cell.ratio.interval.high, cell.verdict.kind


def test_off_against_off_finds_no_difference(tmp_path: Path) -> None:
    found = [overall(compared(tmp_path, seed, 1.0)) for seed in range(TIMES)]
    assert sum(low <= 1.0 <= high for low, high, _ in found) >= 18
    kinds = [kind for _, _, kind in found]
    assert kinds.count(VerdictKind.NO_DIFFERENCE) >= 15


def test_a_lane_slowed_by_a_twentieth_is_found(tmp_path: Path) -> None:
    found = [overall(compared(tmp_path, 100 + seed, 1.05)) for seed in range(TIMES)]
    assert [kind for _, _, kind in found].count(VerdictKind.SLOWER) >= 18
    assert sum(low <= 1 / 1.05 <= high for low, high, _ in found) >= 18


@pytest.mark.parametrize(
    ("slower", "kinds"), [(1.0, {VerdictKind.NO_DIFFERENCE, VerdictKind.UNCLEAR}), (1.2, {VerdictKind.SLOWER})]
)
def test_few_runs_say_no_more_than_they_can(tmp_path: Path, slower: float, kinds: set[VerdictKind]) -> None:
    noise = Noise(3, slower)
    wanted = plan(OFF, AGAIN, prompts=prompts("code"), repeats=3)
    result, _ = measured(wanted, tmp_path, TimedEngine(seconds=noise.seconds), listen=noise.hear)
    cell = result.lanes[1].overall
    assert cell.ratio is not None
    assert cell.ratio.interval is not None
    assert cell.ratio.interval.coverage == pytest.approx(0.75)
    assert cell.verdict.kind in kinds
    assert cell.verdict.kind is not VerdictKind.NO_DIFFERENCE

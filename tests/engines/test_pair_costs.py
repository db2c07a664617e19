from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from forespeak.engines.drafting import Drafting
from forespeak.engines.pair_costs import PairCosts
from forespeak.engines.pair_knowledge import PairConditions
from scripted import ScriptedModel, letters, random_scores

PAIR = PairConditions(Path("t"), Path("d"), "toy", (), 1, 0, False, 100)


class Memory:
    def __init__(self) -> None:
        self.kept: dict[PairConditions, Mapping[str, Any]] = {}
        self.calls: list[bool] = []

    def recall(self, conditions: PairConditions) -> Mapping[str, Any] | None:
        return self.kept.get(conditions)

    def keep(self, conditions: PairConditions, learned: Mapping[str, Any], *, soon: bool = False) -> None:
        self.kept[conditions] = learned
        self.calls.append(soon)


class Clock:
    """Each look at it takes `step` seconds."""

    def __init__(self) -> None:
        self.now, self.step = 0.0, 0.01

    def __call__(self) -> float:
        self.now += self.step
        return self.now


class Noted(Drafting):
    """A Drafting that notes what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def measure_target(self, model: Any) -> None:
        self.notes.append("target")
        super().measure_target(model)

    def measure_draft(self, model: Any) -> None:
        self.notes.append("draft")
        super().measure_draft(model)

    def recall(self, learned: Mapping[str, object], *, costs: bool = True) -> None:
        self.notes.append("recall" if costs else "recall without costs")
        super().recall(learned, costs=costs)


def model() -> ScriptedModel:
    return ScriptedModel(random_scores(8, 1), letters(8))


def settled(memory: Memory | None, clock: Clock, conditions: PairConditions = PAIR) -> tuple[PairCosts, Noted]:
    drafting = Noted()
    costs = PairCosts(drafting, memory, clock)
    costs.settle(conditions, model(), model())
    return costs, drafting


def test_a_new_pair_is_measured_and_kept() -> None:
    memory, clock = Memory(), Clock()
    costs, drafting = settled(memory, clock)
    assert drafting.notes == ["target", "draft"]
    costs.keep(soon=True)
    costs.close()
    assert memory.calls == [True, False]
    assert memory.kept[PAIR]["drafting"] == drafting.learned()
    costs.close()
    assert len(memory.calls) == 2


def test_a_known_pair_is_not_measured_again() -> None:
    memory, clock = Memory(), Clock()
    first, drafting = settled(memory, clock)
    first.close()
    clock.step = 0.012
    second, again = settled(memory, clock)
    assert again.notes == ["recall"]
    assert again.learned() == drafting.learned()
    # What is compared with next time is what belongs to the costs: small drifts must not add up.
    before = memory.kept[PAIR]["timings"]
    second.close()
    assert memory.kept[PAIR]["timings"] == before


@pytest.mark.parametrize("step", [0.02, 0.005])
def test_other_speeds_are_measured_anew_and_what_was_learned_stays(step: float) -> None:
    memory, clock = Memory(), Clock()
    settled(memory, clock)[0].close()
    clock.step = step
    assert settled(memory, clock)[1].notes == ["target", "draft", "recall without costs"]


@pytest.mark.parametrize("kept", [{}, {"timings": [0.01]}, {"timings": "x", "drafting": {}}, {"drafting": 7}], ids=str)
def test_what_cannot_be_used_is_measured_anew(kept: dict[str, Any]) -> None:
    memory, clock = Memory(), Clock()
    memory.kept[PAIR] = kept
    costs, drafting = settled(memory, clock)
    assert drafting.notes[:2] == ["target", "draft"]
    costs.close()
    assert settled(memory, clock)[1].notes == ["recall"]


def test_damage_within_what_was_learned_is_measured_anew() -> None:
    memory, clock = Memory(), Clock()
    settled(memory, clock)[0].close()
    memory.kept[PAIR] = {**memory.kept[PAIR], "drafting": {"target_seconds": "no"}}
    assert settled(memory, clock)[1].notes == ["recall", "target", "draft", "recall without costs"]


def test_without_a_memory_everything_is_measured() -> None:
    costs, drafting = settled(None, Clock())
    assert drafting.notes == ["target", "draft"]
    costs.keep()
    costs.close()


def test_a_target_that_stays_keeps_its_costs() -> None:
    drafting = Noted()
    costs = PairCosts(drafting, None)
    costs.settle(PAIR, model(), None)
    target, draft = model(), model()
    costs.settle(PAIR, target, draft, target_is_new=False)
    assert drafting.notes == ["target", "draft"]
    assert target.tokens == draft.tokens == ()

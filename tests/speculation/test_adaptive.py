"""The controller against simulated machines: costs as measured on real ones, drafts as good as we say."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from forespeak.speculation.adaptive import AdaptiveDraftLength
from forespeak.speculation.costs import Costs, RunningCosts
from forespeak.speculation.trace import DraftedToken, Origin, Source, Step, Token

LONGEST = 16

MACHINES = {
    # Seconds by tokens of a batch on two cores, and of a drafted token.
    "F32+Q4_1": Costs(((1, 0.033), (2, 0.043), (5, 0.045), (9, 0.056), (17, 0.080)), 0.009),
    "F16+Q4_1": Costs(((1, 0.020), (2, 0.032), (5, 0.034), (9, 0.042), (17, 0.060)), 0.009),
    "Q8_0+Q2_K": Costs(((1, 0.015), (2, 0.026), (5, 0.035), (9, 0.054), (17, 0.090)), 0.008),
    "Q4_1+Q4_1": Costs(((1, 0.009), (2, 0.016), (5, 0.025), (9, 0.040), (17, 0.070)), 0.009),
    "GPU 8B+1B": Costs(((1, 0.020), (2, 0.0205), (5, 0.021), (9, 0.022), (17, 0.024)), 0.002),
}


def controller_for(costs: Costs) -> AdaptiveDraftLength:
    return AdaptiveDraftLength(RunningCosts(costs), LONGEST)


@dataclass
class Simulation:
    """A draft whose tokens are accepted with probability q, its own confidence, which is high or low by `quality`."""

    costs: Costs
    quality: float
    seed: int = 1

    def rate(self, tokens: int, controller: AdaptiveDraftLength | None, fixed: int = 0) -> float:
        generator = random.Random(self.seed)
        seconds, emitted, index = 0.0, 1, 0
        while emitted < tokens:
            index += 1
            length = fixed if controller is None else controller.next_length()
            drafted: list[float] = []
            while len(drafted) < length:
                drafted.append(self._confidence(generator))
                if controller is not None and not controller.worth_another(drafted):
                    break
            tested = len(drafted) if controller is None else controller.worth_testing(drafted)
            accepted = 0
            while accepted < tested and generator.random() < drafted[accepted]:
                accepted += 1
            step = self._step(index, drafted, tested, accepted)
            seconds += step.draft_seconds + step.target_seconds
            emitted += accepted + 1
            if controller is not None:
                controller.observe(step)
        return emitted / seconds

    def best_fixed(self, tokens: int) -> float:
        return max(self.rate(tokens, None, length) for length in range(9))

    def _confidence(self, generator: random.Random) -> float:
        return 0.97 if generator.random() < self.quality else generator.uniform(0.05, 0.6)

    def _step(self, index: int, drafted: list[float], tested: int, accepted: int) -> Step:
        source = Source.DRAFT_MODEL if drafted else None
        own = Origin.TARGET if not tested else Origin.BONUS if accepted == tested else Origin.CORRECTED
        return Step(
            index,
            (*(Token(1, "x", Origin.ACCEPTED, source, 0.9, q) for q in drafted[:accepted]), Token(1, "x", own)),
            tuple(DraftedToken(2, "y", draft_probability=q) for q in drafted[accepted:tested]),
            tuple(DraftedToken(2, "y", draft_probability=q) for q in drafted[tested:]),
            source,
            len(drafted) * self.costs.draft_token,
            self.costs.target_seconds(1 + tested),
        )


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("quality", [0.0, 0.3, 0.6, 0.9, 1.0])
def test_never_slower_than_none_and_near_the_best_fixed_length(machine: str, quality: float) -> None:
    simulation = Simulation(MACHINES[machine], quality)
    tokens = 4000
    rate = simulation.rate(tokens, controller_for(MACHINES[machine]))
    assert rate >= 0.97 * simulation.rate(tokens, None, 0)
    assert rate >= 0.97 * simulation.best_fixed(tokens)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("quality", [0.0, 0.3, 0.6, 0.9, 1.0])
def test_the_first_reply_of_an_unknown_pair_loses_little(machine: str, quality: float) -> None:
    ratios = []
    for seed in range(10):
        simulation = Simulation(MACHINES[machine], quality, seed)
        ratios.append(simulation.rate(200, controller_for(MACHINES[machine])) / simulation.rate(200, None, 0))
    assert sum(ratios) / len(ratios) >= 0.93


def test_the_state_says_why_in_numbers() -> None:
    controller = controller_for(MACHINES["F32+Q4_1"])
    assert controller.state.active
    assert "A drafted token costs 9.0 ms, a check of" in controller.state.reason
    paused = controller_for(Costs(((1, 0.01), (2, 0.03), (17, 0.4)), 0.02))
    assert not paused.state.active
    assert paused.state.reason == "Paused: a draft of 1 token costs 40 ms and saves 8.0 ms."
    assert paused.next_length() == 0


def test_what_others_brought_in_one_reply_does_not_pause_the_next() -> None:
    """The judge outlives a chain: what was copied from the text counts for that reply alone."""
    controller = controller_for(MACHINES["F32+Q4_1"])
    Simulation(MACHINES["F32+Q4_1"], 0.9).rate(200, controller)
    controller.elsewhere = 1000.0
    assert controller.worth < 0.0
    controller.begin()
    assert controller.worth > 0.0
    assert controller.active

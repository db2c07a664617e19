"""The controller against simulated machines: costs as measured on real ones, drafts as good as we say."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

import pytest

from forespeak.speculation.acceptance import Acceptance
from forespeak.speculation.adaptive import AdaptiveDraftLength
from forespeak.speculation.costs import Costs, RunningCosts
from speculation.played_step import played_step

LONGEST = 16

MACHINES = {
    # Seconds by tokens of a batch on two cores, of a drafted token, and of one that the draft model reads.
    "F32+Q4_1": Costs(((1, 0.033), (2, 0.043), (5, 0.045), (9, 0.056), (17, 0.080)), 0.009, 0.002),
    "F16+Q4_1": Costs(((1, 0.020), (2, 0.032), (5, 0.034), (9, 0.042), (17, 0.060)), 0.009, 0.002),
    "Q8_0+Q2_K": Costs(((1, 0.015), (2, 0.026), (5, 0.035), (9, 0.054), (17, 0.090)), 0.008, 0.002),
    "Q4_1+Q4_1": Costs(((1, 0.009), (2, 0.016), (5, 0.025), (9, 0.040), (17, 0.070)), 0.009, 0.002),
    "GPU 8B+1B": Costs(((1, 0.020), (2, 0.0205), (5, 0.021), (9, 0.022), (17, 0.024)), 0.002, 0.0001),
}


def controller_for(costs: Costs) -> AdaptiveDraftLength:
    return AdaptiveDraftLength(RunningCosts(costs), LONGEST)


@dataclass
class Simulation:
    """A draft whose tokens are accepted with probability q, its own confidence, which is high or low by `quality`."""

    costs: Costs
    quality: float
    seed: int = 1
    jitter: float = 0.0
    """Of the time of a step, as a share of it."""
    drafts = 0
    """Made in all replies so far."""

    def __post_init__(self) -> None:
        self._generator = random.Random(self.seed)

    def rate(self, tokens: int, controller: AdaptiveDraftLength | None, fixed: int = 0, missed: int = 0) -> float:
        """Tokens per second of a reply. The draft has not read the `missed` last tokens of the prompt."""
        seconds, emitted, index, unread = 0.0, 1, 0, missed
        while emitted < tokens:
            index += 1
            length = fixed if controller is None else controller.next_length()
            read = unread if controller is None or not length else controller.may_read(unread)
            drafted: list[float] = []
            while len(drafted) < length:
                drafted.append(self._confidence())
                if controller is not None and not controller.worth_another(drafted):
                    break
            tested = len(drafted) if controller is None else controller.worth_testing(drafted)
            accepted = 0
            while accepted < tested and self._generator.random() < drafted[accepted]:
                accepted += 1
            slower = self._generator.gauss(1.0, self.jitter) if self.jitter else 1.0
            step = played_step(index, drafted, tested, accepted, read if drafted else 0, self.costs, slower)
            unread = int(accepted == len(drafted)) if drafted else unread + 1
            self.drafts += bool(drafted)
            seconds += step.draft_seconds + step.target_seconds
            emitted += accepted + 1
            if controller is not None:
                controller.observe(step)
        return emitted / seconds

    def ratio(self, tokens: int, controller: AdaptiveDraftLength) -> float:
        """Tokens per second of a reply against those of plain steps; a prompt is read while drafting is not paused."""
        controller.begin()
        missed = 0 if controller.active else 100
        return self.rate(tokens, controller, missed=missed) * self.costs.target_seconds(1)

    def best_fixed(self, tokens: int) -> float:
        return max(Simulation(self.costs, self.quality, self.seed).rate(tokens, None, length) for length in range(9))

    def _confidence(self) -> float:
        return 0.97 if self._generator.random() < self.quality else self._generator.uniform(0.05, 0.6)


def replies(machine: str, qualities: Sequence[float], seeds: int = 6) -> list[list[float]]:
    """For each of these replies in a row, of a pair never seen before, its ratios to plain steps over the seeds."""
    found: list[list[float]] = [[] for _ in qualities]
    for seed in range(seeds):
        simulation = Simulation(MACHINES[machine], qualities[0], seed, jitter=0.03)
        controller = controller_for(MACHINES[machine])
        for number, quality in enumerate(qualities):
            simulation.quality = quality
            found[number].append(simulation.ratio(200, controller))
    return found


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("quality", [0.0, 0.3, 0.6, 0.9, 1.0])
def test_never_slower_than_none_and_near_the_best_fixed_length(machine: str, quality: float) -> None:
    simulation = Simulation(MACHINES[machine], quality)
    tokens = 4000
    rate = simulation.rate(tokens, controller_for(MACHINES[machine]))
    assert rate >= 0.97 * Simulation(MACHINES[machine], quality).rate(tokens, None, 0)
    assert rate >= 0.97 * simulation.best_fixed(tokens)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("quality", [0.0, 0.3, 0.6, 0.9, 1.0])
def test_the_first_reply_of_an_unknown_pair_loses_little(machine: str, quality: float) -> None:
    ratios = []
    for seed in range(10):
        simulation = Simulation(MACHINES[machine], quality, seed)
        ratios.append(simulation.rate(200, controller_for(MACHINES[machine])) / simulation.rate(200, None, 0))
    assert sum(ratios) / len(ratios) >= 0.93


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("quality", [0.0, 0.3, 0.5, 0.7, 0.9])
def test_reply_by_reply_no_more_is_lost_than_probing_may_cost(machine: str, quality: float) -> None:
    ratios = [ratio for reply in replies(machine, [quality] * 12)[1:] for ratio in reply]
    assert mean(ratios) >= 0.985
    # A probe falls into one of many replies and takes its whole price there.
    assert sum(ratio < 0.97 for ratio in ratios) <= 0.1 * len(ratios)
    assert min(ratios) >= 0.93


def test_another_kind_of_text_is_noticed() -> None:
    """Three replies whose drafts are bad, three whose drafts are good, over and over."""
    later = replies("F32+Q4_1", [0.3, 0.3, 0.3, 0.9, 0.9, 0.9] * 4, seeds=8)[6:]
    bad, good = ([later[number + 6 * turn] for turn in range(3)] for number in (2, 5))
    assert mean(ratio for reply in bad for ratio in reply) >= 0.985
    assert mean(ratio for reply in good for ratio in reply) >= 1.6


def test_what_cannot_pay_is_hardly_ever_probed() -> None:
    """The draft takes as long as the target: no number of accepted tokens makes up for it."""
    simulation = Simulation(MACHINES["Q4_1+Q4_1"], 1.0)
    controller = controller_for(MACHINES["Q4_1+Q4_1"])
    assert simulation.ratio(10_000, controller) >= 0.995
    assert 0 < simulation.drafts <= 8


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


def test_a_paused_draft_that_would_pay_by_now_says_what_keeps_it() -> None:
    costs = Costs(((1, 0.02), (2, 0.021), (17, 0.025)), 0.004, 0.05)
    controller = controller_for(costs)
    index = 0
    while controller.active:
        index += 1
        controller.worth_testing([0.5, 0.5])
        controller.observe(played_step(index, [0.5, 0.5], 2, 0, 0, costs))
    controller.acceptance = Acceptance()

    def said_after(plain_steps: int) -> str:
        for later in range(plain_steps):
            controller.observe(played_step(index + later, [], 0, 0, 0, costs))
            reason = controller.state.reason
        return reason

    # First it rests.
    assert re.search(r"saves \d+ ms, but first it would have to read what it missed \(\d+ ms\)\.$", said_after(160))
    controller.elsewhere = 2.0 / costs.target_seconds(1)
    assert re.search(r"saves \d+ ms, but others save more in that time\.$", said_after(16))
    assert not controller.active


def test_what_was_resumed_may_lose_less_before_it_rests_than_what_never_paused() -> None:
    costs = MACHINES["F32+Q4_1"]
    controller = controller_for(costs)
    index = 0

    def take(accepted: int) -> float:
        """A step, with a draft of two tokens if one may be made; the tokens by which it is behind a plain one."""
        nonlocal index
        index += 1
        drafted = [0.5, 0.5] if controller.next_length() else []
        controller.worth_testing(drafted)
        step = played_step(index, drafted, len(drafted), accepted if drafted else 0, 0, costs)
        controller.observe(step)
        return (step.draft_seconds + step.target_seconds) / costs.target_seconds(1) - len(step.emitted)

    def lost_before_it_rests() -> float:
        lost = 0.0
        while controller.active:
            # It forgets what happened, so it goes on promising to pay.
            controller.acceptance = Acceptance()
            lost += take(0)
        return lost

    one_step = take(0)
    at_first = lost_before_it_rests()
    while not controller.active:
        take(2)
    again = lost_before_it_rests()
    assert again <= 1.0 + one_step
    assert again < 0.6 * at_first

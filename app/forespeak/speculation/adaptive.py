"""Drafts as many tokens as pay, zero included, and says why.

What is maximised is expected tokens per second: a draft of k tokens, of which the i-th is reached and accepted with
probability P_i, yields 1 + P_1 + ... + P_k tokens in t_target(k + 1) + k * t_draft seconds (Leviathan et al.,
arXiv 2211.17192, section 3.4, with measured costs in place of constants). While drafting, going on is judged by the
tokens already proposed: their probabilities are known by then.
"""

from __future__ import annotations

from collections.abc import Sequence

from forespeak.speculation.acceptance import Acceptance
from forespeak.speculation.costs import Costs
from forespeak.speculation.trace import SpeculationState, Step

_FOLLOW = 0.1
"""Weight of the newest step in the running averages."""
_RESUME_MARGIN = 1.03
"""A paused source must promise this much before it is resumed: switching back and forth costs."""
_PROBE_SHARE = 0.02
"""Of the time, at most, goes into finding out whether a paused source would pay by now."""
_FIRST_PROBE = 16
_STATE_EVERY = 8
_TRIAL = 6
"""Drafts that a new pair may make whatever was measured: the costs were taken in a fraction of a second, in which the
machine may have been busy with something else, and a paused draft would never show that they were wrong."""
_HOPELESS = 0.5
"""... unless they promise less than this share of the plain speed."""


class AdaptiveDraftLength:
    """A DraftController for one pair and source; it lives as long as the pair and learns from every reply.

    `gated`: the source is a draft model and asks after each of its tokens (`worth_another`) and at the end
    (`worth_testing`); the loop then gets the longest length as the limit. Other sources get the length that promises
    most. Under the coupled rule the words do not depend on any of it; under the rejection rule `drops_tokens` must be
    False, since leaving out an unlikely sample would bias the text.
    """

    def __init__(self, costs: Costs, longest: int, *, gated: bool, drops_tokens: bool = True) -> None:
        self._costs = costs
        self._longest = longest
        self._gated = gated
        self._drops_tokens = drops_tokens
        self.acceptance = Acceptance()
        self._target_scale = 1.0
        """How much slower target evaluations are now than when they were measured: longer context, busier machine."""
        self._draft_scale = 1.0
        self._caught_up = True
        """Whether the draft has read all of the text but its newest token."""
        self._rate = 0.0
        """Tokens per second of the steps that tested a draft, a running average."""
        self._paused = False
        self._steps_paused = 0
        self._behind = 0
        """Plain steps whose tokens the draft has not read."""
        self._probe_after = _FIRST_PROBE
        self._seconds = 0.0
        self._probing = 0.0
        self._planned = 0
        self._speculated = 0
        self._steps = 0
        self._told: SpeculationState | None = None
        self._told_at = 0
        self._tokens_mean = 0.0
        self._seconds_mean = 0.0
        self._decide()

    @property
    def state(self) -> SpeculationState:
        """Told anew when drafting pauses or resumes, and now and then: figures that never rest help nobody."""
        due = self._steps % _STATE_EVERY == 0 and self._steps != self._told_at
        if self._told is None or self._told.active is self._paused or due:
            self._told, self._told_at = self._describe(), self._steps
        return self._told

    def _describe(self) -> SpeculationState:
        plain = self._target(1)
        if self._paused:
            cost = self._planned * self._draft_token + self._target(self._planned + 1) - plain
            saved = (self._expected(self._planned, 1.0) - 1.0) * plain
            return SpeculationState(
                False, f"Paused: a draft of {_tokens(self._planned)} costs {_ms(cost)} and saves {_ms(saved)}."
            )
        drafts = f"A drafted token costs {_ms(self._draft_token)}, a" if self._draft_token > 0 else "A"
        check = f"{drafts} check of {_tokens(self._planned + 1)} {_ms(self._target(self._planned + 1))}"
        if not self._speculated:
            return SpeculationState(True, f"{check}; a plain step costs {_ms(plain)}.", self._planned)
        yielded = f"{self._tokens_mean:.1f} tokens come out of each check"
        return SpeculationState(True, f"{check}, a plain step {_ms(plain)}; {yielded}.", self._planned)

    def next_length(self) -> int:
        if not self._paused:
            return self._longest if self._gated else self._planned
        self._steps_paused += 1
        self._behind += 1
        length = max(self._best()[0], 2)
        # The draft reads what it has missed first.
        catch_up = self._behind * self._draft_scale * self._costs.draft_catch_up
        price = catch_up + length * self._draft_token + self._target(length + 1) - self._target(1)
        if self._steps_paused < self._probe_after or self._probing + price > _PROBE_SHARE * self._seconds:
            return 0
        self._steps_paused = 0
        self._probe_after *= 2
        return min(self._longest, length)

    def worth_another(self, probabilities: Sequence[float]) -> bool:
        """Whether a draft whose tokens the draft model gave these probabilities should get one more."""
        drafted = len(probabilities)
        chance = self.acceptance.chances(probabilities)[-1] if probabilities else 1.0
        rate = max(self._rate, 1.0 / self._target(1))
        gain, ahead, mean = 0.0, chance, self.acceptance.mean
        # One more token may not pay where two do: costs rise in steps.
        for more in range(1, self._longest - drafted + 1):
            ahead *= mean
            gain += ahead
            extra = more * self._draft_token + self._target(drafted + more + 1) - self._target(drafted + 1)
            if gain > rate * extra:
                return True
            if ahead < 0.02:
                return False
        return False

    def worth_testing(self, probabilities: Sequence[float]) -> int:
        """How many leading tokens of a finished draft are worth their place in the target's batch."""
        if not self._drops_tokens:
            return len(probabilities)
        rate = max(self._rate, 1.0 / self._target(1))
        best, keep, gain = 0.0, 0, 0.0
        for place, chance in enumerate(self.acceptance.chances(probabilities)):
            gain += chance
            value = gain - rate * (self._target(place + 2) - self._target(1))
            if value > best:
                best, keep = value, place + 1
        return keep

    def observe(self, step: Step) -> None:
        if step.index == 0:
            return  # The prompt's evaluation: its time says nothing about a step.
        seconds = step.draft_seconds + step.target_seconds
        self._seconds += seconds
        self._steps += 1
        tested = step.tested_count
        batch = 1 + tested
        follow = max(_FOLLOW, 1.0 / self._steps)
        self._target_scale += follow * (step.target_seconds / self._costs.target_seconds(batch) - self._target_scale)
        drafted = tested + len(step.ignored)
        if drafted and self._costs.draft_token > 0 and self._behind == 0:
            expected = drafted * self._costs.draft_token + (not self._caught_up) * self._costs.draft_catch_up
            follow = max(_FOLLOW, 1.0 / (self._speculated + 1))
            self._draft_scale += follow * (step.draft_seconds / expected - self._draft_scale)
        self._caught_up = step.accepted_count < drafted
        if self._paused and drafted:
            plain = self._target(1)
            self._probing += max(0.0, seconds - len(step.emitted) * plain)
        if drafted:
            self._behind = 0
            self.acceptance.observe(step)
            self._speculated += 1
            weight = max(_FOLLOW, 1.0 / self._speculated)
            # Tokens and seconds are averaged apart: a mean of rates would overrate the quick steps.
            self._tokens_mean += weight * (len(step.emitted) - self._tokens_mean)
            self._seconds_mean += weight * (seconds - self._seconds_mean)
            self._rate = self._tokens_mean / self._seconds_mean
        self._decide()

    def _decide(self) -> None:
        """Pause or resume by what the best length promises against a plain step."""
        plain = 1.0 / self._target(1)
        self._planned, promised = self._best()
        if self._paused:
            if promised >= _RESUME_MARGIN * plain:
                self._paused, self._probe_after, self._steps_paused = False, _FIRST_PROBE, 0
        elif promised < (plain if self._speculated >= _TRIAL else _HOPELESS * plain):
            self._paused, self._steps_paused = True, 0

    def _best(self) -> tuple[int, float]:
        """The length that promises most, 1 at the least, and its tokens per second."""
        hope = self.acceptance.hopeful / self.acceptance.mean
        best, promised, yielded, chance = 1, 0.0, 1.0, 1.0
        for length in range(1, self._longest + 1):
            chance *= self._next_chance(length - 1, hope)
            yielded += chance
            rate = yielded / (self._target(length + 1) + length * self._draft_token)
            if rate > promised:
                best, promised = length, rate
        return best, promised

    def _expected(self, length: int, hope: float) -> float:
        """Tokens that a step yields: the accepted ones and the target's own."""
        yielded, chance = 1.0, 1.0
        for place in range(length):
            chance *= self._next_chance(place, hope)
            yielded += chance
        return yielded

    def _next_chance(self, place: int, hope: float) -> float:
        known = self.acceptance.mean if self._gated else self.acceptance.at(place)
        return min(0.995, known * hope)

    @property
    def _draft_token(self) -> float:
        return self._draft_scale * self._costs.draft_token

    def _target(self, tokens: int) -> float:
        return self._target_scale * self._costs.target_seconds(tokens)


def _ms(seconds: float) -> str:
    milliseconds = seconds * 1000.0
    return f"{milliseconds:.1f} ms" if milliseconds < 10 else f"{milliseconds:.0f} ms"


def _tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count} tokens"

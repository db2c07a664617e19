"""A draft model drafts as many tokens as pay, zero included, and says why.

What is maximised is expected tokens per second: a draft of k tokens, of which the i-th is reached and accepted with
probability P_i, yields 1 + P_1 + ... + P_k tokens in t_target(k + 1) + k * t_draft seconds (Leviathan et al.,
arXiv 2211.17192, section 3.4, with measured costs in place of constants). While drafting, going on is judged by the
tokens already proposed: their probabilities are known by then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from forespeak.speculation.acceptance import Acceptance
from forespeak.speculation.costs import RunningCosts
from forespeak.speculation.trace import Source, SpeculationState, Step, StepCosts

_FOLLOW = 0.1
"""Weight of the newest draft in the running averages."""
_RESUME_MARGIN = 0.03
"""Tokens by which drafting must promise to be ahead before it is resumed: switching back and forth costs."""
_RESUME_STEPS = 32.0
"""... and for so many steps it must be ahead by as much as the draft has to read before it is of use again."""
_PROBE_SHARE = 0.01
"""Of the time, at most, goes into finding out whether a paused source would pay by now."""
_VAIN_PROBE_SHARE = 0.002
"""... where even a draft that is always right would not, by what is known of the costs: that alone could be wrong."""
_PROBE_DRAFTS = 4
"""Drafts of one probe: what is dear is to read what was missed, which is done before the first."""
_PROBE_FADE = 0.8
"""What was accepted before a pause counts for less with each probe: the text may be another by now."""
_PATIENCE = 3.0
"""Tokens that drafting may lose, in the end, against plain steps while it promises to win some."""
_PATIENT_STEPS = 2.0
"""... or as many of its steps' worth, if that is more: a single long draft may be lost. What it has won before counts
for no more than that either: another passage may be another matter."""
_ON_TRIAL = 1.0
"""... and where it was resumed, no more than these before it has won any: what the probe took is lost already."""
_FIRST_REST, _LONGEST_REST = 96, 768
"""Steps for which it rests when it has lost them, more each time until it wins again."""
_FORGET = 0.02
"""Of that balance, with each draft."""
_WILDEST = 2.0
"""Times what was expected: for no more does a step count."""
_FIRST_PROBE = 16
_PROBE_CONTEXT = 24
"""Tokens that a paused draft model reads before a probe. Reading all that it has missed could take longer than what
it would save. Behind so few its guesses are right less often (a Q2_K draft's 0.68 of the time instead of 0.80, behind
16 only 0.59), and where they pay even so it goes on from there."""
_PLAIN_EVERY = 32
"""Checks in a row, at most: what a plain step costs now must be known, or drafting could seem to win by its own
slowness. One plain step in so many takes a few thousandths of the time."""
_CATCH_UP_STEPS = 8.0
"""Plain steps' time that reading all it has missed may take in the middle of a reply."""
_STATE_EVERY = 8
_TRIAL = 4
"""Drafts that a new pair may make whatever was measured: the costs were taken in a fraction of a second, in which the
machine may have been busy with something else, and a paused draft would never show that they were wrong."""
_HOPELESS = 0.5
"""... unless they promise to fall behind by as many tokens a step."""


class AdaptiveDraftLength:
    """A DraftController and the DraftGate of a draft model; it lives as long as the pair and learns from every reply.

    Under the coupled rule the words do not depend on any of it; under the rejection rule `drops_tokens` must be False,
    since leaving out an unlikely sample would bias the text. In a chain (see `adaptive_chain`) others make steps too:
    there the chain calls `limit` and `learn`, and sees to the costs.
    """

    def __init__(self, costs: RunningCosts, longest: int, *, drops_tokens: bool = True) -> None:
        self._costs = costs
        self._longest = longest
        self._drops_tokens = drops_tokens
        self.acceptance = Acceptance()
        self._unread = 0
        """Emitted tokens that the draft has not read, the newest apart: it is what a draft begins with."""
        self._confidences: tuple[float, ...] = ()
        """The draft model's, in the tokens of its newest draft."""
        self._tokens_mean = 0.0
        self._seconds_mean = 0.0
        """Of the steps that drafted, running averages."""
        self._balance = 0.0
        """Tokens that drafting has won lately against plain steps, or lost."""
        self._rest = 0
        self._next_rest = _FIRST_REST
        self.elsewhere = 0.0
        """Tokens per second that the generation brings as a whole, if others draft too."""
        self._paused = False
        self._steps_paused = 0
        self._since_plain = 0
        self._probe_after = _FIRST_PROBE
        self._probe_drafts = 0
        """Drafts of the probe that is going on."""
        self._probe_seconds = 0.0
        """That may be lost by probing: a share of the time, saved up for one probe at most."""
        self._planned = 0
        self._speculated = 0
        self._steps = 0
        self._told: SpeculationState | None = None
        self._told_at = 0
        self._decide()

    # As a controller

    @property
    def state(self) -> SpeculationState:
        """Told anew when drafting pauses or resumes, and now and then: figures that never rest help nobody."""
        due = self._steps % _STATE_EVERY == 0 and self._steps != self._told_at
        if self._told is None or self._told.active is self._paused or due:
            self._told, self._told_at = self._describe(), self._steps
        return self._told

    def next_length(self) -> int:
        return self.limit()

    def observe(self, step: Step) -> None:
        self._costs.observe(step)
        self.learn(step)

    def begin(self) -> None:
        """A reply is about to begin: how the last one went decides no more."""
        self._balance, self._rest, self._next_rest, self.elsewhere = 0.0, 0, _FIRST_REST, 0.0
        self._decide()

    # As the gate of a draft model

    def may_read(self, unread: int) -> int:
        """How many of its `unread` last tokens a draft model may read before it drafts; the earlier ones it forgoes."""
        dear = unread * self._costs.draft_catch_up > _CATCH_UP_STEPS * self._costs.target(1)
        self._unread = min(unread, _PROBE_CONTEXT) if self._paused or dear else unread
        return self._unread

    def worth_another(self, confidences: Sequence[float]) -> bool:
        """Whether a draft in whose tokens the draft model has these confidences should get one more."""
        drafted = len(confidences)
        chance = self.acceptance.chances(confidences)[-1] if confidences else 1.0
        rate, so_far = self.rate, self._costs.target(drafted + 1)
        gain, ahead, mean = 0.0, chance, self.acceptance.mean
        # One more token may not pay where two do: costs rise in steps.
        for more in range(1, self._longest - drafted + 1):
            ahead *= mean
            gain += ahead
            extra = more * self._costs.draft_token + self._costs.target(drafted + more + 1)
            if gain > rate * (extra - so_far):
                return True
            if ahead < 0.02:
                return False
        return False

    def worth_testing(self, confidences: Sequence[float]) -> int:
        """How many leading tokens of a finished draft are worth their place in the target's batch."""
        self._confidences = tuple(confidences)
        if not self._drops_tokens:
            return len(confidences)
        rate = self.rate
        best, keep, gain = 0.0, 0, 0.0
        for place, chance in enumerate(self.acceptance.chances(confidences)):
            gain += chance
            value = gain - rate * (self._costs.target(place + 2) - self._costs.target(1))
            if value > best:
                best, keep = value, place + 1
        return keep

    # What others may know of it

    @property
    def active(self) -> bool:
        return not self._paused

    @property
    def rate(self) -> float:
        """Tokens per second that time is worth: what drafting has brought lately, and no less than others bring."""
        return max(self._drafting_rate, self._costs.plain_rate, self.elsewhere)

    @property
    def worth(self) -> float:
        """Tokens by which a step with a draft is ahead of a plain one, if time is worth `rate`; less than 0: behind."""
        return self._best(self.rate, self.acceptance.hopeful)[1]

    def limit(self) -> int:
        """How many tokens the draft model may propose now; 0 while it is paused and no probe is due."""
        if not self._paused:
            return self._longest if self._since_plain < _PLAIN_EVERY else 0
        if not self._probe_drafts:
            if self._steps_paused < self._probe_after or self._probe_seconds < self._probe_price:
                return 0
            self._probe_drafts = _PROBE_DRAFTS
            self._probe_after *= 2
            self.acceptance.fade(_PROBE_FADE)
        self._probe_drafts -= 1
        self._steps_paused = 0
        return self._probe_length

    def learn(self, step: Step) -> None:
        """From a step, whoever drafted for it."""
        if step.index == 0:
            return
        seconds = step.draft_seconds + step.target_seconds
        # Asked while it rests alone: where drafting goes on it can pay.
        share = _VAIN_PROBE_SHARE if self._paused and not self._can_pay else _PROBE_SHARE
        self._probe_seconds = min(self._probe_seconds + share * seconds, self._probe_price)
        self._steps += 1
        tested, accepted = step.tested_count, step.accepted_count
        self._since_plain = self._since_plain + 1 if tested else 0
        drafted = tested + len(step.ignored)
        if step.source is not Source.DRAFT_MODEL or not drafted:
            self._unread += len(step.emitted)
            self._steps_paused += 1
        else:
            # One step that was kept waiting by something else must not decide.
            expected = self._costs.target(1 + tested) + drafted * self._costs.draft_token
            seconds = min(seconds, _WILDEST * (expected + self._unread * self._costs.draft_catch_up))
            self._costs.observe_draft(step.draft_seconds, drafted, self._unread)
            # All accepted: the draft has not read its own last token.
            self._unread = int(accepted == drafted)
            if self._paused:
                self._probe_seconds -= max(0.0, seconds - len(step.emitted) * self._costs.target(1))
            self.acceptance.observe(step, self._confidences)
            self._speculated += 1
            won = len(step.emitted) - seconds * self._costs.plain_rate
            self._balance = min((1.0 - _FORGET) * self._balance + won, self._patience)
            weight = max(_FOLLOW, 1.0 / self._speculated)
            # Tokens and seconds are averaged apart: a mean of rates would overrate the quick steps.
            self._tokens_mean += weight * (len(step.emitted) - self._tokens_mean)
            self._seconds_mean += weight * (seconds - self._seconds_mean)
        self._decide()

    # What is kept with the pair

    def learned(self) -> dict[str, object]:
        return {
            "acceptance": self.acceptance.learned(),
            "drafts": self._speculated,
            "tokens_per_step": self._tokens_mean,
            "seconds_per_step": self._seconds_mean,
        }

    def recall(self, learned: dict[str, object]) -> None:
        """Go on from there. Raises ValueError, KeyError or TypeError for what was not `learned`."""
        drafts, tokens, seconds = (learned[name] for name in ("drafts", "tokens_per_step", "seconds_per_step"))
        if not (isinstance(drafts, int) and isinstance(tokens, float | int) and isinstance(seconds, float | int)):
            raise TypeError("figures are no numbers")
        self.acceptance.recall(learned["acceptance"])
        self._speculated, self._tokens_mean, self._seconds_mean = drafts, float(tokens), float(seconds)
        self._decide()

    # Inside

    @property
    def _patience(self) -> float:
        return max(_PATIENCE, _PATIENT_STEPS * self._seconds_mean * self._costs.plain_rate)

    @property
    def _drafting_rate(self) -> float:
        return self._tokens_mean / self._seconds_mean if self._seconds_mean > 0.0 else 0.0

    def _decide(self) -> None:
        """Pause or resume by what the best length promises against a plain step."""
        rate = max(self._costs.plain_rate, self.elsewhere)
        self._planned, ahead = self._best(rate, self.acceptance.hopeful)
        if self._paused:
            self._rest = max(0, self._rest - 1)
            reading = rate * self._unread * self._costs.draft_catch_up
            if ahead >= max(_RESUME_MARGIN, reading / _RESUME_STEPS) and not self._rest:
                self._paused, self._probe_after, self._steps_paused, self._probe_drafts = False, _FIRST_PROBE, 0, 0
                self._balance = _ON_TRIAL - self._patience
        elif ahead < (0.0 if self._speculated >= _TRIAL else -_HOPELESS):
            self._paused, self._steps_paused = True, 0
        elif self._balance < -self._patience:
            # It promised to pay and did not, for whatever reason: what it promises does not count for a while.
            self._paused, self._steps_paused = True, 0
            self._rest, self._next_rest = self._next_rest, min(2 * self._next_rest, _LONGEST_REST)
        elif self._balance >= self._patience:
            self._next_rest = _FIRST_REST

    @property
    def _can_pay(self) -> bool:
        """Whether drafts would pay if each token of them were accepted."""
        return self._best(self._costs.plain_rate, 1.0)[1] > 0.0

    @property
    def _probe_length(self) -> int:
        return min(max(self._planned, 2), self._longest)

    @property
    def _probe_price(self) -> float:
        """Seconds that a probe takes at most, if all of it is in vain."""
        length = self._probe_length
        draft = length * self._costs.draft_token + self._costs.target(length + 1) - self._costs.target(1)
        return min(self._unread, _PROBE_CONTEXT) * self._costs.draft_catch_up + _PROBE_DRAFTS * draft

    def _best(self, rate: float, accepted: float) -> tuple[int, float]:
        """The length that promises most, 1 at the least, and the tokens by which it is ahead of a plain step.

        Time is worth `rate` tokens per second: a step that takes longer has to bring that much more. `accepted`: the
        probability that a token is, given those before it were.
        """
        plain = self._costs.target(1)
        best, most, yielded, chance = 1, -math.inf, 1.0, 1.0
        for length in range(1, self._longest + 1):
            chance *= accepted
            yielded += chance
            seconds = self._costs.target(length + 1) + length * self._costs.draft_token
            ahead = yielded - 1.0 - rate * (seconds - plain)
            if ahead > most:
                best, most = length, ahead
        return best, most

    def _describe(self) -> SpeculationState:
        plain, planned, draft_token = self._costs.target(1), self._planned, self._costs.draft_token
        check = self._costs.target(planned + 1)
        costs = StepCosts(plain, check, draft_token)
        if self._paused:
            return SpeculationState(False, f"Paused: {self._why_paused(planned)}", 0, costs)
        words = (
            f"A drafted token costs {milliseconds(draft_token)}, a check of {tokens_in_words(planned + 1)} "
            f"{milliseconds(check)}"
        )
        if not self._speculated:
            return SpeculationState(True, f"{words}; a plain step costs {milliseconds(plain)}.", planned, costs)
        yielded = f"{self._tokens_mean:.1f} tokens come out of each check"
        return SpeculationState(True, f"{words}, a plain step {milliseconds(plain)}; {yielded}.", planned, costs)

    def _why_paused(self, length: int) -> str:
        plain = self._costs.target(1)
        cost = length * self._costs.draft_token + self._costs.target(length + 1) - plain
        saved = self._expected_gain(length) * plain
        draft = f"a draft of {tokens_in_words(length)} costs {milliseconds(cost)}"
        if saved <= cost:
            return f"{draft} and saves {milliseconds(saved)}."
        if self._rest:
            return f"{draft} and should save {milliseconds(saved)}, but lately it did not."
        if self.elsewhere > self._costs.plain_rate:
            return f"{draft} and saves {milliseconds(saved)}, but others save more in that time."
        reading = milliseconds(self._unread * self._costs.draft_catch_up)
        return f"{draft} and saves {milliseconds(saved)}, but first it would have to read what it missed ({reading})."

    def _expected_gain(self, length: int) -> float:
        """Drafted tokens that are accepted of a draft of that length."""
        mean = self.acceptance.mean
        return sum(mean**place for place in range(1, length + 1))


def milliseconds(seconds: float) -> str:
    """A duration for a sentence."""
    value = seconds * 1000.0
    return f"{value:.1f} ms" if value < 10 else f"{value:.0f} ms"


def tokens_in_words(count: int) -> str:
    return "1 token" if count == 1 else f"{count} tokens"

"""What a ratio means in words, why a lane is not faster, and what to try next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from forespeak.compare.costs import TokenCosts
from forespeak.compare.statistics import COVERAGE, Estimate
from forespeak.speculation.trace import Source

NEGLIGIBLE = 0.03
"""A difference that nobody notices: an interval within it says that there is none."""
_FAST_RATE = 150.0
"""Tokens per second of the target alone from which on there is little left to win."""


class VerdictKind(Enum):
    FASTER = "faster"
    SLOWER = "slower"
    NO_DIFFERENCE = "no difference"
    """The interval holds 1 and reaches no further than what nobody notices."""
    UNCLEAR = "unclear"
    """The interval holds 1, and is wide."""
    BASE = "base"
    """What the others are compared with."""
    NOTHING = "nothing measured"


class Reason(Enum):
    """Why a lane is slower, or no faster, than the target alone."""

    MEMORY_ON_CPU = "memory moved to the CPU"
    NEVER_DRAFTED = "nothing drafted"
    FEW_ACCEPTED = "too few accepted"
    DRAFT_DEAR = "draft too dear"
    TARGET_FAST = "target already fast"
    CHECKS_DEAR = "checks too dear"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`words` is a sentence or two; `advice` says what to try next, None where nothing suggests itself."""

    kind: VerdictKind
    words: str
    reason: Reason | None = None
    advice: str | None = None

    @property
    def full_words(self) -> str:
        return self.words if self.advice is None else f"{self.words} {self.advice}"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a ratio came about by. Costs are the lane's and the target's alone, None where nothing was written.

    `acceptance` is accepted over tested; `moved_to_cpu`: beside the draft, the target computes on the CPU; `auto`: as
    many tokens as pay were drafted.
    """

    lane: TokenCosts | None
    alone: TokenCosts | None
    acceptance: float | None = None
    sources: tuple[Source, ...] = ()
    auto: bool = True
    moved_to_cpu: bool = False

    @property
    def uses_model(self) -> bool:
        return any(source.uses_model for source in self.sources)


def verdict_of(ratio: Estimate | None, circumstances: Circumstances) -> Verdict:
    """`ratio` of tokens per second, to the target alone."""
    if ratio is None:
        return Verdict(VerdictKind.NOTHING, "Nothing could be compared.", None, None)
    kind, words = _judged(ratio)
    if kind is VerdictKind.FASTER or not circumstances.sources:
        return Verdict(kind, f"{words}.")
    if kind is VerdictKind.UNCLEAR:
        return Verdict(kind, f"{words}.", None, "Measure more repeats, or on a quieter machine.")
    reason = _reason(circumstances)
    if reason is None:
        return Verdict(kind, f"{words}.")
    because = _because(reason, circumstances)
    joint = ", because " if kind is VerdictKind.SLOWER else ": "
    return Verdict(kind, f"{words}{joint}{because}.", reason, _advice(reason, circumstances))


def _judged(ratio: Estimate) -> tuple[VerdictKind, str]:
    value, interval = ratio.value, ratio.interval
    if interval is None:
        return VerdictKind.UNCLEAR, f"{_times(value)} in one run, which is too few to tell"
    # Where no 95 % interval can be had, its ends are the lowest and the highest run: say no more than that.
    runs = "" if interval.coverage >= COVERAGE else f" in all {ratio.count} runs"
    between = f"{_times(value)} ({interval.low:.2f}–{interval.high:.2f})"
    if interval.low > 1.0:
        return VerdictKind.FASTER, f"Faster{runs}, {between}"
    if interval.high < 1.0:
        return VerdictKind.SLOWER, f"Slower{runs}, {between}"
    if interval.coverage >= COVERAGE and max(interval.high - 1.0, 1.0 - interval.low) <= NEGLIGIBLE:
        return VerdictKind.NO_DIFFERENCE, f"No difference, {between}"
    return VerdictKind.UNCLEAR, f"No clear difference, {between}"


def _times(value: float) -> str:
    return f"{value:.2f}×"


def _reason(found: Circumstances) -> Reason | None:
    if found.moved_to_cpu:
        return Reason.MEMORY_ON_CPU
    if found.lane is None or found.alone is None:
        return None
    if not found.lane.tested:
        return Reason.NEVER_DRAFTED
    # The larger of the two losses, if without it the lane would have been as fast as the target alone.
    losses = {Reason.DRAFT_DEAR: found.lane.drafting, Reason.FEW_ACCEPTED: found.lane.wasted}
    reason = max(losses, key=lambda each: losses[each])
    if found.lane.whole - losses[reason] < found.alone.whole:
        return reason
    return Reason.TARGET_FAST if _is_fast(found) else Reason.CHECKS_DEAR


def _is_fast(found: Circumstances) -> bool:
    return found.alone is not None and found.alone.whole * _FAST_RATE < 1.0


def _because(reason: Reason, found: Circumstances) -> str:
    lane, alone = found.lane, found.alone
    rate = f"{1.0 / alone.whole:.0f}" if alone else "many"
    match reason:
        case Reason.MEMORY_ON_CPU:
            return "beside the draft model the target no longer fits into the GPU's memory, and computes on the CPU"
        case Reason.NEVER_DRAFTED:
            return "nothing was drafted" + (", since drafts do not pay here" if found.auto and found.uses_model else "")
        case Reason.FEW_ACCEPTED:
            share = (
                ""
                if found.acceptance is None
                else f"only {found.acceptance * 100:.0f} % of the drafted tokens were accepted"
            )
            return share or "too few of the drafted tokens were accepted"
        case Reason.DRAFT_DEAR:
            share = f"{lane.drafting / alone.whole * 100:.0f} %" if lane and alone else "much"
            words = f"drafting takes {share} of the time that the target alone needs for a token"
            return f"{words}, and the target is fast already, with {rate} tokens a second" if _is_fast(found) else words
        case Reason.TARGET_FAST:
            return f"the target alone is fast already, with {rate} tokens a second"
        case Reason.CHECKS_DEAR:
            return "checking several tokens at once takes this machine about as long as writing them"


def _advice(reason: Reason, found: Circumstances) -> str:
    lengths = "" if found.auto else " Let the length be chosen automatically."
    match reason:
        case Reason.MEMORY_ON_CPU:
            return "Try a smaller draft model, a shorter context or a smaller quantisation, or look the text up."
        case Reason.NEVER_DRAFTED:
            return (
                "Other texts may repeat more." if not found.uses_model else "Try a smaller draft, or a larger target."
            )
        case Reason.FEW_ACCEPTED if found.uses_model:
            return f"Try a draft of the target's own family, or a larger one.{lengths}"
        case Reason.FEW_ACCEPTED:
            return f"Looking up pays where a reply repeats its prompt. Try a draft model.{lengths}"
        case Reason.DRAFT_DEAR:
            return f"Try a smaller draft model, or looking the text up, which costs next to nothing.{lengths}"
        case Reason.TARGET_FAST:
            return "A larger target would gain more."
        case Reason.CHECKS_DEAR:
            return f"A GPU, or a larger target on it, would gain more.{lengths}"

"""What a prediction means, in words: for one draft, and for a target as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from forespeak.pairing.machine_speed import Basis, ModelCosts
from forespeak.pairing.model_shape import ModelShape
from forespeak.pairing.ranking import Measurement, Prediction


class AdviceKind(Enum):
    """What an advice is about."""

    TOO_DEAR = "the draft is too slow"
    LARGE_SHARE = "the draft is a large share of the target"
    WORSE_THAN_LOOKUP = "looking text up brings more"
    UNSURE = "only a test can tell"
    DEAR_CHECK = "checking drafts is dear here"
    SMALL_TARGET = "the target is small"
    LITTLE_GAIN = "drafts add little"


@dataclass(frozen=True, slots=True)
class Advice:
    """One or two sentences."""

    kind: AdviceKind
    words: str


_DEAR = 0.35
"""Of a step of the target: a drafted token that costs more can hardly pay."""
_LARGE_SHARE = 0.25
_AHEAD = 1.05
_LITTLE, _WORTH_IT = 1.15, 1.5
_SMALL_WEIGHTS = 1e10
_QUICK = 40.0
"""Tokens per second that are quicker than anybody reads."""
_DEAR_CHECK = 2.0
_CHECKED = 5


def draft_advice(
    target: ModelShape,
    target_costs: ModelCosts,
    draft: ModelShape,
    draft_costs: ModelCosts,
    prediction: Prediction,
    lookup: float | None,
    measurement: Measurement | None = None,
) -> tuple[Advice, ...]:
    """What to know about a draft model, most important first. A measurement silences what is only supposed.

    `lookup`: the speed-up that looking text up brings or should bring.
    """
    found = []
    speed_up = measurement.speed_up.value if measurement else prediction.speed_up.value
    ratio = draft_costs.seconds(1) / target_costs.seconds(1)
    if ratio >= _DEAR and speed_up < _LITTLE:
        found.append(
            Advice(
                AdviceKind.TOO_DEAR,
                f"A drafted token costs {ratio * 100:.0f} % of a step of the target: even good drafts gain little.",
            )
        )
    share = draft.active_weights / target.active_weights
    same_weights = share > 0.9
    if share > _LARGE_SHARE and not same_weights and speed_up < 1.5:
        found.append(
            Advice(
                AdviceKind.LARGE_SHARE,
                f"The draft has {share * 100:.0f} % of the target's weights. "
                "One a tenth of its size usually gains more.",
            )
        )
    if lookup is not None and lookup > _AHEAD * speed_up:
        found.append(
            Advice(
                AdviceKind.WORSE_THAN_LOOKUP,
                f"Looking words up in the text promises more ({_times(lookup)}) and needs no second model.",
            )
        )
    check = target_costs.seconds(_CHECKED) / target_costs.seconds(1)
    if check >= _DEAR_CHECK and speed_up < _LITTLE:
        found.append(
            Advice(
                AdviceKind.DEAR_CHECK,
                f"Checking four drafted tokens takes {check:.1f} times as long as a plain step in this format here, so "
                "few drafts pay.",
            )
        )
    if measurement is None and not prediction.is_sure:
        low, high = prediction.speed_up.low, prediction.speed_up.high
        words = f"It may bring anything from {_times(low)} to {_times(high)}: a test of 20 seconds tells."
        found.append(Advice(AdviceKind.UNSURE, words))
    return tuple(found)


def target_advice(name: str, shape: ModelShape, costs: ModelCosts, speed_ups: Iterable[float]) -> Advice | None:
    """What to know about a target, given what draft models bring it or should bring; None if nothing."""
    best = max(speed_ups, default=1.0)
    rate = 1.0 / costs.seconds(1)
    about = "" if costs.basis is Basis.THIS_FILE else "about "
    if shape.active_weights < _SMALL_WEIGHTS and rate >= _QUICK and best < _WORTH_IT:
        active = "reads only" if shape.expert_weights else "has"
        return Advice(
            AdviceKind.SMALL_TARGET,
            f"“{name}” {active} {_size(shape.active_weights)} weights and writes {about}{rate:.0f} tokens a second "
            "here already: at this size and speed a draft model gains little.",
        )
    if best < _LITTLE:
        return Advice(
            AdviceKind.LITTLE_GAIN,
            f"No draft model here should make “{name}” more than {(best - 1.0) * 100:.0f} % faster here."
            if best > 1.0
            else f"No draft model here should make “{name}” faster here.",
        )
    return None


def _times(value: float) -> str:
    return f"{value:.2f} ×" if value < 10 else f"{value:.0f} ×"


def _size(weights: float) -> str:
    return f"{weights / 1e9:.3g} billion" if weights >= 1e9 else f"{weights / 1e6:.3g} million"

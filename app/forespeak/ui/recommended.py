"""Which of a repo's files to take on this machine, and why: the answer for somebody who knows no quants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from forespeak.models.gguf import GgufKind
from forespeak.models.hub_files import HubFileGroup
from forespeak.models.machine_memory import Machine
from forespeak.models.memory import Fit, fit_of
from forespeak.models.sizes import compared_words


@dataclass(frozen=True, slots=True)
class SizeFit:
    """Whether a model of that size can be run here. `why` says in a sentence what was compared."""

    kind: Fit
    why: str


def size_fit(size_bytes: int, machine: Machine) -> SizeFit:
    """By the size alone: what the header would say is not known before the download."""
    fit = fit_of(size_bytes, machine)
    size, free = compared_words(size_bytes, _free(machine))
    match fit:
        case Fit.FITS:
            why = _tr("{0} of weights and room for a chat, in the {1} that are free now.")
        case Fit.TIGHT:
            why = _tr("{0} of weights, and {1} are free now: that leaves little for a chat and for other programs.")
        case _:
            why = _tr("{0} of weights do not fit into the {1} that are free now.")
    return SizeFit(fit, why.format(size, free))


def _free(machine: Machine) -> int:
    """Of the memory that the model would go into."""
    gpus = sum(gpu.free_bytes for gpu in machine.gpus)
    return machine.available_bytes if machine.unified else max(machine.available_bytes, gpus)


@dataclass(frozen=True, slots=True)
class Recommendation:
    group: HubFileGroup
    why: str


_USUAL = (
    "Q4_K_M",
    "UD-Q4_K_XL",
    "Q4_K_L",
    "Q4_K_S",
    "MXFP4_MOE",
    "MXFP4",
    "IQ4_XS",
    "IQ4_NL",
    "Q4_1",
    "Q4_0",
    "4-bit",
)
"""Around four bits, where most of the quality of a large model is kept; the best one first."""
_SMALL = ("Q8_0", "8-bit", "UD-Q8_K_XL", "Q6_K", "Q6_K_L", "UD-Q6_K_XL", "Q5_K_M")
"""For models that are small anyway: nearly lossless."""
_SMALL_BYTES = 2_000_000_000


def recommendation(
    groups: Sequence[HubFileGroup], fit: Callable[[HubFileGroup], SizeFit | None]
) -> Recommendation | None:
    """The file group to take; None where nothing can be downloaded or nothing fits. `fit` None: not known."""
    models = [group for group in groups if group.kind is GgufKind.MODEL and group.downloadable]
    if not models:
        return None
    kinds = {group: None if (found := fit(group)) is None else found.kind for group in models}
    fitting = [group for group in models if kinds[group] in {Fit.FITS, None}]
    tight = [group for group in models if kinds[group] is Fit.TIGHT]
    if len(models) == 1:
        return Recommendation(models[0], _tr("The only one here.")) if fitting or tight else None
    small = _first(fitting, _SMALL, at_most=_SMALL_BYTES)
    if small is not None:
        return Recommendation(small, _tr("Small enough to be had nearly without loss."))
    usual = _first(fitting, _USUAL)
    if usual is not None:
        return Recommendation(usual, _tr("About four bits a weight: a third of the size, and little is lost."))
    if fitting:
        largest = max(_quantised(fitting), key=lambda group: group.size_bytes)
        return Recommendation(largest, _tr("The largest that fits this machine."))
    if tight:
        smallest = min(_quantised(tight), key=lambda group: group.size_bytes)
        return Recommendation(smallest, _tr("The smallest one here; it just fits."))
    return None


def _quantised(groups: Sequence[HubFileGroup]) -> Sequence[HubFileGroup]:
    """Without the float formats, unless there are only those."""
    return [group for group in groups if group.label not in {"F32", "F16", "BF16"}] or groups


def _first(groups: Sequence[HubFileGroup], labels: Sequence[str], at_most: int | None = None) -> HubFileGroup | None:
    for label in labels:
        for group in groups:
            if group.label == label and (at_most is None or group.size_bytes <= at_most):
                return group
    return None


def _tr(words: str) -> str:
    return QCoreApplication.translate("Recommendation", words)

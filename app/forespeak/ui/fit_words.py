"""Whether something fits this machine's memory, in words and with the colour that goes with them."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from forespeak.models.memory import Fit, MemoryPlan
from forespeak.models.sizes import size_words
from forespeak.ui.badge import BadgeTone
from forespeak.ui.library_model import FitWords


def _tr(words: str) -> str:
    return QCoreApplication.translate("FitWords", words)


def plan_words(plan: MemoryPlan) -> FitWords:
    """With the plan's own sentence as the reason, and the context that it counts on."""
    known = fit_words(plan.fit, plan.needed_bytes)
    context = _tr("With a context of {count} tokens.").format(count=f"{plan.context_length:,}")
    return FitWords(known.words, known.tone, f"{plan.sentence} {context}", known.order)


def fit_words(fit: Fit, size_bytes: int) -> FitWords:
    size = size_words(size_bytes)
    match fit:
        case Fit.FITS:
            why = _tr("{size} fit into the memory that is free now, with a context of a usual length.")
            return FitWords(_tr("Fits"), BadgeTone.GOOD, why.format(size=size), 0)
        case Fit.TIGHT:
            why = _tr("{size} leave little of the memory that is free now to other programs.")
            return FitWords(_tr("Tight"), BadgeTone.CAUTION, why.format(size=size), 1)
        case Fit.TOO_LARGE:
            why = _tr("{size} are more than the memory that is free now.")
            return FitWords(_tr("Too large"), BadgeTone.BAD, why.format(size=size), 2)

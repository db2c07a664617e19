"""What the model card says in each state of the pair."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from forespeak.errors import UserFacingError
from forespeak.ui.notices import ModelCard
from forespeak.ui.pair_controller import PairState, PairStatus, Starter


def _tr(words: str) -> str:
    return QCoreApplication.translate("ModelCard", words)


def show_card(card: ModelCard, status: PairStatus, starter: Starter | None, name: str) -> None:
    """Hidden while there is nothing to say: a ready pair speaks for itself."""
    progress = status.progress
    match status.state:
        case PairState.STARTING | PairState.READY:
            card.setVisible(False)
        case PairState.EMPTY:
            card.show_card(
                _tr("Choose a model to start"),
                _tr("Forespeak runs GGUF models on this computer. Choose a file, or drop one on the window."),
                primary=_tr("Choose a GGUF file…"),
            )
        case PairState.OFFERED:
            assert starter is not None
            text = _tr("A very small model that drafts for a larger copy of itself: it shows speculation at once.")
            if starter.conversion is not None:
                text += " " + _tr("Unpacking it takes {size} on disk and a few seconds, once.").format(
                    size=starter.size
                )
            card.show_card(
                _tr("Start with the {name}").format(name=starter.name),
                text,
                primary=_tr("Start"),
                secondary=_tr("Choose a GGUF file…"),
            )
        case PairState.UNPACKING:
            card.show_card(
                _tr("Unpacking {name}").format(name=name),
                "" if progress is None else progress.doing,
                secondary=_tr("Cancel"),
                fraction=0.0 if progress is None else progress.fraction,
            )
        case PairState.LOADING:
            card.show_card(
                _tr("Loading {name}").format(name=name),
                "" if progress is None else progress.doing,
                secondary=_tr("Cancel"),
                fraction=0.0 if progress is None else progress.fraction,
            )
        case PairState.FAILED:
            problem = status.problem
            what = _tr("The model is not loaded.") if problem is None else problem.what
            rest = "" if problem is None else " ".join(part for part in (problem.why, problem.remedy) if part)
            details = problem is not None and not isinstance(problem, UserFacingError) and bool(problem.details)
            card.show_card(what, rest, primary=_tr("Try again"), secondary=_tr("Choose a GGUF file…"), details=details)

"""What went wrong with the Hub, as a page shows it: the words, a picture, and what the buttons offer."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from forespeak.errors import UserFacingError
from forespeak.models.hub_errors import HubError, HubProblem

_SETTINGS = frozenset(
    {
        HubProblem.OFFLINE,
        HubProblem.PROXY,
        HubProblem.NONSENSE,
        HubProblem.BAD_SETTING,
        HubProblem.TOKEN_MISSING,
        HubProblem.TOKEN_WRONG,
        HubProblem.TOKEN_EXPIRED,
        HubProblem.PRIVATE_OR_MISSING,
    }
)
"""Problems that somebody solves in the settings."""
_PICTURES = {
    HubProblem.OFFLINE: "paused",
    HubProblem.RATE_LIMITED: "paused",
    HubProblem.NO_SUCH_REPO: "search",
    HubProblem.PRIVATE_OR_MISSING: "search",
    HubProblem.NO_SUCH_FILE: "search",
}


@dataclass(frozen=True, slots=True)
class ProblemWords:
    """`settings`: the first button opens the settings and the second tries again; else the first one tries again and
    the second, if there is one, opens the page where something can be done.
    """

    icon: str
    title: str
    text: str
    primary: str
    secondary: str
    settings: bool


def problem_words(error: UserFacingError) -> ProblemWords:
    problem = error.problem if isinstance(error, HubError) else None
    settings = problem in _SETTINGS
    again = QCoreApplication.translate("HubProblems", "Try again")
    page = isinstance(error, HubError) and error.page
    return ProblemWords(
        icon=_PICTURES.get(problem, "warning") if problem is not None else "warning",
        title=error.what,
        text="\n".join(part for part in (error.why, error.remedy) if part),
        primary=QCoreApplication.translate("HubProblems", "Open the settings") if settings else again,
        secondary=again if settings else QCoreApplication.translate("HubProblems", "Open the page") if page else "",
        settings=settings,
    )

"""The window's part of the self-test: opened for real, the starter loaded, one message answered, closed again.

It takes a process of its own, with QT_QPA_PLATFORM and FORESPEAK_HOME in the environment before Qt is imported.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forespeak.errors import UserFacingError

if TYPE_CHECKING:
    from forespeak.ui.live_reply import LiveReply
    from forespeak.ui.main_window import MainWindow
    from forespeak.ui.session import Session

PROMPT = "Name three rivers."
TOKENS, DRAFT_LENGTH = 32, 4
_PATIENCE_SECONDS = 300.0
_LOOK_MILLISECONDS = 50


@dataclass(frozen=True, slots=True)
class WindowChecked:
    """What happened in the window. Seconds of each stage; counts of the reply's tokens and of those drafted for it."""

    seconds_to_open: float
    seconds_to_load: float
    """From choosing the starter to being ready, unpacking included"""
    seconds_of_reply: float
    tokens: int
    tested: int
    accepted: int
    text: str


def check_window() -> WindowChecked:
    """Raises UserFacingError where a stage fails or takes five minutes."""
    from forespeak.models.folders import folders
    from forespeak.ui.app import make_application, make_session, make_window, ui_problem
    from forespeak.ui.preferences import Preferences, PreferencesFile

    problem = ui_problem()
    if problem is not None:
        raise problem
    started = time.perf_counter()
    application = make_application(["forespeak"])
    # A fixed length: what pays is no question here, and something has to be drafted.
    preferences = Preferences(draft_length=DRAFT_LENGTH, max_tokens=TOKENS, random_seed=False)
    window, appearance = make_window(application, preferences)
    window.show()
    session = make_session(window, appearance, PreferencesFile(folders().config / "preferences.json"), folders())
    try:
        session.start()
        application.processEvents()
        _see(window)
        opened = time.perf_counter()
        _load_starter(session)
        loaded = time.perf_counter()
        reply = _ask(session)
        done = time.perf_counter()
    finally:
        window.close()
        application.processEvents()
    return WindowChecked(
        opened - started,
        loaded - opened,
        done - loaded,
        tokens=sum(len(step.emitted) for step in reply.steps),
        tested=sum(step.tested_count for step in reply.steps),
        accepted=sum(step.accepted_count for step in reply.steps),
        text=reply.text,
    )


def _see(window: MainWindow) -> None:
    """Whether something is painted: more than one colour, and the program's picture."""
    picture = window.grab().toImage()
    width, height = picture.width(), picture.height()
    colours = {picture.pixel(x, y) for x in range(0, width, 8) for y in range(0, height, 8)}
    if len(colours) < 2 or window.windowIcon().isNull():
        raise UserFacingError("The window stays empty.", "Nothing is painted in it.", "Install Forespeak again.")


def _load_starter(session: Session) -> None:
    from forespeak.ui.pair_controller import PairState

    pair = session.pair
    _wait(lambda: pair.starter is not None or pair.status.state in {PairState.EMPTY, PairState.FAILED}, "the starter")
    if pair.starter is not None:
        pair.use_starter()
        _wait(lambda: pair.status.state in {PairState.READY, PairState.FAILED, PairState.TOO_LARGE}, "loading")
    status = pair.status
    if status.state is not PairState.READY:
        found = status.problem
        why = f"It is {status.state.value}." if found is None else f"{found.what} {found.why}".strip()
        raise UserFacingError("The starter pair could not be loaded in the window.", why)
    if not pair.has_draft:
        raise UserFacingError("The starter pair was loaded without its draft.", status.draft_problem or "")


def _ask(session: Session) -> LiveReply:
    ended: list[LiveReply] = []
    session.replies.ended.connect(ended.append)
    session.window.composer.sendRequested.emit(PROMPT)
    _wait(lambda: bool(ended), "the reply")
    reply = ended[0]
    if not any(step.accepted_count for step in reply.steps):
        note = "" if reply.ending is None else reply.ending.note
        raise UserFacingError("A reply came without speculation.", note or "No drafted token was accepted.")
    return reply


def _wait(condition: Callable[[], bool], what: str) -> None:
    """Run Qt's loop, as the app does, until `condition` holds. Raises UserFacingError."""
    from PySide6.QtCore import QEventLoop, QTimer

    deadline = time.monotonic() + _PATIENCE_SECONDS
    loop, watch = QEventLoop(), QTimer()
    watch.timeout.connect(lambda: loop.quit() if condition() or time.monotonic() > deadline else None)
    watch.start(_LOOK_MILLISECONDS)
    loop.exec()
    watch.stop()
    if not condition():
        raise UserFacingError(
            "The window waits in vain.", f"After {_PATIENCE_SECONDS:.0f} s there is no end to {what}."
        )

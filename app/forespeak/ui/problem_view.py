"""Where problems are shown: the banner for what lasts, a dialog for what was asked for."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from forespeak.chats.records import MessageState
from forespeak.engines.engine import Died, EngineEvent, Failed
from forespeak.errors import UserFacingError
from forespeak.ui.dialogs import ErrorDialog, Problem
from forespeak.ui.live_reply import LiveReply
from forespeak.ui.main_window import MainWindow


class ProblemView(QObject):
    retryRequested = Signal()
    """Saving, that is: nothing else on the banner can be tried again."""

    def __init__(self, window: MainWindow, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._window = window
        self._problem: Problem | None = None
        self._saving = False
        window.banner.actionRequested.connect(self._act)

    def show_banner(self, problem: Problem, action: str = "") -> None:
        self._problem = problem
        self._saving = False
        has_details = not isinstance(problem, UserFacingError) and bool(problem.details)
        words = " ".join(part for part in (problem.what, problem.why, problem.remedy) if part)
        self._window.banner.show_message(words, action or (self.tr("Details") if has_details else ""))

    @Slot(object)
    def show_dialog(self, problem: Problem) -> None:
        dialog = ErrorDialog(problem, self._window)
        dialog.setModal(True)
        dialog.finished.connect(dialog.deleteLater)
        dialog.show()

    @Slot(str)
    def show_notice(self, words: str) -> None:
        self.show_banner(UserFacingError(words))

    @Slot(object)
    def engine_event(self, event: EngineEvent) -> None:
        """An engine that died while it had nothing to do: no reply tells of it."""
        if event.request == 0 and isinstance(event.body, Died):
            self.show_banner(event.body)

    @Slot(object)
    def saving_failed(self, error: UserFacingError) -> None:
        self.show_banner(error, self.tr("Try again"))
        self._saving = True

    @Slot()
    def saving_recovered(self) -> None:
        if self._saving:
            self._saving = False
            self._window.banner.dismiss()

    @Slot(object)
    def reply_ended(self, reply: LiveReply) -> None:
        """The reply itself says what happened; the banner has the details."""
        ending = reply.ending
        if ending is not None and ending.details and ending.state in {MessageState.INTERRUPTED, MessageState.FAILED}:
            self.show_banner(Failed(ending.note, details=ending.details))

    @Slot()
    def _act(self) -> None:
        if isinstance(self._problem, Failed | Died):
            self.show_dialog(self._problem)
        else:
            self.retryRequested.emit()

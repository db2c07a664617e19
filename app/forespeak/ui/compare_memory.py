"""Asks before a comparison loads what this machine's memory would not hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPushButton, QVBoxLayout, QWidget

from forespeak.compare.lanes import Plan
from forespeak.models.memory import Fit, MemoryPlan, SuggestionKind
from forespeak.ui.background import Worker
from forespeak.ui.compare_parts import words_label
from forespeak.ui.dialogs import FittedDialog
from forespeak.ui.pair_controller import MemoryCheck
from forespeak.ui.plain_label import PlainLabel


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A load that does not fit: the lanes that are measured with it, and what it takes."""

    lanes: tuple[str, ...]
    plan: MemoryPlan


def too_large(plan: Plan, check: MemoryCheck, loaded: MemoryPlan | None) -> tuple[TooLarge, ...]:
    """The loads of a comparison that memory would not hold once the chat's pair has gone. Reads files."""
    comparison = plan.comparison()
    found = []
    for load, pair in zip(plan.loads, comparison.pairs, strict=True):
        memory = check(comparison.load_request(pair), loaded)
        if memory is not None and memory.fit is Fit.TOO_LARGE:
            found.append(TooLarge(tuple(lane.name for lane in load.lanes if not lane.is_off), memory))
    return tuple(found)


class MemoryDialog(FittedDialog):
    """What does not fit, and what would; to measure it all the same is not what Return does."""

    def __init__(self, found: Sequence[TooLarge], parent: QWidget | None = None) -> None:
        super().__init__(parent, width=460)
        self.setObjectName("memoryDialog")
        self.setWindowTitle(self.tr("Not enough memory"))
        title = PlainLabel(self.tr("This comparison does not fit into memory"))
        title.setObjectName("dialogTitle")
        title.setWordWrap(True)
        self.words = [words_label(self._words_of(each, alone=len(found) == 1)) for each in found]
        more = words_label(
            self.tr("Measured all the same, the system may become slow, and the figures would tell of that alone."),
            variant="muted",
        )
        buttons = QDialogButtonBox()
        self.anyway_button = QPushButton(self.tr("Measure anyway"))
        self.cancel_button = QPushButton(self.tr("Cancel"))
        buttons.addButton(self.anyway_button, QDialogButtonBox.ButtonRole.AcceptRole)
        buttons.addButton(self.cancel_button, QDialogButtonBox.ButtonRole.RejectRole)
        self.anyway_button.setAutoDefault(False)
        self.cancel_button.setDefault(True)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 16)
        column.setSpacing(12)
        for widget in (title, *self.words, more, buttons):
            column.addWidget(widget)
        self.cancel_button.setFocus()

    def _words_of(self, found: TooLarge, *, alone: bool) -> str:
        advice = [each.words for each in found.plan.suggestions if each.kind is not SuggestionKind.NO_DRAFT]
        if found.lanes and not alone:
            advice.append(self.tr("Leave these lanes out."))
        words = " ".join([found.plan.sentence, *advice])
        return words if alone or not found.lanes else f"{', '.join(found.lanes)}: {words}"


class MemoryGate(QObject):
    """`page`: where to ask; `check` None: nothing is asked."""

    def __init__(
        self,
        page: QWidget,
        worker: Worker,
        check: Callable[[], MemoryCheck | None],
        loaded: Callable[[], MemoryPlan | None],
    ) -> None:
        super().__init__(page)
        self._page, self._worker, self._check, self._loaded = page, worker, check, loaded
        self._go_on: Callable[[], None] | None = None
        self._dialog: MemoryDialog | None = None

    @property
    def asking(self) -> bool:
        """Whether something is being weighed, or waits for an answer."""
        return self._go_on is not None

    def pass_by(self, plan: Plan, go_on: Callable[[], None]) -> None:
        """Call `go_on` once the plan is known to fit, or the user wants it all the same."""
        check, loaded = self._check(), self._loaded()
        if check is None:
            go_on()
        elif self._go_on is None:
            self._go_on = go_on
            self._worker.run(lambda: too_large(plan, check, loaded), self._weighed, self._failed)

    def _weighed(self, found: tuple[TooLarge, ...]) -> None:
        if not found:
            self._answer(go_on=True)
            return
        self._dialog = MemoryDialog(found, self._page)
        self._dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._dialog.finished.connect(self._answered)
        self._dialog.open()

    def _failed(self, error: Exception) -> None:
        self._go_on = None
        raise error

    @Slot(int)
    def _answered(self, result: int) -> None:
        self._dialog = None
        self._answer(go_on=result == QDialog.DialogCode.Accepted)

    def _answer(self, *, go_on: bool) -> None:
        call, self._go_on = self._go_on, None
        if call is not None and go_on:
            call()

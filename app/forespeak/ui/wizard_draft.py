"""Step 2 of the pairing wizard: what could draft for the target, best first, with reasons; the Hub's on request."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QApplication,
    QButtonGroup,
    QFrame,
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

from forespeak.pairing.advice import AdviceKind
from forespeak.ui.form import caption, scrolled
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.restyle import restyle
from forespeak.ui.theme import Theme
from forespeak.ui.wizard_controller import LOOKUP_KEY, WizardController
from forespeak.ui.wizard_rows import CandidateRow
from forespeak.ui.wizard_words import CandidateLine

AT_ONCE = 10
"""Rows that are made before the page is shown; the others come one after the other."""


class DraftStep(QWidget):
    testRequested = Signal(str)
    """The key of a candidate that is here"""

    def __init__(self, controller: WizardController, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controller = controller
        self._theme: Theme | None = None
        self._wanted_focus = False
        self.rows: dict[str, CandidateRow] = {}
        self._waiting: list[CandidateLine] = []
        self._order: dict[str, int] = {}
        self._opened: set[str] = set()
        self._group = QButtonGroup(self)
        self.state_words = PlainLabel()
        self.state_words.setObjectName("quietNote")
        self.state_words.setWordWrap(True)
        self.advice = PlainLabel()
        self.advice.setWordWrap(True)
        self.advice.setObjectName("wizardAdvice")
        self._usable = _card()
        self.nothing = PlainLabel()
        self.nothing.setWordWrap(True)
        self.nothing.setContentsMargins(16, 16, 16, 16)
        usable = self._usable.layout()
        assert usable is not None
        usable.addWidget(self.nothing)
        self._fold_words = ""
        self.fold = QPushButton()
        self.fold.setProperty("flat", True)
        self.fold.setCheckable(True)
        self.fold.toggled.connect(self._fold_toggled)
        self._excluded = _card()
        self.hub_bar = QFrame()
        row = QHBoxLayout(self.hub_bar)
        row.setContentsMargins(0, 0, 0, 0)
        self.hub_words = PlainLabel()
        self.hub_words.setWordWrap(True)
        self.hub_moving = QProgressBar()
        self.hub_moving.setRange(0, 0)
        self.hub_moving.setFixedWidth(90)
        row.addWidget(self.hub_moving)
        row.addWidget(self.hub_words, 1)
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        column.addWidget(self.state_words)
        column.addWidget(self.advice)
        column.addWidget(self._usable)
        column.addWidget(self.hub_bar)
        column.addWidget(self.fold, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self._excluded)
        column.addStretch(1)
        self.area = scrolled(inside, see_through=True)
        self.about = caption("")
        self.about.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(10)
        layout.addWidget(self.area, 1)
        layout.addWidget(self.about)
        self._next = QTimer(self)
        self._next.setInterval(0)
        self._next.timeout.connect(self._add_row)
        controller.foundChanged.connect(self.show_found)
        controller.changed.connect(self._show_chosen)
        controller.hubChanged.connect(self._show_hub)
        controller.fetcher.changed.connect(self._show_fetch)
        controller.maker.changed.connect(self._show_fetch)
        self._fold_toggled(False)
        self.show_found()
        self._show_hub()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        for row in self.rows.values():
            row.set_theme(theme)

    def take_focus(self) -> None:
        """On the chosen draft, as soon as there is one."""
        row = self.rows.get(self._controller.state.chosen or "")
        if row is not None and not row.radio.isHidden():
            row.radio.setFocus(Qt.FocusReason.TabFocusReason)
            self._wanted_focus = False
        else:
            self._wanted_focus = True

    @property
    def complete(self) -> bool:
        """Whether all rows are there."""
        return not self._waiting

    @Slot()
    def show_found(self) -> None:
        controller = self._controller
        found, lines = controller.found, controller.lines
        usable = [line for line in lines if not line.problem]
        excluded = [line for line in lines if line.problem]
        self.state_words.setText(self.tr("Looking for drafts") if controller.finding and found is None else "")
        self.state_words.setVisible(bool(self.state_words.text()))
        advice = None if found is None else found.candidates.advice
        models = [line for line in usable if line.key != LOOKUP_KEY and not line.makes]
        if advice is not None and advice.kind is AdviceKind.LITTLE_GAIN and not models:
            # It is about the drafts here, and there are none.
            advice = None
        self.advice.setText("" if advice is None else advice.words)
        self.advice.setVisible(advice is not None)
        self._usable.setVisible(found is not None)
        if not usable:
            words = self.tr("Nothing can draft for this target.")
        else:
            words = self.tr("No other model here can draft for it. The Hub may have one.")
        self.nothing.setText(words)
        self.nothing.setVisible(found is not None and not models)
        count = len(excluded)
        self._fold_words = (
            self.tr("1 other cannot draft for it")
            if count == 1
            else self.tr("{count} others cannot draft for it").format(count=count)
        )
        self.fold.setVisible(bool(excluded))
        self._set_rows([*usable, *excluded])
        self._fold_toggled(self.fold.isChecked())
        self._show_chosen()

    def _set_rows(self, lines: list[CandidateLine]) -> None:
        """Rows are made in the order in which they stand, since that is the order in which Tab walks through them."""
        wanted = [line.key for line in lines]
        kept = [key for key in self.rows if key in wanted]
        if kept != wanted[: len(kept)]:
            kept = []
        opened = {key for key, row in self.rows.items() if row.why_open}
        focused = QApplication.focusWidget()
        for key in [key for key in self.rows if key not in kept]:
            row = self.rows.pop(key)
            self._wanted_focus = self._wanted_focus or (focused is not None and row.isAncestorOf(focused))
            self._group.removeButton(row.radio)
            row.hide()
            row.deleteLater()
        for line in lines[: len(kept)]:
            self.rows[line.key].show_line(line)
        self._order = {key: number for number, key in enumerate(wanted)}
        self._waiting = lines[len(kept) :]
        self._opened = opened
        for _ in range(AT_ONCE):
            self._add_row()
        self._place_rows()
        if self._waiting:
            self._next.start()

    @Slot()
    def _add_row(self) -> None:
        if not self._waiting:
            self._next.stop()
            return
        line = self._waiting.pop(0)
        row = CandidateRow(line)
        if self._theme is not None:
            row.set_theme(self._theme)
        row.picked.connect(self._controller.choose)
        row.testRequested.connect(self.testRequested)
        row.fetchRequested.connect(self._controller.fetch)
        row.cancelRequested.connect(self._controller.cancel_fetch)
        row.show_fetch(self._controller.fetch_of(line.key))
        if line.key in self._opened and line.problem:
            row.button.click()
        self.rows[line.key] = row
        row.radio.installEventFilter(self)
        self._group.addButton(row.radio)
        row.set_chosen(line.key == self._controller.state.chosen)
        if not self._waiting or len(self.rows) > AT_ONCE:
            self._place_rows()

    def _place_rows(self) -> None:
        """Each in its card, in order."""
        for problem, card in ((False, self._usable), (True, self._excluded)):
            column = card.layout()
            assert isinstance(column, QVBoxLayout)
            rows = [row for row in self.rows.values() if bool(row.line.problem) is problem]
            for number, row in enumerate(rows):
                if column.indexOf(row) != number:
                    column.insertWidget(number, row)
                restyle(row, first=number == 0)

    @Slot()
    def _show_chosen(self) -> None:
        chosen = self._controller.state.chosen
        for key, row in self.rows.items():
            row.set_chosen(key == chosen)
        line = self._controller.line
        self.about.setText("" if line is None or line.problem else line.details)
        self.about.setVisible(bool(self.about.text()))
        if self._wanted_focus and self.isVisible():
            self.take_focus()

    @Slot()
    def _show_hub(self) -> None:
        hub = self._controller.hub
        words = hub.words if hub.searching else "\n".join(hub.problems)
        if hub.searched and not hub.problems:
            words = (
                self.tr("The Hub has no other draft for this target that is worth a look.")
                if not hub.count
                else self.tr("Looked at the Hub: what it has is in the list.")
            )
        self.hub_words.setText(words)
        self.hub_bar.setVisible(bool(words))
        self.hub_moving.setVisible(hub.searching)
        restyle(self.hub_words, danger=bool(hub.problems), caption=not hub.problems)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and isinstance(watched, QRadioButton):
            row = next(row for row in self.rows.values() if row.radio is watched)
            step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()))
            if step is not None:
                self._walk(row, step)
                return True
            if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
                row.button.click()
                return True
        return super().eventFilter(watched, event)

    def _walk(self, row: CandidateRow, step: int) -> None:
        """Choose the next one, as radio buttons have it."""
        rows = sorted(
            (each for each in self.rows.values() if not each.line.problem),
            key=lambda each: self._order.get(each.line.key, 0),
        )
        at = rows.index(row) + step
        if 0 <= at < len(rows):
            self._controller.choose(rows[at].line.key)
            rows[at].radio.setFocus(Qt.FocusReason.TabFocusReason)
            self.area.ensureWidgetVisible(rows[at])

    @Slot(str)
    def _show_fetch(self, key: str) -> None:
        row = self.rows.get(key)
        if row is not None:
            row.show_fetch(self._controller.fetch_of(key))

    @Slot(bool)
    def _fold_toggled(self, shown: bool) -> None:
        self.fold.setText(f"{'▾' if shown else '▸'} {self._fold_words}")
        self._excluded.setVisible(shown and any(row.line.problem for row in self.rows.values()))


def _card() -> QFrame:
    card = QFrame()
    card.setProperty("card", True)
    column = QVBoxLayout(card)
    column.setContentsMargins(1, 1, 1, 1)
    column.setSpacing(0)
    return card

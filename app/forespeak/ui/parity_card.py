"""Whether the loaded pair writes the same words with and without speculation: a card of the speculation panel."""

from __future__ import annotations

from datetime import datetime

from PySide6.QtCore import QDate, QLocale, Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QProgressBar, QPushButton, QVBoxLayout, QWidget

from forespeak.engines.parity_result import ParityResult
from forespeak.pairing.parity_words import explanation
from forespeak.ui.parity_controller import ParityState, ParityStatus
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.theme import LIGHT, Theme


class ParityCard(QFrame):
    """Hidden while no pair is loaded."""

    checkRequested = Signal()
    stopRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("parityCard")
        self._theme = LIGHT
        self._status = ParityStatus(ParityState.UNAVAILABLE)
        self._open = False
        self._heading = PlainLabel(self.tr("SAME WORDS WITH AND WITHOUT"), self)
        self._headline = _wrapping(self)
        self._note = _wrapping(self)
        self._why = _wrapping(self)
        self._why.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._bar = QProgressBar(self)
        self._bar.setTextVisible(False)
        self._bar.setRange(0, 100)
        self._button = QPushButton(self)
        self._button.clicked.connect(self._clicked)
        self._why_button = QPushButton(self)
        self._why_button.clicked.connect(self._toggle_why)
        buttons = QHBoxLayout()
        buttons.setContentsMargins(0, 4, 0, 0)
        buttons.setSpacing(8)
        buttons.addWidget(self._button)
        buttons.addWidget(self._why_button)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 10, 14, 12)
        column.setSpacing(6)
        for widget in (self._heading, self._headline, self._bar, self._note, self._why):
            column.addWidget(widget)
        column.addLayout(buttons)
        self.set_theme(LIGHT)
        self.show_status(self._status)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.setStyleSheet(
            f"#parityCard {{ background: {theme.card}; border: 1px solid {theme.line}; border-radius: 12px; }}"
        )
        self._heading.setStyleSheet(f"color: {theme.muted}; font-size: 12px; font-weight: 600;")
        self._note.setStyleSheet(f"color: {theme.muted}; font-size: 13px;")
        self._why.setStyleSheet(f"color: {theme.ink}; font-size: 13px;")
        self._colour_headline()

    def _colour_headline(self) -> None:
        result = self._status.result
        faulty = result is not None and result.faults > 0 and self._status.state is ParityState.IDLE
        colour = self._theme.danger if faulty else self._theme.ink
        self._headline.setStyleSheet(f"color: {colour}; font-weight: 600;")

    def show_status(self, status: ParityStatus) -> None:
        if status.result is not self._status.result:
            self._open = False
        self._status = status
        running = status.state is ParityState.RUNNING
        self.setVisible(status.state is not ParityState.UNAVAILABLE)
        self._headline.setText(self._headline_words(status))
        note = self._progress_words(status) if running else self._note_words(status)
        self._note.setText(note)
        self._note.setVisible(bool(note))
        self._bar.setVisible(running)
        fraction = 0.0 if status.progress is None else status.progress.fraction
        self._bar.setValue(round(fraction * 100))
        self._bar.setAccessibleName(self.tr("Check of the pair: {0} %").format(round(fraction * 100)))
        if running:
            self._button.setText(self.tr("Stop"))
        else:
            self._button.setText(self.tr("Check now") if status.result is None else self.tr("Check again"))
        self._button.setEnabled(not status.stopping)
        self._show_why()
        self._colour_headline()

    def _show_why(self) -> None:
        result = self._status.result
        difference = None if result is None else result.first_difference
        known = difference is not None and self._status.state is ParityState.IDLE
        self._why_button.setVisible(known)
        self._why_button.setText(self.tr("Hide why") if self._open else self.tr("Show why"))
        self._why.setVisible(known and self._open)
        self._why.setText("" if difference is None else explanation(difference))

    def _headline_words(self, status: ParityStatus) -> str:
        if status.state is ParityState.RUNNING:
            return self.tr("Stopping") if status.stopping else self.tr("Checking this pair")
        result = status.result
        if result is None:
            return self.tr("Not checked yet")
        return self.tr("{0} of {1} replies").format(result.equal, len(result.cases))

    def _note_words(self, status: ParityStatus) -> str:
        result = status.result
        parts = [status.problem] if status.problem else []
        if result is None:
            parts.append(
                self.tr(
                    "A dozen prompts are answered with and without speculation, in the reproducible setting, and every "
                    "word is compared. That takes a minute or more. The chat stays as it is; a message goes first."
                )
            )
            return "\n".join(parts)
        if not result.complete:
            parts.append(self.tr("Stopped before the other {0}.").format(result.planned - len(result.cases)))
        if result.tested == 0:
            parts.append(self.tr("No drafted token was tested, so this shows nothing about drafts."))
        if result.faults:
            parts.append(self.tr("A difference is a fault of Forespeak: please report it."))
        elif result.ties:
            parts.append(self.tr("The others differ by numeric ties: two words were as likely as can be told."))
        parts.append(self.tr("Checked on {0}.").format(_day(result)))
        return "\n".join(parts)

    def _progress_words(self, status: ParityStatus) -> str:
        doing = "" if status.progress is None else status.progress.doing
        left = status.seconds_left
        if left is None:
            return doing
        if left < 60:
            return self.tr("{0}\nless than a minute left").format(doing)
        return self.tr("{0}\nabout {1} min left").format(doing, round(left / 60))

    @Slot()
    def _clicked(self) -> None:
        if self._status.state is ParityState.RUNNING:
            self.stopRequested.emit()
        else:
            self.checkRequested.emit()

    @Slot()
    def _toggle_why(self) -> None:
        self._open = not self._open
        self._show_why()


def _wrapping(parent: QWidget) -> PlainLabel:
    label = PlainLabel(parent)
    label.setWordWrap(True)
    return label


def _day(result: ParityResult) -> str:
    """The day of the check, as the system writes days; the year only if it was another one."""
    when = datetime.fromisoformat(result.checked_at).astimezone()
    day, locale = QDate(when.year, when.month, when.day), QLocale()
    return locale.toString(day, "d MMMM" if day.year() == QDate.currentDate().year() else "d MMMM yyyy")

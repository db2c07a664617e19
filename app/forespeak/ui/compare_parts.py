"""What the views of the Compare page share: cards, headings, parts that stand side by side while there is room."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QComboBox,
    QFrame,
    QSizePolicy,
    QStyle,
    QStyleOptionComboBox,
    QStylePainter,
    QVBoxLayout,
    QWidget,
)

from forespeak.ui.compare_values import Tone
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.theme import Theme

SIDE_BY_SIDE_FROM = 640
"""Pixels from which on two lanes stand beside each other."""
MINUTE = 60.0
HOUR = 3600.0


def card(heading: str = "", parent: QWidget | None = None) -> tuple[QFrame, QVBoxLayout]:
    """A card and its layout, with a small heading if there are words for one."""
    frame = QFrame(parent)
    frame.setProperty("card", True)
    column = QVBoxLayout(frame)
    column.setContentsMargins(18, 14, 18, 16)
    column.setSpacing(10)
    if heading:
        label = PlainLabel(heading, frame)
        # Lanes' names stand in some: they may be long.
        label.setWordWrap(True)
        label.setProperty("muted", True)
        label.setStyleSheet("font-size: 12px; font-weight: 600;")
        column.addWidget(label)
    return frame, column


class ElidedChoice(QComboBox):
    """Says that its words go on where they have no room; their ends, at which lanes differ, stay in sight."""

    def __init__(self, letters: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(letters)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QStylePainter(self)
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        field = self.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox, option, QStyle.SubControl.SC_ComboBoxEditField, self
        )
        option.currentText = self.shown_words(field.width())
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)
        painter.end()

    def shown_words(self, room: int) -> str:
        """What is seen of the current words in so many pixels; styles keep a few of them for a margin."""
        return self.fontMetrics().elidedText(self.currentText(), Qt.TextElideMode.ElideMiddle, room - 4)


def words_label(words: str = "", *, variant: str = "") -> PlainLabel:
    """A wrapping label of plain text that can be selected. `variant`: a property of the style sheet."""
    label = PlainLabel(words)
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    if variant:
        label.setProperty(variant, True)
    return label


def tone_colour(theme: Theme, tone: Tone) -> str:
    """For text, as #RRGGBB. The words always say the same."""
    return {Tone.GOOD: theme.success, Tone.EVEN: theme.ink, Tone.BAD: theme.danger}[tone]


def ratio_words(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f}×"


def time_words(seconds: float) -> str:
    """A span, as short as it is meant: “40 s”, “3 min”, “1 h 20 min”."""
    if seconds < MINUTE:
        return f"{max(round(seconds), 1)} s"
    if seconds < HOUR:
        return f"{round(seconds / MINUTE)} min"
    hours, rest = divmod(round(seconds / MINUTE), 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


class SideBySide(QWidget):
    """Its parts share the width equally; where there is too little for two, they stand below each other."""

    def __init__(self, gap: int = 16, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(gap)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def add(self, widget: QWidget) -> None:
        self._row.addWidget(widget, 1)

    @property
    def is_stacked(self) -> bool:
        return self._row.direction() == QBoxLayout.Direction.TopToBottom

    def minimumSizeHint(self) -> QSize:
        """As narrow as the widest of its parts: below each other they need no more."""
        widths = [
            item.minimumSize().width()
            for number in range(self._row.count())
            if (item := self._row.itemAt(number)) is not None and not item.isEmpty()
        ]
        return QSize(max(widths, default=0), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        down = event.size().width() < SIDE_BY_SIDE_FROM
        wanted = QBoxLayout.Direction.TopToBottom if down else QBoxLayout.Direction.LeftToRight
        if self._row.direction() != wanted:
            self._row.setDirection(wanted)
            self.updateGeometry()

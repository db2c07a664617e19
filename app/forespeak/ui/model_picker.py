"""The top bar's chips: which target, which draft and whether they fit, the memory in use, the speculation switch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QActionGroup, QResizeEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QMenu,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from forespeak.speculation.trace import Source
from forespeak.ui.draft_sources import button_words, chain_words
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.restyle import restyle
from forespeak.ui.source_menu import SourceMenu
from forespeak.ui.theme import Theme
from forespeak.ui.tool_tips import plain_tip

WIDEST_NAME = 30
"""Of a model's name in a chip, in average characters."""


class Place(Enum):
    """The two places of a pair."""

    TARGET = "target"
    DRAFT = "draft"


@dataclass(frozen=True, slots=True)
class Choice:
    """A model that can be picked: its file and the name people know it by."""

    path: Path
    name: str


class Tone(Enum):
    """How a chip's small words are to be read."""

    PLAIN = "plain"
    GOOD = "good"
    PROBLEM = "problem"


class Chip(QPushButton):
    """A button of two lines: small words above, what matters below. The lower line is cut, never the layout."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("chip")
        self._caption = PlainLabel(self)
        self._caption.setObjectName("chipCaption")
        self._value = PlainLabel(self)
        self._value.setObjectName("chipValue")
        self._words = ("", "")
        for label in (self._caption, self._value):
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            label.setMinimumWidth(0)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 4, 12, 5)
        layout.setSpacing(0)
        layout.addWidget(self._caption)
        layout.addWidget(self._value)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def set_words(self, caption: str, value: str, tooltip: str = "", tone: Tone = Tone.PLAIN) -> None:
        self._words = (caption, value)
        self.setAccessibleName(f"{caption}: {value}")
        self.setToolTip(plain_tip(tooltip))
        restyle(self._caption, tone=tone.value)
        self._cut()
        self.updateGeometry()

    def words(self) -> tuple[str, str]:
        return self._words

    def sizeHint(self) -> QSize:
        widest = self._value.fontMetrics().averageCharWidth() * WIDEST_NAME
        wanted = max(
            self._caption.fontMetrics().horizontalAdvance(self._words[0]),
            self._value.fontMetrics().horizontalAdvance(self._words[1]),
        )
        height = self._caption.fontMetrics().height() + self._value.fontMetrics().height() + 9
        return QSize(min(wanted, widest) + 28, height)

    def minimumSizeHint(self) -> QSize:
        return QSize(self._value.fontMetrics().averageCharWidth() * 9 + 28, self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._cut()

    def _cut(self) -> None:
        room = self.width() - 26
        for label, words in zip((self._caption, self._value), self._words, strict=True):
            label.setText(label.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, max(0, room)))


class ModelChip(Chip):
    """A chip whose menu picks a model for one place of the pair."""

    picked = Signal(object)
    """A Path, or None for no model."""
    browseRequested = Signal()
    findRequested = Signal()
    """Of the draft: the one that suits the target is to be found"""

    def __init__(self, place: Place, choices: Callable[[], Sequence[Choice]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._place = place
        self._choices = choices
        self._current: Path | None = None
        self._menu = QMenu(self)
        self._menu.setToolTipsVisible(True)
        self._menu.aboutToShow.connect(self.fill_menu)
        self.setMenu(self._menu)

    def set_current(self, path: Path | None) -> None:
        self._current = path

    @Slot()
    def fill_menu(self) -> QMenu:
        """Made anew each time it opens, so that it shows what is on disk now."""
        menu = self._menu
        menu.clear()
        group = QActionGroup(menu)
        for choice in self._choices():
            action = menu.addAction(choice.name)
            action.setCheckable(True)
            action.setChecked(choice.path == self._current)
            action.setToolTip(plain_tip(str(choice.path)))
            group.addAction(action)
            action.triggered.connect(_picker(self.picked, choice.path))
        if self._place is Place.DRAFT:
            menu.addSeparator()
            none = menu.addAction(self.tr("No draft model"))
            none.setCheckable(True)
            none.setChecked(self._current is None)
            none.setToolTip(self.tr("The text itself is looked up for drafts."))
            none.triggered.connect(_picker(self.picked, None))
            group.addAction(none)
        menu.addSeparator()
        if self._place is Place.DRAFT:
            menu.addAction(self.tr("Find a draft…")).triggered.connect(self.findRequested)
        menu.addAction(self.tr("Choose a model file…")).triggered.connect(self.browseRequested)
        return menu


def _picker(signal: object, path: Path | None) -> Callable[[], None]:
    return lambda: signal.emit(path)  # type: ignore[attr-defined]


class SpeculationSwitch(QWidget):
    """On or off for the next message, and what drafts while it is on. Nothing is reloaded."""

    switched = Signal(bool)
    sourcesChosen = Signal(object)
    """tuple of Sources, one at least: speculation is on, with these"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._sources: tuple[Source, ...] = (Source.DRAFT_MODEL,)
        self._obstacle: str | None = None
        self.switch = QCheckBox()
        self._label = PlainLabel(self.tr("Speculation"))
        self._label.setObjectName("quietNote")
        self.source_button = QToolButton()
        self.source_button.setObjectName("sourceButton")
        self.source_button.setAccessibleName(self.tr("Draft sources"))
        self.source_button.clicked.connect(self.open_menu)
        self.menu = SourceMenu(self)
        self.menu.chosen.connect(self._chosen)
        self.switch.setProperty("switch", True)
        self.switch.setAccessibleName(self.tr("Speculation"))
        self.switch.setToolTip(self.tr("Speculation for the next message. Nothing is reloaded."))
        self.switch.toggled.connect(self._toggled)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        row.addWidget(self._label)
        row.addWidget(self.source_button)
        row.addWidget(self.switch)
        self.set_state(True, self._sources)

    def set_theme(self, theme: Theme) -> None:
        self.menu.set_theme(theme)

    def set_state(self, on: bool, sources: tuple[Source, ...], obstacle: str | None = None) -> None:
        """`sources` as they are asked. `obstacle`: why the draft model cannot be chosen, in a sentence."""
        self._sources, self._obstacle = sources, obstacle
        self.switch.blockSignals(True)
        self.switch.setChecked(on)
        self.switch.blockSignals(False)
        self._show()

    def set_parts(self, *, label: bool, source: bool) -> None:
        """What there is room for beside the switch."""
        self._label.setVisible(label)
        self.source_button.setVisible(source)

    @Slot()
    def open_menu(self) -> None:
        self.menu.open_below(self.source_button)

    @Slot(object)
    def _chosen(self, sources: tuple[Source, ...]) -> None:
        if not sources:
            self.switch.setChecked(False)
            # Also where it was off before: the menu shows what is so.
            self._show()
            return
        self.set_state(True, sources, self._obstacle)
        self.sourcesChosen.emit(sources)

    @Slot(bool)
    def _toggled(self, on: bool) -> None:
        self._show()
        self.switched.emit(on)

    def _show(self) -> None:
        on = self.switch.isChecked()
        self.source_button.setText(button_words(self._sources) if on else self.tr("Off"))
        tip = f"{chain_words(self._sources)}." if on else self.tr("The target writes alone.")
        self.source_button.setToolTip(tip)
        self.source_button.setAccessibleDescription(tip)
        self.menu.set_state(on, self._sources, self._obstacle)

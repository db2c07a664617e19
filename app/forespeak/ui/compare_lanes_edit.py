"""The lanes of a comparison that is being set up: off and one other to begin with, more if wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QComboBox, QHBoxLayout, QPushButton, QToolButton, QVBoxLayout, QWidget

from forespeak.compare.lanes import OFF_NAME, Lane
from forespeak.speculation.trace import Source
from forespeak.ui.compare_parts import ElidedChoice
from forespeak.ui.flow_row import FlowRow
from forespeak.ui.form import number_box
from forespeak.ui.icons import icon
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.theme import LIGHT, Theme
from forespeak.ui.tool_tips import plain_tip

MOST = 6
LENGTHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
_GAP = 8
_HEAT_WIDTH = 136
_NAME_ROOM = 260
"""What a lane's name gets before the rest goes below it, in pixels: a model with its source and its quantisation."""
_AS_SET = -0.1
"""The box's value for the temperature of all runs."""


@dataclass(frozen=True, slots=True)
class LaneOption:
    """Something that a lane can be. `group` parts the list; `draft_length` is what it brings with it."""

    label: str
    sources: tuple[Source, ...] = ()
    draft: Path | None = None
    draft_length: int | None = None
    group: str = ""
    pair_id: str | None = None


OFF = LaneOption(OFF_NAME)


def _same(option: LaneOption, other: LaneOption) -> bool:
    return (other.sources, other.draft, other.pair_id) == (option.sources, option.draft, option.pair_id)


class _LaneRow(QWidget):
    """What drafts in one lane, how far, and how freely it writes."""

    changed = Signal()
    removeRequested = Signal()

    def __init__(self, number: int, options: Sequence[LaneOption], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._options: tuple[LaneOption, ...] = ()
        self.what = ElidedChoice(12)
        self.length = QComboBox()
        self.length.setAccessibleName(self.tr("Length of a draft in lane {0}").format(number))
        self.length.setToolTip(self.tr("How many tokens are drafted at a time"))
        self.length.addItem(self.tr("Auto"), None)
        for tokens in LENGTHS:
            self.length.addItem(self._length_words(tokens), tokens)
        self.heat = number_box(_AS_SET, 2.0, 0.1, self._heat_changed)
        self.heat.setSpecialValueText(self.tr("Temp. as set"))
        self.heat.setPrefix(self.tr("Temp. "))
        self.heat.setValue(_AS_SET)
        self.heat.setMinimumWidth(_HEAT_WIDTH)
        self.heat.setToolTip(self.tr("The temperature of this lane. Off is measured beside it at the same one."))
        self.heat.setAccessibleName(self.tr("Temperature of lane {0}").format(number))
        self.remove = QToolButton()
        self.what.setAccessibleName(self.tr("What drafts in lane {0}").format(number))
        self.remove.setToolTip(self.tr("Remove this lane"))
        self.remove.setAccessibleName(self.tr("Remove lane {0}").format(number))
        self._rest = QWidget()
        rest = QHBoxLayout(self._rest)
        rest.setContentsMargins(0, 0, 0, 0)
        rest.setSpacing(_GAP)
        rest.addWidget(self.length)
        rest.addWidget(self.heat)
        rest.addStretch(1)
        rest.addWidget(self.remove)
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(_GAP)
        self._row.addWidget(self.what, 1)
        self._row.addWidget(self._rest)
        self.set_options(options)
        self.what.activated.connect(self._chosen)
        self.length.activated.connect(self.changed)
        self.remove.clicked.connect(self.removeRequested)

    def set_options(self, options: Sequence[LaneOption]) -> None:
        if tuple(options) == self._options:
            return
        kept = self.option
        self._options = tuple(options)
        self.what.clear()
        group = None
        for number, option in enumerate(options):
            if group is not None and option.group != group:
                self.what.insertSeparator(self.what.count())
            group = option.group
            self.what.addItem(option.label, number)
            self.what.setItemData(self.what.count() - 1, plain_tip(option.label), Qt.ItemDataRole.ToolTipRole)
        if kept is not None:
            self.choose(kept)

    @property
    def option(self) -> LaneOption | None:
        number = self.what.currentData()
        return self._options[number] if isinstance(number, int) else None

    def choose(self, option: LaneOption) -> None:
        """The same way, whatever it is called now; the first one if there is none any more."""
        same = [number for number, other in enumerate(self._options) if _same(option, other)]
        self.what.setCurrentIndex(max(self.what.findData(same[0] if same else 0), 0))
        self._show_choice()

    def set_length(self, length: int | None) -> None:
        """A length that is not offered joins the list: chats, kept pairs and plans may have any."""
        if length is not None and self.length.findData(length) < 0:
            shorter = sum(int(self.length.itemData(place)) < length for place in range(1, self.length.count()))
            self.length.insertItem(1 + shorter, self._length_words(length), length)
        self.length.setCurrentIndex(max(self.length.findData(length), 0))

    def _length_words(self, tokens: int) -> str:
        return self.tr("1 token") if tokens == 1 else self.tr("{0} tokens").format(tokens)

    @property
    def draft_length(self) -> int | None:
        length = self.length.currentData()
        return length if isinstance(length, int) else None

    def set_temperature(self, temperature: float | None) -> None:
        """None: that of all runs."""
        self.heat.setValue(_AS_SET if temperature is None else temperature)

    @property
    def temperature(self) -> float | None:
        value = round(self.heat.value(), 2)
        return None if value < 0 else value

    @Slot()
    def _heat_changed(self, *_: object) -> None:
        self.changed.emit()

    @Slot()
    def _chosen(self, *_: object) -> None:
        option = self.option
        if option is not None:
            self.set_length(option.draft_length)
        self._show_choice()
        self.changed.emit()

    def _show_choice(self) -> None:
        option = self.option
        self.length.setEnabled(option is not None and bool(option.sources))
        # A long name may be cut in the box.
        self.what.setToolTip("" if option is None else plain_tip(option.label))

    # -- its room

    def minimumSizeHint(self) -> QSize:
        """As narrow as the wider of its two parts: below each other they need no more."""
        return QSize(max(self._widths), super().minimumSizeHint().height())

    @property
    def _widths(self) -> tuple[int, int]:
        return self.what.minimumSizeHint().width(), self._rest.minimumSizeHint().width()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        down = event.size().width() < _NAME_ROOM + _GAP + self._widths[1]
        wanted = QBoxLayout.Direction.TopToBottom if down else QBoxLayout.Direction.LeftToRight
        if self._row.direction() != wanted:
            self._row.setDirection(wanted)
            # What belongs together stands closer than one lane to the next.
            self._row.setSpacing(4 if down else _GAP)
            self._row.setContentsMargins(0, 0, 0, 8 if down else 0)
            self.updateGeometry()


class LanesEdit(QWidget):
    """Off stands first and stays: the others are compared with it."""

    changed = Signal()
    fileRequested = Signal()
    """A draft model that is not in the list: whoever finds one calls `add_option`"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._found: tuple[LaneOption, ...] = ()
        self._added: tuple[LaneOption, ...] = ()
        """Those of an earlier comparison, and of files, which were not found"""
        self.rows: list[_LaneRow] = []
        off = PlainLabel(self.tr("Off: the target alone. The other lanes are compared with it."))
        off.setWordWrap(True)
        self.add_button = QPushButton(self.tr("Add a lane"))
        self.add_button.clicked.connect(self._add_clicked)
        self.file_button = QPushButton(self.tr("Draft from a file…"))
        self.file_button.setToolTip(self.tr("Add a lane with a draft model that is not in the library"))
        self.file_button.clicked.connect(self.fileRequested)
        self._rows_layout = QVBoxLayout()
        self._rows_layout.setSpacing(8)
        below = FlowRow()
        below.add(self.add_button)
        below.add(self.file_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(off)
        column.addLayout(self._rows_layout)
        column.addWidget(below)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.add_button.setIcon(icon("plus", theme.ink, theme.muted))
        for row in self.rows:
            row.remove.setIcon(icon("close", theme.muted, theme.line))

    def set_options(self, options: Sequence[LaneOption]) -> None:
        """What a lane can be, the likeliest first; Off is added."""
        self._found = tuple(options)
        self._show_options()
        if not self.rows and options:
            self._add(options[0])
        self._show_buttons()

    def forget_added(self) -> None:
        """The target is another one: only what is found for it counts."""
        self._added = ()

    def add_option(self, option: LaneOption) -> None:
        """A lane with something that was not in the list, whose file took a while to be looked at."""
        self._remember(option)
        self._add(option)
        if self.isVisible():
            self.rows[-1].what.setFocus()
        self.changed.emit()

    def set_lanes(self, lanes: Sequence[Lane]) -> None:
        """Those of an earlier comparison, off apart: all of them, even if they are more than can be added here."""
        for row in list(self.rows):
            self._take(row)
        for lane in lanes:
            option = LaneOption(_label_of(lane), lane.sources, lane.draft, lane.draft_length, "", lane.pair_id)
            # Of another time: its draft may no longer be among those that are known.
            self._remember(option)
            self._add(option)
            self.rows[-1].set_temperature(lane.temperature)
        self._show_buttons()

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """Off and the others, each under a name of its own."""
        taken = {OFF_NAME}
        found = [Lane(OFF_NAME)]
        for row in self.rows:
            option = row.option
            if option is None:
                continue
            length, temperature = row.draft_length if option.sources else None, row.temperature
            name = option.label
            if option.sources:
                name += " · " + (self.tr("Auto") if length is None else row.length.currentText())
            if temperature is not None:
                name += f" · temperature {temperature:g}"
            number, unique = 1, name
            while unique in taken:
                number += 1
                unique = f"{name} ({number})"
            taken.add(unique)
            found.append(Lane(unique, option.sources, option.draft, length, temperature, option.pair_id))
        return tuple(found)

    # -- inside

    @property
    def _options(self) -> tuple[LaneOption, ...]:
        added = [each for each in self._added if not any(_same(each, other) for other in self._found)]
        return (*self._found, *added, OFF)

    def _remember(self, option: LaneOption) -> None:
        if not any(_same(option, other) for other in self._options):
            self._added = (*self._added, option)
            self._show_options()

    def _show_options(self) -> None:
        for row in self.rows:
            row.set_options(self._options)

    @Slot()
    def _add_clicked(self) -> None:
        used = [row.option for row in self.rows]
        fresh = next((option for option in self._options if option not in used), self._options[0])
        self._add(fresh)
        self.rows[-1].what.setFocus()
        self.changed.emit()

    def _add(self, option: LaneOption) -> None:
        row = _LaneRow(len(self.rows) + 2, self._options, self)
        row.choose(option)
        row.set_length(option.draft_length)
        row.remove.setIcon(icon("close", self._theme.muted, self._theme.line))
        row.changed.connect(self.changed)
        row.removeRequested.connect(self._remove_clicked)
        self.rows.append(row)
        self._rows_layout.addWidget(row)
        self._order_tabs()
        self._show_buttons()

    def _order_tabs(self) -> None:
        """Rows come later than what stands below them, and would be reached after it."""
        before: QWidget = self.add_button
        for row in self.rows:
            for field in (row.what, row.length, row.heat, row.remove):
                QWidget.setTabOrder(before, field)
                before = field
        QWidget.setTabOrder(before, self.add_button)

    @Slot()
    def _remove_clicked(self) -> None:
        row = self.sender()
        if isinstance(row, _LaneRow):
            self._take(row)
            self.add_button.setFocus()
            self.changed.emit()

    def _take(self, row: _LaneRow) -> None:
        self.rows.remove(row)
        self._rows_layout.removeWidget(row)
        row.hide()
        row.deleteLater()
        self._show_buttons()

    def _show_buttons(self) -> None:
        room = len(self.rows) + 1 < MOST
        self.add_button.setEnabled(room)
        self.file_button.setEnabled(room and bool(self._found))
        for row in self.rows:
            row.remove.setEnabled(len(self.rows) > 1)


def _label_of(lane: Lane) -> str:
    """Its name without what `LanesEdit.lanes` puts behind it."""
    label = lane.name
    if lane.temperature is not None:
        label = label.rpartition(" · temperature ")[0] or label
    if lane.sources:
        label = label.rpartition(" · ")[0] or label
    return label

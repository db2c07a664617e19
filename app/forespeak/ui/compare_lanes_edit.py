"""The lanes of a comparison that is being set up: off and one other to begin with, more if wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QPushButton, QToolButton, QVBoxLayout, QWidget

from forespeak.compare.lanes import OFF_NAME, Lane
from forespeak.speculation.trace import Source
from forespeak.ui.icons import icon
from forespeak.ui.theme import LIGHT, Theme

MOST = 6
LENGTHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)


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
    """What drafts in one lane, and how far."""

    changed = Signal()
    removeRequested = Signal()

    def __init__(self, number: int, options: Sequence[LaneOption], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._options: tuple[LaneOption, ...] = ()
        self.what = QComboBox()
        self.what.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.what.setMinimumContentsLength(16)
        self.length = QComboBox()
        self.length.setAccessibleName(self.tr("Length of a draft in lane {0}").format(number))
        self.length.setToolTip(self.tr("How many tokens are drafted at a time"))
        self.length.addItem(self.tr("Auto"), None)
        for tokens in LENGTHS:
            self.length.addItem(self.tr("1 token") if tokens == 1 else self.tr("{0} tokens").format(tokens), tokens)
        self.remove = QToolButton()
        self.what.setAccessibleName(self.tr("What drafts in lane {0}").format(number))
        self.remove.setToolTip(self.tr("Remove this lane"))
        self.remove.setAccessibleName(self.tr("Remove lane {0}").format(number))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self.what, 1)
        row.addWidget(self.length)
        row.addWidget(self.remove)
        self.set_options(options)
        self.what.activated.connect(self._chosen)
        self.length.activated.connect(self.changed)
        self.remove.clicked.connect(self.removeRequested)

    def set_options(self, options: Sequence[LaneOption]) -> None:
        kept = self.option
        self._options = tuple(options)
        self.what.clear()
        group = None
        for number, option in enumerate(options):
            if group is not None and option.group != group:
                self.what.insertSeparator(self.what.count())
            group = option.group
            self.what.addItem(option.label, number)
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
        self._show_length()

    def set_length(self, length: int | None) -> None:
        self.length.setCurrentIndex(max(self.length.findData(length), 0))

    @property
    def draft_length(self) -> int | None:
        length = self.length.currentData()
        return length if isinstance(length, int) else None

    @Slot()
    def _chosen(self, *_: object) -> None:
        option = self.option
        if option is not None:
            self.set_length(option.draft_length)
        self._show_length()
        self.changed.emit()

    def _show_length(self) -> None:
        option = self.option
        self.length.setEnabled(option is not None and bool(option.sources))


class LanesEdit(QWidget):
    """Off stands first and stays: the others are compared with it."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._options: tuple[LaneOption, ...] = (OFF,)
        self.rows: list[_LaneRow] = []
        off = QLabel(self.tr("Off: the target alone. The other lanes are compared with it."))
        off.setWordWrap(True)
        self.add_button = QPushButton(self.tr("Add a lane"))
        self.add_button.clicked.connect(self._add_clicked)
        self._rows_layout = QVBoxLayout()
        self._rows_layout.setSpacing(8)
        below = QHBoxLayout()
        below.addWidget(self.add_button)
        below.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(off)
        column.addLayout(self._rows_layout)
        column.addLayout(below)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.add_button.setIcon(icon("plus", theme.ink, theme.muted))
        for row in self.rows:
            row.remove.setIcon(icon("close", theme.muted, theme.line))

    def set_options(self, options: Sequence[LaneOption]) -> None:
        """What a lane can be, the likeliest first; Off is added."""
        self._options = (*options, OFF)
        for row in self.rows:
            row.set_options(self._options)
        if not self.rows and options:
            self._add(options[0])
        self._show_buttons()

    def set_lanes(self, lanes: Sequence[Lane]) -> None:
        """Those of an earlier comparison, off apart."""
        for row in list(self.rows):
            self._take(row)
        for lane in lanes:
            option = LaneOption(
                lane.name.rpartition(" · ")[0] or lane.name,
                lane.sources,
                lane.draft,
                lane.draft_length,
                "",
                lane.pair_id,
            )
            if not any(_same(option, other) for other in self._options):
                # Of another time: its draft may no longer be among those that are known.
                self._options = (*self._options[:-1], option, OFF)
            self._add(option)
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
            name = option.label
            if option.sources:
                length = row.draft_length
                name += " · " + (self.tr("Auto") if length is None else row.length.currentText())
            number, unique = 1, name
            while unique in taken:
                number += 1
                unique = f"{name} ({number})"
            taken.add(unique)
            length = row.draft_length if option.sources else None
            found.append(Lane(unique, option.sources, option.draft, length, None, option.pair_id))
        return tuple(found)

    # -- inside

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
        self._show_buttons()

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
        self.add_button.setEnabled(len(self.rows) + 1 < MOST)
        for row in self.rows:
            row.remove.setEnabled(len(self.rows) > 1)

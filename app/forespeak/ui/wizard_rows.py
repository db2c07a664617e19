"""A row of the wizard's list of drafts: what it is, whether it can draft, what it takes and brings, what to do."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QGridLayout, QProgressBar, QPushButton, QRadioButton

from forespeak.ui.badge import Badge
from forespeak.ui.elided_label import ElidedLabel
from forespeak.ui.folding_row import FoldingRow
from forespeak.ui.form import caption
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.restyle import restyle
from forespeak.ui.theme import Theme
from forespeak.ui.wizard_fetcher import Fetch, FetchStep
from forespeak.ui.wizard_words import CandidateLine

WIDE_FROM = 640
BUTTON_WIDTH = 116
RADIO_WIDTH = 34


class CandidateRow(FoldingRow):
    picked = Signal(str)
    testRequested = Signal(str)
    fetchRequested = Signal(str)
    cancelRequested = Signal(str)

    def __init__(self, line: CandidateLine, parent: QFrame | None = None) -> None:
        super().__init__(WIDE_FROM, 280, parent)
        self.line = line
        self._fetch: Fetch | None = None
        self.radio = QRadioButton()
        self.radio.setFixedWidth(RADIO_WIDTH)
        # The columns of those that have none stand under those of the others.
        policy = self.radio.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.radio.setSizePolicy(policy)
        self.radio.clicked.connect(self._picked)
        self.name = ElidedLabel()
        self.name.setObjectName("rowTitle")
        self.place = caption("")
        self.badge = Badge()
        self.reason = caption("")
        self.memory = PlainLabel()
        self.memory_note = caption("")
        self.gain = PlainLabel()
        self.gain.setObjectName("rowTitle")
        self.gain_note = caption("")
        self.button = QPushButton()
        self.button.setFixedWidth(BUTTON_WIDTH)
        self.button.clicked.connect(self._pressed)
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setRange(0, 1000)
        self.note = PlainLabel()
        self.note.setWordWrap(True)
        self.note.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.grid.setContentsMargins(14, 11, 14, 11)
        self.grid.setHorizontalSpacing(16)
        self._open = False
        self.fold(wide=True)
        self.show_line(line)

    @property
    def why_open(self) -> bool:
        return self._open

    def set_theme(self, theme: Theme) -> None:
        self.badge.set_theme(theme)

    def show_line(self, line: CandidateLine) -> None:
        self.line = line
        self.name.set_words(line.name)
        self.place.setText(line.place)
        self.place.setVisible(bool(line.place))
        self.badge.set_words(line.badge, line.tone)
        self.reason.setText(line.reason)
        self.reason.setVisible(bool(line.reason))
        self.memory.setText(line.memory)
        self.memory_note.setText(line.memory_note)
        self.gain.setText(line.gain)
        self.gain_note.setText(line.gain_note)
        self.radio.setVisible(not line.problem)
        parts = (line.place, line.badge, line.reason, line.memory, f"{line.gain} {line.gain_note}".strip())
        self.radio.setAccessibleName(line.name)
        self.radio.setAccessibleDescription(", ".join(part for part in parts if part))
        self._show_action()

    def show_fetch(self, fetch: Fetch | None) -> None:
        if fetch != self._fetch:
            self._fetch = fetch
            self._show_action()

    def set_chosen(self, chosen: bool) -> None:
        if self.radio.isChecked() is not chosen:
            self.radio.setChecked(chosen)
        restyle(self.button, primary=chosen and not self.line.problem)

    def _show_action(self) -> None:
        line, fetch = self.line, None if self.line.is_here else self._fetch
        step = None if fetch is None else fetch.step
        if line.problem:
            words = self.tr("Hide") if self._open else self.tr("Why?")
        elif line.is_here:
            words = self.tr("Test")
        else:
            words = {
                None: self.tr("Make") if line.makes else self.tr("Download"),
                FetchStep.ASKING: self.tr("Cancel"),
                FetchStep.COMING: self.tr("Cancel"),
                FetchStep.STOPPED: self.tr("Go on"),
                FetchStep.DONE: self.tr("Reading"),
            }[step]
            if fetch is not None and fetch.error is not None:
                words = self.tr("Try again")
        self.button.setText(words)
        self.button.setAccessibleName(f"{words}: {line.name}")
        self.button.setEnabled(step is not FetchStep.DONE)
        self.bar.setVisible(fetch is not None and step in {FetchStep.COMING, FetchStep.ASKING, FetchStep.STOPPED})
        if fetch is not None:
            self.bar.setValue(round(1000 * fetch.fraction))
            self.bar.setAccessibleName(fetch.words)
        failed = fetch is not None and fetch.error is not None
        note = line.problem if self._open else "" if fetch is None else fetch.words
        self.note.setText(note)
        self.note.setVisible(bool(note))
        restyle(self.note, danger=failed and not self._open, caption=not failed)

    @Slot()
    def _picked(self) -> None:
        self.picked.emit(self.line.key)

    @Slot()
    def _pressed(self) -> None:
        line = self.line
        if line.problem:
            self._open = not self._open
            self._show_action()
        elif line.is_here:
            self.testRequested.emit(line.key)
        elif self._fetch is not None and self._fetch.step in {FetchStep.ASKING, FetchStep.COMING}:
            self.cancelRequested.emit(line.key)
        else:
            self.fetchRequested.emit(line.key)

    def place_parts(self, grid: QGridLayout, *, wide: bool) -> None:
        centre, top = Qt.AlignmentFlag.AlignVCenter, Qt.AlignmentFlag.AlignTop
        grid.setColumnMinimumWidth(0, RADIO_WIDTH)
        if wide:
            grid.addWidget(self.radio, 0, 0, 2, 1, centre)
            grid.addWidget(self.name, 0, 1, centre)
            grid.addWidget(self.place, 1, 1, top)
            grid.addWidget(self.badge, 0, 2, Qt.AlignmentFlag.AlignLeft | centre)
            grid.addWidget(self.reason, 1, 2, top)
            grid.addWidget(self.memory, 0, 3, centre)
            grid.addWidget(self.memory_note, 1, 3, top)
            grid.addWidget(self.gain, 0, 4, centre)
            grid.addWidget(self.gain_note, 1, 4, top)
            grid.addWidget(self.button, 0, 5, 2, 1, centre)
            grid.addWidget(self.bar, 2, 1, 1, 5)
            grid.addWidget(self.note, 3, 1, 1, 5)
            for column, stretch in ((1, 12), (2, 7), (3, 4), (4, 3)):
                grid.setColumnStretch(column, stretch)
            grid.setColumnMinimumWidth(3, 118)
            grid.setColumnMinimumWidth(4, 96)
        else:
            grid.addWidget(self.radio, 0, 0, 2, 1, centre)
            grid.addWidget(self.name, 0, 1, 1, 2, centre)
            grid.addWidget(self.place, 1, 1, 1, 2, top)
            grid.addWidget(self.badge, 2, 1, 1, 2, Qt.AlignmentFlag.AlignLeft | centre)
            grid.addWidget(self.reason, 3, 1, 1, 2, top)
            grid.addWidget(self.memory, 4, 1, centre)
            grid.addWidget(self.memory_note, 5, 1, top)
            grid.addWidget(self.gain, 4, 2, centre)
            grid.addWidget(self.gain_note, 5, 2, top)
            grid.addWidget(self.button, 6, 1, 1, 2, Qt.AlignmentFlag.AlignLeft)
            grid.addWidget(self.bar, 7, 1, 1, 2)
            grid.addWidget(self.note, 8, 1, 1, 2)
            grid.setColumnStretch(1, 1)
            grid.setColumnStretch(2, 1)

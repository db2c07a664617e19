"""A comparison while it runs: its lanes side by side as they write, how far it is, and the way to pause or end it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QPushButton, QScrollArea, QVBoxLayout, QWidget

from forespeak.speculation.trace import Step
from forespeak.ui.compare_lane import LaneView
from forespeak.ui.compare_parts import SideBySide, time_words, words_label
from forespeak.ui.form import scrolled
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.theme import LIGHT, MarkStyle, Theme


class CompareRunning(QWidget):
    pauseRequested = Signal()
    goOnRequested = Signal()
    stopRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._marks = MarkStyle.STRONG
        self._names: tuple[str, ...] = ()
        self._plain = self._off = frozenset((0,))
        self._paused = False
        self.doing = words_label()
        self.doing.setProperty("heading", True)
        self.bar = QProgressBar()
        self.bar.setRange(0, 1000)
        self.bar.setTextVisible(False)
        self.left = PlainLabel()
        self.left.setProperty("muted", True)
        self.pause_button = QPushButton(self.tr("Pause"))
        self.stop_button = QPushButton(self.tr("End now"))
        self.stop_button.setToolTip(self.tr("What is done is kept, and can be gone on with later"))
        self.pause_button.clicked.connect(self._pause_clicked)
        self.stop_button.clicked.connect(self.stopRequested)
        self.note = words_label(
            self.tr(
                "It goes on while another page is shown. The chat’s own engine is put away meanwhile, to leave the "
                "memory and the processor to the lanes: a message brings it back, and disturbs what is measured then."
            ),
            variant="caption",
        )
        self.problem = words_label(variant="danger")
        self.problem.hide()
        self.lanes: list[LaneView] = []
        self._both = SideBySide()
        head = QHBoxLayout()
        # As far as the lanes below, which leave room for a scroll bar.
        head.setContentsMargins(0, 0, 6, 0)
        head.setSpacing(10)
        head.addWidget(self.doing, 1)
        head.addWidget(self.pause_button)
        head.addWidget(self.stop_button)
        progress = QHBoxLayout()
        progress.setContentsMargins(0, 0, 6, 0)
        progress.setSpacing(14)
        progress.addWidget(self.bar, 1)
        progress.addWidget(self.left)
        inside = QWidget()
        inner = QVBoxLayout(inside)
        inner.setContentsMargins(0, 4, 6, 8)
        inner.setSpacing(14)
        inner.addWidget(self._both)
        inner.addWidget(self.problem)
        inner.addWidget(self.note)
        inner.addStretch(1)
        self._area: QScrollArea = scrolled(inside, parts_have_focus=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        column.addLayout(head)
        column.addLayout(progress)
        column.addWidget(self._area, 1)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        for lane in self.lanes:
            lane.set_theme(theme)

    def set_mark_style(self, style: MarkStyle) -> None:
        self._marks = style
        for lane in self.lanes:
            lane.set_mark_style(style)

    def take_focus(self) -> None:
        self.pause_button.setFocus()

    # -- what it is told

    def begin(self, names: Sequence[str], plain: Collection[int] = (0,), off: Collection[int] = (0,)) -> None:
        """A comparison starts with these lanes, of which `plain` are those that the others are compared with.

        Two are shown: the plain one that ran last, and the other one that did. `off`: those that draft nothing, which
        may be among the others, too.
        """
        self._names, self._plain, self._off = tuple(names), frozenset(plain), frozenset(off)
        wanted = min(len(self._names), 2)
        first = [
            next((n for n in range(len(names)) if (n in self._plain) is is_plain), 0) for is_plain in (True, False)
        ]
        while len(self.lanes) < wanted:
            lane = LaneView()
            lane.set_theme(self._theme)
            lane.set_mark_style(self._marks)
            self.lanes.append(lane)
            self._both.add(lane)
        for number, lane in enumerate(self.lanes):
            lane.setVisible(number < wanted)
            lane.clear()
            if number < wanted:
                lane.set_name(self._names[first[number]], is_plain=first[number] in self._off)
        self.problem.hide()
        self.show_progress(0, 0, None)
        self.show_doing(self.tr("Starting"))
        self.set_paused(False)

    def _view_of(self, lane: int) -> LaneView:
        is_plain = lane in self._plain
        view = self.lanes[0 if is_plain else 1]
        if view.name.words != self._names[lane]:
            view.set_name(self._names[lane], is_plain=lane in self._off)
            view.clear()
        return view

    def begin_run(self, lane: int) -> None:
        self._view_of(lane).clear()

    def add_steps(self, lane: int, steps: Sequence[Step], rate: float | None) -> None:
        view = self._view_of(lane)
        view.append(steps)
        view.set_rate(rate)

    def end_run(self, lane: int, rate: float | None) -> None:
        self._view_of(lane).set_rate(rate)

    def show_doing(self, words: str) -> None:
        self.doing.setText(words)

    def show_progress(self, done: int, total: int, seconds_left: float | None) -> None:
        self.bar.setValue(round(1000 * done / total) if total else 0)
        parts = [self.tr("{0} of {1} runs").format(done, total)] if total else []
        if seconds_left is not None and not self._paused:
            parts.append(self.tr("about {0} left").format(time_words(seconds_left)))
        self.left.setText(" · ".join(parts))
        self.left.setVisible(bool(parts))
        self.bar.setAccessibleName(self.tr("Progress: {0}").format(self.left.text()))

    def show_problem(self, words: str) -> None:
        """Something failed that is recorded, while the rest goes on."""
        self.problem.setText(words)
        self.problem.setVisible(bool(words))

    def set_paused(self, paused: bool, *, waiting: bool = False) -> None:
        """`waiting`: the run that goes on is finished first."""
        self._paused = paused
        self.pause_button.setText(self.tr("Go on") if paused else self.tr("Pause"))
        if paused:
            self.show_doing(self.tr("Pausing after this run") if waiting else self.tr("Paused"))

    def set_stopping(self, stopping: bool) -> None:
        self.pause_button.setEnabled(not stopping)
        self.stop_button.setEnabled(not stopping)
        if stopping:
            self.show_doing(self.tr("Ending"))

    @Slot()
    def _pause_clicked(self) -> None:
        (self.goOnRequested if self._paused else self.pauseRequested).emit()

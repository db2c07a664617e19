"""A finished comparison: verdict, replay, speed-up by kind of work, charts and the table of all figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QMenu,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from forespeak.ui.compare_charts import ResultCharts
from forespeak.ui.compare_parts import card, words_label
from forespeak.ui.compare_table import FiguresTable
from forespeak.ui.compare_values import ResultValues, SpeedUps
from forespeak.ui.compare_verdict import SpeedUpRows, VerdictCard
from forespeak.ui.elided_label import ElidedLabel
from forespeak.ui.flow_row import FlowRow
from forespeak.ui.form import scrolled
from forespeak.ui.replay_view import ReplayView
from forespeak.ui.theme import LIGHT, MarkStyle, Theme
from forespeak.ui.tool_tips import plain_tip

_NARROW = 620
EXPORTS = ("png", "html", "md", "json", "csv")


class CompareResult(QWidget):
    exportRequested = Signal(str)
    """One of EXPORTS"""
    againRequested = Signal()
    """Set up another one like this"""
    resumeRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._values: ResultValues | None = None
        self._drawn: ResultValues | None = None
        """What the charts show."""
        self._saving = False
        self.title = ElidedLabel()
        self.title.setProperty("heading", True)
        self.subtitle = words_label(variant="muted")
        self.verdict = VerdictCard()
        self.replay = ReplayView()
        self.replay.prompts.currentIndexChanged.connect(self._prompt_chosen)
        self._rows: list[SpeedUpRows] = []
        self._rows_box = QVBoxLayout()
        self._rows_box.setSpacing(16)
        self.charts: ResultCharts | None = None
        self._charts_box = QVBoxLayout()
        self.table = FiguresTable()
        self.notes = words_label(variant="caption")
        self.export_button = QPushButton(self.tr("Save…"))
        self.export_button.setToolTip(self.tr("Save the result as a report or a picture"))
        self.export_button.setMenu(self._make_menu())
        self.again_button = QPushButton(self.tr("Compare again"))
        self.again_button.clicked.connect(self.againRequested)
        self.resume_button = QPushButton(self.tr("Go on measuring"))
        self.resume_button.setProperty("primary", True)
        self.resume_button.clicked.connect(self.resumeRequested)
        self.buttons = FlowRow()
        for button in (self.resume_button, self.again_button, self.export_button):
            self.buttons.add(button)
        self._inside = QWidget()
        self._inside.setObjectName("compareResult")
        column = QVBoxLayout(self._inside)
        column.setContentsMargins(0, 0, 6, 12)
        column.setSpacing(16)
        head = QVBoxLayout()
        head.setSpacing(4)
        head.addWidget(self.title)
        head.addWidget(self.subtitle)
        column.addLayout(head)
        column.addWidget(self.buttons)
        self.saved = words_label(variant="caption")
        self.saved.hide()
        column.addWidget(self.saved)
        column.addWidget(self.replay)
        column.addWidget(self.verdict)
        column.addLayout(self._rows_box)
        column.addLayout(self._charts_box)
        frame, inner = card(self.tr("ALL FIGURES"))
        inner.addWidget(self.table)
        inner.addWidget(self.notes)
        column.addWidget(frame)
        column.addStretch(1)
        self._area: QScrollArea = scrolled(self._inside, parts_have_focus=True)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self._area)
        # The charts take a moment to import: what was found is shown first.
        self._draw_later = QTimer(self)
        self._draw_later.setSingleShot(True)
        self._draw_later.setInterval(0)
        self._draw_later.timeout.connect(self.draw_charts)

    def _make_menu(self) -> QMenu:
        menu = QMenu(self)
        for kind, words in zip(
            EXPORTS,
            (
                self.tr("Picture (PNG)"),
                self.tr("Web page (HTML)"),
                self.tr("Text (Markdown)"),
                self.tr("All figures (JSON)"),
                self.tr("Table (CSV)"),
            ),
            strict=True,
        ):
            action = menu.addAction(words)
            action.setData(kind)
        menu.triggered.connect(lambda action: self.exportRequested.emit(action.data()))
        return menu

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.verdict.set_theme(theme)
        self.replay.set_theme(theme)
        for rows in self._rows:
            rows.set_theme(theme)
        if self.charts is not None:
            self.charts.set_theme(theme)

    def set_mark_style(self, style: MarkStyle) -> None:
        self.replay.set_mark_style(style)

    def take_focus(self) -> None:
        (self.replay if self.replay.isVisibleTo(self) else self.again_button).setFocus(
            Qt.FocusReason.ShortcutFocusReason
        )

    @property
    def values(self) -> ResultValues | None:
        return self._values

    # -- what is shown

    def show_result(self, values: ResultValues) -> None:
        self._values = values
        self.show_saving(on=self._saving)
        self.set_name(values.name)
        self.subtitle.setText(values.subtitle)
        self.verdict.show_result(values)
        self.replay.show_recorded(values.recorded)
        self._show_speed_ups(values.speed_ups)
        self.table.show_rows(values.table)
        self.notes.setText("\n".join(values.notes))
        self.notes.setVisible(bool(values.notes))
        self.resume_button.setVisible(values.resumable)
        self._area.verticalScrollBar().setValue(0)
        self._draw_later.start()

    def set_name(self, name: str) -> None:
        self.title.set_words(name)

    def _show_speed_ups(self, groups: Sequence[SpeedUps]) -> None:
        while (item := self._rows_box.takeAt(0)) is not None:
            if (old := item.widget()) is not None:
                old.hide()
                old.deleteLater()
        self._rows = []
        every = [row for group in groups for row in group.rows]
        for group in groups:
            heading = self.tr("SPEED-UP BY KIND OF WORK")
            if len(groups) > 1:
                heading = f"{heading} · {group.against}"
            frame, column = card(heading)
            rows = SpeedUpRows()
            rows.set_rows(group.rows, every)
            rows.set_theme(self._theme)
            rows.setToolTip(plain_tip("\n".join(row.note for row in group.rows if row.note)))
            column.addWidget(rows)
            self._rows.append(rows)
            self._rows_box.addWidget(frame)

    @property
    def speed_up_rows(self) -> tuple[SpeedUpRows, ...]:
        return tuple(self._rows)

    @Slot()
    def draw_charts(self) -> None:
        """Also what a picture needs before it is taken."""
        if not self._draw_later.isActive() and self._drawn is self._values:
            return
        self._draw_later.stop()
        values = self._drawn = self._values
        if values is None:
            return
        if self.charts is None:
            self.charts = ResultCharts()
            self.charts.set_theme(self._theme)
            self._charts_box.addWidget(self.charts)
        self.charts.show_lanes(values.lanes)
        self._prompt_chosen()

    @Slot()
    def _prompt_chosen(self, *_: object) -> None:
        values = self._values
        if self.charts is None or values is None:
            return
        number = max(self.replay.prompts.currentIndex(), 0)
        recorded = values.recorded[number].lanes if number < len(values.recorded) else ()
        self.charts.show_replies(recorded)

    def show_saving(self, *, on: bool) -> None:
        """A report is being written, which takes as long as its models take to be read."""
        self._saving = on
        self._show_saved("")

    def show_saved(self, path: Path) -> None:
        """Where the last file went."""
        self._show_saved(self.tr("Saved as {0}").format(path))

    def _show_saved(self, words: str) -> None:
        doing = self.tr("Saving… Large models take a while to be read for their hashes.") if self._saving else ""
        self.saved.setText("\n".join(part for part in (words, doing) if part))
        self.saved.setVisible(bool(self.saved.text()))

    @property
    def content(self) -> QWidget:
        """All of the result, however much of it is in view."""
        return self._inside

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.verdict.set_narrow(event.size().width() < _NARROW)

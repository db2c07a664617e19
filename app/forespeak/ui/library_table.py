"""The table of the models on this computer: two lines to a row, and fewer columns where there is less room."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, QPoint, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFont, QFontMetrics, QKeyEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from forespeak.models.library import LibraryItem
from forespeak.ui.badge import paint_badge
from forespeak.ui.library_model import (
    NUMBERS,
    BadgeRole,
    CaptionRole,
    Column,
    FitWords,
    LibraryModel,
    ProblemRole,
)
from forespeak.ui.row_paint import paint_two_lines, paint_words
from forespeak.ui.theme import LIGHT, TEXT_PIXELS, Theme, ui_font

ROW_HEIGHT = 54
NARROWEST_NAME, WIDEST_NAME = 230, 340
"""Between these, the name is as wide as the longest one here needs."""
PADDING = 10
WIDTHS = {
    Column.ARCHITECTURE: 112,
    Column.PARAMETERS: 116,
    Column.QUANT: 104,
    Column.CONTEXT: 92,
    Column.SIZE: 86,
    Column.WHERE: 168,
    Column.FIT: 100,
}
LEAST_NEEDED = (
    Column.ARCHITECTURE,
    Column.CONTEXT,
    Column.WHERE,
    Column.PARAMETERS,
    Column.QUANT,
    Column.FIT,
)
"""In which order columns give way to the name; the details have them all."""
NEVER_FOR_A_LONG_NAME = frozenset({Column.QUANT, Column.FIT})
"""Only where there is no room even for a short one."""
Index = QModelIndex | QPersistentModelIndex


class LibraryDelegate(QStyledItemDelegate):
    """Draws rows as the theme has it. A row is one thing: it is marked as a whole."""

    def __init__(self, parent: QTableView) -> None:
        super().__init__(parent)
        self._view = parent
        self._theme = LIGHT
        self.under_mouse = -1
        """The row, which is one thing: Qt tells of the cell alone."""

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(WIDTHS.get(Column(index.column()), NARROWEST_NAME), ROW_HEIGHT)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme = self._theme
        area: QRect = option.rect
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.save()
        if selected:
            painter.fillRect(area, QColor(theme.accent_soft))
        elif index.row() == self.under_mouse:
            painter.fillRect(area, QColor(theme.side))
        painter.setPen(QColor(theme.line))
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        if selected and index.column() == 0:
            # Not by colour alone; stronger where the keyboard is.
            width = 4 if self._view.hasFocus() else 2
            painter.fillRect(QRect(area.left(), area.top(), width, area.height()), QColor(theme.accent))
        column = Column(index.column())
        room = area.adjusted(PADDING, 0, -PADDING, 0)
        fit = index.data(BadgeRole)
        if column is Column.NAME:
            wrong = bool(index.data(ProblemRole))
            ink = theme.danger if wrong else theme.muted
            name, caption = str(index.data(Qt.ItemDataRole.DisplayRole)), str(index.data(CaptionRole))
            paint_two_lines(painter, room, name, theme.ink, caption, ink, sentence=wrong)
        elif isinstance(fit, FitWords):
            paint_badge(painter, room, fit.words, fit.tone, theme)
        else:
            ink = theme.muted if index.data(ProblemRole) else theme.ink
            side = Qt.AlignmentFlag.AlignRight if column in NUMBERS else Qt.AlignmentFlag.AlignLeft
            words = str(index.data(Qt.ItemDataRole.DisplayRole))
            paint_words(painter, words, room, ui_font(TEXT_PIXELS - 1), ink, side)
        painter.restore()


class LibraryTable(QTableView):
    """Keeps the chosen model chosen while rows come and go. Enter opens, Delete removes, arrow keys walk."""

    chosen = Signal(object)
    """The LibraryItem that is current now, or None"""
    opened = Signal(object)
    """LibraryItem: Enter, or a double click"""
    removeRequested = Signal()
    menuRequested = Signal(QPoint)
    """Where, in the screen's coordinates"""

    def __init__(self, model: LibraryModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("libraryTable")
        self._library = model
        self._path: Path | None = None
        self._scroll = self._row = 0
        self._name_width = NARROWEST_NAME
        self.setModel(model)
        self.delegate = LibraryDelegate(self)
        self.setItemDelegate(self.delegate)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setMouseTracking(True)
        self.setTabKeyNavigation(False)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.setCornerButtonEnabled(False)
        rows = self.verticalHeader()
        rows.hide()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setDefaultSectionSize(ROW_HEIGHT)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(Column.NAME, QHeaderView.ResizeMode.Stretch)
        header.setHighlightSections(False)
        header.setMinimumSectionSize(40)
        for column, width in WIDTHS.items():
            header.resizeSection(column, width)
        self.setSortingEnabled(True)
        self.sortByColumn(Column.NAME, Qt.SortOrder.AscendingOrder)
        model.modelAboutToBeReset.connect(self._before_reset)
        model.modelReset.connect(self._after_reset)
        model.dataChanged.connect(self._data_changed)
        self.selectionModel().currentRowChanged.connect(self._current_changed)
        self.doubleClicked.connect(self._open_current)
        self.customContextMenuRequested.connect(self._ask_menu)
        self.entered.connect(lambda index: self._mouse_over(index.row()))
        self.viewportEntered.connect(lambda: self._mouse_over(-1))

    def set_theme(self, theme: Theme) -> None:
        self.delegate.set_theme(theme)
        self.viewport().update()

    @property
    def current(self) -> LibraryItem | None:
        return self._library.item(self.currentIndex().row())

    def choose(self, path: Path) -> bool:
        """Make a model current. False if it is not shown."""
        row = self._library.row_of(path)
        if row is None:
            return False
        self.selectRow(row)
        self.scrollTo(self._library.index(row, 0))
        return True

    # -- events

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self._open_current()
        elif event.key() == Qt.Key.Key_Delete:
            self.removeRequested.emit()
        elif event.key() in {Qt.Key.Key_Home, Qt.Key.Key_End} and self._library.rowCount():
            self.selectRow(0 if event.key() == Qt.Key.Key_Home else self._library.rowCount() - 1)
        else:
            super().keyPressEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        self._mouse_over(-1)
        super().leaveEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._fold()
        super().resizeEvent(event)

    def event(self, event: QEvent) -> bool:
        if event.type() in {QEvent.Type.FocusIn, QEvent.Type.FocusOut}:
            self.viewport().update()
            if event.type() == QEvent.Type.FocusIn and self.current is None and self._library.rowCount():
                # Somebody who tabs here sees where they are.
                self.selectRow(0)
        return super().event(event)

    # -- inside

    def _mouse_over(self, row: int) -> None:
        before, self.delegate.under_mouse = self.delegate.under_mouse, row
        for each in {before, row} - {-1}:
            top, height = self.rowViewportPosition(each), self.rowHeight(each)
            self.viewport().update(0, top, self.viewport().width(), height)

    def _fold(self) -> None:
        room = self.viewport().width()
        hidden: set[Column] = set()
        for column in LEAST_NEEDED:
            name = NARROWEST_NAME if column in NEVER_FOR_A_LONG_NAME else self._name_width
            if sum(width for known, width in WIDTHS.items() if known not in hidden) <= room - name:
                break
            hidden.add(column)
        for column in WIDTHS:
            if self.isColumnHidden(column) != (column in hidden):
                self.setColumnHidden(column, column in hidden)

    @Slot()
    def _before_reset(self) -> None:
        self._scroll = self.verticalScrollBar().value()
        self._row = self.currentIndex().row()

    def _measure_names(self) -> None:
        metrics = QFontMetrics(ui_font(TEXT_PIXELS, QFont.Weight.DemiBold.value))
        # Of all models, so that columns do not come and go with each letter of a search.
        widest = max((metrics.horizontalAdvance(item.name) for item in self._library.items), default=0)
        width = min(WIDEST_NAME, max(NARROWEST_NAME, widest + 2 * PADDING))
        if width != self._name_width:
            self._name_width = width
            self._fold()

    @Slot()
    def _after_reset(self) -> None:
        self._measure_names()
        row = None if self._path is None else self._library.row_of(self._path)
        if row is not None:
            selection = self.selectionModel()
            selection.blockSignals(True)
            index = self._library.index(row, 0)
            flags = selection.SelectionFlag.ClearAndSelect | selection.SelectionFlag.Rows
            selection.setCurrentIndex(index, flags)
            selection.blockSignals(False)
            self.updateGeometries()
            self.verticalScrollBar().setValue(self._scroll)
            self.viewport().update()
        elif self._path is not None and self._path not in {item.path for item in self._library.items}:
            # It was removed: the keyboard stays where it was.
            self.selectRow(min(self._row, self._library.rowCount() - 1))
        else:
            self._path = None
        self._tell()

    @Slot(QModelIndex, QModelIndex)
    def _data_changed(self, first: QModelIndex, last: QModelIndex) -> None:
        if first.row() <= self.currentIndex().row() <= last.row():
            self._tell()

    def _tell(self) -> None:
        """The same model may have other facts now."""
        self.chosen.emit(self.current)

    @Slot(QModelIndex, QModelIndex)
    def _current_changed(self, current: QModelIndex, _: QModelIndex) -> None:
        item = self._library.item(current.row())
        self._path = None if item is None else item.path
        self.chosen.emit(item)

    @Slot()
    def _open_current(self) -> None:
        item = self.current
        if item is not None:
            self.opened.emit(item)

    @Slot(QPoint)
    def _ask_menu(self, at: QPoint) -> None:
        if self.current is None:
            return
        index = self.currentIndex()
        inside = self.visualRect(index)
        # The menu key asks for it where the row is, not where the mouse happens to be.
        spot = at if self.indexAt(at).row() == index.row() else inside.center()
        self.menuRequested.emit(self.viewport().mapToGlobal(spot))

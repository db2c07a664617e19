"""The kept comparisons: search, open, rename, delete with a way back, and two of them beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QColor, QFontMetrics, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from forespeak.ui.compare_values import HistoryRow
from forespeak.ui.flow_row import FlowRow
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.theme import CAPTION_PIXELS, LIGHT, Theme, ui_font
from forespeak.ui.tool_tips import plain_tip

SEARCH_DELAY_MS = 150
_ROW = Qt.ItemDataRole.UserRole
_HIGH = 54


class _Delegate(QStyledItemDelegate):
    """The name, and when it was and what it found below."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.theme = LIGHT

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(120, _HIGH)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        row: HistoryRow = index.data(_ROW)
        theme = self.theme
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area: QRect = option.rect
        box = area.adjusted(1, 2, -1, -2).toRectF().adjusted(0.5, 0.5, -0.5, -0.5)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        focused = bool(option.state & QStyle.StateFlag.State_HasFocus)
        painter.setPen(QColor(theme.accent if selected or focused else theme.line))
        painter.setBrush(QColor(theme.accent_soft if selected else theme.card))
        painter.drawRoundedRect(box, 10, 10)
        left = area.adjusted(16, 8, -16, -8)
        name = ui_font(14, 600)
        painter.setFont(name)
        painter.setPen(QColor(theme.ink))
        half = left.height() // 2
        upper = QRect(left.left(), left.top() - 1, left.width(), half)
        lower = QRect(left.left(), left.top() + half + 1, left.width(), half)
        elide = Qt.TextElideMode.ElideRight
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(upper, middle, QFontMetrics(name).elidedText(row.name, elide, left.width()))
        small = ui_font(CAPTION_PIXELS)
        painter.setFont(small)
        painter.setPen(QColor(theme.muted))
        painter.drawText(lower, middle, QFontMetrics(small).elidedText(_facts(row), elide, left.width()))
        painter.restore()

    def updateEditorGeometry(
        self, editor: QWidget, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        area: QRect = option.rect
        editor.setGeometry(area.adjusted(8, 8, -8, -8))


def _facts(row: HistoryRow) -> str:
    return " · ".join(part for part in (row.when, row.summary) if part)


class CompareHistory(QWidget):
    openRequested = Signal(str)
    renameRequested = Signal(str, str)
    deleteRequested = Signal(object)
    """tuple of ids"""
    twoRequested = Signal(str, str)
    searchChanged = Signal(str)
    newRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Search comparisons"))
        self.search.setAccessibleName(self.tr("Search comparisons"))
        self.search.setClearButtonEnabled(True)
        self._search_later = QTimer(self)
        self._search_later.setSingleShot(True)
        self._search_later.setInterval(SEARCH_DELAY_MS)
        self._search_later.timeout.connect(self._search)
        self.search.textChanged.connect(self._search_later.start)
        self.list = QListWidget()
        self.list.setProperty("plain", True)
        self.list.setAccessibleName(self.tr("Comparisons"))
        self.list.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.list.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.list.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._delegate = _Delegate(self.list)
        self.list.setItemDelegate(self._delegate)
        self.list.itemActivated.connect(self._activated)
        self.list.itemChanged.connect(self._edited)
        self.list.itemSelectionChanged.connect(self._show_buttons)
        self.empty = PlainLabel()
        self.empty.setWordWrap(True)
        self.empty.setProperty("muted", True)
        self.new_button = QPushButton(self.tr("New comparison"))
        self.new_button.clicked.connect(self.newRequested)
        self.open_button = QPushButton(self.tr("Open"))
        self.rename_button = QPushButton(self.tr("Rename"))
        self.two_button = QPushButton(self.tr("Compare the two"))
        self.delete_button = QPushButton(self.tr("Delete"))
        self.delete_button.setProperty("danger", True)
        for button, act in (
            (self.open_button, self._open),
            (self.rename_button, self.rename_current),
            (self.two_button, self._two),
            (self.delete_button, self._delete),
        ):
            button.clicked.connect(act)
        self.two_button.setToolTip(self.tr("Choose two with Ctrl or Shift"))
        actions = FlowRow()
        for button in (self.open_button, self.rename_button, self.two_button, self.delete_button):
            actions.add(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        column.addWidget(self.search)
        column.addWidget(self.empty)
        column.addWidget(self.new_button, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self.list, 1)
        column.addWidget(actions)
        self._actions = actions
        self.show_rows((), "")

    def set_theme(self, theme: Theme) -> None:
        self._delegate.theme = theme
        self.list.viewport().update()

    # -- what is shown

    def show_rows(self, rows: Sequence[HistoryRow], query: str) -> None:
        kept = set(self.chosen)
        self.list.blockSignals(True)
        self.list.clear()
        for row in rows:
            item = QListWidgetItem(row.name, self.list)
            item.setData(_ROW, row)
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsEditable)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{row.name}, {_facts(row)}")
            item.setToolTip(plain_tip(_facts(row)))
        if rows:
            chosen = [number for number, row in enumerate(rows) if row.id in kept] or [0]
            self.list.setCurrentRow(chosen[0])
            for number in chosen:
                self.list.item(number).setSelected(True)
        self.list.blockSignals(False)
        found = bool(rows)
        self.list.setVisible(found)
        self._actions.setVisible(found)
        self.search.setVisible(found or bool(query))
        self.empty.setVisible(not found)
        self.new_button.setVisible(not found and not query)
        self.empty.setText(
            self.tr("Nothing found for “{0}”.").format(query)
            if query
            else self.tr("No comparisons yet. The first one shows what speculation buys on your own work.")
        )
        self._show_buttons()

    @property
    def chosen(self) -> tuple[str, ...]:
        rows = [self.list.item(number) for number in range(self.list.count())]
        return tuple(item.data(_ROW).id for item in rows if item.isSelected())

    def take_focus(self) -> None:
        first = self.list if self.list.count() else self.new_button
        first.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def focus_search(self) -> None:
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    # -- what is asked

    @Slot()
    def _show_buttons(self) -> None:
        count = len(self.chosen)
        self.open_button.setEnabled(count == 1)
        self.rename_button.setEnabled(count == 1)
        self.two_button.setEnabled(count == 2)
        self.delete_button.setEnabled(count > 0)

    @Slot()
    def _search(self) -> None:
        self.searchChanged.emit(self.search.text().strip())

    @Slot(QListWidgetItem)
    def _activated(self, item: QListWidgetItem) -> None:
        self.openRequested.emit(item.data(_ROW).id)

    @Slot(QListWidgetItem)
    def _edited(self, item: QListWidgetItem) -> None:
        row: HistoryRow = item.data(_ROW)
        name = " ".join(item.text().split())
        if name and name != row.name:
            self.renameRequested.emit(row.id, name)

    @Slot()
    def _open(self) -> None:
        for chosen in self.chosen[:1]:
            self.openRequested.emit(chosen)

    @Slot()
    def rename_current(self) -> None:
        item = self.list.currentItem()
        if item is not None:
            self.list.editItem(item)

    @Slot()
    def _two(self) -> None:
        chosen = self.chosen
        if len(chosen) == 2:
            # The older one first: what has changed since is then read from left to right.
            self.twoRequested.emit(chosen[1], chosen[0])

    @Slot()
    def _delete(self) -> None:
        if self.chosen:
            self.deleteRequested.emit(self.chosen)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Delete:
                self._delete()
            case Qt.Key.Key_F2:
                self.rename_current()
            case Qt.Key.Key_Return | Qt.Key.Key_Enter if self.list.hasFocus():
                self._open()
            case _:
                super().keyPressEvent(event)

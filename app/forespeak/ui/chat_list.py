"""The chats on the left: search, groups by age, rename in place, delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSize,
    Qt,
    QTimer,
    Signal,
    Slot,
)
from PySide6.QtGui import QColor, QFont, QFontMetrics, QKeyEvent, QPainter, QPalette
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QLineEdit,
    QListView,
    QMenu,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.theme import LIGHT, Theme
from forespeak.ui.tool_tips import plain_tip

SEARCH_DELAY_MS = 150
ChatIdRole = Qt.ItemDataRole.UserRole + 1
BusyRole = Qt.ItemDataRole.UserRole + 2
Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True, slots=True)
class ChatEntry:
    """One chat as the list shows it. `busy`: a reply is being written in it."""

    id: int
    title: str
    updated: datetime
    busy: bool = False


@dataclass(frozen=True, slots=True)
class _Row:
    text: str
    entry: ChatEntry | None = None


def group_of(updated: datetime, now: datetime) -> int:
    """0 today, 1 within the last seven days, 2 earlier; by calendar day."""
    days = (now.date() - updated.date()).days
    if days <= 0:
        return 0
    return 1 if timedelta(days=days) < timedelta(days=7) else 2


class ChatListModel(QAbstractListModel):
    """Group headings and chats, newest first. Editing a title asks for a renaming; the store decides."""

    renameRequested = Signal(int, str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[_Row] = []

    def set_entries(self, entries: Sequence[ChatEntry], now: datetime, grouped: bool = True) -> None:
        headings = (self.tr("Today"), self.tr("This week"), self.tr("Earlier"))
        rows: list[_Row] = []
        last = -1
        for entry in entries:
            group = group_of(entry.updated, now)
            if grouped and group != last:
                rows.append(_Row(headings[group]))
                last = group
            rows.append(_Row(entry.title, entry))
        if [self._identity(row) for row in rows] == [self._identity(row) for row in self._rows]:
            self._rows = rows
            if rows:
                self.dataChanged.emit(self.index(0), self.index(len(rows) - 1))
            return
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    @staticmethod
    def _identity(row: _Row) -> tuple[str, int | None]:
        return ("" if row.entry else row.text, row.entry.id if row.entry else None)

    def entry(self, index: Index) -> ChatEntry | None:
        return self._rows[index.row()].entry if index.isValid() else None

    def index_of(self, chat: int) -> QModelIndex:
        for number, row in enumerate(self._rows):
            if row.entry is not None and row.entry.id == chat:
                return self.index(number)
        return QModelIndex()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        row = self._rows[index.row()]
        if role in {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole, Qt.ItemDataRole.AccessibleTextRole}:
            return row.text
        if role == Qt.ItemDataRole.ToolTipRole and row.entry is not None:
            return plain_tip(row.text)
        if role == ChatIdRole:
            return None if row.entry is None else row.entry.id
        if role == BusyRole:
            return row.entry is not None and row.entry.busy
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        if self.entry(index) is None:
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEditable

    def setData(self, index: Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        entry = self.entry(index)
        title = " ".join(str(value).split())
        if role != Qt.ItemDataRole.EditRole or entry is None or not title or title == entry.title:
            return False
        self.renameRequested.emit(entry.id, title)
        return True


class ChatDelegate(QStyledItemDelegate):
    """Draws headings small and quiet, chats as rounded rows."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.set_theme(LIGHT)

    def set_theme(self, theme: Theme) -> None:
        self.selected_fill = QColor(theme.card)
        self.line = QColor(theme.line)
        self.muted = QColor(theme.muted)
        self.accent = QColor(theme.accent)

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        height = option.fontMetrics.height()
        return QSize(80, height + (18 if index.data(ChatIdRole) is not None else 14))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        text = str(index.data(Qt.ItemDataRole.DisplayRole))
        area: QRect = option.rect
        if index.data(ChatIdRole) is None:
            font = QFont(option.font)
            font.setPixelSize(max(9, round(QFontMetrics(font).height() * 0.66)))
            font.setLetterSpacing(QFont.SpacingType.PercentageSpacing, 104)
            painter.setFont(font)
            painter.setPen(self.muted)
            painter.drawText(area.adjusted(10, 6, -6, 0), Qt.AlignmentFlag.AlignVCenter, text.upper())
            painter.restore()
            return
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        hovered = bool(option.state & QStyle.StateFlag.State_MouseOver)
        focused = bool(option.state & QStyle.StateFlag.State_HasFocus)
        box = area.adjusted(1, 1, -1, -1)
        if selected or hovered:
            fill = QColor(self.selected_fill)
            fill.setAlphaF(1.0 if selected else 0.5)
            painter.setBrush(fill)
            border = self.accent if focused and selected else self.line
            painter.setPen(border if selected else Qt.PenStyle.NoPen)
            painter.drawRoundedRect(box.toRectF().adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
        room = box.adjusted(10, 0, -10, 0)
        if index.data(BusyRole):
            dot = QRect(room.right() - 7, room.center().y() - 3, 7, 7)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self.accent)
            painter.drawEllipse(dot)
            room.setRight(dot.left() - 8)
        painter.setFont(option.font)
        painter.setPen(option.palette.color(QPalette.ColorRole.Text))
        words = option.fontMetrics.elidedText(text, Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, words)
        painter.restore()

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:
        editor.setGeometry(option.rect.adjusted(2, 2, -2, -2))


class ChatListView(QListView):
    deleteRequested = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in {Qt.Key.Key_Delete, Qt.Key.Key_Backspace}:
            self.deleteRequested.emit()
        else:
            super().keyPressEvent(event)


class ChatList(QWidget):
    """Search field and list. Emits what the user wants; shows what it is given."""

    chatSelected = Signal(int)
    renameRequested = Signal(int, str)
    deleteRequested = Signal(int)
    searchChanged = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.search = QLineEdit()
        self.search.setObjectName("chatSearch")
        self.search.setPlaceholderText(self.tr("Search chats"))
        self.search.setAccessibleName(self.tr("Search chats"))
        self.search.setClearButtonEnabled(True)
        self.search.installEventFilter(self)
        self.model = ChatListModel(self)
        self.view = ChatListView()
        self.view.setObjectName("chatList")
        self.view.setAccessibleName(self.tr("Chats"))
        self.view.setModel(self.model)
        self.delegate = ChatDelegate(self.view)
        self.view.setItemDelegate(self.delegate)
        self.view.setMouseTracking(True)
        self.view.setFrameShape(QFrame.Shape.NoFrame)
        self.view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.view.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.view.setUniformItemSizes(False)
        self.empty = PlainLabel()
        self.empty.setObjectName("quietNote")
        self.empty.setWordWrap(True)
        self.empty.setVisible(False)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(self.search)
        layout.addWidget(self.empty)
        layout.addWidget(self.view, 1)

        self._current: int | None = None
        self._delay = QTimer(self)
        self._delay.setSingleShot(True)
        self._delay.setInterval(SEARCH_DELAY_MS)
        self._delay.timeout.connect(self._search)
        self.search.textChanged.connect(self._delay.start)
        self.view.selectionModel().currentChanged.connect(self._choose)
        self.view.customContextMenuRequested.connect(self._open_menu)
        self.view.deleteRequested.connect(self.delete_current)
        self.model.renameRequested.connect(self.renameRequested)

    def set_theme(self, theme: Theme) -> None:
        self.delegate.set_theme(theme)
        self.view.viewport().update()

    def set_entries(self, entries: Sequence[ChatEntry], current: int | None, now: datetime) -> None:
        """Show these chats, newest first, and mark `current` as open."""
        wanted = self.search.text().strip()
        # While a title is being edited the rows must stay where they are.
        if self.view.state() == QAbstractItemView.State.EditingState:
            return
        self.model.set_entries(entries, now, grouped=not wanted)
        self.empty.setText(self.tr("No chat contains “{words}”.").format(words=wanted))
        self.empty.setVisible(bool(wanted) and not entries)
        self.set_current(current)

    def set_current(self, chat: int | None) -> None:
        self._current = chat
        selection = self.view.selectionModel()
        selection.blockSignals(True)
        index = QModelIndex() if chat is None else self.model.index_of(chat)
        selection.setCurrentIndex(index, selection.SelectionFlag.ClearAndSelect)
        selection.blockSignals(False)
        self.view.viewport().update()

    def current(self) -> int | None:
        return self._current

    @Slot()
    def rename_current(self) -> None:
        if self._current is not None:
            index = self.model.index_of(self._current)
            if index.isValid():
                self.view.setFocus()
                self.view.edit(index)

    @Slot()
    def delete_current(self) -> None:
        if self._current is not None:
            self.deleteRequested.emit(self._current)

    @Slot(QModelIndex, QModelIndex)
    def _choose(self, index: QModelIndex, _previous: QModelIndex) -> None:
        entry = self.model.entry(index)
        if entry is not None and entry.id != self._current:
            self._current = entry.id
            self.chatSelected.emit(entry.id)

    @Slot()
    def _search(self) -> None:
        self.searchChanged.emit(self.search.text().strip())

    @Slot(QPoint)
    def _open_menu(self, at: QPoint) -> None:
        index = self.view.indexAt(at)
        entry = self.model.entry(index)
        if entry is None:
            return
        menu = self.menu_for(entry)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.view.viewport().mapToGlobal(at))

    def menu_for(self, entry: ChatEntry) -> QMenu:
        menu = QMenu(self)
        rename = menu.addAction(self.tr("Rename"))
        delete = menu.addAction(self.tr("Delete"))
        rename.triggered.connect(lambda: self.view.edit(self.model.index_of(entry.id)))
        delete.triggered.connect(lambda: self.deleteRequested.emit(entry.id))
        return menu

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        escape = isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape
        if watched is self.search and escape and event.type() == QEvent.Type.ShortcutOverride and self.search.text():
            # Here Escape empties the field, whatever it does in the rest of the window.
            event.accept()
            return True
        if watched is self.search and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() == Qt.Key.Key_Down:
                self.view.setFocus()
                return True
            if event.key() == Qt.Key.Key_Escape and self.search.text():
                self.search.clear()
                return True
        return super().eventFilter(watched, event)

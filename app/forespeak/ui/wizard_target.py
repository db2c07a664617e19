"""Step 1 of the pairing wizard: which model is to be made faster; one of mine, or one that is to be downloaded."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QHBoxLayout,
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

from forespeak.models.good_pairs import GoodModel
from forespeak.models.library import LibraryItem
from forespeak.models.sizes import size_words
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.restyle import restyle
from forespeak.ui.row_paint import paint_two_lines
from forespeak.ui.theme import LIGHT, Theme
from forespeak.ui.wizard_controller import WizardController
from forespeak.ui.wizard_fetcher import FetchStep, Wanted

ROW_HEIGHT = 54
_ItemRole = Qt.ItemDataRole.UserRole
_CaptionRole = Qt.ItemDataRole.UserRole + 1
Index = QModelIndex | QPersistentModelIndex


class TwoLines(QStyledItemDelegate):
    """A name, and small words below it."""

    def __init__(self, parent: QListWidget) -> None:
        super().__init__(parent)
        self._view = parent
        self._theme = LIGHT

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._view.viewport().update()

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(200, ROW_HEIGHT)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme, area = self._theme, QRect(option.rect)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.save()
        if selected:
            painter.fillRect(area, QColor(theme.accent_soft))
            width = 4 if self._view.hasFocus() else 2
            painter.fillRect(QRect(area.left(), area.top(), width, area.height()), QColor(theme.accent))
        elif option.state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(area, QColor(theme.side))
        painter.setPen(QColor(theme.line))
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        room = area.adjusted(16, 0, -16, 0)
        name, caption = str(index.data(Qt.ItemDataRole.DisplayRole)), str(index.data(_CaptionRole))
        paint_two_lines(painter, room, name, theme.ink, caption, theme.muted)
        painter.restore()


class TargetStep(QWidget):
    """`goods`: targets of well-known pairs that fit this machine, best first."""

    targetChosen = Signal(object)
    """Path"""
    discoverRequested = Signal()
    selectionChanged = Signal()
    """What `go_on` would do may be another thing now"""

    def __init__(self, controller: WizardController, goods: Sequence[GoodModel], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controller = controller
        self._goods = goods
        self._shown: list[tuple[object, str]] = []
        self._picked = False
        """Somebody has moved the mark: it stays where it is."""
        intro = PlainLabel(self.tr("Which model is to be faster? The draft that suits it is found next."))
        intro.setObjectName("quietNote")
        intro.setWordWrap(True)
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Search models"))
        self.search.setAccessibleName(self.tr("Search models"))
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self.show_targets)
        self.search.returnPressed.connect(self._first)
        self.search.installEventFilter(self)
        self.discover = QPushButton(self.tr("Find on the Hub…"))
        self.discover.setToolTip(self.tr("Search the Hub for a target under Models"))
        self.discover.clicked.connect(self.discoverRequested)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.search, 1)
        row.addWidget(self.discover)
        self.list = QListWidget()
        self.list.setObjectName("targetList")
        self.list.setAccessibleName(self.tr("Targets"))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setMouseTracking(True)
        self._look = TwoLines(self.list)
        self.list.setItemDelegate(self._look)
        self.list.itemActivated.connect(self._activated)
        self.list.itemClicked.connect(self._show_note)
        self.list.currentItemChanged.connect(self._moved)
        self.note = PlainLabel()
        self.note.setWordWrap(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(10)
        layout.addWidget(intro)
        layout.addLayout(row)
        layout.addWidget(self.list, 1)
        layout.addWidget(self.note)
        controller.changed.connect(self.show_targets)
        controller.fetcher.changed.connect(self._fetched)
        self.show_targets()

    def set_theme(self, theme: Theme) -> None:
        self._look.set_theme(theme)

    def take_focus(self) -> None:
        self.search.setFocus(Qt.FocusReason.TabFocusReason)

    @property
    def current(self) -> LibraryItem | GoodModel | None:
        item = self.list.currentItem()
        thing = None if item is None else item.data(_ItemRole)
        return thing if isinstance(thing, LibraryItem | GoodModel) else None

    @property
    def can_go_on(self) -> bool:
        return self.current is not None

    def go_on(self) -> None:
        """Take the one that is marked; one that is not here is downloaded first."""
        chosen = self.current
        if isinstance(chosen, LibraryItem):
            self.targetChosen.emit(chosen.path)
        elif isinstance(chosen, GoodModel):
            wanted = Wanted(good=chosen)
            fetch = self._controller.fetcher.fetch_of(wanted.key)
            if fetch is not None and fetch.step in {FetchStep.ASKING, FetchStep.COMING}:
                self._controller.fetcher.cancel(wanted.key)
            elif fetch is None or fetch.step is FetchStep.STOPPED:
                self._controller.fetcher.fetch(wanted)

    @property
    def action_words(self) -> str:
        """What `go_on` would do."""
        chosen = self.current
        if isinstance(chosen, GoodModel):
            fetch = self._controller.fetcher.fetch_of(Wanted(good=chosen).key)
            if fetch is None:
                return self.tr("Download")
            if fetch.step in {FetchStep.ASKING, FetchStep.COMING}:
                return self.tr("Cancel the download")
            return self.tr("Try again") if fetch.step is FetchStep.STOPPED else self.tr("Reading")
        return self.tr("Find drafts for it")

    @Slot()
    def show_targets(self) -> None:
        items = self._controller.targets
        words = self.search.text().casefold().split()
        here = [
            item
            for item in items
            if all(word in f"{item.name} {item.title or ''} {item.repo or ''}".casefold() for word in words)
        ]
        goods = [
            good
            for good in self._goods
            if not any(good.is_item(item) for item in items)
            and all(word in f"{good.name} {good.repo}".casefold() for word in words)
        ]
        shown: list[tuple[object, str]] = [(item, self._about(item)) for item in here]
        shown += [(good, self._about_good(good)) for good in goods]
        if shown != self._shown:
            self._fill(shown)
        if not here and not words and self._controller.library_read:
            self.note.setText(self.tr("There is no model here yet. Those below are on the Hub."))
        elif not shown and words:
            self.note.setText(self.tr("No model matches."))
        else:
            self._show_note()

    def _fill(self, shown: list[tuple[object, str]]) -> None:
        kept = self.current
        target = self._controller.state.target
        self.list.blockSignals(True)
        self.list.clear()
        row = 0
        for number, (thing, caption) in enumerate(shown):
            name = thing.name if isinstance(thing, LibraryItem | GoodModel) else ""
            if isinstance(thing, GoodModel):
                name = f"{name} · {thing.quant}"
            entry = QListWidgetItem(name)
            entry.setData(_ItemRole, thing)
            entry.setData(_CaptionRole, caption)
            entry.setData(Qt.ItemDataRole.AccessibleDescriptionRole, caption)
            self.list.addItem(entry)
            path = thing.path if isinstance(thing, LibraryItem) else None
            kept_path = kept.path if isinstance(kept, LibraryItem) else None
            if self._picked:
                marked = thing == kept or (path is not None and path == kept_path)
            else:
                marked = path is not None and path == target
            if marked:
                row = number
        self._shown = shown
        self.list.setCurrentRow(row if shown else -1)
        self.list.blockSignals(False)

    def _about(self, item: LibraryItem) -> str:
        parts = [item.quantisation, size_words(item.size_bytes), item.root.label]
        return " · ".join(part for part in parts if part)

    def _about_good(self, good: GoodModel) -> str:
        where = self.tr("on the Hub · {size} · {repo}")
        return where.format(size=size_words(good.size_bytes), repo=good.repo)

    @Slot()
    def _show_note(self, *_: object) -> None:
        chosen, words, danger = self.current, "", False
        if isinstance(chosen, GoodModel):
            fetch = self._controller.fetcher.fetch_of(Wanted(good=chosen).key)
            if fetch is not None:
                words, danger = fetch.words, fetch.error is not None
        self.note.setText(words)
        restyle(self.note, danger=danger, caption=not danger)
        self.selectionChanged.emit()

    @Slot()
    def _moved(self, *_: object) -> None:
        self._picked = self._picked or self.list.hasFocus() or self.search.hasFocus()
        self._show_note()

    @Slot(str)
    def _fetched(self, _: str) -> None:
        self._show_note()

    @Slot()
    def _first(self) -> None:
        if self.current is not None:
            self.go_on()

    @Slot(QListWidgetItem)
    def _activated(self, _: QListWidgetItem) -> None:
        self.go_on()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.search and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            step = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1}.get(Qt.Key(event.key()))
            if step is not None and self.list.count():
                row = min(max(self.list.currentRow() + step, 0), self.list.count() - 1)
                self.list.setCurrentRow(row)
                return True
        return super().eventFilter(watched, event)

"""The models on this computer as a table: which rows are shown, in which order, and what each cell says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from forespeak.models.formats import ModelFormat
from forespeak.models.library import LibraryItem
from forespeak.models.sizes import size_words
from forespeak.ui.badge import BadgeTone
from forespeak.ui.hub_words import parameter_words
from forespeak.ui.tool_tips import plain_tip

Index = QModelIndex | QPersistentModelIndex
ItemRole = Qt.ItemDataRole.UserRole + 1
CaptionRole = Qt.ItemDataRole.UserRole + 2
"""The name's second line."""
ProblemRole = Qt.ItemDataRole.UserRole + 3
"""Whether that line is about what is wrong."""
BadgeRole = Qt.ItemDataRole.UserRole + 4


class Column(IntEnum):
    NAME = 0
    ARCHITECTURE = 1
    PARAMETERS = 2
    QUANT = 3
    CONTEXT = 4
    SIZE = 5
    WHERE = 6
    FIT = 7


ARROW_ROOM = "\u2003"
NUMBERS = frozenset({Column.PARAMETERS, Column.CONTEXT, Column.SIZE})


@dataclass(frozen=True, slots=True)
class FitWords:
    """Whether something fits this machine: a word or two, how they are to be read, and the figures behind them.

    `order`: 0 fits best.
    """

    words: str
    tone: BadgeTone
    why: str = ""
    order: int = 0


@dataclass(frozen=True, slots=True)
class LibraryFilter:
    """What is to be shown. Every word of `text` must be somewhere; `format` None means both.

    `partners`: only these paths, which suit the target that was chosen; None for all.
    """

    text: str = ""
    format: ModelFormat | None = None
    partners: frozenset[Path] | None = None

    def shows(self, item: LibraryItem) -> bool:
        if self.format is not None and item.format is not self.format:
            return False
        if self.partners is not None and item.path not in self.partners:
            return False
        wanted = self.text.casefold().split()
        if not wanted:
            return True
        parts = (item.name, item.title, item.repo, item.architecture, item.quantisation, item.root.label)
        there = " ".join(part for part in parts if part).casefold()
        return all(word in there for word in wanted)


class LibraryModel(QAbstractTableModel):
    """Sorts and filters by itself: in Python it is a millisecond for hundreds of rows, through a proxy it is not."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._items: tuple[LibraryItem, ...] = ()
        self._shown: list[LibraryItem] = []
        self._fits: Mapping[Path, FitWords] = {}
        self._uses: Mapping[Path, str] = {}
        self._filter = LibraryFilter()
        self._titles = {
            Column.NAME: self.tr("Name"),
            Column.ARCHITECTURE: self.tr("Architecture"),
            Column.PARAMETERS: self.tr("Parameters"),
            Column.QUANT: self.tr("Quant"),
            Column.CONTEXT: self.tr("Context"),
            Column.SIZE: self.tr("Size"),
            Column.WHERE: self.tr("Where"),
            Column.FIT: self.tr("Memory"),
        }
        self._column, self._order = Column.NAME, Qt.SortOrder.AscendingOrder

    # -- what it is told

    def set_items(self, items: Sequence[LibraryItem], fits: Mapping[Path, FitWords]) -> None:
        before, self._items, self._fits = self._fits, tuple(items), fits
        # What is free changes all the time, and with it the tips of all rows; few of them look different.
        paths = before.keys() | fits.keys()
        self._arrange({path for path in paths if _look_of(before.get(path)) != _look_of(fits.get(path))})

    def set_filter(self, wanted: LibraryFilter) -> None:
        if wanted != self._filter:
            self._filter = wanted
            self._arrange()

    def set_uses(self, uses: Mapping[Path, str]) -> None:
        """By path, what a model is in use as, in words."""
        before, self._uses = self._uses, dict(uses)
        changed = {path for path in before.keys() | uses.keys() if before.get(path) != uses.get(path)}
        self._touch(row for row, item in enumerate(self._shown) if item.path in changed)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self._column, self._order = Column(max(0, column)), order
        self._arrange()

    # -- what it knows

    @property
    def items(self) -> tuple[LibraryItem, ...]:
        """All of them, shown or not."""
        return self._items

    @property
    def filter(self) -> LibraryFilter:
        return self._filter

    def item(self, row: int) -> LibraryItem | None:
        return self._shown[row] if 0 <= row < len(self._shown) else None

    def row_of(self, path: Path) -> int | None:
        return next((row for row, item in enumerate(self._shown) if item.path == path), None)

    def fit_of(self, item: LibraryItem) -> FitWords | None:
        return self._fits.get(item.path) if item.usable else None

    # -- Qt's questions

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._shown)

    def columnCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(Column)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        column = Column(section)
        if role == Qt.ItemDataRole.DisplayRole:
            # The arrow of the order stands at the right edge, where words on that side would lie under it.
            return self._titles[column] + (ARROW_ROOM if column in NUMBERS and column is self._column else "")
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        item, column = self._shown[index.row()], Column(index.column())
        if role == Qt.ItemDataRole.DisplayRole:
            return self._words(item, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        if role == ItemRole:
            return item
        if role == BadgeRole and column is Column.FIT:
            return self.fit_of(item)
        if role == CaptionRole and column is Column.NAME:
            return self._caption(item)
        if role == ProblemRole:
            return not item.usable
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._tip(item, column)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{self._titles[column]}: {self._words(item, column)}" if column else self._told(item)
        return None

    # -- inside

    def _touch(self, rows: Iterable[int]) -> None:
        """Painting a row takes a millisecond on a slow machine: those that stay as they are are left alone."""
        for row in rows:
            self.dataChanged.emit(self.index(row, 0), self.index(row, len(Column) - 1))

    def _arrange(self, judged_anew: Collection[Path] = ()) -> None:
        shown = [item for item in self._items if self._filter.shows(item)]
        shown.sort(key=lambda item: (item.name.casefold(), str(item.path)))
        key = self._key(self._column)
        known = [item for item in shown if key(item) is not None]
        # What is not known stands last in both directions.
        unknown = [item for item in shown if key(item) is None]
        known.sort(key=key, reverse=self._order is Qt.SortOrder.DescendingOrder)  # type: ignore[arg-type]
        arranged = known + unknown
        if [item.path for item in arranged] == [item.path for item in self._shown]:
            before, self._shown = self._shown, arranged
            self._touch(row for row, item in enumerate(arranged) if item != before[row] or item.path in judged_anew)
            return
        self.beginResetModel()
        self._shown = arranged
        self.endResetModel()

    def _key(self, column: Column) -> Callable[[LibraryItem], str | int | None]:
        match column:
            case Column.NAME:
                return lambda item: item.name.casefold()
            case Column.ARCHITECTURE:
                return lambda item: item.architecture
            case Column.PARAMETERS:
                return lambda item: item.parameters
            case Column.QUANT:
                return lambda item: item.quantisation
            case Column.CONTEXT:
                return lambda item: item.context_length
            case Column.SIZE:
                return lambda item: item.size_bytes
            case Column.WHERE:
                return lambda item: item.root.label.casefold()
            case Column.FIT:
                return self._fit_order

    def _fit_order(self, item: LibraryItem) -> int | None:
        fit = self.fit_of(item)
        return None if fit is None else fit.order

    def _words(self, item: LibraryItem, column: Column) -> str:
        match column:
            case Column.NAME:
                return item.name
            case Column.ARCHITECTURE:
                return item.architecture or "–"
            case Column.PARAMETERS:
                return "–" if item.parameters is None else parameter_words(item.parameters)
            case Column.QUANT:
                return item.quantisation or "–"
            case Column.CONTEXT:
                return "–" if item.context_length is None else context_words(item.context_length)
            case Column.SIZE:
                return size_words(item.size_bytes)
            case Column.WHERE:
                return item.root.label
            case Column.FIT:
                fit = self.fit_of(item)
                return "–" if fit is None else fit.words

    def _caption(self, item: LibraryItem) -> str:
        use = self._uses.get(item.path)
        about = item.unusable_because or item.repo or item.title or item.path.parent.name
        return " · ".join(part for part in (use, about) if part)

    def _told(self, item: LibraryItem) -> str:
        return ", ".join(part for part in (item.name, self._caption(item)) if part)

    def _tip(self, item: LibraryItem, column: Column) -> str:
        if column is Column.FIT:
            fit = self.fit_of(item)
            return "" if fit is None else fit.why
        if column is Column.NAME:
            return plain_tip("\n".join(part for part in (item.name, item.unusable_because, str(item.path)) if part))
        return plain_tip(str(item.root.path)) if column is Column.WHERE else ""


def _look_of(fit: FitWords | None) -> tuple[str, BadgeTone] | None:
    return None if fit is None else (fit.words, fit.tone)


def _alignment(column: Column) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column in NUMBERS else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


def context_words(tokens: int) -> str:
    """`512`, `8k`, `128k`, `1M`: in units of 1,024, as everybody writes them."""
    if tokens < 1024:
        return str(tokens)
    thousands = tokens / 1024
    if thousands < 1000:
        return f"{thousands:.0f}k"
    return f"{thousands / 1024:.3g}M"

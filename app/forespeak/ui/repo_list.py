"""What a search of the Hub found, one repo below the other; scrolling near the end asks for more."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
    QTimer,
    Signal,
    Slot,
)
from PySide6.QtGui import QColor, QFont, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from forespeak.models.hub_results import Gate, HubModel
from forespeak.ui.badge import BadgeTone, badge_size, paint_badge
from forespeak.ui.hub_words import age_words, count_words, parameter_words
from forespeak.ui.row_paint import paint_words
from forespeak.ui.theme import CAPTION_PIXELS, LIGHT, TEXT_PIXELS, Theme, ui_font
from forespeak.ui.tool_tips import plain_tip

Index = QModelIndex | QPersistentModelIndex
_MARGIN = 12
_ROW_HEIGHT = 78
_NEAR_END = 8
"""Rows from the end at which more are asked for."""


class RepoListModel(QAbstractListModel):
    """Repos in the order in which the Hub gave them."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._models: tuple[HubModel, ...] = ()
        self._here: frozenset[str] = frozenset()

    def set_models(self, models: Sequence[HubModel]) -> None:
        """Where these begin with those that are shown, the others are added and nothing else changes."""
        old, new = self._models, tuple(models)
        if old and new[: len(old)] == old:
            if len(new) > len(old):
                self.beginInsertRows(QModelIndex(), len(old), len(new) - 1)
                self._models = new
                self.endInsertRows()
            return
        self.beginResetModel()
        self._models = new
        self.endResetModel()

    def set_here(self, repos: Collection[str]) -> None:
        """Of which repos there is something on this computer."""
        here = frozenset(repos)
        if here != self._here:
            self._here = here
            if self._models:
                self.dataChanged.emit(self.index(0), self.index(len(self._models) - 1))

    def model(self, index: Index) -> HubModel | None:
        return self._models[index.row()] if index.isValid() else None

    def index_of(self, repo: str) -> QModelIndex:
        row = next((row for row, model in enumerate(self._models) if model.repo == repo), -1)
        return self.index(row) if row >= 0 else QModelIndex()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._models)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        model = self.model(index)
        if model is None:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return model.repo
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(model.repo)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            badges = [words for words, _ in self.badges(model)]
            return ", ".join([model.name, *badges, *self.facts(model), *self.figures(model)])
        return None

    def badges(self, model: HubModel) -> list[tuple[str, BadgeTone]]:
        badges = []
        if model.repo in self._here:
            badges.append((self.tr("Here"), BadgeTone.GOOD))
        if model.gate is not Gate.OPEN:
            badges.append((self.tr("Gated"), BadgeTone.CAUTION))
        if model.private:
            badges.append((self.tr("Private"), BadgeTone.QUIET))
        return badges

    @staticmethod
    def facts(model: HubModel) -> list[str]:
        """Whose it is, and what it is."""
        facts = [model.owner] if model.owner else []
        if model.parameters:
            facts.append(parameter_words(model.parameters))
        if model.architecture:
            facts.append(model.architecture)
        return facts

    def figures(self, model: HubModel) -> list[str]:
        """How it is liked, and how old it is; what is not known is left out."""
        figures = []
        if model.downloads is not None:
            figures.append(self.tr("{0} downloads").format(count_words(model.downloads)))
        if model.likes is not None:
            figures.append(self.tr("{0} likes").format(count_words(model.likes)))
        if model.updated is not None:
            figures.append(age_words(model.updated, datetime.now(UTC)))
        return figures


class RepoDelegate(QStyledItemDelegate):
    """Paints three lines: name and badges, owner and size, figures."""

    def __init__(self, model: RepoListModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self.theme = LIGHT

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(160, _ROW_HEIGHT)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        model = self._model.model(index)
        if model is None:
            return
        theme = self.theme
        state: QStyle.StateFlag = option.state
        rect: QRect = option.rect
        chosen = bool(state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ground = QRectF(rect).adjusted(1, 1, -1, -1)
        painter.setPen(Qt.PenStyle.NoPen)
        if chosen:
            painter.setBrush(QColor(theme.accent_soft))
            if state & QStyle.StateFlag.State_HasFocus:
                painter.setPen(QPen(QColor(theme.accent), 2))
            painter.drawRoundedRect(ground, 10, 10)
        elif state & QStyle.StateFlag.State_MouseOver:
            painter.setBrush(QColor(theme.bubble))
            painter.drawRoundedRect(ground, 10, 10)
        inner = rect.adjusted(_MARGIN, 9, -_MARGIN, -9)
        right = inner.right()
        for words, tone in reversed(self._model.badges(model)):
            width = badge_size(words).width()
            paint_badge(painter, QRect(right - width, inner.top() - 1, width, 22), words, tone, theme)
            right -= width + 6
        line = QRect(inner.left(), inner.top(), right - inner.left(), 20)
        paint_words(painter, model.name, line, ui_font(TEXT_PIXELS, QFont.Weight.DemiBold.value), theme.ink)
        small = ui_font(CAPTION_PIXELS)
        for number, parts in enumerate((self._model.facts(model), self._model.figures(model))):
            line = QRect(inner.left(), inner.top() + 23 + 19 * number, inner.width(), 17)
            paint_words(painter, " · ".join(parts), line, small, theme.muted)
        painter.restore()


class RepoList(QListView):
    """Emits `repoChosen` with the HubModel that the selection came to, and `moreWanted` near the end."""

    repoChosen = Signal(object)
    repoOpened = Signal(object)
    """Enter or a click: the user wants to go there."""
    moreWanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("repoList")
        self.repos = RepoListModel(self)
        self.setModel(self.repos)
        self._delegate = RepoDelegate(self.repos, self)
        self.setItemDelegate(self._delegate)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setAccessibleName(self.tr("Models on the Hub"))
        # Later, since the bar moves in the middle of a layout too, which must not begin anew within itself.
        self._looking = QTimer(self)
        self._looking.setSingleShot(True)
        self._looking.setInterval(0)
        self._looking.timeout.connect(self._look_ahead)
        self.verticalScrollBar().valueChanged.connect(self.look_ahead)
        self.selectionModel().currentChanged.connect(self._chosen)
        self.activated.connect(self._opened)
        self.clicked.connect(self._opened)

    def set_theme(self, theme: Theme) -> None:
        self._delegate.theme = theme
        self.viewport().update()

    def set_models(self, models: Sequence[HubModel]) -> None:
        self.repos.set_models(models)

    def select(self, repo: str) -> None:
        """Show a repo as the chosen one, without telling anyone; one that is not in the list chooses none."""
        chooser = self.selectionModel()
        chooser.blockSignals(True)
        self.setCurrentIndex(self.repos.index_of(repo))
        chooser.blockSignals(False)
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.look_ahead()

    @Slot()
    def look_ahead(self) -> None:
        """Ask for more, in a moment, if what there is does not fill the view."""
        self._looking.start()

    @Slot()
    def _look_ahead(self) -> None:
        # Otherwise the bar is that of the rows before.
        self.executeDelayedItemsLayout()
        bar = self.verticalScrollBar()
        if self.repos.rowCount() and bar.value() >= bar.maximum() - _NEAR_END * _ROW_HEIGHT:
            self.moreWanted.emit()

    @Slot(QModelIndex, QModelIndex)
    def _chosen(self, current: QModelIndex, _before: QModelIndex) -> None:
        model = self.repos.model(current)
        if model is not None:
            self.repoChosen.emit(model)

    @Slot(QModelIndex)
    def _opened(self, index: QModelIndex) -> None:
        model = self.repos.model(index)
        if model is not None:
            self.repoOpened.emit(model)

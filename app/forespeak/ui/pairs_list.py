"""The kept pairs: what each has brought, what has become of its files, and what can be done with it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal, Slot
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QMenu,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from forespeak.models.formats import model_stem
from forespeak.pairing.named_pair import NamedPair
from forespeak.ui.badge import Badge, BadgeTone
from forespeak.ui.draft_sources import chain_words, in_order
from forespeak.ui.elided_label import ElidedLabel
from forespeak.ui.folding_row import FoldingRow
from forespeak.ui.form import caption, scrolled
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.restyle import restyle
from forespeak.ui.theme import Theme
from forespeak.ui.wizard_pairs import PairsKeeper
from forespeak.ui.wizard_words import day_words, parity_words, times

WIDE_FROM = 640


class PairLine(FoldingRow):
    """One pair. F2 renames it, Delete removes it, wherever in it the keyboard is."""

    useRequested = Signal(object)
    retestRequested = Signal(object)
    renamed = Signal(object, str)
    defaultRequested = Signal(object, bool)
    removeRequested = Signal(object)

    def __init__(self, pair: NamedPair, parent: QWidget | None = None) -> None:
        super().__init__(WIDE_FROM, 280, parent)
        self.pair = pair
        self.name = ElidedLabel()
        self.name.setObjectName("rowTitle")
        self.editor = QLineEdit()
        self.editor.setAccessibleName(self.tr("Name of the pair"))
        self.editor.setMaxLength(200)
        self.editor.hide()
        self.editor.editingFinished.connect(self._edited)
        self.editor.installEventFilter(self)
        self.badge = Badge()
        self.models = caption("")
        self.gain = PlainLabel()
        self.gain.setObjectName("rowTitle")
        self.gain_note = caption("")
        self.parity = PlainLabel()
        self.sources = caption("")
        self.problem = PlainLabel()
        self.problem.setProperty("danger", True)
        self.problem.setWordWrap(True)
        self.button = QPushButton(self.tr("Use in chat"))
        self.button.clicked.connect(lambda: self.useRequested.emit(self.pair))
        self.more = QToolButton()
        self.more.setText("⋯")
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(self)
        self.rename_action = self._action(menu, self.tr("Rename"), self.rename, "F2")
        self.retest_action = self._action(menu, self.tr("Test again"), self._retest)
        self.default_action = self._action(menu, "", self._default)
        menu.addSeparator()
        self.remove_action = self._action(menu, self.tr("Remove"), self._remove, "Delete")
        self.more.setMenu(menu)
        heading = QHBoxLayout()
        heading.setSpacing(10)
        heading.addWidget(self.name)
        heading.addWidget(self.editor, 1)
        heading.addWidget(self.badge)
        heading.addStretch(1)
        self._heading = QWidget()
        self._heading.setLayout(heading)
        heading.setContentsMargins(0, 0, 0, 0)
        self.grid.setContentsMargins(16, 12, 12, 12)
        self.grid.setHorizontalSpacing(16)
        self.fold(wide=True)
        self.show_pair(pair)

    def set_theme(self, theme: Theme) -> None:
        self.badge.set_theme(theme)

    def show_pair(self, pair: NamedPair) -> None:
        self.pair = pair
        self.name.set_words(pair.name)
        self.badge.set_words(self.tr("Default") if pair.is_default else "", BadgeTone.QUIET)
        draft = self.tr("no draft model") if pair.draft is None else model_stem(pair.draft.path)
        self.models.setText(f"{model_stem(pair.target.path)} + {draft}")
        measured = pair.measurement
        if measured is None:
            self.gain.setText("—")
            self.gain_note.setText(self.tr("not tested"))
        else:
            self.gain.setText(times(measured.speed_up.value))
            stale = pair.current_measurement is None
            words = self.tr("measured {day}, out of date") if stale else self.tr("measured {day}")
            self.gain_note.setText(words.format(day=day_words(measured.measured_at)))
        self.parity.setText(parity_words(pair))
        length = pair.settings.draft_length
        chain = chain_words(in_order(pair.settings.sources))
        self.sources.setText(
            chain if length is None else self.tr("{sources}, {count} at a time").format(sources=chain, count=length)
        )
        self.problem.setText(pair.problem or "")
        self.problem.setVisible(pair.problem is not None)
        self.button.setEnabled(pair.is_usable)
        self.button.setAccessibleName(self.tr("Use in chat: {name}").format(name=pair.name))
        self.more.setAccessibleName(self.tr("More about {name}").format(name=pair.name))
        self.default_action.setText(
            self.tr("No longer the target's default") if pair.is_default else self.tr("Make it the target's default")
        )
        self.retest_action.setEnabled(pair.is_usable)
        parts = (pair.name, self.models.text(), self.gain.text(), self.gain_note.text(), pair.problem or "")
        self.setAccessibleName(", ".join(part for part in parts if part))

    @Slot()
    def rename(self) -> None:
        """Write another name in place."""
        self.editor.setText(self.pair.name)
        self.name.hide()
        self.editor.show()
        self.editor.setFocus(Qt.FocusReason.OtherFocusReason)
        self.editor.selectAll()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.editor and isinstance(event, QKeyEvent):
            if event.type() == QEvent.Type.ShortcutOverride and event.key() == Qt.Key.Key_Delete:
                event.accept()
                return True
            if event.type() == QEvent.Type.KeyPress and event.key() == Qt.Key.Key_Escape:
                self.editor.setText(self.pair.name)
                self._close_editor()
                return True
        return super().eventFilter(watched, event)

    def _action(self, menu: QMenu, words: str, run: object, key: str = "") -> QAction:
        action = menu.addAction(words)
        action.triggered.connect(run)
        if key:
            action.setShortcut(QKeySequence(key))
            action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            self.addAction(action)
        return action

    @Slot()
    def _edited(self) -> None:
        if self.editor.isHidden():
            return
        name = self.editor.text().strip()
        self._close_editor()
        if name and name != self.pair.name:
            self.name.set_words(name)
            self.renamed.emit(self.pair, name)

    def _close_editor(self) -> None:
        had_focus = self.editor.hasFocus()
        self.editor.hide()
        self.name.show()
        if had_focus:
            self.button.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot()
    def _retest(self) -> None:
        self.retestRequested.emit(self.pair)

    @Slot()
    def _default(self) -> None:
        self.defaultRequested.emit(self.pair, not self.pair.is_default)

    @Slot()
    def _remove(self) -> None:
        self.removeRequested.emit(self.pair)

    def place_parts(self, grid: QGridLayout, *, wide: bool) -> None:
        top, centre = Qt.AlignmentFlag.AlignTop, Qt.AlignmentFlag.AlignVCenter
        if wide:
            grid.addWidget(self._heading, 0, 0, centre)
            grid.addWidget(self.models, 1, 0, top)
            grid.addWidget(self.gain, 0, 1, centre)
            grid.addWidget(self.gain_note, 1, 1, top)
            grid.addWidget(self.parity, 0, 2, centre)
            grid.addWidget(self.sources, 1, 2, top)
            grid.addWidget(self.button, 0, 3, 2, 1, centre)
            grid.addWidget(self.more, 0, 4, 2, 1, centre)
            grid.addWidget(self.problem, 2, 0, 1, 5)
            for column, stretch in ((0, 14), (1, 4), (2, 5)):
                grid.setColumnStretch(column, stretch)
            grid.setColumnMinimumWidth(1, 120)
            grid.setColumnMinimumWidth(2, 140)
        else:
            grid.addWidget(self._heading, 0, 0, 1, 3, centre)
            grid.addWidget(self.models, 1, 0, 1, 3, top)
            grid.addWidget(self.gain, 2, 0, centre)
            grid.addWidget(self.gain_note, 3, 0, top)
            grid.addWidget(self.parity, 2, 1, 1, 2, centre)
            grid.addWidget(self.sources, 3, 1, 1, 2, top)
            grid.addWidget(self.problem, 4, 0, 1, 3)
            grid.addWidget(self.button, 5, 0, Qt.AlignmentFlag.AlignLeft)
            grid.addWidget(self.more, 5, 2, Qt.AlignmentFlag.AlignRight)
            grid.setColumnStretch(0, 1)
            grid.setColumnStretch(1, 1)


class PairsList(QWidget):
    """Signals with a NamedPair; what changes names and marks goes to the keeper itself."""

    useRequested = Signal(object)
    retestRequested = Signal(object)

    def __init__(self, keeper: PairsKeeper, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._keeper = keeper
        self._theme: Theme | None = None
        self._wanted: str | None = None
        self.lines: dict[str, PairLine] = {}
        self._card = QFrame()
        self._card.setProperty("card", True)
        self._column = QVBoxLayout(self._card)
        self._column.setContentsMargins(1, 1, 1, 1)
        self._column.setSpacing(0)
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._card)
        column.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(scrolled(content, see_through=True))
        keeper.changed.connect(self.show_pairs)
        self.show_pairs()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        for line in self.lines.values():
            line.set_theme(theme)

    def show_pair(self, pair_id: str) -> None:
        """Put the keyboard there, as soon as it is in the list."""
        self._wanted = pair_id
        self.take_focus()

    def take_focus(self) -> None:
        line = self.lines.get(self._wanted or "")
        if line is not None:
            self._wanted = None
        elif self._wanted is None:
            line = next(iter(self.lines.values()), None)
        if line is not None:
            target = line.button if line.button.isEnabled() else line.more
            target.setFocus(Qt.FocusReason.TabFocusReason)

    @Slot()
    def show_pairs(self) -> None:
        pairs = self._keeper.pairs
        ids = {pair.id for pair in pairs}
        for pair_id in [pair_id for pair_id in self.lines if pair_id not in ids]:
            gone = self.lines.pop(pair_id)
            had_focus = gone.isAncestorOf(self.focusWidget()) if self.focusWidget() is not None else False
            gone.hide()
            gone.deleteLater()
            if had_focus:
                self.take_focus()
        for number, pair in enumerate(pairs):
            line = self.lines.get(pair.id)
            if line is None:
                line = self.lines[pair.id] = self._make(pair)
            else:
                line.show_pair(pair)
            if self._column.indexOf(line) != number:
                self._column.insertWidget(number, line)
            restyle(line, first=number == 0)
        self._card.setVisible(bool(pairs))
        if self._wanted is not None and self.isVisible():
            self.take_focus()

    def _make(self, pair: NamedPair) -> PairLine:
        line = PairLine(pair)
        if self._theme is not None:
            line.set_theme(self._theme)
        line.useRequested.connect(self.useRequested)
        line.retestRequested.connect(self.retestRequested)
        line.renamed.connect(self._keeper.rename)
        line.defaultRequested.connect(self._keeper.set_default)
        line.removeRequested.connect(self._keeper.remove)
        return line

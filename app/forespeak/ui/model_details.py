"""All that is known of one model, and what can be done with it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from forespeak.models.gguf import GgufKind
from forespeak.models.library import LibraryItem
from forespeak.models.sizes import size_words
from forespeak.ui.badge import Badge, BadgeTone
from forespeak.ui.form import scrolled
from forespeak.ui.hub_words import parameter_words
from forespeak.ui.library_model import FitWords
from forespeak.ui.models_folder import short_path
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.theme import Theme

MOST_FILES = 12
NO_KIND = frozenset({GgufKind.MODEL, GgufKind.OTHER})
"""Which need no word: what is wrong with the others is told above."""
WIDE_FROM = 500


class ActionButton(QPushButton):
    """A button for an action that menus have too: its words, whether it can be done, and what it does."""

    def __init__(self, action: QAction, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._action = action
        self.clicked.connect(action.trigger)
        action.changed.connect(self._follow)
        self._follow()

    def _follow(self) -> None:
        self.setText(self._action.text())
        self.setEnabled(self._action.isEnabled())
        self.setToolTip(self._action.toolTip() if self._action.toolTip() != self._action.text() else "")


class ModelDetails(QFrame):
    """`actions` become buttons, the first one the primary, the last one that of removing."""

    def __init__(self, actions: Sequence[QAction], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("modelDetails")
        self.setProperty("card", True)
        self._theme: Theme | None = None
        self.item: LibraryItem | None = None
        self._shown: tuple[LibraryItem, FitWords | None, str, str] | None = None
        self.title = PlainLabel()
        self.title.setProperty("heading", True)
        self.title.setWordWrap(True)
        self.title.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.format_badge, self.fit_badge = Badge(), Badge()
        badges = QHBoxLayout()
        badges.setSpacing(6)
        badges.addWidget(self.format_badge)
        badges.addWidget(self.fit_badge)
        badges.addStretch(1)
        self.problem = PlainLabel()
        self.problem.setProperty("danger", True)
        self.problem.setWordWrap(True)
        self.note = PlainLabel()
        self.note.setProperty("caption", True)
        self.note.setWordWrap(True)
        self.buttons = [ActionButton(action) for action in actions]
        self.buttons[0].setProperty("primary", True)
        self.buttons[-1].setProperty("danger", True)
        self._grid = grid = QGridLayout()
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(8)
        self._columns = 0
        self._place_buttons(2)
        self._facts = QGridLayout()
        self._facts.setHorizontalSpacing(14)
        self._facts.setVerticalSpacing(5)
        self._facts.setColumnStretch(1, 1)
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(16, 14, 16, 16)
        column.setSpacing(10)
        for widget in (self.title, self.problem):
            column.addWidget(widget)
        column.addLayout(badges)
        column.addWidget(self.note)
        column.addLayout(grid)
        column.addLayout(self._facts)
        column.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(1, 1, 1, 1)
        layout.addWidget(scrolled(inside, see_through=True))
        self.setAccessibleName(self.tr("Details"))

    def set_theme(self, theme: Theme) -> None:
        for badge in (self.format_badge, self.fit_badge):
            badge.set_theme(theme)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_buttons(4 if event.size().width() >= WIDE_FROM else 2)

    def _place_buttons(self, columns: int) -> None:
        """In a narrow pane the first one stands alone, as wide as two."""
        if columns == self._columns:
            return
        self._columns = columns
        first = 1 if columns == 4 else 2
        for number, button in enumerate(self.buttons):
            self._grid.removeWidget(button)
            place = 0 if number == 0 else number + first - 1
            self._grid.addWidget(button, place // columns, place % columns, 1, first if number == 0 else 1)

    def show_item(self, item: LibraryItem, fit: FitWords | None, use: str = "", suits: str = "") -> None:
        """`use`: what it is in use as; `suits`: how its vocabulary goes with the target's."""
        shown = (item, fit, use, suits)
        if shown == self._shown:
            return
        self._shown, self.item = shown, item
        self.title.setText(item.name)
        self.format_badge.set_words(item.format.value)
        self.fit_badge.set_words(fit.words if fit else "", fit.tone if fit else BadgeTone.QUIET, fit.why if fit else "")
        self.problem.setText(item.unusable_because or "")
        self.problem.setVisible(not item.usable)
        self.note.setText(use)
        self.note.setVisible(bool(use))
        while (entry := self._facts.takeAt(0)) is not None:
            widget = entry.widget()
            if widget is not None:
                widget.deleteLater()
        facts = [
            (self.tr("Memory"), "" if fit is None else fit.why),
            (self.tr("With the target"), suits),
            *self.facts_of(item),
        ]
        for row, (name, words) in enumerate((name, words) for name, words in facts if words):
            key = PlainLabel(name)
            key.setProperty("caption", True)
            value = PlainLabel(breakable(words))
            value.setWordWrap(True)
            if value.text() == words:
                # What was made breakable would be copied with invisible signs in it; paths have an action for that.
                value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            value.setAccessibleName(f"{name}: {words}")
            self._facts.addWidget(key, row, 0, Qt.AlignmentFlag.AlignTop)
            self._facts.addWidget(value, row, 1)

    def facts_of(self, item: LibraryItem) -> list[tuple[str, str]]:
        """Names and words of what is known, in the order in which people ask for it."""
        facts: list[tuple[str, str | None]] = [
            (self.tr("Calls itself"), item.title if item.title != item.name else None),
            (self.tr("From"), item.repo),
            (self.tr("Architecture"), item.architecture),
            (self.tr("Parameters"), self._parameters(item)),
            (self.tr("Quantisation"), item.quantisation),
            (self.tr("Context"), self._tokens(item.context_length)),
            (self.tr("Vocabulary"), self._tokens(item.vocabulary_size)),
            (self.tr("Chat template"), self._template(item)),
            (self.tr("Predicts ahead"), self._ahead(item.mtp_layers)),
            (self.tr("Kind"), None if item.kind in NO_KIND else item.kind.value),
            (self.tr("Size"), size_words(item.size_bytes)),
            (self.tr("Changed"), f"{datetime.fromtimestamp(item.modified).astimezone():%Y-%m-%d %H:%M}"),
            (self.tr("Where"), self._where(item)),
            (self.tr("Path"), short_path(item.path)),
            (self.tr("Files"), self._files(item)),
        ]
        return [(name, words) for name, words in facts if words]

    def _parameters(self, item: LibraryItem) -> str | None:
        if item.parameters is None:
            return None
        words = f"{parameter_words(item.parameters)} ({item.parameters:,})"
        if item.active_parameters is not None:
            words += "\n" + self.tr("{active} of them for each token").format(
                active=parameter_words(item.active_parameters)
            )
        return words

    def _tokens(self, count: int | None) -> str | None:
        return None if count is None else self.tr("{count} tokens").format(count=f"{count:,}")

    def _template(self, item: LibraryItem) -> str | None:
        if not item.usable:
            return None
        return self.tr("Yes") if item.has_template else self.tr("No: chats are written plainly")

    def _ahead(self, layers: int) -> str | None:
        return self.tr("{count} tokens, with layers of its own").format(count=layers) if layers else None

    def _where(self, item: LibraryItem) -> str:
        if item.root.read_only:
            return self.tr("{label}, read only").format(label=item.root.label)
        return self.tr("{label}, as a link").format(label=item.root.label) if item.linked else item.root.label

    def _files(self, item: LibraryItem) -> str | None:
        if len(item.files) < 2:
            return None
        names = [path.name for path in item.files[:MOST_FILES]]
        if len(item.files) > MOST_FILES:
            names.append(self.tr("and {count} more").format(count=len(item.files) - MOST_FILES))
        return "\n".join(names)


def breakable(words: str) -> str:
    """A path or a file's name with places where a line may end: a label breaks nowhere else, and would be cut."""
    for sign in "/\\_.-":
        words = words.replace(sign, f"{sign}\u200b")
    return words

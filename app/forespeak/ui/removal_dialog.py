"""Asks whether a model is to be removed, and says what that means for its files."""

from __future__ import annotations

from PySide6.QtWidgets import QDialogButtonBox, QVBoxLayout, QWidget

from forespeak.models.library import LibraryItem
from forespeak.models.sizes import size_words
from forespeak.ui.dialogs import FittedDialog, end_question
from forespeak.ui.model_details import breakable
from forespeak.ui.plain_label import PlainLabel


class RemovalDialog(FittedDialog):
    """Accepted: remove it. Enter alone does not."""

    def __init__(self, item: LibraryItem, *, in_use: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("removeDialog")
        self.setWindowTitle(self.tr("Remove a model"))
        title = PlainLabel(self.tr("Remove “{name}”?").format(name=breakable(item.name)))
        title.setObjectName("dialogTitle")
        self.text = PlainLabel(self._what_happens(item))
        self.text.setObjectName("dialogText")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 16)
        layout.setSpacing(10)
        labels = [title, self.text]
        if in_use:
            labels.append(PlainLabel(self.tr("It is in use now, and cannot be loaded again.")))
            labels[-1].setObjectName("dialogText")
        for label in labels:
            label.setWordWrap(True)
            layout.addWidget(label)
        buttons = QDialogButtonBox()
        self.remove = buttons.addButton(self.tr("Remove"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.remove.setProperty("danger", True)
        self.remove.setAutoDefault(False)
        self.cancel = buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        self.cancel.setDefault(True)
        end_question(self, layout, buttons)
        self.cancel.setFocus()

    def _what_happens(self, item: LibraryItem) -> str:
        if item.linked:
            return self.tr("It is a link, and what it leads to stays. Until Forespeak closes it can be undone.")
        words = self.tr("{size} in {count} files are deleted when Forespeak closes. Until then it can be undone.")
        if len(item.files) == 1:
            words = self.tr("Its {size} are deleted when Forespeak closes. Until then it can be undone.")
        return words.format(size=size_words(item.size_bytes), count=len(item.files))

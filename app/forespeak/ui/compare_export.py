"""Saving a result as a file: a report, its figures, or a picture of the page."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtWidgets import QCheckBox, QDialogButtonBox, QFileDialog, QPushButton, QVBoxLayout

from forespeak.errors import UserFacingError
from forespeak.ui.background import Worker
from forespeak.ui.compare_page import ComparePage
from forespeak.ui.dialogs import FittedDialog
from forespeak.ui.plain_label import PlainLabel

PICTURE = "png"
Export = Callable[[str, str, Path, bool, Callable[[], bool]], None]


class PrivateDialog(FittedDialog):
    """Asks before one's own words go into a file that may be passed on. Not ticked to begin with."""

    def __init__(self, parent: ComparePage) -> None:
        super().__init__(parent, width=420)
        self.setWindowTitle(self.tr("Save the result"))
        text = PlainLabel(self.tr("This comparison was made on your own text. It is left out unless you want it in."))
        text.setWordWrap(True)
        self.box = QCheckBox(self.tr("Include my prompts and the replies to them"))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.save_button = QPushButton(self.tr("Save…"))
        self.save_button.setProperty("primary", True)
        buttons.addButton(self.save_button, QDialogButtonBox.ButtonRole.AcceptRole)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 16)
        column.setSpacing(12)
        for widget in (text, self.box, buttons):
            column.addWidget(widget)


class Exporter(QObject):
    """`write` is (comparison, kind, path, whether private text goes in, stopped) and blocks; the page makes pictures.

    A report states the hashes of its models, which may take minutes: a thread of its own, so that the page goes on.
    """

    def __init__(self, page: ComparePage, write: Export, failed: Callable[[Exception], None]) -> None:
        super().__init__(page)
        self._page, self._write, self._failed = page, write, failed
        self._worker = Worker("comparison-reports", self)
        self._stop = threading.Event()
        self._saving = 0
        self._asking: tuple[str, str, str] | None = None
        self._dialog: PrivateDialog | None = None

    def close(self) -> None:
        """The window closes: what is not saved by now is not saved."""
        self._stop.set()
        self._worker.close(0.5)

    def ask(self, comparison: str, name: str, kind: str, *, has_private: bool) -> None:
        self._asking = (comparison, name, kind)
        if not has_private:
            self._choose(private=True)
            return
        self._dialog = PrivateDialog(self._page)
        self._dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._dialog.accepted.connect(self._accepted)
        self._dialog.open()

    @Slot()
    def _accepted(self) -> None:
        if self._dialog is not None:
            self._choose(private=self._dialog.box.isChecked())

    def _choose(self, *, private: bool) -> None:
        if self._asking is None:
            return
        comparison, name, kind = self._asking
        suggested = f"{file_name(name)}.{kind}"
        chosen, _ = QFileDialog.getSaveFileName(self._page, self.tr("Save the result"), suggested, f"*.{kind}")
        if not chosen:
            return
        path = Path(chosen)
        if not path.suffix[1:].isalpha():
            # What follows a dot is often a part of a model's name: Qwen2.5.
            path = path.with_name(f"{path.name}.{kind}")
        if kind == PICTURE:
            self._save_picture(path, private=private)
        else:
            self._show_saving(1)
            self._worker.run(
                lambda: self._write(comparison, kind, path, private, self._stop.is_set),
                lambda _: self._written(path),
                self._not_written,
            )

    def _show_saving(self, more: int) -> None:
        self._saving += more
        self._page.result.show_saving(on=self._saving > 0)

    def _written(self, path: Path) -> None:
        self._show_saving(-1)
        self._saved(path)

    def _not_written(self, error: Exception) -> None:
        self._show_saving(-1)
        self._failed(error)

    def _save_picture(self, path: Path, *, private: bool) -> None:
        if self._page.picture(with_replies=private).save(str(path), "PNG"):
            self._saved(path)
        else:
            self._failed(
                UserFacingError(
                    self.tr("The picture could not be saved."),
                    str(path),
                    self.tr("Check that there is room on the disk and that you may write there."),
                )
            )

    def _saved(self, path: Path) -> None:
        self._page.setAccessibleDescription(self.tr("Saved as {0}").format(path.name))
        self._page.result.show_saved(path)


def file_name(name: str) -> str:
    """A name as a file may have it on every system."""
    return re.sub(r"[^\w.\- ]+", " ", name).strip(" .")[:80] or "comparison"

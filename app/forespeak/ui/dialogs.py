"""Errors, shown: the world's as what, why and remedy; our own as a report that can be copied."""

from __future__ import annotations

import platform
import traceback
from pathlib import Path

from PySide6.QtCore import QCoreApplication, Qt, QUrl, Slot, qVersion
from PySide6.QtGui import QDesktopServices, QFontDatabase, QGuiApplication, QShowEvent
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from forespeak.engines.engine import Died, Failed
from forespeak.errors import UserFacingError
from forespeak.ui.plain_label import PlainLabel

Problem = UserFacingError | Failed | Died


class FittedDialog(QDialog):
    """At least so many pixels wide, and then as high as its sentences need: Qt reckons that for a narrower one."""

    def __init__(self, parent: QWidget | None = None, *, width: int = 440) -> None:
        super().__init__(parent)
        self.setMinimumWidth(width)

    def showEvent(self, event: QShowEvent) -> None:
        # By now the parts have their fonts.
        layout = self.layout()
        if not event.spontaneous() and layout is not None and layout.hasHeightForWidth():
            self.resize(self.width(), layout.totalHeightForWidth(self.width()))
        super().showEvent(event)


class ErrorDialog(FittedDialog):
    """What happened, why, and what to do; the details fold out and can be copied."""

    def __init__(self, problem: Problem, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Something went wrong"))
        self.setObjectName("errorDialog")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 16)
        layout.setSpacing(10)
        for words, name in ((problem.what, "dialogTitle"), (problem.why, "dialogText"), (problem.remedy, "dialogText")):
            if words:
                label = PlainLabel(words)
                label.setObjectName(name)
                label.setWordWrap(True)
                label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
                layout.addWidget(label)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Ok)
        buttons.accepted.connect(self.accept)
        details = "" if isinstance(problem, UserFacingError) else problem.details
        if details:
            box = details_box(details)
            box.setVisible(False)
            toggle = QPushButton(self.tr("Details"))
            toggle.setCheckable(True)
            toggle.toggled.connect(box.setVisible)
            copy = QPushButton(self.tr("Copy details"))
            copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(details))
            buttons.addButton(toggle, QDialogButtonBox.ButtonRole.ActionRole)
            buttons.addButton(copy, QDialogButtonBox.ButtonRole.ActionRole)
            layout.addWidget(box)
        layout.addStretch(1)
        layout.addWidget(buttons)


def end_question(dialog: QDialog, layout: QVBoxLayout, buttons: QDialogButtonBox) -> None:
    """The answers to what a dialog asks, below all that it says."""
    buttons.accepted.connect(dialog.accept)
    buttons.rejected.connect(dialog.reject)
    layout.addSpacing(6)
    layout.addStretch(1)
    layout.addWidget(buttons)


def details_box(text: str) -> QPlainTextEdit:
    box = QPlainTextEdit(text)
    box.setReadOnly(True)
    box.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
    box.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
    box.setMinimumHeight(160)
    box.setAccessibleName(QCoreApplication.translate("ErrorDialog", "Details"))
    return box


class CrashDialog(QDialog):
    """A bug of ours: what broke, where the log is, and a report to copy that holds no private text."""

    def __init__(self, report: str, log_file: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._report = report
        self._log_file = log_file
        self.setObjectName("crashDialog")
        self.setWindowTitle(self.tr("A fault in Forespeak"))
        title = PlainLabel(self.tr("Forespeak made a mistake."))
        title.setObjectName("dialogTitle")
        text = PlainLabel(
            self.tr(
                "The window tries to go on; your chats are saved as they grow. "
                "The report below says where it happened. It holds no text of your chats."
            )
        )
        text.setObjectName("dialogText")
        text.setWordWrap(True)
        where = PlainLabel(self.tr("Log file: {path}").format(path=log_file))
        where.setObjectName("dialogText")
        where.setWordWrap(True)
        where.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        copy = QPushButton(self.tr("Copy report"))
        folder = QPushButton(self.tr("Open the log's folder"))
        buttons.addButton(copy, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.addButton(folder, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.rejected.connect(self.reject)
        copy.clicked.connect(self._copy)
        folder.clicked.connect(self._open_folder)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 16)
        layout.setSpacing(10)
        for widget in (title, text, details_box(report), where, buttons):
            layout.addWidget(widget)
        self.resize(620, 420)

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._report)

    @Slot()
    def _open_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._log_file.parent)))


def crash_report(error: BaseException, version: str) -> str:
    """Kind and place of an error, and the systems' versions.

    The message of an exception may quote a chat, and paths name people, so neither is in it.
    """
    chain: list[str] = []
    link: BaseException | None = error
    while link is not None:
        chain.append(type(link).__name__)
        chain.extend(
            f"  {_inside_package(frame.filename)}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_tb(link.__traceback__)
        )
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    head = [
        f"Forespeak {version}",
        f"Python {platform.python_version()}, Qt {qVersion()}",
        f"{platform.system()} {platform.release()} {platform.machine()}",
    ]
    return "\n".join([*head, "", *chain])


def _inside_package(filename: str) -> str:
    parts = Path(filename).parts
    for marker in ("forespeak", "site-packages"):
        if marker in parts:
            return "/".join(parts[len(parts) - 1 - parts[::-1].index(marker) :])
    return parts[-1] if parts else filename

"""Problems, shown: the world's kindly, our own as a report without private text."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPlainTextEdit, QPushButton
from pytestqt.qtbot import QtBot

from forespeak.engines.engine import Failed
from forespeak.errors import UserFacingError
from forespeak.ui.crash_guard import MAX_LOG_BYTES, CrashGuard, write_log
from forespeak.ui.dialogs import CrashDialog, ErrorDialog, crash_report


def secret_error() -> Exception:
    def inner() -> None:
        try:
            int("my private words")
        except ValueError as error:
            raise RuntimeError("more private words in /home/somebody") from error

    with pytest.raises(RuntimeError) as caught:
        inner()
    return caught.value


def labels(dialog: ErrorDialog) -> list[str]:
    return [label.text() for label in dialog.findChildren(QLabel)]


def button(dialog: ErrorDialog | CrashDialog, words: str) -> QPushButton:
    return next(each for each in dialog.findChildren(QPushButton) if each.text() == words)


def test_an_error_says_what_why_and_what_to_do(qtbot: QtBot) -> None:
    dialog = ErrorDialog(UserFacingError("It broke.", "It was full.", "Empty it."))
    qtbot.addWidget(dialog)
    assert labels(dialog) == ["It broke.", "It was full.", "Empty it."]
    assert not dialog.findChildren(QPlainTextEdit)


def test_details_fold_out_and_can_be_copied(qtbot: QtBot) -> None:
    dialog = ErrorDialog(Failed("It broke.", details="line one\nline two"))
    qtbot.addWidget(dialog)
    dialog.show()
    (box,) = dialog.findChildren(QPlainTextEdit)
    assert not box.isVisible()
    QTest.mouseClick(button(dialog, "Details"), Qt.MouseButton.LeftButton)
    assert box.isVisible()
    QTest.mouseClick(button(dialog, "Copy details"), Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "line one\nline two"
    dialog.close()


def test_a_report_names_places_and_no_private_text() -> None:
    report = crash_report(secret_error(), "1.2.3")
    assert "Forespeak 1.2.3" in report
    assert "RuntimeError" in report
    assert "ValueError" in report
    assert "test_dialogs.py" in report
    for private in ("private", "somebody", str(Path.home())):
        assert private not in report


@pytest.fixture
def guard(qtbot: QtBot, tmp_path: Path) -> Iterator[CrashGuard]:
    before = (sys.excepthook, threading.excepthook)
    guard = CrashGuard(tmp_path / "logs" / "forespeak.log")
    guard.install()
    yield guard
    guard.uninstall()
    assert (sys.excepthook, threading.excepthook) == before


def crash_dialogs() -> list[CrashDialog]:
    return [each for each in QApplication.topLevelWidgets() if isinstance(each, CrashDialog) and each.isVisible()]


def test_an_uncaught_error_is_written_down_and_shown_once(qtbot: QtBot, guard: CrashGuard, tmp_path: Path) -> None:
    error = secret_error()
    sys.excepthook(type(error), error, error.__traceback__)
    sys.excepthook(type(error), error, error.__traceback__)
    qtbot.waitUntil(lambda: len(crash_dialogs()) == 1)
    log = (tmp_path / "logs" / "forespeak.log").read_text("utf-8")
    assert log.count('int("my private words")') == 2, "the log stays here and has everything"
    (dialog,) = crash_dialogs()
    QTest.mouseClick(button(dialog, "Copy report"), Qt.MouseButton.LeftButton)
    assert "RuntimeError" in QGuiApplication.clipboard().text()
    assert "private" not in QGuiApplication.clipboard().text()
    dialog.close()
    qtbot.waitUntil(lambda: crash_dialogs() == [])


def test_an_error_of_another_thread_is_shown_too(qtbot: QtBot, guard: CrashGuard) -> None:
    def fail() -> None:
        raise LookupError("gone")

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    qtbot.waitUntil(lambda: len(crash_dialogs()) == 1)
    crash_dialogs()[0].close()


def test_the_log_does_not_grow_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "forespeak.log"
    path.write_text("x" * (MAX_LOG_BYTES + 1))
    write_log(path, "report", "trace")
    assert path.stat().st_size < 1000
    assert path.with_suffix(".old").stat().st_size == MAX_LOG_BYTES + 1


@pytest.mark.parametrize("words", ["Short.", "A sentence that goes over several lines of the dialog. " * 6])
def test_a_dialog_is_as_high_as_its_sentences_need(qtbot: QtBot, words: str) -> None:
    dialog = ErrorDialog(UserFacingError("It could not be loaded.", words, "Choose another one."))
    qtbot.addWidget(dialog)
    dialog.show()
    last = max(label.geometry().bottom() for label in dialog.findChildren(QLabel))
    gap = button(dialog, "OK").mapTo(dialog, button(dialog, "OK").rect().topLeft()).y() - last
    assert 0 < gap < 40
    assert all(label.height() >= label.heightForWidth(label.width()) for label in dialog.findChildren(QLabel))

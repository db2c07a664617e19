"""What happens with an exception that nobody caught: it is written down, shown once, and the window goes on."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import traceback
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QApplication

import forespeak
from forespeak.ui.dialogs import CrashDialog, crash_report

MAX_LOG_BYTES = 1_000_000


class CrashGuard(QObject):
    """`install` takes over sys.excepthook and threading.excepthook, `uninstall` gives them back."""

    _caught = Signal(str)

    def __init__(self, log_file: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._log_file = log_file
        self._dialog: CrashDialog | None = None
        self._before = (sys.excepthook, threading.excepthook)
        # Queued: an exception may come from any thread, and in the middle of painting.
        self._caught.connect(self._show, Qt.ConnectionType.QueuedConnection)

    def install(self) -> None:
        self._before = (sys.excepthook, threading.excepthook)
        sys.excepthook = self._on_main_thread
        threading.excepthook = self._on_other_thread

    def uninstall(self) -> None:
        sys.excepthook, threading.excepthook = self._before

    def _on_main_thread(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            QApplication.quit()
            return
        self._take(error.with_traceback(trace))

    def _on_other_thread(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
            self._take(args.exc_value)

    def _take(self, error: BaseException) -> None:
        report = crash_report(error, forespeak.__version__)
        with contextlib.suppress(OSError):
            write_log(self._log_file, report, "".join(traceback.format_exception(error)))
        self._caught.emit(report)

    @Slot(str)
    def _show(self, report: str) -> None:
        # A fault that repeats, in painting for instance, must not bury the user in dialogs.
        if self._dialog is not None:
            return
        self._dialog = CrashDialog(report, self._log_file, QApplication.activeWindow())
        self._dialog.finished.connect(self._closed)
        self._dialog.show()

    @Slot()
    def _closed(self) -> None:
        if self._dialog is not None:
            self._dialog.deleteLater()
            self._dialog = None


def write_log(path: Path, report: str, trace: str) -> None:
    """The log stays on this machine and has the whole trace. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > MAX_LOG_BYTES:
        path.replace(path.with_suffix(".old"))
    with path.open("a", encoding="utf-8", errors="replace") as file:
        file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')}\n{report}\n\n{trace}\n")

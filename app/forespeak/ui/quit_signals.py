"""Ctrl+C in the terminal and the system's request to end close the window as a click does: with everything saved."""

from __future__ import annotations

import signal
import socket

from PySide6.QtCore import QObject, QSocketNotifier, Signal, Slot


class QuitSignals(QObject):
    """Python runs signal handlers only between its own instructions, and Qt's loop has none: a socket wakes it."""

    arrived = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._ours, self._theirs = socket.socketpair()
        for end in (self._ours, self._theirs):
            end.setblocking(False)
        self._before_fd = signal.set_wakeup_fd(self._theirs.fileno(), warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, _ignore) for number in (signal.SIGINT, signal.SIGTERM)}
        self._notifier = QSocketNotifier(self._ours.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._read)

    def uninstall(self) -> None:
        self._notifier.setEnabled(False)
        signal.set_wakeup_fd(self._before_fd)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._ours.close()
        self._theirs.close()

    @Slot()
    def _read(self) -> None:
        try:
            received = self._ours.recv(64)
        except BlockingIOError:
            return
        if set(received) & {int(number) for number in self._before}:
            self.arrived.emit()


def _ignore(*_: object) -> None:
    """The number has gone through the socket already."""

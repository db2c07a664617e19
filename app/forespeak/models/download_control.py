"""What a running download is told, and what it tells."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forespeak.models.transfer import RESERVE
from forespeak.models.transfer_rate import Limiter

if TYPE_CHECKING:
    import httpx2


@dataclass(frozen=True, slots=True)
class Tuning:
    """How patient a download is. Times are in seconds; waits are `first_wait`, doubled each time to `longest_wait`.

    `silence` in the middle of a file is an interruption. `tries` failures in a row without a new byte are the end: that
    is about eight minutes, so that a night's download outlives a router's restart.
    `reserve` bytes of the disk stay free.
    """

    silence: float = 30.0
    tries: int = 20
    first_wait: float = 1.0
    longest_wait: float = 30.0
    longest_asked_wait: float = 3600.0
    reserve: int = RESERVE


class Stopped(Exception):  # noqa: N818 - nothing is wrong
    """Somebody asked for it. What is there stays."""


def _ignore(_: object) -> None:
    """Nobody listens."""


@dataclass(slots=True)
class Control:
    """What a download asks and tells while it runs, from its own thread.

    `progress` gets the bytes in place, `notice` a sentence on why nothing comes at the moment, or nothing. `claimed`
    is how many bytes others have still to write on the same disk.
    """

    limiter: Limiter = field(default_factory=Limiter)
    progress: Callable[[int], None] = _ignore
    notice: Callable[[str], None] = _ignore
    checking: Callable[[bool], None] = _ignore
    claimed: Callable[[], int] = lambda: 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _socket: socket.socket | None = None

    def stop(self) -> None:
        """From another thread: end at once, also out of a read that would wait for the network."""
        self._stop.set()
        if (connection := self._socket) is not None:
            with contextlib.suppress(OSError):
                # Not the method of a TLS socket, which is not made to be called beside a read.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def stopped(self) -> bool:
        return self._stop.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep; True if it was stopped."""
        return self._stop.wait(seconds)

    def check(self) -> None:
        """Raises Stopped."""
        if self.stopped():
            raise Stopped

    def hold(self, response: httpx2.Response) -> None:
        """Its connection is the one to cut."""
        stream = response.extensions.get("network_stream")
        self._socket = None if stream is None else stream.get_extra_info("socket")
        self.check()

    def let_go(self) -> None:
        self._socket = None

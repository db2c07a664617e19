"""How whoever watches a comparison pauses and stops it, from another thread."""

from __future__ import annotations

import threading


class Control:
    """Thread-safe. A pause takes hold between two runs; a stop also within one, which is then lost."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._free = threading.Event()
        self._free.set()
        self._lock = threading.Lock()
        self._chatting = self._chatted = False

    def pause(self) -> None:
        self._free.clear()

    def go_on(self) -> None:
        self._free.set()

    def stop(self) -> None:
        """What is finished is kept. Ends a pause."""
        self._stopped.set()
        self._free.set()

    def set_chatting(self, on: bool) -> None:
        """Whether this program's own chat computes beside the comparison, which disturbs it."""
        with self._lock:
            self._chatting = on
            self._chatted |= on

    def chatted(self) -> bool:
        """Whether a chat computed at any time since this was asked last."""
        with self._lock:
            found, self._chatted = self._chatted, self._chatting
            return found

    @property
    def is_paused(self) -> bool:
        return not self._free.is_set()

    def stopped(self) -> bool:
        return self._stopped.is_set()

    def wait(self) -> None:
        """Return when it is not paused."""
        self._free.wait()

"""How whoever watches a comparison pauses and stops it, from another thread."""

from __future__ import annotations

import threading


class Control:
    """Thread-safe. A pause takes hold between two runs; a stop also within one, which is then lost."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._free = threading.Event()
        self._free.set()

    def pause(self) -> None:
        self._free.clear()

    def go_on(self) -> None:
        self._free.set()

    def stop(self) -> None:
        """What is finished is kept. Ends a pause."""
        self._stopped.set()
        self._free.set()

    @property
    def is_paused(self) -> bool:
        return not self._free.is_set()

    def stopped(self) -> bool:
        return self._stopped.is_set()

    def wait(self) -> None:
        """Return when it is not paused."""
        self._free.wait()

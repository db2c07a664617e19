"""Notices that models came or went, by looking at the folders' times now and then.

Systems' own notices differ, miss network disks, and run out; a few hundred folders are looked at in a millisecond. A
file that is rewritten in place, without another name, is not noticed: the next scan sees it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence

from forespeak.models.library_files import folders_of
from forespeak.models.roots import Root

_MOST_DELAY = 10.0
"""Seconds after which a change is told although there is always another one, as while many files are copied."""


class LibraryWatcher:
    """Looks every `seconds` on a thread of its own, and calls `changed` there when a change has settled.

    `roots` is asked each time, so that they may change. `changed` must not raise.
    """

    def __init__(self, roots: Callable[[], Sequence[Root]], changed: Callable[[], None], seconds: float = 2.0) -> None:
        self._roots = roots
        self._changed = changed
        self._seconds = seconds
        self._closed = threading.Event()
        self._seen = self._listed()
        self._thread = threading.Thread(target=self._run, name="library watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it. Afterwards `changed` is not called any more, unless it is running."""
        self._closed.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=1)

    def _run(self) -> None:
        since: float | None = None
        while not self._closed.wait(self._seconds):
            if self._look():
                since = since or time.monotonic()
                if time.monotonic() - since < _MOST_DELAY:
                    continue
            if since is not None:
                since = None
                self._changed()

    def _look(self) -> bool:
        """Whether anything is other than at the last look."""
        roots = tuple(str(root.path) for root in self._roots())
        if roots == self._seen[0] and all(_time_of(folder) == then for folder, then in self._seen[1].items()):
            return False
        self._seen = self._listed()
        return True

    def _listed(self) -> tuple[tuple[str, ...], dict[str, int]]:
        roots = self._roots()
        times = {str(root.path): _time_of(str(root.path)) for root in roots}
        for root in roots:
            for folder, _ in folders_of(root, self._closed.is_set):
                times[folder] = _time_of(folder)
        return tuple(str(root.path) for root in roots), times


def _time_of(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 - hundreds of them, every two seconds
    except (OSError, ValueError):
        return -1

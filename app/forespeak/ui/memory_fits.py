"""Whether the library's models fit into memory: by size at once, by the memory plan once a header was read."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from forespeak.engines.engine import LoadRequest
from forespeak.errors import UserFacingError
from forespeak.models.library import LibraryItem
from forespeak.models.machine_memory import Machine
from forespeak.models.memory import fit_of, fitting_layers, plan
from forespeak.models.model_layout import ModelLayout, layout_of_file
from forespeak.pairing.load_plan import memory_settings
from forespeak.ui.fit_words import fit_words, plan_words
from forespeak.ui.library_model import FitWords

_Key = tuple[str, int, float]


class MemoryFits:
    """Layouts are kept for the session; what is free is asked each time. May be asked from any thread.

    `request`: how a model would be loaded now.
    """

    def __init__(self, machine: Callable[[], Machine], request: Callable[[Path], LoadRequest] = LoadRequest) -> None:
        self._machine, self._request = machine, request
        self._lock = threading.Lock()
        self._layouts: dict[_Key, ModelLayout | None] = {}

    def known(self, item: LibraryItem) -> FitWords:
        """At once, by what is known of it by now."""
        with self._lock:
            layout = self._layouts.get(_key(item))
        machine = self._machine()
        if layout is None:
            return fit_words(fit_of(item.size_bytes, machine), item.size_bytes)
        wanted = memory_settings(self._request(item.path), machine)
        return plan_words(plan(layout, None, fitting_layers(layout, None, wanted, machine), machine))

    def read(self, item: LibraryItem) -> FitWords | None:
        """Read its header first; None if nothing came of that which was not known. A tenth of a second or less."""
        key = _key(item)
        with self._lock:
            if key in self._layouts:
                return None
        try:
            layout = layout_of_file(item.path)
        except (UserFacingError, OSError):
            # Gone, or damaged since: the next scan tells.
            layout = None
        with self._lock:
            self._layouts[key] = layout
        return None if layout is None else self.known(item)


def _key(item: LibraryItem) -> _Key:
    return str(item.path), item.size_bytes, item.modified

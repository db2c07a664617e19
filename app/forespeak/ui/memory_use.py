"""How much memory the app and its engine take, asked every few seconds; and whether a pair would fit beside it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from forespeak.engines.engine import LoadRequest
from forespeak.errors import UserFacingError
from forespeak.models.machine_memory import Machine
from forespeak.models.memory import MAIN_MEMORY, MemoryPlan
from forespeak.ui.background import Worker

INTERVAL_MS = 4000


class MemoryUse(QObject):
    measured = Signal(object, object)
    """Bytes resident in this process and the engine's together, bytes of the machine"""

    def __init__(self, worker: Worker, engine_pid: Callable[[], int | None], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._worker = worker
        self._engine_pid = engine_pid
        self._timer = QTimer(self)
        self._timer.setInterval(INTERVAL_MS)
        self._timer.timeout.connect(self.measure)

    def start(self) -> None:
        self._timer.start()
        self.measure()

    def stop(self) -> None:
        self._timer.stop()

    @Slot()
    def measure(self) -> None:
        engine = self._engine_pid()
        self._worker.run(lambda: memory_of(engine), lambda found: self.measured.emit(*found))


def memory_of(engine: int | None) -> tuple[int, int]:
    import psutil

    used = psutil.Process().memory_info().rss
    if engine is not None:
        try:
            used += psutil.Process(engine).memory_info().rss
        except psutil.Error:
            # It has ended, or is not ours to look at.
            pass
    return used, psutil.virtual_memory().total


def plan_beside(engine: int | None, request: LoadRequest, loaded: MemoryPlan | None) -> MemoryPlan | None:
    """The plan of a request once the loaded pair has gone; None where a file cannot be read: the engine tells why.

    Reads files, and asks the drivers of GPUs where there are such: not for the UI thread.
    """
    from forespeak.pairing.load_plan import plan_load

    try:
        return plan_load(request, machine_without(engine, loaded))
    except UserFacingError:
        return None


def machine_without(engine: int | None, loaded: MemoryPlan | None) -> Machine:
    """This machine as it would be once the loaded pair has gone. As slow as `plan_beside`."""
    from forespeak.models.machine_memory import private_bytes
    from forespeak.pairing.load_plan import machine_now

    freed = 0 if engine is None else private_bytes(engine)
    devices = () if loaded is None or engine is None else loaded.devices
    on_gpus = {need.device: need.needed_bytes for need in devices if need.device != MAIN_MEMORY}
    return machine_now().with_freed(freed, on_gpus)

"""What this machine has to compute on, and what a pair would take of it: asked when somebody looks at the settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from forespeak.engines.device_list import engine_facts
from forespeak.engines.devices import Device
from forespeak.engines.engine import LoadRequest
from forespeak.engines.gpu_advice import gpu_advice
from forespeak.engines.machine_gpus import surroundings
from forespeak.errors import UserFacingError
from forespeak.models.memory import MemoryPlan
from forespeak.ui.latest import Latest

_PAUSE_MS = 250
"""How long nobody changes anything before memory is counted again: it may take a second."""


@dataclass(frozen=True, slots=True)
class Findings:
    """`devices`: what the engine can compute on. `unused`: why it does not use a GPU that is here, in paragraphs;
    `commands`: what would change that, to be typed in order.
    """

    devices: tuple[Device, ...]
    unused: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    @property
    def gpus(self) -> tuple[Device, ...]:
        return tuple(device for device in self.devices if device.is_gpu)


AskMachine = Callable[[], Findings]
"""Waits for a process of its own. Raises UserFacingError."""
WeighRequest = Callable[[LoadRequest], MemoryPlan | None]
"""The plan of a request in place of what is loaded now; None where it cannot be told. Waits."""


def ask_engine() -> Findings:
    """What the engine's library tells of this machine. Waits; raises UserFacingError."""
    facts = engine_facts()
    if facts.problem is not None:
        raise UserFacingError("It could not be found out which devices there are.", facts.problem)
    advice = gpu_advice(facts, surroundings())
    return Findings(facts.devices, advice.reasons, advice.commands)


class HardwareController(QObject):
    """Without `ask` and `weigh`, which whoever makes it sets, nothing is known and nothing is asked."""

    changed = Signal()
    """`findings`, `problem` or `asking`"""
    planned = Signal()
    """`plan` or `weighing`"""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.ask: AskMachine | None = None
        self.weigh: WeighRequest | None = None
        self.findings: Findings | None = None
        """The newest there are, also while it is asked again."""
        self.problem: UserFacingError | None = None
        self.asking = False
        self.plan: MemoryPlan | None = None
        self.weighing = False
        self._request: LoadRequest | None = None
        self._looks = Latest("hardware", self)
        self._plans = Latest("hardware-plan", self)
        self._weigh_later = QTimer(self)
        self._weigh_later.setSingleShot(True)
        self._weigh_later.setInterval(_PAUSE_MS)
        self._weigh_later.timeout.connect(self._weigh_now)

    @Slot()
    def look(self) -> None:
        """Ask what there is now; `changed` tells."""
        ask = self.ask
        if ask is None or self.asking:
            return
        self.asking = True
        self.changed.emit()
        self._looks.run(lambda _: ask(), self._found, self._failed)

    def plan_for(self, request: LoadRequest | None) -> None:
        """Count what a request would take; `planned` tells. None: there is nothing to be loaded."""
        self._request = request
        if self.weigh is not None:
            self.weighing = request is not None
            self._weigh_later.start()
            self.planned.emit()

    def close(self) -> None:
        self._weigh_later.stop()
        self._looks.close()
        self._plans.close()

    def _found(self, findings: Findings) -> None:
        self.findings, self.problem, self.asking = findings, None, False
        self.changed.emit()

    def _failed(self, error: Exception) -> None:
        self.asking = False
        if not isinstance(error, UserFacingError):
            self.changed.emit()
            raise error
        self.findings, self.problem = None, error
        self.changed.emit()

    @Slot()
    def _weigh_now(self) -> None:
        request, weigh = self._request, self.weigh
        if request is None or weigh is None:
            self._plans.cancel()
            self._planned(None)
        else:
            self._plans.run(lambda _: weigh(request), self._planned)

    def _planned(self, plan: MemoryPlan | None) -> None:
        self.plan, self.weighing = plan, False
        self.planned.emit()

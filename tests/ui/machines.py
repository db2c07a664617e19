"""Machines of the tests' making, as the engine would tell of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from forespeak.engines.devices import Device
from forespeak.engines.engine import LoadRequest
from forespeak.models.memory import DeviceNeed, Fit, MemoryPlan
from forespeak.ui.hardware_controller import Findings, HardwareController

GB = 10**9
CPU = Device("CPU", "A processor", "CPU", 20 * GB, 64 * GB)
FIRST = Device("CUDA0", "A card", "GPU", 22 * GB, 24 * GB, "CUDA", "0000:01:00.0", splits_rows=True)
SECOND = Device("Vulkan1", "Another card", "GPU", 10 * GB, 12 * GB, "Vulkan", "0000:02:00.0")


@dataclass
class ScriptedMachine:
    """Answers at once, off the UI thread; what it was asked is kept."""

    devices: tuple[Device, ...] = (CPU,)
    unused: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    problem: Exception | None = None
    asked: int = 0
    weighed: list[LoadRequest] = field(default_factory=list)
    fit: Fit = Fit.FITS

    def ask(self) -> Findings:
        self.asked += 1
        if self.problem is not None:
            raise self.problem
        return Findings(self.devices, self.unused, self.commands)

    def weigh(self, request: LoadRequest) -> MemoryPlan:
        self.weighed.append(request)
        layers = request.settings.gpu_layers
        return MemoryPlan(self.fit, (), (DeviceNeed("Card", 1, 2, 3),), f"With {layers} layers it fits.")

    def controller(self) -> HardwareController:
        made = HardwareController()
        made.ask, made.weigh = self.ask, self.weigh
        return made

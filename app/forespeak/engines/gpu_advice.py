"""Why a GPU of this machine is not used, in words, and what would change that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata

from forespeak.engines.device_list import EngineFacts
from forespeak.engines.devices import Device
from forespeak.engines.machine_gpus import MachineGpu, Maker, Surroundings

CUDA, VULKAN, ROCM, METAL = "CUDA", "Vulkan", "ROCm", "Metal"
_PACKAGE = "llama-cpp-python"
_SUITABLE = {Maker.NVIDIA: (CUDA, VULKAN), Maker.AMD: (VULKAN, ROCM), Maker.INTEL: (VULKAN,), Maker.APPLE: (METAL,)}
"""What llama.cpp can drive a maker's GPUs with, the usual one first."""
_SWITCHES = {CUDA: "-DGGML_CUDA=ON", VULKAN: "-DGGML_VULKAN=ON", ROCM: "-DGGML_HIP=ON", METAL: "-DGGML_METAL=ON"}
_TOOLS = {
    CUDA: "NVIDIA's driver and the CUDA toolkit (nvcc)",
    VULKAN: "a Vulkan driver, Vulkan's headers newer than 1.3.239, SPIRV-Headers and glslc",
    ROCM: "ROCm with HIP's compiler",
    METAL: "Apple's command line tools (xcode-select --install)",
}
_CALLED = {Maker.NVIDIA: ("nvidia",), Maker.AMD: ("amd", "radeon"), Maker.INTEL: ("intel",), Maker.APPLE: ("apple",)}


@dataclass(frozen=True, slots=True)
class GpuAdvice:
    """`build`: for what llama.cpp was built, `found` and `used`: GPUs by name. `reasons`: why any other GPU is not
    used and what to do, a paragraph each; empty if all are used or there is none. `commands`: to be typed in order.
    """

    build: str
    found: tuple[str, ...]
    used: tuple[str, ...]
    reasons: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


def gpu_advice(facts: EngineFacts, here: Surroundings) -> GpuAdvice:
    """What the engine uses of what the machine has, and why not the rest."""
    usable = tuple(device for device in facts.devices if device.is_gpu)
    have = tuple(name for name in _SWITCHES if name in (*facts.backends, *facts.modules))
    advice = GpuAdvice(
        build="for processors only" if not have else f"for {_listed(have)}",
        found=tuple(gpu.name for gpu in here.gpus),
        used=tuple(f"{device.description} ({device.name})" for device in usable),
    )
    if facts.problem is not None:
        return _with(advice, [facts.problem])
    if here.translated:
        why = "This Python is made for Intel processors and translated, so that Metal is out of its reach. "
        return _with(advice, [f"{why}Install Forespeak with a Python for Apple silicon (arm64)."])
    unused = _unused(here.gpus, usable)
    reasons: list[str] = []
    commands: list[str] = []
    for maker in dict.fromkeys(gpu.maker for gpu in unused):
        mine = [gpu for gpu in unused if gpu.maker is maker]
        names = _listed([f"“{gpu.name}”" for gpu in mine])
        suitable = [name for name in _SUITABLE[maker] if name in have]
        obstacles = _obstacles(mine, suitable or _SUITABLE[maker], here)
        if suitable:
            told = obstacles or [_update(suitable)]
        elif here.frozen:
            told = [
                f"This bundle was built {advice.build}; this GPU needs one for {_either(_SUITABLE[maker])}.",
                *obstacles,
            ]
        else:
            wanted = _SUITABLE[maker][0]
            told = [
                f"llama.cpp was built {advice.build} here; this GPU needs a build for {_either(_SUITABLE[maker])}.",
                *obstacles,
                f"A build for {wanted} needs {_TOOLS[wanted]}. {_how(wanted, here)}",
            ]
            commands += [command for command in _commands(wanted, here) if command not in commands]
        reasons.append(" ".join([f"{names} {'is' if len(mine) == 1 else 'are'} not used.", *told]))
    return _with(advice, reasons, commands)


def _with(advice: GpuAdvice, reasons: Sequence[str], commands: Sequence[str] = ()) -> GpuAdvice:
    return GpuAdvice(advice.build, advice.found, advice.used, tuple(reasons), tuple(commands))


def _unused(gpus: Sequence[MachineGpu], usable: Sequence[Device]) -> list[MachineGpu]:
    """By their places where both tell them, else by the maker's name."""

    def is_used(gpu: MachineGpu) -> bool:
        if gpu.hardware_id is not None and any(device.hardware_id == gpu.hardware_id for device in usable):
            return True
        unplaced = [device for device in usable if gpu.hardware_id is None or device.hardware_id is None]
        return any(word in device.description.lower() for word in _CALLED[gpu.maker] for device in unplaced)

    return [gpu for gpu in gpus if not is_used(gpu)]


def _obstacles(gpus: Sequence[MachineGpu], backends: Iterable[str], here: Surroundings) -> list[str]:
    """What stands in the way beside the build, a sentence each."""
    backends = list(backends)
    found = [
        f"{setting} in the environment leaves out GPUs."
        for backend, setting in (here.hiding or {}).items()
        if backend in backends
    ]
    if here.refused:
        found.append(
            f"You may not open {_listed(here.refused)}: join the group that owns it "
            "(sudo usermod -aG render,video $USER), then log in again."
        )
    if CUDA in backends and not here.cuda_driver:
        now = next((gpu.driver for gpu in gpus if gpu.driver), None)
        instead = f", in place of {now}" if now not in (None, "nvidia") and here.system == "Linux" else ""
        found.append(f"NVIDIA's own driver, without which CUDA does nothing, is not there: install it{instead}.")
    # Where CUDA would do, Vulkan is not asked for as well.
    elif VULKAN in backends and CUDA not in backends:
        if not here.vulkan_loader:
            by = " (on Debian and Ubuntu: sudo apt install libvulkan1)" if here.system == "Linux" else ""
            found.append(f"Vulkan's loader is missing{by}.")
        if here.vulkan_drivers == ():
            found.append(
                "No driver for Vulkan is installed (on Debian and Ubuntu: sudo apt install mesa-vulkan-drivers)."
            )
    return found


def _update(backends: Sequence[str]) -> str:
    return (
        f"llama.cpp is built for {_listed(backends)}, but the driver offers it no such device. "
        "Update the GPU's driver; FORESPEAK_ENGINE_LOG=1 makes the engine say more."
    )


def _how(backend: str, here: Surroundings) -> str:
    if here.checkout is None:
        return "Then build it anew:"
    return (
        f"Add {_SWITCHES[backend]} to CMAKE_ARGS in the table [tool.uv.extra-build-variables] of "
        f"{here.checkout / 'pyproject.toml'}, then build it anew:"
    )


def _commands(backend: str, here: Surroundings) -> list[str]:
    """What builds the engine anew from its source. In a checkout, uv's table overrules the environment."""
    if here.checkout is not None:
        return [f"uv sync --reinstall-package {_PACKAGE}"]
    install = f"pip install --force-reinstall --no-deps --no-cache-dir --no-binary {_PACKAGE} {_requirement()}"
    if here.system == "Windows":
        return [f'$env:CMAKE_ARGS = "{_SWITCHES[backend]}"', install]
    return [f'CMAKE_ARGS="{_SWITCHES[backend]}" {install}']


def _requirement() -> str:
    """The engine's binding with the version that belongs to this Forespeak."""
    try:
        return f"{_PACKAGE}=={metadata.version(_PACKAGE)}"
    except metadata.PackageNotFoundError:
        return _PACKAGE


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _either(names: Sequence[str]) -> str:
    return " or ".join(names)

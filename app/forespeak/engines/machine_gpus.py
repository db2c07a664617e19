"""The GPUs that this machine has, whoever can use them, and what stands between them and an engine.

Asked of the system's own lists: no driver is loaded to compute, and no other program but Apple's `sysctl` is started.
"""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import forespeak

_LISTS = ("etc/vulkan/icd.d", "usr/share/vulkan/icd.d", "usr/local/share/vulkan/icd.d")
_HIDING = {
    "CUDA": "CUDA_VISIBLE_DEVICES",
    "ROCm": "HIP_VISIBLE_DEVICES",
    "Vulkan": "GGML_VK_VISIBLE_DEVICES",
}
"""Variables of the environment that leave out GPUs, by what obeys them."""
_SOFTWARE = ("lvp_", "llvmpipe", "lavapipe")
"""Drivers for Vulkan that compute on the processor, which llama.cpp passes over."""
_DISPLAY_CLASS = "0x03"
_WINDOWS_CLASS = r"SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"


class Maker(Enum):
    NVIDIA = "NVIDIA"
    AMD = "AMD"
    INTEL = "Intel"
    APPLE = "Apple"


_VENDORS = {"10de": Maker.NVIDIA, "1002": Maker.AMD, "8086": Maker.INTEL}
"""By PCI number. Others are virtual machines' or too old to compute."""


@dataclass(frozen=True, slots=True)
class MachineGpu:
    """`hardware_id` as in `engines.devices.Device`; `driver`: the system's, None for none."""

    maker: Maker
    name: str
    hardware_id: str | None = None
    driver: str | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What decides whether a GPU can be used. `system` as platform.system() has it.

    `vulkan_drivers`: files that announce one, None where they are not kept in files. `refused`: the devices that this
    user may not open. `hiding`: by backend, what in the environment leaves out GPUs. `checkout`: the folder that
    Forespeak runs from, None if it is installed; `frozen`: it is a bundle.
    """

    system: str
    gpus: tuple[MachineGpu, ...] = ()
    cuda_driver: bool = False
    vulkan_loader: bool = False
    vulkan_drivers: tuple[str, ...] | None = None
    refused: tuple[str, ...] = ()
    hiding: Mapping[str, str] | None = None
    translated: bool = False
    checkout: Path | None = None
    frozen: bool = False


def surroundings() -> Surroundings:
    """Those of this machine. Reads a few files; raises nothing."""
    system = platform.system()
    names = {
        "Windows": ("nvcuda.dll", "vulkan-1.dll"),
        "Darwin": ("", "libvulkan.1.dylib"),
    }.get(system, ("libcuda.so.1", "libvulkan.so.1"))
    translated = False
    if system == "Linux":
        gpus = linux_gpus()
    elif system == "Windows":
        gpus = windows_gpus()
    else:
        gpus, translated = mac_gpus(_sysctl)
    return Surroundings(
        system,
        gpus,
        cuda_driver=_can_be_loaded(names[0]),
        vulkan_loader=_can_be_loaded(names[1]),
        vulkan_drivers=vulkan_drivers() if system == "Linux" else None,
        refused=refused_devices() if system == "Linux" else (),
        hiding=hiding(os.environ),
        translated=translated,
        checkout=_checkout(),
        frozen=bool(getattr(sys, "frozen", False)),
    )


def linux_gpus(root: Path = Path("/")) -> tuple[MachineGpu, ...]:
    """Display controllers and accelerators on the PCI bus, in the order of their places."""
    found = []
    for folder in sorted((root / "sys/bus/pci/devices").glob("*")):
        maker = _VENDORS.get(_line(folder / "vendor").removeprefix("0x"))
        if maker is None or not _line(folder / "class").startswith(_DISPLAY_CLASS):
            continue
        driver = folder / "driver"
        number = _line(folder / "device").removeprefix("0x")
        name = _nvidia_name(root, folder.name) or _line(folder / "product_name") or f"{maker.value} GPU ({number})"
        found.append(MachineGpu(maker, name, folder.name.lower(), driver.resolve().name if driver.exists() else None))
    return tuple(found)


def _nvidia_name(root: Path, place: str) -> str:
    """As NVIDIA's own driver tells it."""
    try:
        lines = (root / "proc/driver/nvidia/gpus" / place / "information").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("Model:")), "")


def windows_gpus() -> tuple[MachineGpu, ...]:
    """The display adapters in the registry."""
    found: list[tuple[str, str]] = []
    if sys.platform == "win32":
        import winreg

        try:
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, _WINDOWS_CLASS) as adapters:
                for index in range(winreg.QueryInfoKey(adapters)[0]):
                    try:
                        with winreg.OpenKey(adapters, winreg.EnumKey(adapters, index)) as adapter:
                            name = str(winreg.QueryValueEx(adapter, "DriverDesc")[0])
                            found.append((name, str(winreg.QueryValueEx(adapter, "MatchingDeviceId")[0])))
                    except OSError:
                        # Some entries are not for us to read, and some are no adapters.
                        continue
        except OSError:
            pass
    return windows_adapters(found)


def windows_adapters(listed: list[tuple[str, str]]) -> tuple[MachineGpu, ...]:
    """Those that compute, of pairs of an adapter's name and the number of its hardware (with VEN_10DE for NVIDIA)."""
    found: list[MachineGpu] = []
    for name, number in listed:
        maker = next((maker for vendor, maker in _VENDORS.items() if f"ven_{vendor}" in number.lower()), None)
        if maker is not None and all(gpu.name != name for gpu in found):
            found.append(MachineGpu(maker, name, driver=name))
    return tuple(found)


def mac_gpus(ask: Callable[[str], str]) -> tuple[tuple[MachineGpu, ...], bool]:
    """The GPU of an Apple chip, and whether this program is translated for it. `ask`: what sysctl says of a name."""
    chip = ask("machdep.cpu.brand_string")
    if not chip.startswith("Apple"):
        return (), False
    return (MachineGpu(Maker.APPLE, f"{chip} GPU", driver="Metal"),), ask("sysctl.proc_translated") == "1"


def _sysctl(name: str) -> str:
    try:
        answer = subprocess.run(
            ["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, timeout=5.0, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout.strip()


def vulkan_drivers(root: Path = Path("/")) -> tuple[str, ...]:
    """The files that announce drivers for Vulkan which compute on GPUs."""
    names = [file.name for folder in _LISTS for file in sorted((root / folder).glob("*.json"))]
    return tuple(name for name in names if not name.startswith(_SOFTWARE))


def refused_devices(root: Path = Path("/")) -> tuple[str, ...]:
    """GPUs' device files that this user may not open."""
    files = [*sorted((root / "dev/dri").glob("renderD*")), root / "dev/kfd"]
    mine = os.R_OK | os.W_OK
    return tuple(f"/{file.relative_to(root)}" for file in files if file.exists() and not os.access(file, mine))


def hiding(environment: Mapping[str, str]) -> dict[str, str]:
    """By backend, the setting in the environment that leaves out GPUs, as it stands there."""
    return {backend: f"{name}={environment[name]}" for backend, name in _HIDING.items() if name in environment}


def _can_be_loaded(library: str) -> bool:
    if not library:
        return False
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _checkout() -> Path | None:
    folder = Path(forespeak.__file__).resolve().parents[2]
    return folder if (folder / "pyproject.toml").is_file() and (folder / "packaging").is_dir() else None


def _line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""

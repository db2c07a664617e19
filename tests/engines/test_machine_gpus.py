"""The machine's GPUs, by scripted systems."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from forespeak.engines.machine_gpus import (
    MachineGpu,
    Maker,
    hiding,
    linux_gpus,
    mac_gpus,
    refused_devices,
    surroundings,
    vulkan_drivers,
    windows_adapters,
)


def pci(root: Path, place: str, vendor: str, kind: str, device: str = "0x2684", driver: str | None = None) -> Path:
    folder = root / "sys/bus/pci/devices" / place
    folder.mkdir(parents=True)
    for name, text in (("vendor", vendor), ("class", kind), ("device", device)):
        (folder / name).write_text(f"{text}\n", encoding="ascii")
    if driver is not None:
        there = root / "sys/bus/pci/drivers" / driver
        there.mkdir(parents=True)
        (folder / "driver").symlink_to(there)
    return folder


def test_linux_lists_display_controllers_of_known_makers(tmp_path: Path) -> None:
    pci(tmp_path, "0000:00:02.0", "0x8086", "0x030000", "0xa780", "i915")
    pci(tmp_path, "0000:01:00.0", "0x10de", "0x030000", driver="nvidia")
    pci(tmp_path, "0000:01:00.1", "0x10de", "0x040300")
    pci(tmp_path, "0000:02:00.0", "0x1002", "0x038000", "0x73bf")
    pci(tmp_path, "0000:03:00.0", "0x1af4", "0x030000")
    told = tmp_path / "proc/driver/nvidia/gpus/0000:01:00.0/information"
    told.parent.mkdir(parents=True)
    told.write_text("Model: \t\t NVIDIA GeForce RTX 4090\nIRQ: 1\n", encoding="utf-8")
    assert linux_gpus(tmp_path) == (
        MachineGpu(Maker.INTEL, "Intel GPU (a780)", "0000:00:02.0", "i915"),
        MachineGpu(Maker.NVIDIA, "NVIDIA GeForce RTX 4090", "0000:01:00.0", "nvidia"),
        MachineGpu(Maker.AMD, "AMD GPU (73bf)", "0000:02:00.0", None),
    )
    assert linux_gpus(tmp_path / "nothing") == ()


def test_windows_adapters_are_told_by_their_numbers() -> None:
    listed = [
        ("Microsoft Basic Render Driver", "ROOT\\BasicRender"),
        ("NVIDIA GeForce RTX 3060", "pci\\ven_10de&dev_2504&subsys_1"),
        ("NVIDIA GeForce RTX 3060", "pci\\ven_10de&dev_2504&subsys_1"),
        ("AMD Radeon(TM) Graphics", "PCI\\VEN_1002&DEV_164E"),
    ]
    assert [(gpu.maker, gpu.name) for gpu in windows_adapters(listed)] == [
        (Maker.NVIDIA, "NVIDIA GeForce RTX 3060"),
        (Maker.AMD, "AMD Radeon(TM) Graphics"),
    ]


def test_an_apple_chip_has_a_gpu_and_may_be_hidden_by_translation() -> None:
    answers = {"machdep.cpu.brand_string": "Apple M3", "sysctl.proc_translated": "1"}
    gpus, translated = mac_gpus(lambda name: answers.get(name, ""))
    assert [gpu.name for gpu in gpus] == ["Apple M3 GPU"]
    assert translated
    assert mac_gpus(lambda _: "Intel(R) Core(TM) i7") == ((), False)
    assert mac_gpus(lambda _: "") == ((), False)


def test_drivers_that_compute_on_the_processor_are_none(tmp_path: Path) -> None:
    assert vulkan_drivers(tmp_path) == ()
    folder = tmp_path / "usr/share/vulkan/icd.d"
    folder.mkdir(parents=True)
    for name in ("lvp_icd.x86_64.json", "radeon_icd.x86_64.json", "notes.txt"):
        (folder / name).touch()
    assert vulkan_drivers(tmp_path) == ("radeon_icd.x86_64.json",)


def test_device_files_that_may_not_be_opened_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "dev/dri"
    folder.mkdir(parents=True)
    for name in ("renderD128", "renderD129", "card0"):
        (folder / name).touch()
    monkeypatch.setattr(os, "access", lambda path, _: Path(path).name == "renderD129")
    assert refused_devices(tmp_path) == ("/dev/dri/renderD128",)


def test_what_hides_gpus_is_told_as_it_stands() -> None:
    assert hiding({"CUDA_VISIBLE_DEVICES": "", "PATH": "/bin"}) == {"CUDA": "CUDA_VISIBLE_DEVICES="}
    assert hiding({}) == {}


def test_this_machine_answers() -> None:
    here = surroundings()
    assert here.system
    assert here.checkout == Path(__file__).resolve().parents[2]
    assert not here.frozen

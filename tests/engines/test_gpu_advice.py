"""What is said of GPUs that are not used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.engines.device_list import EngineFacts
from forespeak.engines.devices import Device
from forespeak.engines.gpu_advice import gpu_advice
from forespeak.engines.machine_gpus import MachineGpu, Maker, Surroundings

CARD = MachineGpu(Maker.NVIDIA, "NVIDIA GeForce RTX 4090", "0000:01:00.0", "nvidia")
RADEON = MachineGpu(Maker.AMD, "AMD Radeon RX 7900", "0000:02:00.0", "amdgpu")
PLAIN = EngineFacts("b1", "AVX2", ("CPU",), (), (Device("CPU", "A processor", "CPU", 1, 2, "CPU"),))
CUDA = Device("CUDA0", "NVIDIA GeForce RTX 4090", "GPU", 1, 2, "CUDA", "0000:01:00.0")
WELL = Surroundings("Linux", cuda_driver=True, vulkan_loader=True, vulkan_drivers=("radeon_icd.json",))


def built_for(*names: str, devices: tuple[Device, ...] = ()) -> EngineFacts:
    return replace(PLAIN, modules=names, backends=("CPU", *names), devices=(*PLAIN.devices, *devices))


def test_without_a_gpu_there_is_nothing_to_explain() -> None:
    advice = gpu_advice(PLAIN, WELL)
    assert (advice.found, advice.used, advice.reasons, advice.commands) == ((), (), (), ())
    assert advice.build == "for processors only"


def test_a_card_that_is_used_needs_no_reason() -> None:
    advice = gpu_advice(built_for("CUDA", devices=(CUDA,)), replace(WELL, gpus=(CARD,)))
    assert advice.used == ("NVIDIA GeForce RTX 4090 (CUDA0)",)
    assert advice.reasons == ()
    # Where places are not told, the maker's name is enough.
    unplaced = built_for("CUDA", devices=(replace(CUDA, hardware_id=None),))
    assert gpu_advice(unplaced, replace(WELL, gpus=(CARD,))).reasons == ()
    assert (
        gpu_advice(built_for("CUDA", devices=(CUDA,)), replace(WELL, gpus=(replace(CARD, hardware_id=None),))).reasons
        == ()
    )


def test_the_second_card_of_a_maker_is_missed_by_its_place() -> None:
    second = replace(CARD, name="NVIDIA RTX A2000", hardware_id="0000:09:00.0")
    (reason,) = gpu_advice(built_for("CUDA", devices=(CUDA,)), replace(WELL, gpus=(CARD, second))).reasons
    assert reason.startswith("“NVIDIA RTX A2000” is not used.")
    assert "no such device" in reason


def test_a_build_for_processors_is_replaced_by_a_command(tmp_path: Path) -> None:
    advice = gpu_advice(PLAIN, replace(WELL, gpus=(CARD,)))
    (reason,) = advice.reasons
    assert "built for processors only" in reason
    assert "CUDA toolkit" in reason
    (command,) = advice.commands
    assert command.startswith('CMAKE_ARGS="-DGGML_CUDA=ON" pip install --force-reinstall')
    assert "--no-binary llama-cpp-python llama-cpp-python==" in command
    # uv's table overrules the environment, so in a checkout the table has to be edited.
    inside = gpu_advice(PLAIN, replace(WELL, gpus=(CARD,), checkout=tmp_path))
    assert (
        f"Add -DGGML_CUDA=ON to CMAKE_ARGS in the table [tool.uv.extra-build-variables] of {tmp_path}"
        in inside.reasons[0]
    )
    assert inside.commands == ("uv sync --reinstall-package llama-cpp-python",)


def test_windows_sets_the_switch_first() -> None:
    here = Surroundings("Windows", (RADEON,), vulkan_loader=True)
    assert gpu_advice(PLAIN, here).commands[0] == '$env:CMAKE_ARGS = "-DGGML_VULKAN=ON"'


def test_a_bundle_is_not_built_by_its_user() -> None:
    advice = gpu_advice(
        built_for("Vulkan"), replace(WELL, gpus=(MachineGpu(Maker.APPLE, "Apple M3 GPU"),), frozen=True)
    )
    assert advice.commands == ()
    assert "This bundle was built for Vulkan; this GPU needs one for Metal." in advice.reasons[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cuda_driver": False, "gpus": (replace(CARD, driver="nouveau"),)}, "in place of nouveau"),
        ({"hiding": {"CUDA": "CUDA_VISIBLE_DEVICES=-1"}}, "CUDA_VISIBLE_DEVICES=-1 in the environment"),
        ({"refused": ("/dev/dri/renderD128",)}, "You may not open /dev/dri/renderD128"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_stands_before_cuda_is_named(change: dict[str, object], words: str) -> None:
    here = replace(WELL, **{"gpus": (CARD,), **change})  # type: ignore[arg-type]
    (reason,) = gpu_advice(built_for("CUDA"), here).reasons
    assert words in reason
    assert "Update the GPU's driver" not in reason


def test_what_vulkan_misses_is_named() -> None:
    here = replace(WELL, gpus=(RADEON,), vulkan_loader=False, vulkan_drivers=())
    (reason,) = gpu_advice(built_for("Vulkan"), here).reasons
    assert "apt install libvulkan1" in reason
    assert "apt install mesa-vulkan-drivers" in reason
    on_windows = gpu_advice(built_for("Vulkan"), replace(here, system="Windows", vulkan_drivers=None)).reasons[0]
    assert "Vulkan's loader is missing." in on_windows
    # A setting for CUDA hides nothing from Vulkan.
    hidden = replace(WELL, gpus=(RADEON,), hiding={"CUDA": "CUDA_VISIBLE_DEVICES=-1"})
    assert "no such device" in gpu_advice(built_for("Vulkan"), hidden).reasons[0]


def test_two_makers_have_a_reason_each_and_commands_once() -> None:
    intel = MachineGpu(Maker.INTEL, "Intel Arc A770", "0000:04:00.0", "xe")
    advice = gpu_advice(PLAIN, replace(WELL, gpus=(RADEON, intel)))
    assert len(advice.reasons) == 2
    assert len(advice.commands) == 1


def test_translation_and_a_silent_engine_come_first() -> None:
    apple = Surroundings("Darwin", (MachineGpu(Maker.APPLE, "Apple M3 GPU"),), translated=True)
    assert "arm64" in gpu_advice(PLAIN, apple).reasons[0]
    assert gpu_advice(EngineFacts(problem="It ended."), replace(WELL, gpus=(CARD,))).reasons == ("It ended.",)

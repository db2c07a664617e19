"""On what a pair is loaded, by scripted lists of devices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forespeak.engines.devices import Device, automatic_gpus, draft_setting, target_setting
from forespeak.engines.engine import CPU_DEVICE, CacheType, LoadSettings, Split
from forespeak.errors import UserFacingError

GB = 1 << 30
CPU = Device("CPU", "A processor", "CPU", 20 * GB, 32 * GB, "CPU")
CUDA0 = Device("CUDA0", "Card A", "GPU", 8 * GB, 12 * GB, "CUDA", "0000:01:00.0")
CUDA1 = Device("CUDA1", "Card B", "GPU", 20 * GB, 24 * GB, "CUDA", "0000:02:00.0")
AGAIN = Device("Vulkan0", "Card A", "GPU", 8 * GB, 12 * GB, "Vulkan", "0000:01:00.0")
PART = Device("Vulkan1", "Part of the processor", "integrated GPU", 9 * GB, 16 * GB, "Vulkan")
USUAL = LoadSettings()


def test_one_card_behind_two_backends_counts_once() -> None:
    assert automatic_gpus([CPU, CUDA0, CUDA1, AGAIN, PART]) == (CUDA0, CUDA1)
    unplaced = replace(AGAIN, hardware_id=None)
    assert automatic_gpus([replace(CUDA0, hardware_id=None), unplaced]) != (CUDA0,)


def test_integrated_gpus_serve_where_there_is_no_other() -> None:
    second = replace(PART, name="SYCL0", backend="SYCL")
    assert automatic_gpus([CPU, PART, second]) == (PART,)
    assert automatic_gpus([CPU]) == ()


def test_without_a_gpu_the_processor_computes_everything_without_flash_attention() -> None:
    for setting in (target_setting(USUAL, [CPU]), draft_setting(USUAL, [CPU])):
        assert (setting.devices, setting.gpu_layers, setting.on_gpu) == ((), 0, False)
        assert (setting.cache_type, setting.flash_attention) == (CacheType.F16, False)


def test_a_target_is_shared_out_and_a_draft_is_whole_on_the_emptiest() -> None:
    target, draft = target_setting(USUAL, [CPU, CUDA0, CUDA1]), draft_setting(USUAL, [CPU, CUDA0, CUDA1])
    assert (target.devices, target.split, target.gpu_layers) == ((CUDA0, CUDA1), Split.LAYER, -1)
    assert (draft.devices, draft.split, draft.gpu_layers) == ((CUDA1,), Split.NONE, -1)
    # Where the driver can, it is used.
    assert target.flash_attention is None
    alone = target_setting(replace(USUAL, split=Split.NONE), [CPU, CUDA0, CUDA1])
    assert (alone.devices, alone.split) == ((CUDA1,), Split.NONE)


def test_named_devices_are_used_whatever_the_case() -> None:
    settings = replace(USUAL, device="cuda0", draft_device="cpu", gpu_layers=7)
    target, draft = target_setting(settings, [CPU, CUDA0, CUDA1]), draft_setting(settings, [CPU, CUDA0, CUDA1])
    assert (target.devices, target.gpu_layers) == ((CUDA0,), 7)
    assert (draft.devices, draft.gpu_layers, draft.flash_attention) == ((), 0, False)
    # A second backend of the same card has to be asked for.
    assert target_setting(replace(USUAL, device="Vulkan0"), [CPU, CUDA0, AGAIN]).devices == (AGAIN,)


def test_layers_of_the_draft_follow_the_target_unless_told() -> None:
    devices = [CPU, CUDA0]
    assert draft_setting(replace(USUAL, gpu_layers=7), devices).gpu_layers == 7
    assert draft_setting(replace(USUAL, gpu_layers=7, draft_gpu_layers=-1), devices).gpu_layers == -1
    assert not draft_setting(replace(USUAL, draft_gpu_layers=0), devices).on_gpu
    assert not target_setting(replace(USUAL, gpu_layers=0), devices).on_gpu


@pytest.mark.parametrize("name", ["CUDA7", "A processor", "", "BLAS"])
def test_what_is_not_there_is_refused_with_what_is(name: str) -> None:
    blas = Device("BLAS", "OpenBLAS", "accelerator", 0, 0, "BLAS")
    with pytest.raises(UserFacingError, match=rf"“{name}”.*CPU, CUDA0\."):
        target_setting(replace(USUAL, device=name), [CPU, CUDA0, blas])


def test_rows_are_shared_out_only_where_the_driver_can() -> None:
    settings = replace(USUAL, split=Split.ROW)
    with pytest.raises(UserFacingError, match="CUDA0"):
        target_setting(settings, [CPU, CUDA0, CUDA1])
    able = [replace(device, splits_rows=True) for device in (CUDA0, CUDA1)]
    assert target_setting(settings, [CPU, *able]).split is Split.ROW
    # Nothing is shared out on one device.
    assert target_setting(settings, [CPU, CUDA0]).split is Split.NONE


@pytest.mark.parametrize("devices", [[CPU], [CPU, CUDA0]], ids=["processor", "GPU"])
@pytest.mark.parametrize("kind", [kind for kind in CacheType if kind.is_quantised])
def test_a_quantised_cache_brings_flash_attention_along(kind: CacheType, devices: list[Device]) -> None:
    settings = replace(USUAL, cache_type=kind)
    assert target_setting(settings, devices).flash_attention is True
    with pytest.raises(UserFacingError, match=f"{kind.value} needs flash attention"):
        target_setting(replace(settings, flash_attention=False), devices)
    # What is overruled contradicts nothing.
    exact = target_setting(replace(settings, flash_attention=False, reproducible=True), devices)
    assert (exact.cache_type, exact.flash_attention) == (CacheType.F32, False)


def test_flash_attention_is_as_asked_for() -> None:
    assert target_setting(replace(USUAL, flash_attention=True), [CPU]).flash_attention is True
    assert target_setting(replace(USUAL, flash_attention=False), [CPU, CUDA0]).flash_attention is False
    assert target_setting(replace(USUAL, flash_attention=True, reproducible=True), [CPU]).flash_attention is False


def test_the_processors_name_is_no_device_of_its_own() -> None:
    assert target_setting(replace(USUAL, device=CPU_DEVICE), [CPU, CUDA0]).devices == ()

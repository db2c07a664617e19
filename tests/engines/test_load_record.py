"""Load settings come back from JSON as they were; what a person wrote wrongly is told, what is damaged is left out."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest

from forespeak.engines.engine import Buffer, CacheType, LoadSettings, Placement, Split
from forespeak.engines.load_record import (
    load_record,
    load_settings_from,
    load_words,
    placement_from,
    placement_record,
    undamaged_load_settings,
)

OTHER = LoadSettings(512, True, 3, 4, 0, "CUDA1", "CPU", Split.ROW, CacheType.Q8_0, flash_attention=True)


def test_every_setting_is_kept() -> None:
    for each in fields(LoadSettings):
        assert getattr(OTHER, each.name) != getattr(LoadSettings(), each.name), "or its loss would not be seen"
    for settings in (LoadSettings(), OTHER):
        record = json.loads(json.dumps(load_record(settings)))
        assert set(record) == {each.name for each in fields(LoadSettings)}
        assert load_settings_from(record) == undamaged_load_settings(record) == settings


def test_the_form_of_files_that_are_there_already() -> None:
    assert load_record(OTHER) == {
        "context_length": 512,
        "reproducible": True,
        "threads": 3,
        "gpu_layers": 4,
        "draft_gpu_layers": 0,
        "device": "CUDA1",
        "draft_device": "CPU",
        "split": "row",
        "cache_type": "Q8_0",
        "flash_attention": True,
    }
    # Of before most of them were there, with what else stands in a plan.
    assert load_settings_from({"threads": 3, "tokens": 64}) == LoadSettings(threads=3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("context_length", 0),
        ("context_length", 10**30),
        ("reproducible", None),
        ("reproducible", 1),
        ("threads", 0),
        ("threads", 100_000),
        ("threads", 2.5),
        ("threads", "many"),
        ("gpu_layers", -2),
        ("gpu_layers", 2**31),
        ("gpu_layers", True),
        ("gpu_layers", "all"),
        ("gpu_layers", None),
        ("draft_gpu_layers", 1.5),
        ("device", 5),
        ("device", " "),
        ("device", "x" * 1000),
        ("draft_device", []),
        ("split", "columns"),
        ("split", []),
        ("split", None),
        ("cache_type", "Q3_K"),
        ("flash_attention", "on"),
    ],
)
def test_a_bad_value_is_named_and_costs_itself_only(name: str, value: object) -> None:
    stored = load_record(OTHER) | {name: value, "of a newer version": 1}
    with pytest.raises((ValueError, TypeError), match=f"^“{name}” must be "):
        load_settings_from(stored)
    assert undamaged_load_settings(stored) == replace(OTHER, **{name: getattr(LoadSettings(), name)})


def test_a_damaged_file_cannot_hold_what_the_engine_refuses() -> None:
    """Written by hand: the engine would refuse every pair, and nobody would know why."""
    refused = {"cache_type": "Q8_0", "flash_attention": False}
    assert undamaged_load_settings(refused) == LoadSettings(cache_type=CacheType.Q8_0)
    assert undamaged_load_settings({"cache_type": "F32", "flash_attention": False}).flash_attention is False
    assert load_settings_from(refused).flash_attention is False, "it stands in a plan, and is told"


def test_every_setting_has_words() -> None:
    usual = set(load_words(LoadSettings()))
    assert {"the model’s own context", "layers on GPUs as many as fit", "cache F16", "flash attention auto"} <= usual
    for each in fields(LoadSettings):
        changed = replace(LoadSettings(), **{each.name: getattr(OTHER, each.name)})
        assert set(load_words(changed)) - usual, each.name
    # It overrules cache and flash attention.
    assert list(load_words(OTHER))[-2:] == ["split row", "reproducible"]


def test_where_a_model_was_comes_back() -> None:
    buffers = (Buffer("weights", "CUDA0", 5), Buffer("cache", "CPU", 7))
    there = Placement(("CUDA0", "CPU"), 20, 33, CacheType.Q8_0, True, 4, buffers, Split.ROW)
    for placement in (there, None):
        assert placement_from(json.loads(json.dumps(placement_record(placement)))) == placement
    # Of before it was told how models are shared out.
    older = placement_record(there)
    assert older is not None
    del older["split"]
    assert placement_from(older) == replace(there, split=Split.NONE)


def test_the_drafts_own_settings_go_before_the_targets() -> None:
    assert (LoadSettings(device="CUDA0").device_of_draft, LoadSettings(gpu_layers=3).layers_of_draft) == ("CUDA0", 3)
    assert (OTHER.device_of_draft, OTHER.layers_of_draft) == ("CPU", 0)


def test_a_smaller_cache_takes_back_a_switch_that_it_cannot_do_with() -> None:
    off = LoadSettings(flash_attention=False)
    assert off.with_cache(CacheType.Q8_0) == LoadSettings(cache_type=CacheType.Q8_0)
    assert off.with_cache(CacheType.BF16) == replace(off, cache_type=CacheType.BF16)


def test_a_targets_speed_does_not_depend_on_where_its_draft_is() -> None:
    assert OTHER.of_target == replace(OTHER, draft_device="GPU", draft_gpu_layers=3, context_length=7).of_target
    assert OTHER.of_target != replace(OTHER, gpu_layers=3).of_target

"""What is chosen about hardware reaches a load as it is, and damage costs no more than it must."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.engines.engine import CacheType, LoadRequest, LoadSettings, Split
from forespeak.ui.chat_records import ReplySettings
from forespeak.ui.hardware import MOST_LAYERS, Hardware
from forespeak.ui.preferences import Preferences

CHOSEN = Hardware("CUDA1", 20, "CPU", 0, Split.NONE, CacheType.Q4_0, True)


def test_what_nobody_chose_leaves_the_engine_its_own_way() -> None:
    request = LoadRequest(Path("t.gguf"))
    assert Hardware().applied(request) == request


def test_every_choice_is_in_the_request_and_in_the_file() -> None:
    request = CHOSEN.applied(LoadRequest(Path("t.gguf"), settings=LoadSettings(context_length=512, threads=3)))
    for name, value in CHOSEN.plain().items():
        there = getattr(request, name)
        assert getattr(there, "value", there) == value
    assert (request.settings.context_length, request.settings.threads) == (512, 3)
    assert Hardware.parse(CHOSEN.plain()) == CHOSEN


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("device", 5),
        ("device", ""),
        ("device", "x" * 1000),
        ("gpu_layers", -2),
        ("gpu_layers", MOST_LAYERS + 1),
        ("gpu_layers", True),
        ("gpu_layers", "all"),
        ("gpu_layers", None),
        ("draft_device", []),
        ("draft_gpu_layers", 1.5),
        ("split", "columns"),
        ("split", []),
        ("cache_type", "Q3_K"),
        ("flash_attention", 1),
    ],
)
def test_one_bad_value_costs_itself_only(name: str, value: object) -> None:
    stored = CHOSEN.plain() | {name: value, "of a newer version": 1}
    assert Hardware.parse(stored) == replace(CHOSEN, **{name: getattr(Hardware(), name)})


def test_a_file_cannot_hold_what_the_engine_refuses() -> None:
    """Written by hand: the engine would refuse every pair, and nobody would know why."""
    assert Hardware.parse({"cache_type": "Q8_0", "flash_attention": False}) == Hardware(cache_type=CacheType.Q8_0)
    assert Hardware.parse({"cache_type": "F32", "flash_attention": False}).flash_attention is False


def test_a_smaller_cache_takes_back_a_switch_that_it_cannot_do_with() -> None:
    off = Hardware(flash_attention=False)
    assert off.with_cache(CacheType.Q8_0) == Hardware(cache_type=CacheType.Q8_0)
    assert off.with_cache(CacheType.BF16) == replace(off, cache_type=CacheType.BF16)


def test_a_targets_speed_does_not_depend_on_where_its_draft_is() -> None:
    assert CHOSEN.of_target == replace(CHOSEN, draft_device="GPU", draft_gpu_layers=3).of_target
    assert CHOSEN.of_target != replace(CHOSEN, gpu_layers=3).of_target


def test_speeds_on_other_hardware_are_not_compared() -> None:
    """“Plain 35” beside a reply would be a lie if the plain one was written on a GPU."""
    preferences = Preferences()
    key = ReplySettings.of(preferences, has_draft=True).plain_key
    for changed in (replace(preferences, hardware=Hardware(gpu_layers=0)), replace(preferences, threads=1)):
        assert ReplySettings.of(changed, has_draft=True).plain_key != key
    elsewhere = replace(preferences, hardware=Hardware(draft_gpu_layers=0))
    assert ReplySettings.of(elsewhere, has_draft=True).plain_key == key
    assert ReplySettings.of(elsewhere, has_draft=True).record(None)["hardware"] == elsewhere.hardware.plain()

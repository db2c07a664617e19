"""What was used is said as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.engines.devices import Device
from forespeak.engines.engine import CacheType, Loaded, Placement, Split
from forespeak.ui.hardware_words import device_words, joined, place_words, placement_lines
from ui.machines import CPU, FIRST
from ui.scripted_engine import summary

PROCESSOR = Placement(("CPU",), 0, 31, CacheType.F16, flash_attention=False, threads=2)
PARTLY = Placement(("CUDA0", "CPU"), 24, 33, CacheType.Q8_0, flash_attention=True, threads=8)
WHOLE = Placement(("CUDA0",), 33, 33, CacheType.F16, flash_attention=True, threads=1)
ROWS = Placement(("CUDA0", "CUDA1"), 33, 33, CacheType.F16, flash_attention=True, threads=1, split=Split.ROW)


def loaded(target: Placement | None, draft: Placement | None = None) -> Loaded:
    return Loaded(summary(Path("t.gguf")), summary(Path("d.gguf")), placement=target, draft_placement=draft)


@pytest.mark.parametrize(
    ("placement", "words"),
    [
        (PROCESSOR, "on the processor"),
        (PARTLY, "24 of 33 layers on CUDA0"),
        (WHOLE, "on CUDA0"),
        (ROWS, "on CUDA0 and CUDA1"),
        (replace(PROCESSOR, layers=0), "on the processor"),
    ],
)
def test_where_a_model_is_in_few_words(placement: Placement, words: str) -> None:
    assert place_words(placement) == words


def test_all_that_was_used() -> None:
    assert placement_lines(loaded(None)) == []
    assert placement_lines(loaded(PARTLY)) == [
        "Target: 24 of 33 layers on CUDA0, the rest on the processor, cache Q8_0, flash attention on, 8 threads."
    ]
    assert placement_lines(loaded(PROCESSOR, WHOLE)) == [
        "Target: all 31 layers on the processor, cache F16, flash attention off, 2 threads.",
        "Draft: all 33 layers on CUDA0, cache F16, flash attention on, 1 thread.",
    ]
    assert placement_lines(loaded(ROWS))[0].startswith("Target: all 33 layers on CUDA0 and CUDA1 by rows, ")


def test_what_target_and_draft_share_is_said_once() -> None:
    assert placement_lines(loaded(ROWS, WHOLE))[1] == "Draft: all 33 layers on CUDA0."


def test_an_engine_that_counts_no_layers_still_says_where() -> None:
    words = placement_lines(loaded(replace(WHOLE, layers=0, gpu_layers=0, devices=("CPU",), threads=0)))
    assert words == ["Target: on the processor, cache F16, flash attention on."]


def test_devices_in_words() -> None:
    assert device_words(FIRST) == "A card, GPU (CUDA), 22 GB of 24 GB free"
    assert device_words(CPU) == "A processor, CPU, 20 GB of 64 GB free"
    assert device_words(Device("CPU", "CPU", "CPU", 0, 0)) == "CPU"


def test_names_are_joined_as_people_do() -> None:
    assert [joined(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]

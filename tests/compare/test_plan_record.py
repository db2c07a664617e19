"""Plans in files: those of earlier versions are read, and what is mistyped is told before anything is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forespeak.compare.plan_record import plan_from, plan_record
from forespeak.engines.engine import CacheType, LoadSettings, Split
from forespeak.errors import UserFacingError

KEPT: dict[str, Any] = {
    "target": "big.gguf",
    "lanes": [
        {
            "name": "Small",
            "sources": ["draft-model"],
            "draft": "small.gguf",
            "draft_length": 4,
            "temperature": None,
            "pair_id": None,
        },
    ],
    "prompts": [
        {
            "category": "qa",
            "name": "a",
            "text": "Why?",
            "language": "en",
            "answer": "long",
            "messages": [],
            "private": False,
        },
    ],
    "repeats": 2,
    "tokens": 33,
    "budget_seconds": None,
    "threads": 3,
    "context_length": 512,
    "gpu_layers": 4,
    "draft_gpu_layers": 0,
    "warm_up": True,
    "reproducible": True,
    "device": "CUDA1",
    "draft_device": "CPU",
    "flash_attention": True,
    "rule": "coupled",
    "start": "cold",
    "split": "row",
    "cache_type": "Q8_0",
}
"""As it stood in files before load settings became a value of their own."""


def test_a_plan_of_an_earlier_version_is_read_and_written_alike() -> None:
    wanted = plan_from(KEPT)
    assert wanted.load_settings == LoadSettings(
        512, True, 3, 4, 0, "CUDA1", "CPU", Split.ROW, CacheType.Q8_0, flash_attention=True
    )
    assert (wanted.target, wanted.repeats, wanted.lanes[0].draft_length) == (Path("big.gguf"), 2, 4)
    written = plan_record(wanted)
    assert {name: written[name] for name in KEPT} == KEPT
    assert set(written) - set(KEPT) == {"sampling", "text_sources"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"repeats": 2.5}, "“repeats” must be a whole number."),
        ({"repeats": 0}, "“repeats” must be from 1"),
        ({"tokens": None}, "“tokens” must be a whole number."),
        ({"budget_seconds": "long"}, "“budget_seconds” must be a number."),
        ({"warm_up": "no"}, "“warm_up” must be true or false."),
        ({"start": "hot"}, "“start” must be one of warm, cold, fresh, not 'hot'."),
        ({"threads": 2.5}, "“threads” must be a whole number."),
        ({"threads": 5000}, "“threads” must be from 1 to 1024."),
        ({"flash_attention": "on"}, "“flash_attention” must be true or false."),
        ({"lanes": [{"name": "a", "sources": ["prompt-lookup"], "draft_length": "four"}]}, "“draft_length” must be a"),
        ({"lanes": [{"name": "a", "sources": ["prompt-lookup"], "temperature": "hot"}]}, "“temperature” must be a"),
        ({"lanes": [{"name": "a", "sources": ["prompt-lookup"], "temperature": 500}]}, "Temperature must lie between"),
    ],
)
def test_what_is_mistyped_is_told(change: dict[str, Any], words: str) -> None:
    with pytest.raises(UserFacingError) as caught:
        plan_from(KEPT | change)
    assert caught.value.why.startswith(words)

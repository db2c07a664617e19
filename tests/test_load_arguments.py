"""What the command line says of devices and caches, as a request."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from forespeak.engines.engine import LOAD_SETTINGS, CacheType, LoadRequest, Split
from forespeak.load_arguments import add_load_arguments, load_settings, with_load_settings

PAIR = LoadRequest(Path("target.gguf"), Path("draft.gguf"), 512, reproducible=True)


def parsed(*arguments: str, cache: bool = True) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_load_arguments(parser.add_argument, cache=cache)
    return parser.parse_args(arguments)


@pytest.mark.parametrize("cache", [True, False])
def test_without_arguments_a_request_stays_as_it_is(cache: bool) -> None:
    assert with_load_settings(PAIR, parsed(cache=cache)) == PAIR
    assert set(load_settings(parsed(cache=cache))) == set(LOAD_SETTINGS)


def test_every_argument_reaches_its_field() -> None:
    options = parsed(
        *("--device", "CUDA0", "--draft-device", "CPU", "--gpu-layers", "12", "--draft-gpu-layers", "auto"),
        *("--split", "row", "--cache-type", "q8_0", "--flash-attention", "on", "--threads", "3"),
    )
    assert with_load_settings(PAIR, options) == LoadRequest(
        PAIR.target,
        PAIR.draft,
        512,
        reproducible=True,
        threads=3,
        gpu_layers=12,
        draft_gpu_layers=-1,
        device="CUDA0",
        draft_device="CPU",
        split=Split.ROW,
        cache_type=CacheType.Q8_0,
        flash_attention=True,
    )
    assert load_settings(parsed("--flash-attention", "off"))["flash_attention"] is False


@pytest.mark.parametrize(
    "arguments",
    [("--gpu-layers", "-3"), ("--gpu-layers", "some"), ("--cache-type", "Q3_K"), ("--split", "tensor")],
    ids=" ".join,
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(*arguments)
    assert arguments[0] in capsys.readouterr().err

"""What the command line says of devices and caches, as load settings."""

from __future__ import annotations

import argparse

import pytest

from forespeak.engines.engine import CacheType, LoadSettings, Split
from forespeak.load_arguments import add_load_arguments, load_settings


def parsed(*arguments: str, reproducible: bool = True, cache: bool = True) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_load_arguments(parser.add_argument, reproducible=reproducible, cache=cache)
    return parser.parse_args(arguments)


def test_without_arguments_everything_is_as_usual() -> None:
    for reproducible, cache in ((True, True), (False, True), (True, False)):
        assert load_settings(parsed(reproducible=reproducible, cache=cache)) == LoadSettings()


def test_every_argument_reaches_its_setting() -> None:
    options = parsed(
        *("--context", "512", "--reproducible", "--threads", "3", "--gpu-layers", "12", "--draft-gpu-layers", "auto"),
        *("--device", "CUDA0", "--draft-device", "CPU", "--split", "row", "--cache-type", "q8_0"),
        *("--flash-attention", "on"),
    )
    assert load_settings(options) == LoadSettings(
        context_length=512,
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
    assert load_settings(parsed("--flash-attention", "off")).flash_attention is False


@pytest.mark.parametrize(
    "arguments",
    [
        ("--gpu-layers", "-3"),
        ("--gpu-layers", "some"),
        # A C int would take it for 0.
        ("--gpu-layers", str(2**32)),
        ("--context", str(2**32)),
        ("--threads", "0"),
        ("--threads", "100000"),
        ("--cache-type", "Q3_K"),
        ("--split", "tensor"),
    ],
    ids=" ".join,
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(*arguments)
    assert arguments[0] in capsys.readouterr().err


def test_a_command_has_no_argument_for_what_it_chooses_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for name, choices in (
        ("--reproducible", {"reproducible": False}),
        ("--reproducible", {"cache": False}),
        ("--cache-type=F16", {"cache": False}),
        ("--context=512", {"cache": False}),
    ):
        with pytest.raises(SystemExit):
            parsed(name, **choices)
        assert "unrecognized" in capsys.readouterr().err

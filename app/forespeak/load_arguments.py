"""The command line's arguments for how models are loaded: on which devices, with which cache, by how many threads."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from forespeak.engines.engine import CPU_DEVICE, MOST_THREADS, CacheType, LoadSettings, Split
from forespeak.sampling_arguments import whole

AUTO, ON, OFF = "auto", "on", "off"
_ALL_THAT_FIT = -1


def add_load_arguments(add: Callable[..., object], *, reproducible: bool = True, cache: bool = True) -> None:
    """Without `reproducible` for a command that has no such setting, without `cache` for one that chooses context and
    cache itself.
    """
    if cache:
        add("--context", type=whole(1), metavar="N", help="context length in tokens")
    if cache and reproducible:
        add("--reproducible", action="store_true", help="the same words to the letter; more memory, may be slower")
    add("--device", metavar="NAME", help=f"a name that “forespeak devices” lists; {CPU_DEVICE}: the processor alone")
    add("--draft-device", metavar="NAME", help="where the draft model goes; the target's device, if not given")
    add("--gpu-layers", type=_layers, default=_ALL_THAT_FIT, metavar="N", help="layers on GPUs; auto: what fits")
    add("--draft-gpu-layers", type=_layers, metavar="N", help="the draft model's; as for the target, if not given")
    add(
        "--split",
        choices=[split.value for split in Split],
        default=Split.LAYER.value,
        help="how several GPUs share a model (default: layer)",
    )
    if cache:
        add(
            "--cache-type",
            type=str.upper,
            choices=[kind.value for kind in CacheType],
            default=CacheType.F16.value,
            help="numbers in which the text's keys and values are kept (default: F16)",
        )
        add("--flash-attention", choices=(ON, OFF, AUTO), default=AUTO, help="auto: where it is quicker (default)")
    add("--threads", type=whole(1, MOST_THREADS), metavar="N", help="threads to compute with")
    add("--load-anyway", action="store_true", help="load even what does not fit into this machine's memory")


def _layers(text: str) -> int:
    if text == AUTO:
        return _ALL_THAT_FIT
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither {AUTO} nor a number of layers")
    return whole(0)(text)


def load_settings(options: argparse.Namespace) -> LoadSettings:
    """What the options say; what the command has no argument for is as usual."""
    return LoadSettings(
        context_length=getattr(options, "context", None),
        reproducible=getattr(options, "reproducible", False),
        threads=options.threads,
        gpu_layers=options.gpu_layers,
        draft_gpu_layers=options.draft_gpu_layers,
        device=options.device,
        draft_device=options.draft_device,
        split=Split(options.split),
        cache_type=CacheType(getattr(options, "cache_type", CacheType.F16.value)),
        flash_attention={ON: True, OFF: False}.get(getattr(options, "flash_attention", AUTO)),
    )

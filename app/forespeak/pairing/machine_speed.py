"""How fast this machine evaluates models: from what engines timed here, else from its memory's bandwidth.

Whenever a pair is loaded, the engine times its target by the number of tokens in an evaluation, and its draft
(`engines.pair_costs`); both are kept with the pair. From those timings another model's costs are scaled: by the weights
that a token is multiplied with, within one number format, and no faster than the memory can be read. Before any pair
was loaded there is only a bandwidth, and the shapes that other machines have shown.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import statistics
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from forespeak.models.formats import ModelFormat
from forespeak.models.gguf import GgufError
from forespeak.pairing.model_shape import ModelShape, WeightFormat, file_shape
from forespeak.pairing.pair_memory import LearnedPair
from forespeak.speculation.costs import Costs
from forespeak.whole_file import write_whole

SIZES = (1, 2, 3, 5, 9, 17, 33)
"""Tokens of an evaluation for which costs are given."""

Curve = tuple[tuple[int, float], ...]
"""(tokens, seconds), ascending in both."""


class Basis(Enum):
    """What a model's costs are known from, best first."""

    THIS_FILE = "timed on this machine"
    THIS_FORMAT = "scaled from a model of the same number format that was timed on this machine"
    OTHER_FORMATS = "scaled from models of other number formats that were timed on this machine"
    BANDWIDTH = "reckoned from the speed of this machine's memory"
    DEVICE = "reckoned from the published memory speed of the graphics processor"
    GUESS = "a guess: nothing is known of this machine's speed"


@dataclass(frozen=True, slots=True)
class ModelCosts:
    """Seconds of an evaluation by its tokens. Four times in five the truth is within a factor of exp(`spread`)."""

    curve: Curve
    spread: float
    basis: Basis

    def scaled(self, factor: float) -> ModelCosts:
        return replace(self, curve=tuple((tokens, factor * seconds) for tokens, seconds in self.curve))

    def seconds(self, tokens: int) -> float:
        return Costs(self.curve).target_seconds(tokens)


@dataclass(frozen=True, slots=True)
class Timing:
    """What an engine measured of one model."""

    path: Path
    shape: ModelShape
    curve: Curve


@dataclass(frozen=True, slots=True)
class Setup:
    """What timings depend on beside the model: `devices` are descriptions, as engines give them."""

    devices: tuple[str, ...]
    threads: int
    gpu_layers: int
    engine: str
    cache_type: str = "F16"
    flash_attention: bool = False

    @property
    def gpu_bandwidth(self) -> float | None:
        """Bytes per second of the graphics processor that computes, where it is a known one; None for none."""
        return None if self.gpu_layers == 0 else published_bandwidth(self.devices)


_FROM_FILE, _FROM_FORMAT, _BY_SIZE, _FROM_OTHERS, _FROM_BANDWIDTH, _FROM_NOTHING = 0.08, 0.12, 0.08, 0.30, 0.40, 0.80
_ESTIMATED_SIZE = 0.10

_USUAL_BANDWIDTH = 15e9
"""Of a processor's memory, where it could not be measured."""
_NO_CACHE = 1e9
"""Bytes: no processor has a cache of that size."""
_GPU_LEAST = 2e-3
"""Seconds: starting its many small programs takes a graphics processor as long, however small the model."""
_GPU_EFFICIENCY = 0.65
"""Of a graphics processor's published bandwidth, what reading weights for one token gets."""


@dataclass(frozen=True, slots=True)
class MachineSpeed:
    """Predicts what evaluations cost here. `bandwidth`: bytes per second, measured; None if it was not."""

    timings: tuple[Timing, ...] = ()
    bandwidth: float | None = None
    gpu_bandwidth: float | None = None

    def costs(self, shape: ModelShape, path: Path | None = None, without: Collection[Path] = ()) -> ModelCosts:
        """Of a model: its own timings if it was loaded here, else the nearest thing. `without`: files left out."""
        known = [timing for timing in self.timings if timing.path not in without]
        for timing in known:
            if path is not None and timing.path == path:
                return ModelCosts(timing.curve, _FROM_FILE, Basis.THIS_FILE)
        estimated = _ESTIMATED_SIZE if shape.is_estimate else 0.0
        alike = [timing for timing in known if timing.shape.format is shape.format]
        if alike:
            nearest = min(alike, key=lambda timing: _distance(timing.shape, shape))
            per_weight = _per_weight(nearest)
            spread = _FROM_FORMAT + _BY_SIZE * _distance(nearest.shape, shape) + estimated
            return ModelCosts(self._curve(shape, per_weight), spread, Basis.THIS_FORMAT)
        reference = _GPU if self.gpu_bandwidth is not None else _CPU
        if known:
            # One number for the machine: how much slower it is than the reference, in the middle of what was timed.
            factor = statistics.geometric_mean(
                _per_weight(timing)(1) / reference[timing.shape.format](1) for timing in known
            )
            spread, basis = _FROM_OTHERS + estimated, Basis.OTHER_FORMATS
        elif self.gpu_bandwidth is not None:
            factor = 1.0 / (_GPU_EFFICIENCY * self.gpu_bandwidth)
            spread, basis = _FROM_BANDWIDTH + estimated, Basis.DEVICE
        elif self.bandwidth is not None:
            factor = 4.0 / self.bandwidth
            spread, basis = _FROM_BANDWIDTH + estimated, Basis.BANDWIDTH
        else:
            factor = 4.0 / _USUAL_BANDWIDTH
            spread, basis = _FROM_NOTHING, Basis.GUESS
        shape_of_costs = reference[shape.format]
        return ModelCosts(self._curve(shape, lambda tokens: factor * shape_of_costs(tokens)), spread, basis)

    def _curve(self, shape: ModelShape, per_weight: Callable[[int], float]) -> Curve:
        """Seconds by tokens, from seconds per weight by tokens."""
        curve: list[tuple[int, float]] = []
        most = 0.0
        for tokens in SIZES:
            seconds = max(
                shape.active_weights * per_weight(tokens),
                # Of a mixture of experts, a check reads nearly as many experts as it has tokens.
                shape.weights_read(tokens) * per_weight(1),
                # A small model's timings may have been those of a cache; no model is read faster than memory allows.
                self._reading(shape.bytes_read(tokens)),
            )
            if self.gpu_bandwidth is not None:
                seconds = max(seconds, _GPU_LEAST)
            most = max(most, seconds)
            curve.append((tokens, most))
        return tuple(curve)

    def _reading(self, size: float) -> float:
        """Seconds that reading takes at the least; 0.0 where that is not known."""
        if self.gpu_bandwidth is not None:
            return size / self.gpu_bandwidth
        if self.bandwidth is None:
            return 0.0
        # What an engine has read in a given time, memory can be read in. A small model may have lain in a cache.
        seen = [
            timing.shape.bytes_read(1) / timing.curve[0][1]
            for timing in self.timings
            if timing.shape.bytes_read(1) > _NO_CACHE
        ]
        return size / max([self.bandwidth, *seen])


def _distance(one: ModelShape, other: ModelShape) -> float:
    return abs(math.log(max(1.0, one.active_weights) / max(1.0, other.active_weights)))


def _per_weight(timing: Timing) -> Callable[[int], float]:
    """Seconds per weight and evaluation. What is timed of a mixture of experts has read more of them at each size."""
    costs = Costs(timing.curve)

    def seconds(tokens: int) -> float:
        return costs.target_seconds(tokens) / max(1.0, timing.shape.weights_read(tokens))

    if timing.shape.expert_weights:
        return seconds
    weights = max(1.0, timing.shape.active_weights)
    return lambda tokens: costs.target_seconds(tokens) / weights


def _reference(seconds: Sequence[float]) -> Callable[[int], float]:
    return Costs(tuple(zip(SIZES, seconds, strict=True))).target_seconds


_CPU: Mapping[WeightFormat, Callable[[int], float]] = {
    format_: _reference(costs)
    for format_, costs in {
        WeightFormat.F32: (1.00, 1.45, 1.57, 1.79, 2.04, 2.9, 4.6),
        WeightFormat.F16: (0.76, 1.36, 1.53, 1.75, 2.00, 2.8, 4.5),
        WeightFormat.BITS_8: (0.54, 0.94, 1.10, 1.40, 2.20, 3.8, 7.0),
        WeightFormat.BITS_6: (0.50, 0.90, 1.15, 1.65, 2.50, 4.3, 7.8),
        WeightFormat.BITS_5: (0.47, 0.85, 1.12, 1.60, 2.45, 4.2, 7.6),
        WeightFormat.BITS_4: (0.43, 0.77, 1.06, 1.53, 2.34, 4.0, 7.2),
        WeightFormat.BITS_3: (0.43, 0.79, 1.10, 1.60, 2.45, 4.2, 7.6),
        WeightFormat.BITS_2: (0.42, 0.79, 1.10, 1.60, 2.45, 4.2, 7.6),
    }.items()
}
"""Cost per weight by SIZES, that of one token in F32 being 1. Measured with llama.cpp on two cores of a server
processor (AVX-512) and a model of 135M weights in F32, F16, Q8_0, Q4_1 and Q2_K; the others lie between."""

_FLAT = _reference((1.00, 1.05, 1.08, 1.15, 1.40, 1.70, 2.30))
"""How a check grows where reading the weights takes the time: an assumption, never timed by us."""


def _read_on_gpu(format_: WeightFormat) -> Callable[[int], float]:
    size = format_.bits * (1.08 if format_.bits < 16 else 1.0) / 8.0
    return lambda tokens: size * _FLAT(tokens)


_GPU: Mapping[WeightFormat, Callable[[int], float]] = {format_: _read_on_gpu(format_) for format_ in WeightFormat}
"""Bytes per weight, times how a check grows."""


# Timings as engines keep them


def timings_of(kept: Iterable[LearnedPair], setup: Setup | None = None) -> tuple[tuple[Timing, ...], Setup | None]:
    """What was measured of each model, and under which setup: the given one, or that of the newest record.

    Records of other setups, and of files that cannot be read any more, are passed over. Where a model was timed more
    than once the quickest counts, size by size: nothing makes an evaluation quicker than it is.
    """
    curves: dict[Path, dict[int, float]] = {}
    for pair in kept:
        found = _setup(pair.conditions)
        if found is None or pair.conditions.get("reproducible"):
            continue
        setup = setup or found
        if found != setup:
            continue
        drafting = pair.values.get("drafting")
        if not isinstance(drafting, dict):
            continue
        _gather(curves.setdefault(pair.target, {}), drafting.get("target_seconds"))
        # A draft on another device tells nothing of how quick this one is.
        if pair.draft is not None and pair.conditions.get("draft_devices") in (None, [], list(setup.devices)):
            _gather(curves.setdefault(pair.draft, {}), _as_curve(drafting.get("draft_seconds")))
    timings = []
    for path, seconds in curves.items():
        try:
            shape = file_shape(path)
        except GgufError:
            continue
        if shape is not None and 1 in seconds:
            timings.append(Timing(path, shape, _ascending(seconds)))
    return tuple(timings), setup


def _setup(conditions: Mapping[str, Any]) -> Setup | None:
    try:
        return Setup(
            tuple(str(name) for name in conditions["devices"]),
            int(conditions["threads"]),
            int(conditions["gpu_layers"]),
            str(conditions["engine"]),
            str(conditions.get("cache_type", "F16")),
            bool(conditions.get("flash_attention")),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _gather(curve: dict[int, float], points: object) -> None:
    for point in points if isinstance(points, list) else ():
        match point:
            case [int(tokens), float() | int() as seconds] if tokens >= 1 and 0.0 < seconds < 600.0:
                curve[tokens] = min(seconds, curve.get(tokens, math.inf))


def _as_curve(draft: object) -> object:
    """A draft's seconds for one token and those that a second one adds."""
    match draft:
        case [float() | int() as one, float() | int() as more]:
            return [[1, one], [2, one + more]]
    return None


def _ascending(seconds: Mapping[int, float]) -> Curve:
    sizes = sorted(seconds)
    return tuple((size, max(seconds[smaller] for smaller in sizes if smaller <= size)) for size in sizes)


# The memory's bandwidth

_PIECE = 1 << 24
_PIECES = 16
_MOST_THREADS = 8
_BANDWIDTH_SECONDS = 0.6
_FORMAT = 1


def measured_bandwidth(clock: Callable[[], float] = time.perf_counter) -> float:
    """Bytes per second at which all cores together read memory: the best of some passes within about a second."""
    import numpy as np

    # Ones: pages of zeros may all be the same piece of memory.
    pieces = [np.ones(_PIECE // 4, np.float32) for _ in range(_PIECES)]
    best = math.inf
    with ThreadPoolExecutor(min(os.cpu_count() or 1, _MOST_THREADS)) as threads:
        deadline = clock() + _BANDWIDTH_SECONDS
        while best == math.inf or clock() < deadline:
            before = clock()
            list(threads.map(np.max, pieces))
            best = min(best, clock() - before)
    return _PIECE * _PIECES / best


def bandwidth(file: Path, measure: Callable[[], float] = measured_bandwidth) -> float:
    """What `measure` gave here once; kept in `file`, and measured anew where the number of cores has changed."""
    machine = {"format": _FORMAT, "cores": os.cpu_count()}
    try:
        kept = json.loads(file.read_bytes())
        value = float(kept["bandwidth"])
        if all(kept.get(name) == known for name, known in machine.items()) and 0.0 < value < math.inf:
            return value
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        pass  # not there yet, or not ours to read: it is written anew
    value = measure()
    # What cannot be kept is measured again the next time.
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps({**machine, "bandwidth": value}))
    return value


_PUBLISHED: tuple[tuple[str, float], ...] = (
    ("rtx 5090", 1792),
    ("rtx 5080", 960),
    ("rtx 5070 ti", 896),
    ("rtx 5070", 672),
    ("rtx 5060", 448),
    ("rtx 4090", 1008),
    ("rtx 4080", 717),
    ("rtx 4070 ti super", 672),
    ("rtx 4070", 504),
    ("rtx 4060 ti", 288),
    ("rtx 4060", 272),
    ("rtx 3090", 936),
    ("rtx 3080", 760),
    ("rtx 3070", 448),
    ("rtx 3060", 360),
    ("h200", 4800),
    ("h100", 3350),
    ("a100", 1935),
    ("rx 7900 xtx", 960),
    ("apple m4 max", 546),
    ("apple m4 pro", 273),
    ("apple m4", 120),
    ("apple m3 ultra", 819),
    ("apple m3 max", 400),
    ("apple m3 pro", 150),
    ("apple m3", 100),
    ("apple m2 ultra", 800),
    ("apple m2 max", 400),
    ("apple m2 pro", 200),
    ("apple m2", 100),
    ("apple m1 ultra", 800),
    ("apple m1 max", 400),
    ("apple m1 pro", 200),
    ("apple m1", 68),
)
"""10^9 bytes per second, from the makers' data sheets; the more exact name first. Laptop versions are slower."""


def published_bandwidth(devices: Iterable[str]) -> float | None:
    """Bytes per second of the first device whose name is a known graphics processor's; None if none is."""
    for device in devices:
        for name, speed in _PUBLISHED:
            if name in device.lower():
                return speed * 1e9
    return None


def machine_speed(
    kept: Iterable[LearnedPair],
    data_folder: Path,
    devices: Sequence[str] = (),
    measure: Callable[[], float] = measured_bandwidth,
    *,
    format_: ModelFormat = ModelFormat.GGUF,
) -> MachineSpeed:
    """What is known of this machine. The first time it measures the memory, which takes about a second.

    `devices` are descriptions of what computes, as an engine gives them, if one has; else those of the newest timings.
    `format_`: of the models that are asked about. Another engine runs the others, whose timings tell nothing here.
    """
    is_folder = format_ is ModelFormat.MLX
    timings, setup = timings_of(pair for pair in kept if pair.target.is_dir() is is_folder)
    gpu = published_bandwidth(devices) if devices or setup is None else setup.gpu_bandwidth
    return MachineSpeed(timings, bandwidth(data_folder / "machine.json", measure), gpu)

"""The memory plan: what a target, a draft and both caches will take, against what is there now; and what would fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Protocol

from forespeak.models.machine_memory import Gpu, Machine
from forespeak.models.model_layout import ModelLayout, layout_of_file
from forespeak.models.model_memory import ContextSettings, memory_of
from forespeak.models.sizes import compared_words, size_words

MAIN_MEMORY = "main memory"
_PROGRAM_BYTES = 52_000_000
"""The engine's process before it loads anything: measured."""
_MLX_PROGRAM_BYTES = 90_000_000
"""The same with mlx-lm and what it imports."""
_GPU_BYTES = 300_000_000
"""What a driver keeps on a GPU for a process that computes there."""
_FILLED = 0.95
"""Of what is free on a GPU, so much is taken unasked: the plan may be a little off, and other programs draw there."""
_TIGHT = 0.85
"""Above this share of what is free, little is left for other programs."""
_SPARE, _SHARE = 300_000_000, 1.12
"""For a file whose header is not known yet: engine, vocabulary and buffers, and a cache of a usual length."""
_CONTEXTS = (65536, 32768, 16384, 8192, 4096, 2048, 1024)


class Fit(Enum):
    FITS = "fits"
    TIGHT = "tight"
    TOO_LARGE = "too large"


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """How a pair is to be loaded; what differs between engines is said by whoever knows the engine.

    `context_length` None: the model's own, at most `usual_context`. `gpu_layers` -1: all; `draft_gpu_layers` None: as
    the target. `batch` and `outputs` as in ContextSettings; `draft_batch` and `draft_flash_attention` None: as the
    target. `gpus` and `draft_gpus`: the names of those that get layers; None: all. `reproducible`: the cache type is
    what that setting asks for.
    """

    context_length: int | None = None
    cache_type: str = "F16"
    flash_attention: bool = False
    batch: int = 128
    outputs: int = 49
    windows: bool = False
    gpu_layers: int = 0
    draft_gpu_layers: int | None = None
    usual_context: int = 8192
    draft_batch: int | None = None
    draft_flash_attention: bool | None = None
    gpus: tuple[str, ...] | None = None
    draft_gpus: tuple[str, ...] | None = None
    reproducible: bool = False

    @property
    def of_draft(self) -> MemorySettings:
        """The same with what is said of the draft in the target's place."""
        return replace(
            self,
            gpu_layers=self.gpu_layers if self.draft_gpu_layers is None else self.draft_gpu_layers,
            batch=self.batch if self.draft_batch is None else self.draft_batch,
            flash_attention=self.flash_attention if self.draft_flash_attention is None else self.draft_flash_attention,
            gpus=self.gpus if self.draft_gpus is None else self.draft_gpus,
        )

    def gpus_of(self, machine: Machine) -> tuple[Gpu, ...]:
        """Those that the target's layers are shared out between."""
        return tuple(gpu for gpu in machine.gpus if self.gpus is None or gpu.name in self.gpus)

    def context_for(self, layout: ModelLayout) -> ContextSettings:
        own = min(layout.trained_context or self.usual_context, self.usual_context)
        return ContextSettings(
            self.context_length or own,
            self.cache_type,
            self.flash_attention,
            self.batch,
            self.outputs,
            self.windows,
        )


class PartKind(Enum):
    WEIGHTS = "weights"
    CACHE = "cache"
    BUFFERS = "buffers"
    PROGRAM = "engine"


@dataclass(frozen=True, slots=True)
class Part:
    """Something that takes memory. `of`: "target", "draft", or empty for the engine itself."""

    kind: PartKind
    of: str
    device: str
    size_bytes: int

    @property
    def words(self) -> str:
        return f"{self.of} {self.kind.value}".strip().capitalize()


@dataclass(frozen=True, slots=True)
class DeviceNeed:
    """What is asked of one device, against what it has. Bytes."""

    device: str
    needed_bytes: int
    free_bytes: int
    total_bytes: int

    @property
    def fit(self) -> Fit:
        return _fit(self.needed_bytes, self.free_bytes)


class SuggestionKind(Enum):
    CONTEXT = "context"
    REPRODUCIBLE = "reproducible"
    CACHE_TYPE = "cache type"
    GPU_LAYERS = "GPU layers"
    NO_DRAFT = "no draft"
    SMALLER_FILE = "smaller file"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change after which the pair is no longer too large. `settings`: as they would be; `file`: the smaller one."""

    kind: SuggestionKind
    words: str
    settings: MemorySettings
    needed_bytes: int
    file: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Parts, devices, the verdict, a sentence about it, and what would help, best first."""

    fit: Fit
    parts: tuple[Part, ...]
    devices: tuple[DeviceNeed, ...]
    sentence: str
    suggestions: tuple[Suggestion, ...] = ()
    context_length: int = 0

    @property
    def needed_bytes(self) -> int:
        return sum(device.needed_bytes for device in self.devices)

    def lines(self) -> list[str]:
        """The plan for a terminal, aligned."""
        rows = self.rows()
        width = max(len(words) for words, _ in rows)
        return [f"{words:<{width}}  {value}" for words, value in rows]

    def rows(self) -> list[tuple[str, str]]:
        """The plan for people: the name and size of each part, then what each device has."""
        several = len(self.devices) > 1
        shown = [(part.words + (f", {part.device}" if several else ""), part.size_bytes) for part in self.parts]
        rows = [(words, size_words(size)) for words, size in shown]
        rows += [
            (
                device.device.capitalize() if device.device == MAIN_MEMORY else device.device,
                f"{size_words(device.needed_bytes)} of {size_words(device.free_bytes)} free ({device.fit.value})",
            )
            for device in self.devices
        ]
        return rows


@dataclass(frozen=True, slots=True)
class Quant:
    """The same model in another precision: its label and the size of its files."""

    label: str
    size_bytes: int


def plan(
    target: ModelLayout,
    draft: ModelLayout | None,
    settings: MemorySettings,
    machine: Machine,
    quants: Sequence[Quant] = (),
) -> MemoryPlan:
    """What the pair takes with these settings on this machine. `quants`: the target's other files, to choose from."""
    parts, devices = _sum(target, draft, settings, machine)
    fit = _worst(devices)
    needs = _needs(draft is not None, devices, fit)
    found = () if fit is not Fit.TOO_LARGE else tuple(_suggestions(target, draft, settings, machine, quants))
    return MemoryPlan(fit, parts, devices, needs, found, settings.context_for(target).length)


def fitting_layers(
    target: ModelLayout, draft: ModelLayout | None, settings: MemorySettings, machine: Machine
) -> MemorySettings:
    """The settings with as many layers on GPUs as fit there, where -1 or None leaves that open.

    A draft goes first, since all of it is read for every token that it guesses, and then the target's last layers; what
    does not fit stays with the processor. As they were if everything fits, or if nothing is left open.
    """

    def fits(changed: MemorySettings) -> bool:
        parts, _ = _sum(target, draft, changed, machine)
        return all(need.needed_bytes <= _FILLED * need.free_bytes for need in _on_gpus(parts, machine))

    of_draft = 0 if draft is None else settings.of_draft.gpu_layers
    if (settings.gpu_layers >= 0 and of_draft >= 0) or fits(settings):
        return settings
    of_target = range(len(target.layers), -1, -1) if settings.gpu_layers < 0 else [settings.gpu_layers]
    tries = [(layers, settings.draft_gpu_layers if draft is None else of_draft) for layers in of_target]
    if draft is not None and of_draft < 0:
        # A draft gives way only once nothing more of the target can.
        tries += [(of_target[-1], layers) for layers in range(len(draft.layers), -1, -1)]
    choices = [replace(settings, gpu_layers=layers, draft_gpu_layers=beside) for layers, beside in tries]
    return next(filter(fits, choices), choices[-1])


def plan_of_files(
    target: Path,
    draft: Path | None,
    settings: MemorySettings,
    machine: Machine,
    quants: Sequence[Quant] = (),
) -> MemoryPlan:
    """The plan for files on disk, each with all its shards, with as many layers on GPUs as fit. Raises GgufError."""
    of_target, of_draft = layout_of_file(target), None if draft is None else layout_of_file(draft)
    return plan(of_target, of_draft, fitting_layers(of_target, of_draft, settings, machine), machine, quants)


def fit_of(size_bytes: int, machine: Machine) -> Fit:
    """Whether a model file of this size would fit, before its header is known; with a context of a usual length."""
    needed = int(size_bytes * _SHARE) + _SPARE
    pools = [machine.available_bytes]
    if not machine.unified and machine.gpus:
        pools.append(sum(gpu.free_bytes for gpu in machine.gpus))
    best = _fit(needed, max(pools))
    # Layers may be shared out between a GPU and the processor, slowly.
    return Fit.TIGHT if best is Fit.TOO_LARGE and needed <= sum(pools) * _TIGHT else best


def _fit(needed: int, free: int) -> Fit:
    if needed > free:
        return Fit.TOO_LARGE
    return Fit.TIGHT if needed > _TIGHT * free else Fit.FITS


def _worst(devices: Sequence[DeviceNeed]) -> Fit:
    order = list(Fit)
    return order[max(order.index(device.fit) for device in devices)]


@dataclass(slots=True)
class _Ledger:
    parts: list[Part] = field(default_factory=list)

    def add(self, kind: PartKind, of: str, device: str, size: int) -> None:
        if size > 0:
            self.parts.append(Part(kind, of, device, size))


def _sum(
    target: ModelLayout, draft: ModelLayout | None, settings: MemorySettings, machine: Machine
) -> tuple[tuple[Part, ...], tuple[DeviceNeed, ...]]:
    ledger = _Ledger()
    _add(ledger, "target", target, settings, machine)
    if draft is not None:
        # The draft's context is made like the target's; a shorter one of its own would end drafting early.
        _add(ledger, "draft", draft, settings.of_draft, machine)
    ledger.add(PartKind.PROGRAM, "", MAIN_MEMORY, _MLX_PROGRAM_BYTES if target.is_mlx else _PROGRAM_BYTES)
    for gpu in machine.gpus:
        if any(part.device == gpu.name for part in ledger.parts):
            ledger.add(PartKind.PROGRAM, "", gpu.name, 0 if machine.unified else _GPU_BYTES)
    return tuple(ledger.parts), tuple(_devices(ledger.parts, machine))


def _add(ledger: _Ledger, of: str, layout: ModelLayout, settings: MemorySettings, machine: Machine) -> None:
    # MLX computes on Apple's GPUs alone; what others llama.cpp has found are nothing to it.
    gpus = settings.gpus_of(machine) if machine.unified or not layout.is_mlx else ()
    memory = memory_of(layout, settings.context_for(layout), settings.gpu_layers if gpus else 0)
    ledger.add(PartKind.WEIGHTS, of, MAIN_MEMORY, memory.host_weights)
    ledger.add(PartKind.CACHE, of, MAIN_MEMORY, memory.host_cache)
    ledger.add(PartKind.BUFFERS, of, MAIN_MEMORY, memory.host_buffers)
    free = sum(gpu.free_bytes for gpu in gpus)
    for gpu in gpus:
        # llama.cpp shares layers out by what is free on each; each needs buffers of its own.
        share = gpu.free_bytes / free if free else 1 / len(gpus)
        ledger.add(PartKind.WEIGHTS, of, gpu.name, int(memory.gpu_weights * share))
        ledger.add(PartKind.CACHE, of, gpu.name, int(memory.gpu_cache * share))
        ledger.add(PartKind.BUFFERS, of, gpu.name, memory.gpu_buffers)


def _devices(parts: Sequence[Part], machine: Machine) -> list[DeviceNeed]:
    on_gpus = _on_gpus(parts, machine)
    main = sum(part.size_bytes for part in parts if part.device == MAIN_MEMORY)
    if not machine.unified:
        return [DeviceNeed(MAIN_MEMORY, main, machine.available_bytes, machine.total_bytes), *on_gpus]
    # One memory: the GPU's part is main memory's, too, and may not pass the system's limit for it.
    main += sum(device.needed_bytes for device in on_gpus)
    free = machine.available_bytes
    if any(device.needed_bytes > device.free_bytes for device in on_gpus):
        free = min(free, sum(device.free_bytes for device in on_gpus))
    return [DeviceNeed(MAIN_MEMORY, main, free, machine.total_bytes)]


def _on_gpus(parts: Sequence[Part], machine: Machine) -> list[DeviceNeed]:
    needs = []
    for gpu in machine.gpus:
        needed = sum(part.size_bytes for part in parts if part.device == gpu.name)
        if needed:
            needs.append(DeviceNeed(gpu.name, needed, gpu.free_bytes, gpu.total_bytes))
    return needs


def _needs(is_pair: bool, devices: Sequence[DeviceNeed], fit: Fit) -> str:
    order = list(Fit)
    worst = max(devices, key=lambda device: (order.index(device.fit), device.needed_bytes / max(1, device.free_bytes)))
    who = "Target and draft need" if is_pair else "The model needs"
    needed, free = compared_words(worst.needed_bytes, worst.free_bytes)
    where = "of memory" if worst.device == MAIN_MEMORY else f"on {worst.device}"
    match fit:
        case Fit.FITS:
            return f"{who} {needed} {where}; {free} are free."
        case Fit.TIGHT:
            return f"{who} {needed} {where}, nearly all of the {free} that are free."
        case _:
            return f"{who} {needed} {where}, and {free} are free of {size_words(worst.total_bytes)}."


class _Consider(Protocol):
    def __call__(self, kind: SuggestionKind, words: str, changed: MemorySettings) -> bool: ...


def _suggestions(
    target: ModelLayout,
    draft: ModelLayout | None,
    settings: MemorySettings,
    machine: Machine,
    quants: Sequence[Quant],
) -> list[Suggestion]:
    found: list[Suggestion] = []

    def consider(
        kind: SuggestionKind,
        words: str,
        changed: MemorySettings,
        *,
        of: ModelLayout = target,
        beside: ModelLayout | None = draft,
        file: str | None = None,
    ) -> bool:
        _, devices = _sum(of, beside, changed, machine)
        helps = _worst(devices) is not Fit.TOO_LARGE
        if helps:
            found.append(Suggestion(kind, words, changed, sum(device.needed_bytes for device in devices), file))
        return helps

    now = settings.context_for(target).length
    longest = min(now - 1, target.trained_context or now)
    for length in _CONTEXTS:
        shorter = replace(settings, context_length=length)
        if length <= longest and consider(SuggestionKind.CONTEXT, f"Use a context of {length:,}.", shorter):
            break
    smaller = replace(settings, cache_type="F16", reproducible=False)
    if settings.reproducible:
        consider(SuggestionKind.REPRODUCIBLE, "Switch the reproducible setting off: it doubles the cache.", smaller)
    elif settings.cache_type == "F32":
        consider(SuggestionKind.CACHE_TYPE, "Keep the cache in F16: in F32 it is twice as large.", smaller)
    if machine.gpus and settings.gpu_layers:
        _consider_layers(target, draft, settings, consider)
    if draft is not None:
        consider(SuggestionKind.NO_DRAFT, "Leave out the draft model.", settings, beside=None)
    for quant in sorted(quants, key=lambda each: -each.size_bytes):
        words = f"Use {quant.label} of the same model ({size_words(quant.size_bytes)})."
        smaller_target = _scaled(target, quant.size_bytes)
        if quant.size_bytes < target.size_bytes and consider(
            SuggestionKind.SMALLER_FILE, words, settings, of=smaller_target, file=quant.label
        ):
            break
    return found


def _consider_layers(
    target: ModelLayout, draft: ModelLayout | None, settings: MemorySettings, consider: _Consider
) -> None:
    """The most layers of the target that a GPU holds beside the whole draft: a draft gains most from it."""
    count = len(target.layers)
    beside = -1 if draft is not None else None
    most = count if settings.gpu_layers < 0 else min(count, settings.gpu_layers - 1)
    for layers in range(most, -1, -1):
        words = f"Put {layers} of {count} layers on the GPU" if layers else "Leave the target off the GPU"
        words += ", and all of the draft." if draft is not None else "."
        changed = replace(settings, gpu_layers=layers, draft_gpu_layers=beside)
        if consider(SuggestionKind.GPU_LAYERS, words, changed):
            return


def _scaled(layout: ModelLayout, size_bytes: int) -> ModelLayout:
    """The same model in a file of another size."""
    scale = size_bytes / max(1, layout.size_bytes)
    return replace(
        layout,
        size_bytes=size_bytes,
        layers=tuple(replace(layer, weight_bytes=int(layer.weight_bytes * scale)) for layer in layout.layers),
        input_bytes=int(layout.input_bytes * scale),
        output_bytes=int(layout.output_bytes * scale),
    )

"""The nouns that cross the border to an engine: what to load, what to generate, and what comes back.

Everything here is a frozen value and can be pickled: the engine usually lives in another process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Protocol

from forespeak.engines.parity_result import ParityRequest, ParityResult
from forespeak.speculation.events import Event
from forespeak.speculation.settings import (
    NgramCacheSettings,
    NgramMapSettings,
    NgramModSettings,
    NgramSimpleSettings,
    PromptLookupSettings,
    Rule,
    SamplingSettings,
)
from forespeak.speculation.trace import Source

DEFAULT_CONTEXT_LENGTH = 8192


class Role(Enum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: Role
    content: str


class Split(Enum):
    """How a model is shared out between several GPUs."""

    NONE = "none"
    """One GPU takes all that goes onto a GPU."""
    LAYER = "layer"
    """Each takes whole layers."""
    ROW = "row"
    """Each takes some rows of every matrix, where its driver can."""


class CacheType(Enum):
    """In which numbers a cache keeps the text's keys and values; `value` as people and llama.cpp write it."""

    F32 = "F32"
    F16 = "F16"
    BF16 = "BF16"
    Q8_0 = "Q8_0"
    Q5_1 = "Q5_1"
    Q5_0 = "Q5_0"
    Q4_1 = "Q4_1"
    Q4_0 = "Q4_0"

    @property
    def is_quantised(self) -> bool:
        return self.value.startswith("Q")


CPU_DEVICE = "CPU"
"""As `LoadSettings.device`: no other device than the processor."""
MOST_THREADS = 1024
"""llama.cpp starts as many as it is told, and ends the process where the system has no more to give."""


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """How a pair is loaded: how much text it holds, on what it computes, and in which numbers.

    `context_length` None: the model's own, but at most DEFAULT_CONTEXT_LENGTH. `reproducible` chooses the settings in
    which evaluating several tokens at once gives the same scores as one by one: F32 cache, no flash attention, and for
    weights other than F32 no evaluation of fewer tokens than from where on nothing changes; it overrules `cache_type`
    and `flash_attention`.
    `threads` None: chosen from this machine. `gpu_layers` -1: as many as fit; `draft_gpu_layers` None: as the target.
    `device` is a name from the list of devices, None: the engine's choice, CPU_DEVICE: none but the processor;
    `draft_device` None: as the target. `flash_attention` None: as is best on the device.
    """

    context_length: int | None = None
    reproducible: bool = False
    threads: int | None = None
    gpu_layers: int = -1
    draft_gpu_layers: int | None = None
    device: str | None = None
    draft_device: str | None = None
    split: Split = Split.LAYER
    cache_type: CacheType = CacheType.F16
    flash_attention: bool | None = None

    @property
    def layers_of_draft(self) -> int:
        return self.gpu_layers if self.draft_gpu_layers is None else self.draft_gpu_layers

    @property
    def device_of_draft(self) -> str | None:
        return self.device if self.draft_device is None else self.draft_device

    @property
    def cache_can_be_read(self) -> bool:
        """Values in fewer bits are read by flash attention alone, which may be switched off."""
        return not self.cache_type.is_quantised or self.flash_attention is not False

    def with_cache(self, cache_type: CacheType) -> LoadSettings:
        """Flash attention becomes the engine's choice again where this cache could not do without it."""
        changed = replace(self, cache_type=cache_type)
        return changed if changed.cache_can_be_read else replace(changed, flash_attention=None)

    @property
    def of_target(self) -> LoadSettings:
        """What the speed of the target alone depends on, the rest as usual."""
        return replace(self, context_length=None, draft_device=None, draft_gpu_layers=None)


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """A target and, if wanted, a draft model beside it."""

    target: Path
    draft: Path | None = None
    settings: LoadSettings = field(default_factory=LoadSettings)


class Start(Enum):
    """What a generation begins with."""

    WARM = "warm"
    """The caches' longest valid prefix and all that drafting has learned: what a chat wants."""
    COLD = "cold"
    """Empty caches, so that the whole prompt is evaluated; what was learned stays."""
    FRESH = "fresh"
    """As if the pair had just been loaded, for this generation: what was learned before is there again behind it."""


@dataclass(frozen=True, slots=True)
class TextSourceSettings:
    """The settings of the sources that look the text up. `shared`: what other chats have taught may be used too."""

    prompt_lookup: PromptLookupSettings = field(default_factory=PromptLookupSettings)
    ngram_simple: NgramSimpleSettings = field(default_factory=NgramSimpleSettings)
    ngram_map_k: NgramMapSettings = field(default_factory=NgramMapSettings)
    ngram_map_k4v: NgramMapSettings = field(default_factory=NgramMapSettings)
    ngram_mod: NgramModSettings = field(default_factory=NgramModSettings)
    ngram_cache: NgramCacheSettings = field(default_factory=NgramCacheSettings)
    shared: bool = False


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """Continue a conversation.

    `sources` are asked for a draft in their order, and the first that proposes anything wins: those that look the text
    up first, then a model. None: no speculation for this message. `draft_length` None: as many as pay.

    `json_schema` (a JSON text) or `grammar` (GBNF or Lark) bind the reply; after a prompt that leaves the model
    thinking, what follows its thoughts. At most one of the two, else ValueError.
    """

    messages: tuple[ChatMessage, ...]
    sources: tuple[Source, ...] = ()
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    rule: Rule = Rule.COUPLED
    draft_length: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    alternatives: int = 0
    json_schema: str | None = None
    grammar: str | None = None
    start: Start = Start.WARM
    text_sources: TextSourceSettings = field(default_factory=TextSourceSettings)

    def __post_init__(self) -> None:
        if self.json_schema is not None and self.grammar is not None:
            raise ValueError("a reply follows a JSON schema or a grammar, not both")


class NumberFormat(Enum):
    """What weights can be written anew in; `value` is the label that people know a file by."""

    F32 = "F32"
    Q4_0 = "Q4_0"
    Q2_K = "Q2_K"


@dataclass(frozen=True, slots=True)
class ConversionRequest:
    """Write `source` anew with its weights in another number format; of a split model `source` is the first part."""

    source: Path
    destination: Path
    number_format: NumberFormat = NumberFormat.F32


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a load or a conversion is: 0 to 1, and what is being done, in words."""

    fraction: float
    doing: str


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """What a loaded model says about itself. Sizes in bytes, lengths in tokens."""

    path: Path
    name: str
    description: str
    parameters: int
    size_bytes: int
    vocabulary_size: int
    context_length: int
    trained_context_length: int


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory that a loaded model takes on one device: `kind` is weights, cache, scores or buffers (to compute in)."""

    kind: str
    device: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a loaded model really is, and with what it computes.

    `devices` are names from the list of devices, those that hold layers, the processor's last. `gpu_layers` of
    `layers` are on GPUs; the output counts as a layer. `buffers`: as the engine told, empty where it does not.
    """

    devices: tuple[str, ...]
    gpu_layers: int
    layers: int
    cache_type: CacheType
    flash_attention: bool
    threads: int
    buffers: tuple[Buffer, ...] = ()
    split: Split = Split.NONE


@dataclass(frozen=True, slots=True)
class Loaded:
    """A pair is ready. `draft_problem` says why there is no draft although one was asked for.

    `computes_on_cpu`: every processor second that others use is lost to the reply. `devices`: all that the engine
    could use, in words; what it did use is said by the placements, None where the engine does not tell.
    """

    target: ModelSummary
    draft: ModelSummary | None = None
    draft_problem: str | None = None
    template_problem: str | None = None
    devices: tuple[str, ...] = ()
    threads: int = 0
    computes_on_cpu: bool = True
    placement: Placement | None = None
    draft_placement: Placement | None = None


@dataclass(frozen=True, slots=True)
class Converted:
    destination: Path


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the user should know about a generation, beside its text."""

    text: str


@dataclass(frozen=True, slots=True)
class Failed:
    """A request came to nothing. The parts are those of UserFacingError; `details` is for the curious."""

    what: str
    why: str = ""
    remedy: str = ""
    details: str = ""
    is_bug: bool = False


@dataclass(frozen=True, slots=True)
class Died:
    """The engine's process ended by itself. Whatever it was doing is lost; the next request starts a new one."""

    what: str
    why: str
    remedy: str
    details: str = ""


Body = Progress | Loaded | Converted | Notice | Event | ParityResult | Failed | Died


@dataclass(frozen=True, slots=True)
class EngineEvent:
    """Something that came back for the request with that number. `Died` has the number of the request it hit, or 0."""

    request: int
    body: Body


PairCheck = Callable[[Path, Path], str | None]
"""(target, draft) -> why the draft cannot serve the target, in a sentence, or None. Raises UserFacingError."""


class Engine(Protocol):
    """A loaded pair in this process. Blocking; one call at a time."""

    def load(
        self, request: LoadRequest, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
    ) -> Loaded | None:
        """Load a pair in place of the former one; None if cancelled. Raises UserFacingError."""
        ...

    def generate(self, request: GenerationRequest, cancelled: Callable[[], bool]) -> Iterator[Notice | Event]:
        """Raises UserFacingError, before or between the events."""
        ...

    def convert(
        self, request: ConversionRequest, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
    ) -> Converted | None:
        """Write a model anew; None if cancelled. Raises UserFacingError."""
        ...

    def close(self) -> None: ...


class EngineClient(Protocol):
    """An engine somewhere else. Calls return at once with the request's number; what happens is told to a listener.

    Requests are served one after the other. Each one ends with exactly one of Loaded, Converted, Finished,
    ParityResult, Failed or Died. After a death, the next request starts a new engine; a generation or a check has
    the last pair loaded again first.
    """

    def load(self, request: LoadRequest) -> int: ...

    def generate(self, request: GenerationRequest) -> int: ...

    def convert(self, request: ConversionRequest) -> int: ...

    def check(self, request: ParityRequest) -> int:
        """Check the loaded pair, beside its chat, whose caches stay as they are."""
        ...

    def cancel(self, request: int) -> None:
        """Ask a request to end early.

        A generation ends with Finished(CANCELLED), a check with what it has, the others with Failed.
        """
        ...

    def close(self) -> None: ...

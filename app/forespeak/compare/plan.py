"""What a comparison measures, and in which order.

Every way of drafting is compared with the target alone ("plain") on the same prompt, with the same seed, within one
repetition. Ways follow each other in an order that turns from visit to visit (A B, B A, B A, A B, ...), so that a
machine which grows slower or faster meanwhile favours none. Repetitions are the outer loop: a comparison that is
stopped early has measured all prompts, less often, and what adapts meets them as mixed as in a day's work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from forespeak.engines.engine import (
    ChatMessage,
    GenerationRequest,
    LoadRequest,
    LoadSettings,
    Role,
    Start,
    TextSourceSettings,
)
from forespeak.models.formats import model_stem
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.speculation.trace import Source

WARM_UP_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Pair:
    """A target and, for the ways that use one, a draft model."""

    target: Path
    draft: Path | None = None

    @property
    def name(self) -> str:
        return " + ".join(model_stem(path) for path in (self.target, self.draft) if path is not None)


@dataclass(frozen=True, slots=True)
class Prompt:
    """One message to answer. `name` is unique within its category.

    `messages`: the conversation that the reply continues, of which `text` is the last message; empty: `text` alone.
    `language` is a BCP 47 tag. `answer` is the length of reply that the text asks for, short or long. `private`: the
    words are the user's own, and stand in no report unless that is wanted.
    """

    category: str
    name: str
    text: str
    language: str = "en"
    answer: str = "long"
    messages: tuple[ChatMessage, ...] = ()
    private: bool = False

    @property
    def conversation(self) -> tuple[ChatMessage, ...]:
        return self.messages or (ChatMessage(Role.USER, self.text),)


@dataclass(frozen=True, slots=True)
class Way:
    """A way of drafting: sources, asked in their order, and the length of a draft; None: as many tokens as pay.

    `twin` tells equal ways apart, which are measured against each other to see what chance does.
    """

    sources: tuple[Source, ...] = ()
    draft_length: int | None = None
    twin: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether this is what the others are compared with."""
        return not self.sources and not self.twin

    @property
    def needs_model(self) -> bool:
        return any(source.uses_model for source in self.sources)

    @property
    def name(self) -> str:
        """Stands for the way in files: `plain`, `draft-model auto`, `prompt-lookup+draft-model 4`, `plain #2`."""
        again = f" #{self.twin + 1}" if self.twin else ""
        if not self.sources:
            return f"plain{again}"
        length = "auto" if self.draft_length is None else str(self.draft_length)
        return f"{'+'.join(source.value for source in self.sources)} {length}{again}"


PLAIN = Way()

Place = tuple[int, float, Way]
"""Where something is measured: the pair, counted from 0, the temperature, and the way."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that is to be measured. `ways` are those beside plain, which always takes part.

    `sampling` holds what all runs share; its temperature is replaced by each of `temperatures`, and its seed grows by
    one from repetition to repetition, so that at temperatures above 0 each brings other words. `start`: COLD reads
    the prompt anew for each run, FRESH also forgets what was learned, WARM lets the ways of one visit share the
    prompt's cache: only decoding is then compared. `text_sources`: their settings, but `shared` is left out: the other
    runs have written the very reply that would be looked up. `places`: what is measured of all combinations, plain
    aside; None: everything. Raises ValueError where there is nothing to measure.
    """

    pairs: tuple[Pair, ...]
    ways: tuple[Way, ...]
    prompts: tuple[Prompt, ...]
    temperatures: tuple[float, ...] = (0.0, 0.8)
    tokens: int = 128
    runs: int = 3
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    rule: Rule = Rule.COUPLED
    start: Start = Start.COLD
    warm_up: bool = True
    load_settings: LoadSettings = field(default_factory=LoadSettings)
    text_sources: TextSourceSettings = field(default_factory=TextSourceSettings)
    places: frozenset[Place] | None = None

    def __post_init__(self) -> None:
        for name in ("pairs", "ways", "prompts", "temperatures"):
            values: Sequence[object] = getattr(self, name)
            if not values:
                raise ValueError(f"a comparison needs {name}")
            if len(set(values)) != len(values):
                raise ValueError(f"the {name} of a comparison must differ")
        if self.tokens < 2 or self.runs < 1:
            raise ValueError("a comparison needs at least two tokens and one run")
        if any(way.is_plain for way in self.ways):
            raise ValueError("plain takes part by itself")

    def ways_of(self, pair: Pair) -> tuple[Way, ...]:
        """Plain, and the ways that this pair has what it takes for."""
        index = self.pairs.index(pair)
        ways = [way for way in self.ways if pair.draft is not None or not way.needs_model]
        return (PLAIN, *(way for way in ways if self.temperatures_of(index, way)))

    def temperatures_of(self, pair: int, way: Way) -> tuple[float, ...]:
        """The temperatures at which a pair, counted from 0, is measured this way."""
        places = self.places
        if places is None:
            return self.temperatures
        if way.is_plain:
            wanted = {temperature for index, temperature, _ in places if index == pair}
        else:
            wanted = {temperature for index, temperature, each in places if (index, each) == (pair, way)}
        return tuple(temperature for temperature in self.temperatures if temperature in wanted)

    def load_request(self, pair: Pair) -> LoadRequest:
        return LoadRequest(
            pair.target,
            pair.draft if any(way.needs_model for way in self.ways_of(pair)) else None,
            self.load_settings,
        )


@dataclass(frozen=True, slots=True)
class Task:
    """One run to make. `pair` counts from 0, `place` is its place in its visit; `repetition` None: a warm-up."""

    pair: int
    prompt: Prompt
    temperature: float
    way: Way
    repetition: int | None
    place: int = 0

    @property
    def where(self) -> Place:
        return self.pair, self.temperature, self.way


Visit = tuple[Task, ...]
"""All ways of one prompt at one temperature in one repetition, in the order in which they run."""


def turned(ways: Sequence[Way], turn: int) -> tuple[Way, ...]:
    """The order of the `turn`-th visit: rotated by one after each two visits, and backwards in every second one."""
    shift = turn // 2 % len(ways)
    order = (*ways[shift:], *ways[:shift])
    return order[::-1] if turn % 2 else order


def visits(comparison: Comparison, pair: int, ways: Sequence[Way]) -> Iterator[Visit]:
    """All visits of one pair, in their order."""
    for repetition in range(comparison.runs):
        turn = repetition
        for temperature in comparison.temperatures:
            here = [way for way in ways if temperature in comparison.temperatures_of(pair, way)]
            if len(here) < 2:
                continue  # plain alone is compared with nothing
            for prompt in comparison.prompts:
                yield tuple(
                    Task(pair, prompt, temperature, way, repetition, place)
                    for place, way in enumerate(turned(here, turn))
                )
                turn += 1


def warm_up(comparison: Comparison, pair: int, ways: Sequence[Way]) -> Visit:
    """A short run of each way, which counts nowhere: memory is touched, clocks speed up."""
    prompt = comparison.prompts[0]
    return tuple(
        Task(pair, prompt, comparison.temperatures_of(pair, way)[0], way, None, place) for place, way in enumerate(ways)
    )


def seed_of(comparison: Comparison, task: Task) -> int:
    return (comparison.sampling.seed + (task.repetition or 0)) % 2**64


def generation_request(comparison: Comparison, task: Task, *, first: bool | None = None) -> GenerationRequest:
    """`first`: whether it is the first run of its visit that is made; None: if its place says so."""
    first = task.place == 0 if first is None else first
    tokens = comparison.tokens if task.repetition is not None else min(comparison.tokens, WARM_UP_TOKENS)
    return GenerationRequest(
        messages=task.prompt.conversation,
        sources=task.way.sources,
        sampling=replace(comparison.sampling, temperature=task.temperature, seed=seed_of(comparison, task)),
        rule=comparison.rule,
        draft_length=task.way.draft_length,
        max_tokens=tokens,
        # The first way of a visit has nothing to share: the cache holds another prompt's beginning at best.
        start=Start.COLD if comparison.start is Start.WARM and first else comparison.start,
        # What other texts have taught includes this very reply, which the other ways have just written.
        text_sources=replace(comparison.text_sources, shared=False),
    )

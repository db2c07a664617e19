"""What people compare: one target in lanes, between which only speculation changes.

A plan becomes a `Comparison`, which the runner measures. Lanes with the same draft model share one load, those that
need none join the first; each further draft is loaded in its turn, and the target alone is measured beside it in every
load. So each lane is compared with the target alone under the same conditions, minutes and memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from forespeak.compare.plan import PLAIN, Comparison, Pair, Place, Prompt, Way
from forespeak.engines.engine import LoadSettings, Start, TextSourceSettings
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.speculation.trace import Source

OFF_NAME = "Off"


@dataclass(frozen=True, slots=True)
class Lane:
    """One way to answer. No `sources`: the target alone. `name` is unique within the plan.

    `draft` is the model of `Source.DRAFT_MODEL`; `draft_length` None: as many tokens as pay; `temperature` None: the
    plan's. `pair_id` is the kept pair that the lane was made of, if it was. Raises ValueError for a draft model
    without its source, and the other way round.
    """

    name: str
    sources: tuple[Source, ...] = ()
    draft: Path | None = None
    draft_length: int | None = None
    temperature: float | None = None
    pair_id: str | None = None

    def __post_init__(self) -> None:
        if self.needs_model != (self.draft is not None):
            raise ValueError(f"the lane {self.name!r} has a draft model or the source that uses it, but not both")
        if not self.name.strip():
            raise ValueError("a lane needs a name")

    @property
    def is_off(self) -> bool:
        return not self.sources

    @property
    def needs_model(self) -> bool:
        return any(source.uses_model for source in self.sources)


@dataclass(frozen=True, slots=True)
class Load:
    """What is in memory together, and the lanes that are measured meanwhile. Every load measures the off lane too."""

    draft: Path | None
    lanes: tuple[Lane, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A comparison as it is wanted. `budget_seconds`: when to end, loading included; None: when all is measured.

    `repeats` is how often each prompt is answered in each lane, with the seed of `sampling` and those after it;
    `tokens` the longest reply. `system` stands before every prompt that is no chat. The target alone is measured in
    any case, at each lane's temperature: as the lane that says so, or beside the others. Raises ValueError where
    there is nothing to compare, or a temperature is out of range.
    """

    target: Path
    lanes: tuple[Lane, ...]
    prompts: tuple[Prompt, ...]
    repeats: int = 3
    tokens: int = 128
    budget_seconds: float | None = None
    sampling: SamplingSettings = field(default_factory=lambda: SamplingSettings(temperature=0.0))
    rule: Rule = Rule.COUPLED
    start: Start = Start.COLD
    warm_up: bool = True
    load_settings: LoadSettings = field(default_factory=LoadSettings)
    text_sources: TextSourceSettings = field(default_factory=TextSourceSettings)

    def __post_init__(self) -> None:
        names = [lane.name for lane in self.lanes]
        if len(set(names)) != len(names):
            raise ValueError("the lanes of a comparison must have different names")
        if self.budget_seconds is not None and self.budget_seconds <= 0:
            raise ValueError("a comparison needs some time")
        for lane in self.lanes:
            replace(self.sampling, temperature=self.temperature_of(lane))
        self.comparison()

    def temperature_of(self, lane: Lane) -> float:
        return self.sampling.temperature if lane.temperature is None else lane.temperature

    @property
    def all_lanes(self) -> tuple[Lane, ...]:
        """The lanes, with an off lane in front for each temperature that has none: it is measured anyway."""
        temperatures = list(dict.fromkeys(map(self.temperature_of, self.lanes)))
        have = {self.temperature_of(lane) for lane in self.lanes if lane.is_off}
        missing = [temperature for temperature in temperatures if temperature not in have]
        taken = {lane.name for lane in self.lanes}
        added: list[Lane] = []
        for temperature in missing:
            name = OFF_NAME if len(temperatures) == 1 else f"{OFF_NAME}, temperature {temperature:g}"
            while name in taken:
                name += " "
            taken.add(name)
            added.append(Lane(name, temperature=None if temperature == self.sampling.temperature else temperature))
        return (*added, *self.lanes)

    @property
    def bases(self) -> dict[float, Lane]:
        """The off lane of each temperature, with which the others of that temperature are compared."""
        return {self.temperature_of(lane): lane for lane in reversed(self.all_lanes) if lane.is_off}

    @property
    def loads(self) -> tuple[Load, ...]:
        drafts: list[Path | None] = list(dict.fromkeys(lane.draft for lane in self.lanes if lane.draft is not None))
        every, bases = self.all_lanes, self.bases
        found = []
        for index, draft in enumerate(drafts or [None]):
            mine = [
                lane
                for lane in every
                if lane not in bases.values() and (lane.draft == draft or (lane.draft is None and index == 0))
            ]
            # The target alone is measured beside whatever is compared with it.
            wanted = {self.temperature_of(lane) for lane in mine}
            found.append(
                Load(
                    draft,
                    (
                        *(lane for lane in every if lane in bases.values() and self.temperature_of(lane) in wanted),
                        *mine,
                    ),
                )
            )
        return tuple(load for load in found if load.lanes)

    @property
    def places(self) -> dict[Lane, tuple[Place, ...]]:
        """Where each lane is measured, in `comparison`: an off lane in several loads, any other in one."""
        found: dict[Lane, list[Place]] = {}
        twins: dict[Place, int] = {}
        for index, load in enumerate(self.loads):
            for lane in load.lanes:
                temperature = self.temperature_of(lane)
                way = Way(lane.sources, lane.draft_length if lane.sources else None)
                twin = twins.get((index, temperature, way), 0)
                twins[index, temperature, way] = twin + 1
                found.setdefault(lane, []).append((index, temperature, replace(way, twin=twin)))
        return {lane: tuple(places) for lane, places in found.items()}

    @property
    def lanes_by_place(self) -> dict[Place, Lane]:
        """`places` the other way round."""
        return {place: lane for lane, places in self.places.items() for place in places}

    def lane_at(self, place: Place) -> Lane:
        """Raises KeyError for a place that is not measured."""
        return self.lanes_by_place[place]

    def comparison(self) -> Comparison:
        """For the runner. Raises ValueError where there is nothing to compare."""
        places = self.lanes_by_place
        ways = dict.fromkeys(way for _, _, way in places if way != PLAIN)
        if not ways:
            raise ValueError("a comparison needs a lane beside the target alone")
        return Comparison(
            pairs=tuple(Pair(self.target, load.draft) for load in self.loads),
            ways=tuple(ways),
            prompts=self.prompts,
            temperatures=tuple(dict.fromkeys(map(self.temperature_of, self.all_lanes))),
            tokens=self.tokens,
            runs=self.repeats,
            sampling=self.sampling,
            rule=self.rule,
            start=self.start,
            warm_up=self.warm_up,
            load_settings=self.load_settings,
            text_sources=self.text_sources,
            places=frozenset(places),
        )

"""An engine whose replies take made-up time, on a clock that only it moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from forespeak.compare.plan import Comparison, Pair, Prompt, Way
from forespeak.compare.runner import Happening, Results, Runner
from forespeak.engines.engine import (
    ConversionRequest,
    Converted,
    GenerationRequest,
    Loaded,
    LoadRequest,
    ModelSummary,
    Notice,
    Progress,
)
from forespeak.errors import UserFacingError
from forespeak.speculation.events import Event, Finished
from forespeak.speculation.trace import DraftedToken, FinishReason, Origin, Source, Step, StepCounter, Token

MODEL = Source.DRAFT_MODEL
AUTO, FOUR = Way((MODEL,)), Way((MODEL,), 4)
TARGET, DRAFT = Path("big.gguf"), Path("small.gguf")
PROMPT_SECONDS = 0.25

SecondsPerToken = Callable[[GenerationRequest], float]


def steady(plain: float = 0.1, auto: float = 0.05, fixed: float = 0.08) -> SecondsPerToken:
    """What a token costs without drafts, with Auto, and with a fixed length."""

    def seconds(request: GenerationRequest) -> float:
        if not request.sources:
            return plain
        return auto if request.draft_length is None else fixed

    return seconds


@dataclass(slots=True)
class TimedEngine:
    """Each reply has as many tokens as it may have. Steps that draft emit two tokens and reject one.

    `refuses` names the pairs (by their target) that cannot be loaded; `draft_problem` is what keeps drafts away;
    `fails` says why a request fails, if it does; `parts_at` is where a reply with drafts differs from plain's.
    """

    seconds: SecondsPerToken = field(default_factory=steady)
    refuses: frozenset[str] = frozenset()
    draft_problem: str | None = None
    fails: Callable[[GenerationRequest], str | None] = lambda _: None
    parts_at: int | None = None
    now: float = 1000.0
    loads: list[LoadRequest] = field(default_factory=list)
    requests: list[GenerationRequest] = field(default_factory=list)
    closed: bool = False

    def clock(self) -> float:
        return self.now

    def load(
        self, request: LoadRequest, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
    ) -> Loaded | None:
        self.loads.append(request)
        if request.target.stem in self.refuses:
            raise UserFacingError(f"{request.target.name} could not be loaded.", "It is broken.", "Take another.")
        progress(Progress(0.5, "Loading"))
        draft = None if self.draft_problem or request.draft is None else _summary(request.draft)
        return None if cancelled() else Loaded(_summary(request.target), draft, self.draft_problem, threads=2)

    def generate(self, request: GenerationRequest, cancelled: Callable[[], bool]) -> Iterator[Notice | Event]:
        self.requests.append(request)
        self.now += PROMPT_SECONDS
        failure = self.fails(request)
        if failure is not None:
            raise UserFacingError(failure)
        counter = StepCounter()
        seconds, wanted = self.seconds(request), request.max_tokens or 1
        began = self.now
        while counter.generated < wanted and not cancelled():
            step = self._step(counter, request, wanted, seconds)
            if step.index > 0:
                self.now += len(step.emitted) * seconds
            counter.add(step)
            yield step
        stats = counter.summary(
            prompt_tokens=10,
            reused_prompt_tokens=0,
            time_to_first_token_seconds=PROMPT_SECONDS,
            decode_seconds=self.now - began,
            speculation=None,
        )
        yield Finished(FinishReason.CANCELLED if cancelled() else FinishReason.LENGTH, stats)

    def _step(self, counter: StepCounter, request: GenerationRequest, wanted: int, seconds: float) -> Step:
        at = counter.generated
        drafts = bool(request.sources) and at > 0 and wanted - at >= 2
        origins = (Origin.ACCEPTED, Origin.CORRECTED) if drafts else (Origin.TARGET,)
        differs = request.sources and self.parts_at is not None
        emitted = tuple(
            Token(
                place + 1000 * bool(differs and self.parts_at is not None and place >= self.parts_at),
                "x ",
                origin,
                request.sources[0] if origin is Origin.ACCEPTED else None,
            )
            for place, origin in enumerate(origins, at)
        )
        spent = len(emitted) * seconds
        return Step(
            counter.steps,
            emitted,
            (DraftedToken(7, "y"),) if drafts else (),
            source=request.sources[0] if drafts else None,
            draft_seconds=spent / 4 if drafts else 0.0,
            target_seconds=spent * 3 / 4 if drafts else spent,
        )

    def convert(
        self, request: ConversionRequest, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
    ) -> Converted | None:
        return Converted(request.destination)

    def close(self) -> None:
        self.closed = True


def _summary(path: Path) -> ModelSummary:
    return ModelSummary(path, path.stem, "", 1, 1, 100, 1000, 1000)


def prompts(*categories: str, each: int = 1) -> tuple[Prompt, ...]:
    return tuple(
        Prompt(category, f"{category} {number}", f"Write {category} {number}.")
        for category in categories
        for number in range(each)
    )


def comparison(**changed: object) -> Comparison:
    """One pair, Auto and four tokens, two categories, greedy, 9 tokens, two runs, no warm-up; and what is `changed`."""
    settings: dict[str, object] = {
        "pairs": (Pair(TARGET, DRAFT),),
        "ways": (AUTO, FOUR),
        "prompts": prompts("code", "prose"),
        "temperatures": (0.0,),
        "tokens": 9,
        "runs": 2,
        "warm_up": False,
    }
    return Comparison(**settings | changed)  # type: ignore[arg-type]


def measured(
    engine: TimedEngine | None = None,
    *,
    heard: list[Happening] | None = None,
    stop: Callable[[], bool] = lambda: False,
    others: Callable[[], float] = lambda: 0.0,
    **changed: object,
) -> Results:
    engine = engine or TimedEngine()
    listen = (lambda _: None) if heard is None else heard.append
    return Runner(comparison(**changed), engine, listen, stop, clock=engine.clock, others=others).run()

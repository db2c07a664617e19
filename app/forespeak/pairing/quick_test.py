"""A quick test of a pair on the user's kind of work: three prompts, each with speculation and without it.

The two ways take turns in going first, write equally many tokens of each prompt with the same seed, and share the
prompt's cache: what is compared is decoding. How many tokens is settled by what the target was seen to do, so that all
of it takes about as long as was asked for. Runs over any Engine, in this process or another, and knows no window.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from forespeak import __version__
from forespeak.engines.engine import (
    ChatMessage,
    Engine,
    GenerationRequest,
    Loaded,
    LoadRequest,
    LoadSettings,
    Progress,
    Role,
    Start,
)
from forespeak.pairing.compatibility import cannot_draft
from forespeak.pairing.quick_prompts import QuickPrompt, quick_prompts
from forespeak.pairing.ranking import Measurement, Range
from forespeak.speculation.events import Finished
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import GenerationStats, Source, Step, text_of

SECONDS = 20.0
MOST_TOKENS, LEAST_TOKENS = 160, 8
_WARM_UP_TOKENS = 8
_OVERTIME = 1.5
"""How much longer than asked for it may take on a machine that is slower than it looked."""
_TOLD_EVERY = 0.1
"""Seconds between two reports of a reply that is being written."""
_STUDENT_T = {2: 3.078, 3: 1.886}
"""Of n prompts, the quantile at 0.9 with n - 1 degrees of freedom: the ends between which four of five means lie."""
_ONE_PROMPT = 0.25
"""In logarithms, how far a single prompt's ratio is taken to be from the truth."""


@dataclass(frozen=True, slots=True)
class QuickTest:
    """What to test. `draft` None: only `sources` that look the text up. `draft_length` None: as many as pay.

    `seconds` is for the replies; loading the pair comes before it.
    """

    target: Path
    draft: Path | None
    sources: tuple[Source, ...]
    kind: str
    seconds: float = SECONDS
    draft_length: int | None = None
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    load_settings: LoadSettings = field(default_factory=LoadSettings)

    @property
    def load_request(self) -> LoadRequest:
        return LoadRequest(self.target, self.draft, self.load_settings)


@dataclass(frozen=True, slots=True)
class PromptResult:
    """One prompt, written both ways. Rates are decoded tokens per second; `acceptance` None: nothing was drafted.

    `same_words`: the tokens of both ways are equal, as far as both were written. `pause`: in words, why nothing was
    drafted at all, if nothing was.
    """

    prompt: QuickPrompt
    tokens: int
    plain_rate: float
    speculative_rate: float
    tested: int
    accepted: int
    same_words: bool
    pause: str | None = None

    @property
    def speed_up(self) -> float:
        return self.speculative_rate / self.plain_rate

    @property
    def acceptance(self) -> float | None:
        return self.accepted / self.tested if self.tested else None


@dataclass(frozen=True, slots=True)
class QuickResult:
    """What a test found. `planned` prompts, of which `prompts` were finished in time; `stopped`: somebody ended it.

    `too_short`: of how many the replies ended before they could be timed.
    """

    test: QuickTest
    prompts: tuple[PromptResult, ...]
    planned: int
    seconds: float
    stopped: bool
    measured_at: str
    too_short: int = 0

    @property
    def complete(self) -> bool:
        return len(self.prompts) == self.planned

    @property
    def tokens(self) -> int:
        return sum(each.tokens for each in self.prompts)

    @property
    def plain_rate(self) -> float | None:
        return self._rate([each.plain_rate for each in self.prompts])

    @property
    def speculative_rate(self) -> float | None:
        return self._rate([each.speculative_rate for each in self.prompts])

    @property
    def acceptance(self) -> float | None:
        tested = sum(each.tested for each in self.prompts)
        return sum(each.accepted for each in self.prompts) / tested if tested else None

    @property
    def speed_up(self) -> Range | None:
        """The geometric mean of the prompts' ratios; None if no prompt was finished."""
        logs = [math.log(each.speed_up) for each in self.prompts]
        if not logs:
            return None
        middle = statistics.fmean(logs)
        half = _ONE_PROMPT
        if len(logs) > 1:
            half = _STUDENT_T.get(len(logs), 1.5) * statistics.stdev(logs) / math.sqrt(len(logs))
        return Range(math.exp(middle), math.exp(middle - half), math.exp(middle + half))

    def measurement(self, engine: str = "") -> Measurement | None:
        """As it is kept with a pair; `engine` is name and version of what computed. None if nothing was finished."""
        plain, speculative, speed_up = self.plain_rate, self.speculative_rate, self.speed_up
        if plain is None or speculative is None or speed_up is None:
            return None
        return Measurement(
            plain=plain,
            speculative=speculative,
            speed_up=speed_up,
            acceptance=self.acceptance,
            tokens=self.tokens,
            by_kind=((self.test.kind, speed_up.value),),
            measured_at=self.measured_at,
            engine=engine,
            version=__version__,
        )

    def _rate(self, rates: list[float]) -> float | None:
        """Tokens of all prompts by the seconds of all: the mean of the rates, each weighed by its tokens."""
        if not rates:
            return None
        return self.tokens / sum(each.tokens / rate for each, rate in zip(self.prompts, rates, strict=True))


@dataclass(frozen=True, slots=True)
class Loading:
    progress: Progress


@dataclass(frozen=True, slots=True)
class Ready:
    loaded: Loaded


@dataclass(frozen=True, slots=True)
class Writing:
    """A reply is being written. `prompt` None: a warm-up, which counts nowhere. Fraction and seconds are of all."""

    prompt: QuickPrompt | None
    speculating: bool
    text: str
    tokens: int
    tokens_per_second: float | None
    acceptance: float | None
    fraction: float
    seconds_left: float


@dataclass(frozen=True, slots=True)
class PromptTested:
    result: PromptResult


@dataclass(frozen=True, slots=True)
class Done:
    """The last event of every test, also of one that was stopped."""

    result: QuickResult


Happening = Loading | Ready | Writing | PromptTested | Done


@dataclass(frozen=True, slots=True)
class _Reply:
    steps: tuple[Step, ...]
    stats: GenerationStats

    @property
    def ids(self) -> list[int]:
        return [token.id for step in self.steps for token in step.emitted]

    @property
    def counts(self) -> bool:
        """Whether it is long enough for a rate; the first token belongs to the prompt's evaluation."""
        return self.stats.generated_tokens >= LEAST_TOKENS and self.stats.tokens_per_second > 0.0


def run(
    test: QuickTest,
    engine: Engine,
    cancelled: Callable[[], bool] = lambda: False,
    progress: Callable[[Loading], None] = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Generator[Happening, None, None]:
    """Load the pair and test it. Blocks between the events; ends with `Done`.

    Loading is told to `progress` while it lasts, since it is one call. Raises UserFacingError if the pair cannot be
    loaded or a reply fails.
    """
    loaded = engine.load(test.load_request, lambda each: progress(Loading(each)), cancelled)
    if loaded is None:
        yield Done(_result(test, [], 0.0, stopped=True))
        return
    if test.draft is not None and loaded.draft is None:
        raise cannot_draft(test.target, test.draft, loaded.draft_problem or "")
    yield Ready(loaded)
    yield from _Run(test, engine, cancelled, clock).all()


class _Run:
    """One test over a loaded pair. `_began` and all other times are those of `clock`."""

    def __init__(
        self, test: QuickTest, engine: Engine, cancelled: Callable[[], bool], clock: Callable[[], float]
    ) -> None:
        self._test = test
        self._engine = engine
        self._cancelled = cancelled
        self._clock = clock
        self._began = clock()

    def all(self) -> Iterator[Happening]:
        prompts = quick_prompts(self._test.kind)
        results: list[PromptResult] = []
        too_short = 0
        # Memory is touched, clocks speed up, and the target shows how fast it is.
        first = yield from self._write(None, prompts[0], (), _WARM_UP_TOKENS, Start.COLD)
        yield from self._write(None, prompts[0], self._test.sources, _WARM_UP_TOKENS, Start.WARM)
        rate, reading = (
            (first.stats.tokens_per_second, first.stats.time_to_first_token_seconds) if first else (0.0, 0.0)
        )
        for number, prompt in enumerate(prompts):
            if self._over:
                break
            slot = max(0.0, self._test.seconds - self._seconds) / (2 * (len(prompts) - number))
            # Of the two replies to a prompt only the first has to read it.
            tokens = min(MOST_TOKENS, max(LEAST_TOKENS, int((slot - reading / 2.0) * rate)))
            ways = ((), self._test.sources)
            replies: dict[bool, _Reply | None] = {}
            for place, sources in enumerate(ways if number % 2 == 0 else ways[::-1]):
                start = Start.COLD if place == 0 and number > 0 else Start.WARM
                replies[bool(sources)] = yield from self._write(prompt, prompt, sources, tokens, start)
            plain, speculative = replies[False], replies[True]
            if plain is None or speculative is None:
                continue
            if not (plain.counts and speculative.counts):
                too_short += 1
                continue
            results.append(_compared(prompt, plain, speculative))
            rate = plain.stats.tokens_per_second
            yield PromptTested(results[-1])
        result = _result(self._test, results, self._seconds, stopped=self._cancelled())
        yield Done(replace(result, too_short=too_short))

    @property
    def _seconds(self) -> float:
        return self._clock() - self._began

    @property
    def _over(self) -> bool:
        return self._cancelled() or self._seconds > _OVERTIME * self._test.seconds

    def _write(
        self, shown: QuickPrompt | None, prompt: QuickPrompt, sources: tuple[Source, ...], tokens: int, start: Start
    ) -> Generator[Happening, None, _Reply | None]:
        """One reply, told as it grows; None if it was not finished."""
        if self._over:
            return None
        request = GenerationRequest(
            (ChatMessage(Role.USER, prompt.text),),
            sources=sources,
            sampling=self._test.sampling,
            draft_length=self._test.draft_length,
            max_tokens=tokens,
            start=start,
        )
        steps: list[Step] = []
        finished: Finished | None = None
        began: float | None = None
        told = -math.inf
        events = self._engine.generate(request, lambda: self._over)
        try:
            for event in events:
                if isinstance(event, Finished):
                    finished = event
                elif isinstance(event, Step):
                    steps.append(event)
                    now = self._clock()
                    began = now if began is None else began
                    if now - told >= _TOLD_EVERY:
                        told = now
                        yield self._writing(shown, bool(sources), steps, now - began)
        finally:
            if isinstance(events, Generator):
                events.close()
        if finished is None or self._over:
            return None
        return _Reply(tuple(steps), finished.stats)

    def _writing(self, prompt: QuickPrompt | None, speculating: bool, steps: list[Step], seconds: float) -> Writing:
        tested = sum(step.tested_count for step in steps)
        written = sum(len(step.emitted) for step in steps)
        return Writing(
            prompt=prompt,
            speculating=speculating,
            text=text_of(steps),
            tokens=written,
            tokens_per_second=(written - len(steps[0].emitted)) / seconds if seconds > 0.0 else None,
            acceptance=sum(step.accepted_count for step in steps) / tested if tested else None,
            fraction=min(1.0, self._seconds / self._test.seconds),
            seconds_left=max(0.0, self._test.seconds - self._seconds),
        )


def _compared(prompt: QuickPrompt, plain: _Reply, speculative: _Reply) -> PromptResult:
    both = min(len(plain.ids), len(speculative.ids))
    stats = speculative.stats
    tested = stats.accepted_draft_tokens_count + stats.rejected_draft_tokens_count
    state = stats.speculation
    return PromptResult(
        prompt,
        both,
        plain.stats.tokens_per_second,
        stats.tokens_per_second,
        tested,
        stats.accepted_draft_tokens_count,
        plain.ids[:both] == speculative.ids[:both],
        None if tested or state is None else state.reason,
    )


def _result(test: QuickTest, prompts: list[PromptResult], seconds: float, *, stopped: bool) -> QuickResult:
    now = datetime.now(UTC).astimezone().isoformat(timespec="seconds")
    return QuickResult(test, tuple(prompts), len(quick_prompts(test.kind)), seconds, stopped, now)

"""The loop: propose, evaluate, verify, emit. Read it from top to bottom."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from forespeak.speculation.controller import DraftController
from forespeak.speculation.draft import EMPTY_DRAFT, Draft, DraftSource, DraftSourceError, Evaluation
from forespeak.speculation.events import Event, Finished, PromptProgress
from forespeak.speculation.language_model import LanguageModel, Logits, Vocabulary, common_prefix_length
from forespeak.speculation.sampling import Distribution, Sampler
from forespeak.speculation.settings import Rule
from forespeak.speculation.text import StopStrings, TextDecoder
from forespeak.speculation.trace import (
    Alternative,
    DraftedToken,
    FinishReason,
    Origin,
    SpeculationState,
    Step,
    StepCounter,
    Token,
)
from forespeak.speculation.verify import Verification, verify


@dataclass(frozen=True, slots=True)
class DecodeSettings:
    """What one generation does, beside its sampling. `max_tokens` None: until the context is full.
    `without_source` says, in a sentence, why there is no draft source if there is none.

    Raises ValueError for fewer than one token or a negative number of alternatives.
    """

    rule: Rule = Rule.COUPLED
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    alternatives: int = 0
    without_source: str = "No draft source is in use."

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {self.max_tokens}")
        if self.alternatives < 0:
            raise ValueError(f"alternatives must be at least 0, not {self.alternatives}")


def generate(
    target: LanguageModel,
    source: DraftSource | None,
    prompt: Sequence[int],
    sampler: Sampler,
    controller: DraftController,
    settings: DecodeSettings,
    cancelled: Callable[[], bool] = lambda: False,
    started: float | None = None,
) -> Iterator[Event]:
    """Continue `prompt`, token by token as the target alone would, faster where `source` guesses well.

    Yields progress of the prompt, a Step per target evaluation, the state of speculation whenever it changes, and one
    Finished at the end. Tokens of `prompt` that the target's cache already holds are not evaluated again. Whenever the
    generator is suspended, the caches hold a prefix of prompt + emitted tokens: it may be closed at any yield.
    `started` is the perf_counter() time from which the time to first token counts; now, if not given.

    Raises ValueError for an empty prompt or one that leaves no room for a token, EvaluationError if the target fails,
    NoTokenLeftError if the sampler's constraint and the banned tokens leave nothing to go on with.
    """
    started = time.perf_counter() if started is None else started
    if not prompt:
        raise ValueError("the prompt is empty")
    if len(prompt) >= target.context_length:
        raise ValueError(f"a prompt of {len(prompt)} tokens leaves no room in {target.context_length}")
    loop = _Loop(target, source, list(prompt), sampler, controller, settings)
    target.truncate(min(common_prefix_length(target.tokens, prompt), len(prompt) - 1))
    reused = len(target.tokens)
    first_token_at: float | None = None

    def finished(reason: FinishReason) -> Finished:
        now = time.perf_counter()
        stats = loop.counter.summary(
            prompt_tokens=len(prompt),
            reused_prompt_tokens=reused,
            time_to_first_token_seconds=0.0 if first_token_at is None else first_token_at - started,
            decode_seconds=0.0 if first_token_at is None else now - first_token_at,
            speculation=loop.state,
        )
        return Finished(reason, stats)

    logits: Logits | None = None
    while len(target.tokens) < len(prompt):
        if cancelled():
            yield finished(FinishReason.CANCELLED)
            return
        at = len(target.tokens)
        chunk = prompt[at : at + target.batch_limit]
        before = time.perf_counter()
        logits = target.evaluate(chunk, outputs=1 if at + len(chunk) == len(prompt) else 0)
        loop.prompt_seconds = time.perf_counter() - before
        loop.observe(chunk, logits)
        yield PromptProgress(len(target.tokens), len(prompt), reused)
    assert logits is not None
    # The scores live until the next evaluation of the same model; the draft's prompt may be evaluated before they
    # are used, and for a model drafting for itself that would be one.
    logits = logits.copy()
    loop.begin_drafting()
    told = loop.state
    yield told

    steps = loop.first_step(logits)
    # Chosen, not shown: a stop string may hold it back while others are chosen, and they count in the time since.
    first_token_at = time.perf_counter()
    while True:
        if loop.state != told:
            told = loop.state
            yield told
        yield from steps
        if loop.finish is not None:
            yield finished(loop.finish)
            return
        if cancelled():
            yield from loop.release_all()
            yield finished(FinishReason.CANCELLED)
            return
        steps = loop.next_step()


@dataclass(slots=True)
class _Loop:
    """One generation's state between two evaluations."""

    target: LanguageModel
    source: DraftSource | None
    history: list[int]
    """Prompt and emitted tokens. All but the newest are in the target's cache."""
    sampler: Sampler
    controller: DraftController
    settings: DecodeSettings
    counter: StepCounter = field(default_factory=StepCounter)
    finish: FinishReason | None = None
    prompt_seconds: float = 0.0
    _decoder: TextDecoder = field(default_factory=TextDecoder)
    _stops: StopStrings = field(init=False)
    _held: list[Step] = field(default_factory=list)
    """Steps whose text may end in the beginning of a stop string: not shown before that is known."""
    _shown: int = 0
    """Characters of the steps given out."""
    _failure: str | None = None

    def __post_init__(self) -> None:
        self._stops = StopStrings(self.settings.stop)

    @property
    def state(self) -> SpeculationState:
        if self._failure is not None:
            return SpeculationState(False, self._failure)
        if self.source is None:
            return SpeculationState(False, self.settings.without_source)
        if self.source.blocked is not None:
            return SpeculationState(False, self.source.blocked)
        return self.controller.state

    def begin_drafting(self) -> None:
        if self.source is not None:
            try:
                self.source.begin(self.history, self.sampler)
            except DraftSourceError as error:
                self._drop_source(error)

    def observe(self, tokens: Sequence[int], logits: Logits) -> None:
        if self.source is not None:
            try:
                self.source.observe(Evaluation(tuple(tokens), logits))
            except DraftSourceError as error:
                self._drop_source(error)

    def first_step(self, logits: Logits) -> list[Step]:
        """The prompt's own scores give the first token."""
        return self._settle(EMPTY_DRAFT, self._judge(EMPTY_DRAFT, logits), 0.0, self.prompt_seconds)

    def next_step(self) -> list[Step]:
        before = time.perf_counter()
        draft = self._propose(self._limit())
        drafted = time.perf_counter()
        self._refill()
        batch = [self.history[-1], *draft.tokens]
        logits = self.target.evaluate(batch, outputs=len(batch))
        verification = self._judge(draft, logits)
        self.observe(batch, logits)
        verified = time.perf_counter()
        return self._settle(draft, verification, drafted - before, verified - drafted)

    def _refill(self) -> None:
        """A cache that could not be cut where it should have been holds less than the text: evaluate the rest again."""
        while len(self.target.tokens) < len(self.history) - 1:
            at = len(self.target.tokens)
            chunk = self.history[at : min(at + self.target.batch_limit, len(self.history) - 1)]
            self.observe(chunk, self.target.evaluate(chunk, outputs=0))

    def _limit(self) -> int:
        """The longest draft that fits: the target's cache, one batch, and the tokens still wanted."""
        room = self.target.context_length - len(self.history)
        bounds = [self.controller.next_length(), room, self.target.batch_limit - 1, self.target.output_limit - 1]
        if self.settings.max_tokens is not None:
            bounds.append(self.settings.max_tokens - self.counter.generated - 1)
        return min(bounds)

    def _propose(self, limit: int) -> Draft:
        if self.source is None or limit < 1:
            return EMPTY_DRAFT
        try:
            return self._permitted(self.source.propose(limit))
        except DraftSourceError as error:
            self._drop_source(error)
            return EMPTY_DRAFT

    def _permitted(self, draft: Draft) -> Draft:
        """A guess up to the first token that could not be emitted. One drawn from probabilities stays whole.

        Dropping what was just drawn, because of what it is, would bias the rejection rule.
        """
        if draft.distributions or (count := self.sampler.permitted(draft.tokens)) == len(draft.tokens):
            return draft
        return replace(draft, tokens=draft.tokens[:count]) if count else EMPTY_DRAFT

    def _drop_source(self, error: DraftSourceError) -> None:
        self.source, self._failure = None, str(error)

    def _judge(self, draft: Draft, logits: Logits) -> Verification:
        def target_at(place: int) -> Distribution:
            return self.sampler.after(logits[place], self.history, draft.tokens[:place])

        return verify(self.settings.rule, draft, target_at, self.sampler, len(self.history))

    def _settle(
        self, draft: Draft, verification: Verification, draft_seconds: float, target_seconds: float
    ) -> list[Step]:
        """Cut both caches to what was emitted, end the generation where it ends, and give out what may be shown."""
        vocabulary = self.target.vocabulary
        ids = [*draft.tokens[: verification.accepted], verification.token]
        tokens: list[Token] = []
        stop_at: int | None = None
        for place, token_id in enumerate(ids):
            ends = vocabulary.ends_generation(token_id)
            text = "" if ends else self._decoder.feed(vocabulary.piece(token_id))
            tokens.append(self._token(token_id, text, draft, verification, place))
            stop_at = self._stops.feed(text)
            if ends or stop_at is not None:
                self.finish = FinishReason.STOP
                break
        kept = len(tokens)
        self.target.truncate(len(self.history) + min(kept, verification.accepted))
        self.history += ids[:kept]
        if self.sampler.constraint is not None:
            self.sampler.constraint.accept(ids[:kept])
        if self.source is not None:
            try:
                self.source.accept(ids[:kept])
            except DraftSourceError as error:
                self._drop_source(error)
        reached_the_end = kept == len(ids)
        left_over = self._drafted(draft, verification, min(kept, verification.accepted), len(draft.tokens))
        dropped = self._drafted(draft, verification, len(draft.tokens), len(draft.drafted))
        step = Step(
            index=self.counter.steps,
            emitted=tuple(tokens),
            rejected=left_over if reached_the_end else (),
            ignored=dropped if reached_the_end else left_over + dropped,
            source=draft.source,
            draft_seconds=draft_seconds,
            target_seconds=target_seconds,
            cache_length=len(self.target.tokens),
        )
        self.counter.add(step)
        self.controller.observe(step)
        self.finish = self.finish or self._limit_reached()
        self._held.append(step)
        return self._release(stop_at)

    def _limit_reached(self) -> FinishReason | None:
        if self.settings.max_tokens is not None and self.counter.generated >= self.settings.max_tokens:
            return FinishReason.LENGTH
        if len(self.history) > self.target.context_length:
            return FinishReason.CONTEXT_FULL
        return None

    def _token(self, token_id: int, text: str, draft: Draft, verification: Verification, place: int) -> Token:
        choices = verification.distributions[place]
        accepted = place < verification.accepted
        if accepted:
            origin = Origin.ACCEPTED
        elif not draft.tokens:
            origin = Origin.TARGET
        else:
            origin = Origin.BONUS if place == len(draft.tokens) else Origin.CORRECTED
        return Token(
            id=token_id,
            text=text,
            origin=origin,
            source=draft.source if accepted else None,
            probability=choices.probability(token_id),
            draft_probability=draft.probability(place) if accepted else None,
            alternatives=self._alternatives(choices) if self.settings.alternatives else (),
        )

    def _alternatives(self, choices: Distribution) -> tuple[Alternative, ...]:
        return tuple(
            Alternative(other, readable(self.target.vocabulary, other), probability)
            for other, probability in choices.top(self.settings.alternatives)
        )

    def _drafted(self, draft: Draft, verification: Verification, start: int, end: int) -> tuple[DraftedToken, ...]:
        """The drafted tokens from place `start` up to `end`, which did not enter the reply."""
        found: list[DraftedToken] = []
        for place in range(start, end):
            token = draft.drafted[place]
            asked = place < len(verification.distributions)
            found.append(
                DraftedToken(
                    id=token,
                    text=readable(self.target.vocabulary, token),
                    probability=verification.distributions[place].probability(token) if asked else None,
                    draft_probability=draft.probability(place),
                )
            )
        return tuple(found)

    def _release(self, stop_at: int | None) -> list[Step]:
        """The held steps that may be shown; all of them, cut at a stop string, once the generation has ended."""
        if stop_at is not None:
            self._cut(stop_at - self._shown)
            # What the last token has begun stands behind the stop string too.
            self._decoder.flush()
        if self.finish is not None:
            return self.release_all()
        pending = self._stops.pending
        count = len(self._held)
        while count and pending > 0:
            count -= 1
            pending -= sum(len(token.text) for token in self._held[count].emitted)
        released, self._held = self._held[:count], self._held[count:]
        self._shown += sum(len(token.text) for step in released for token in step.emitted)
        return released

    def release_all(self) -> list[Step]:
        """Everything still held, as it is, with what is left of an unfinished character."""
        if (rest := self._decoder.flush()) and self._held:
            step = self._held[-1]
            last = replace(step.emitted[-1], text=step.emitted[-1].text + rest)
            self._held[-1] = replace(step, emitted=(*step.emitted[:-1], last))
        released, self._held = self._held, []
        return released

    def _cut(self, length: int) -> None:
        """Shorten the held steps' text to `length` characters. The tokens stay: they were generated."""
        for index, step in enumerate(self._held):
            shortened: list[Token] = []
            for token in step.emitted:
                shortened.append(replace(token, text=token.text[: max(length, 0)]))
                length -= len(token.text)
            self._held[index] = replace(step, emitted=tuple(shortened))


def readable(vocabulary: Vocabulary, token: int) -> str:
    """A token's text on its own, for showing it apart from the reply."""
    return vocabulary.piece(token).decode("utf-8", errors="replace")

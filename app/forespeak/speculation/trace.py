"""What happened during a generation, exactly: tokens with their origin, steps, and the counts made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum


class Origin(Enum):
    """Who chose an emitted token, as the verification found it."""

    TARGET = "target"
    """The target chose it and no draft was tested in that step."""
    ACCEPTED = "accepted"
    """A draft proposed it and the target accepted it."""
    CORRECTED = "corrected"
    """A draft proposed something else here; the target put this in its place."""
    BONUS = "bonus"
    """Every drafted token of the step was accepted and the target's own next token came on top."""
    UNKNOWN = "unknown"
    """The engine cannot tell."""


class Source(Enum):
    """The draft sources, by the name that is stored with every token they get accepted."""

    DRAFT_MODEL = "draft-model"
    PROMPT_LOOKUP = "prompt-lookup"
    NGRAM_SIMPLE = "ngram-simple"
    NGRAM_MAP_K = "ngram-map-k"
    NGRAM_MAP_K4V = "ngram-map-k4v"
    NGRAM_MOD = "ngram-mod"
    NGRAM_CACHE = "ngram-cache"

    @property
    def uses_model(self) -> bool:
        """Whether a second model guesses; the others look the next tokens up in the text."""
        return self is Source.DRAFT_MODEL

    @property
    def label(self) -> str:
        """The name for people."""
        return self.value.replace("-", " ")


@dataclass(frozen=True, slots=True)
class Alternative:
    """A token that could have stood in a place, with the target's probability for it."""

    id: int
    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class Token:
    """One emitted token.

    `text` is what the token adds to the reply: bytes are decoded incrementally, so the token that completes a
    character carries it and the ones before carry nothing; an end-of-generation token carries nothing either.
    `probability` is the target's p of the token under the settings in force (at temperature 0: its softmax at
    temperature 1), `draft_probability` the draft's q of it; None where there was none.
    """

    id: int
    text: str
    origin: Origin
    source: Source | None = None
    probability: float | None = None
    draft_probability: float | None = None
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True, slots=True)
class DraftedToken:
    """A proposed token that did not enter the reply.

    `probability` is the target's p of it at the one place of a step that was judged without being accepted, else None.
    """

    id: int
    text: str
    probability: float | None = None
    draft_probability: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One target evaluation and what it verified.

    `rejected` are the drafted tokens that lost: the first one that failed its test and those behind it, whose context
    was no longer true. `ignored` were drafted but never tested: the generation ended before them, or they were not
    found worth a test. `source` made the draft. Seconds are wall-clock; `cache_length` is the number of tokens in the
    target's KV cache after the step.
    """

    index: int
    emitted: tuple[Token, ...]
    rejected: tuple[DraftedToken, ...] = ()
    ignored: tuple[DraftedToken, ...] = ()
    source: Source | None = None
    draft_seconds: float = 0.0
    target_seconds: float = 0.0
    cache_length: int = 0

    @property
    def accepted_count(self) -> int:
        return [token.origin for token in self.emitted].count(Origin.ACCEPTED)

    @property
    def tested_count(self) -> int:
        """Drafted tokens that the target judged in this step: accepted + rejected."""
        return self.accepted_count + len(self.rejected)


class FinishReason(Enum):
    """Why a generation ended."""

    STOP = "stop"
    """The model ended its reply, or a stop string appeared."""
    LENGTH = "length"
    """The limit on generated tokens was reached."""
    CONTEXT_FULL = "context_full"
    """The model's context has no room left."""
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class StepCosts:
    """Seconds, as the controller reckons with them.

    Of a plain step, of one with a draft of the length that it has chosen, and of one drafted token.
    """

    plain_seconds: float
    check_seconds: float
    drafted_token_seconds: float


@dataclass(frozen=True, slots=True)
class SpeculationState:
    """What drafting is doing and why, in words for the reader and in numbers for the record.

    `draft_length` is the length that promises most now, 0 while drafting is paused. `chosen_lengths` tells, once the
    reply has ended, how many of its steps tested how many drafted tokens: (length, steps), ascending, zero included.
    """

    active: bool
    reason: str
    draft_length: int = 0
    costs: StepCosts | None = None
    chosen_lengths: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class GenerationStats:
    """The counts and times of one generation. Seconds are wall-clock, rates per second.

    Tested drafts are the accepted and the rejected ones; ignored ones were never tested and count in neither rate.
    """

    prompt_tokens: int = 0
    reused_prompt_tokens: int = 0
    time_to_first_token_seconds: float = 0.0
    prompt_tokens_per_second: float = 0.0
    generated_tokens: int = 0
    decode_seconds: float = 0.0
    tokens_per_second: float = 0.0
    verify_steps: int = 0
    total_draft_tokens_count: int = 0
    accepted_draft_tokens_count: int = 0
    rejected_draft_tokens_count: int = 0
    ignored_draft_tokens_count: int = 0
    acceptance_rate: float | None = None
    mean_acceptance_length: float | None = None
    acceptance_rate_per_position: tuple[float, ...] = ()
    draft_time_share: float = 0.0
    peak_memory_bytes: int | None = None
    speculation: SpeculationState | None = None
    accepted_by_source: tuple[tuple[str, int], ...] = ()
    """(name of the draft source, its accepted tokens)"""


@dataclass(slots=True)
class StepCounter:
    """Adds steps up as they arrive; `summary` gives the counts at any moment.

    Acceptance rate = accepted / tested. Mean acceptance length = tokens emitted per step, over the steps that tested
    a draft. Acceptance at position i = rounds whose i-th token was accepted / rounds that tested an i-th token, where
    a token behind the first rejected one counts as tested (it was evaluated and lost), as in vLLM's metrics.
    """

    generated: int = 0
    steps: int = 0
    speculated_steps: int = 0
    speculated_emitted: int = 0
    accepted: int = 0
    rejected: int = 0
    ignored: int = 0
    draft_seconds: float = 0.0
    target_seconds: float = 0.0
    lengths: dict[int, int] = field(default_factory=dict)
    """Steps by the number of drafted tokens that they tested; the prompt's own step is none of them."""
    accepted_from: dict[Source, int] = field(default_factory=dict)
    _tested_at: list[int] = field(default_factory=list)
    _accepted_at: list[int] = field(default_factory=list)

    def add(self, step: Step) -> None:
        accepted = step.accepted_count
        tested = accepted + len(step.rejected)
        self.steps += 1
        self.generated += len(step.emitted)
        self.accepted += accepted
        self.rejected += len(step.rejected)
        self.ignored += len(step.ignored)
        if step.index > 0:
            # The first step's evaluation is the prompt's; its time belongs to the time to first token.
            self.draft_seconds += step.draft_seconds
            self.target_seconds += step.target_seconds
            self.lengths[tested] = self.lengths.get(tested, 0) + 1
        if accepted and step.source is not None:
            self.accepted_from[step.source] = self.accepted_from.get(step.source, 0) + accepted
        if tested:
            self.speculated_steps += 1
            self.speculated_emitted += len(step.emitted)
        missing = tested - len(self._tested_at)
        self._tested_at += [0] * missing
        self._accepted_at += [0] * missing
        for position in range(tested):
            self._tested_at[position] += 1
            self._accepted_at[position] += position < accepted

    def summary(
        self,
        *,
        prompt_tokens: int,
        reused_prompt_tokens: int,
        time_to_first_token_seconds: float,
        decode_seconds: float,
        speculation: SpeculationState | None,
    ) -> GenerationStats:
        """The counts so far. `decode_seconds` is the time since the first token appeared."""
        tested = self.accepted + self.rejected
        evaluated = prompt_tokens - reused_prompt_tokens
        busy = self.draft_seconds + self.target_seconds
        return GenerationStats(
            prompt_tokens=prompt_tokens,
            reused_prompt_tokens=reused_prompt_tokens,
            time_to_first_token_seconds=time_to_first_token_seconds,
            # Before the first token nobody knows how much of the prompt has been evaluated.
            prompt_tokens_per_second=(_ratio(evaluated, time_to_first_token_seconds) or 0.0) if self.generated else 0.0,
            generated_tokens=self.generated,
            decode_seconds=decode_seconds,
            # The first token belongs to the prompt's evaluation, so neither it nor its time counts here.
            tokens_per_second=_ratio(self.generated - 1, decode_seconds) or 0.0,
            verify_steps=self.steps,
            total_draft_tokens_count=tested + self.ignored,
            accepted_draft_tokens_count=self.accepted,
            rejected_draft_tokens_count=self.rejected,
            ignored_draft_tokens_count=self.ignored,
            acceptance_rate=_ratio(self.accepted, tested),
            mean_acceptance_length=_ratio(self.speculated_emitted, self.speculated_steps),
            acceptance_rate_per_position=tuple(a / t for a, t in zip(self._accepted_at, self._tested_at, strict=True)),
            draft_time_share=_ratio(self.draft_seconds, busy) or 0.0,
            speculation=speculation and replace(speculation, chosen_lengths=tuple(sorted(self.lengths.items()))),
            accepted_by_source=tuple((source.value, count) for source, count in self.accepted_from.items()),
        )


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def text_of(steps: Sequence[Step]) -> str:
    """The reply's text: what the steps' tokens add up to."""
    return "".join(token.text for step in steps for token in step.emitted)

"""A loaded pair in this process: all of the Engine protocol that is the same whatever evaluates the models.

An engine says the rest: how its models are loaded, what they say of themselves, and what computes.
"""

from __future__ import annotations

import math
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

import psutil

from forespeak.engines.chat_template import ChatTemplate, RenderedPrompt
from forespeak.engines.drafting import Drafting
from forespeak.engines.engine import (
    ConversionRequest,
    Converted,
    GenerationRequest,
    Loaded,
    LoadRequest,
    LoadSettings,
    ModelSummary,
    Notice,
    PairCheck,
    Progress,
    Start,
)
from forespeak.engines.known_text import KnownText
from forespeak.engines.pair_costs import PairCosts
from forespeak.engines.pair_knowledge import PairConditions, PairMemory
from forespeak.engines.rollback import RollbackGuard
from forespeak.engines.thinking import thought_marks, thoughts_behind
from forespeak.errors import UserFacingError
from forespeak.speculation.constraint import Constraint, NoTokenLeftError
from forespeak.speculation.decode import DecodeSettings, generate
from forespeak.speculation.draft import DraftSource
from forespeak.speculation.events import Event, Finished
from forespeak.speculation.language_model import EvaluationError, LanguageModel, Vocabulary
from forespeak.speculation.penalties import tokens_with
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.trace import Step

if TYPE_CHECKING:
    from forespeak.engines.grammar import GrammarCompiler

if sys.platform != "win32":
    import resource

ProgressListener = Callable[[Progress], None]

_DRY_BREAKERS = ("\n", ":", '"', "*")
"""Repetition of what stands between these is how lists, tables and quotations are made."""


class EngineVocabulary(Vocabulary, Protocol):
    """A vocabulary with its tokenizer."""

    @property
    def bos(self) -> int:
        """The token that begins a text; -1 for none."""
        ...

    @property
    def eos(self) -> int:
        """The token that ends a text; -1 for none."""
        ...

    @property
    def adds_bos(self) -> bool:
        """Whether every text begins with `bos`."""
        ...

    @property
    def suppressed(self) -> tuple[int, ...]:
        """Tokens that the model's files say must never be sampled."""
        ...

    def text(self, token: int) -> str:
        """The token's name in the vocabulary, control tokens included; empty for none (-1)."""
        ...

    def tokenize(self, text: str) -> list[int]:
        """Token ids of a text in which control tokens are written out. No BOS is added."""
        ...


class EngineModel(LanguageModel, Protocol):
    """A loaded model with one context."""

    @property
    def vocabulary(self) -> EngineVocabulary: ...

    @property
    def chat_template(self) -> str | None: ...

    @property
    def no_rollback(self) -> str | None:
        """Why nothing can be taken back from this model's cache, in a sentence about “this target”; None if it can."""
        ...

    @property
    def rollback_limit(self) -> tuple[int, str] | None:
        """The most tokens in the cache at which any can still be taken back, and why; None for any number."""
        ...

    def close(self) -> None: ...


Model = TypeVar("Model", bound=EngineModel)


class PairEngine(ABC, Generic[Model]):
    """Loads a target and a draft and generates with them. Blocking; one call at a time."""

    computer: str
    """What evaluates, as people call it."""

    def __init__(self, pair_check: PairCheck, memory: PairMemory | None = None) -> None:
        self._pair_check = pair_check
        self._request: LoadRequest | None = None
        self._target: Model | None = None
        self._draft: Model | None = None
        self._draft_problem: str | None = None
        self._template: ChatTemplate | None = None
        self._drafting = Drafting()
        self._costs = PairCosts(self._drafting, memory)
        self._known = KnownText()
        self._grammars: GrammarCompiler | None = None
        self._dry_breakers: tuple[tuple[int, ...], ...] = ()

    # What each engine does in its own way

    @property
    @abstractmethod
    def engine(self) -> str:
        """Name and version of what computes."""

    def _settled(self, request: LoadRequest) -> LoadRequest:
        """The request with what it leaves to the engine decided. Raises UserFacingError for what cannot be."""
        return request

    @abstractmethod
    def _prepare(self, request: LoadRequest) -> None:
        """Another target is about to be loaded."""

    @abstractmethod
    def _load_model(
        self,
        request: LoadRequest,
        path: Path,
        start: float,
        share: float,
        progress: ProgressListener,
        cancelled: Callable[[], bool],
    ) -> Model | None:
        """The model at `path` with a context; progress is told as `start` to `start + share`. None if cancelled.

        Raises UserFacingError.
        """

    @abstractmethod
    def _beside(self, model: Model, settings: LoadSettings) -> Model:
        """The same weights with another context, to be closed first. Raises UserFacingError."""

    @abstractmethod
    def _steady(self, model: Model) -> None:
        """See to it that a row of scores does not depend on how many tokens are evaluated with it, as far as it can."""

    @abstractmethod
    def _conditions(self, request: LoadRequest, target: Model, with_draft: bool) -> PairConditions:
        """What the costs of a loaded pair depend on."""

    @abstractmethod
    def _summary(self, path: Path, model: Model) -> ModelSummary: ...

    @abstractmethod
    def _loaded(self, request: LoadRequest, loaded: Loaded) -> Loaded:
        """`loaded` completed by devices and threads."""

    @abstractmethod
    def convert(
        self, request: ConversionRequest, progress: ProgressListener, cancelled: Callable[[], bool]
    ) -> Converted | None: ...

    def _hindrance(self, draft: Model) -> str | None:
        """Why a model that has just been loaded cannot draft, in a sentence; None if it can, made ready for it."""
        return None

    def _twin(self) -> Self:
        """An engine like this one with nothing loaded."""
        return type(self)(self._pair_check)

    # What is the same for all

    def load(self, request: LoadRequest, progress: ProgressListener, cancelled: Callable[[], bool]) -> Loaded | None:
        """Load a pair in place of the former one; a target that stays the same stays loaded. None if cancelled."""
        request = self._settled(request)
        target_is_new = self._request is None or replace(request, draft=self._request.draft) != self._request
        if target_is_new:
            self.close()
            self._prepare(request)
            share = 0.8 if request.draft else 1.0
            self._target = self._load_model(request, request.target, 0.0, share, progress, cancelled)
            if self._target is None:
                return None
            if request.settings.reproducible:
                self._steady(self._target)
            vocabulary = self._target.vocabulary
            self._template = ChatTemplate(
                self._target.chat_template, vocabulary.text(vocabulary.bos), vocabulary.text(vocabulary.eos)
            )
        assert self._target is not None
        if self._request is None or self._request.draft != request.draft or self._draft is None:
            self._costs.close()
            self._load_draft(request, self._target, progress, cancelled)
            conditions = self._conditions(request, self._target, self._draft is not None)
            self._costs.settle(conditions, self._target, self._draft, target_is_new=target_is_new)
        self._request = request
        if cancelled():
            self.close()
            return None
        return self._loaded(
            request,
            Loaded(
                target=self._summary(request.target, self._target),
                draft=self._summary(request.draft, self._draft) if request.draft and self._draft else None,
                draft_problem=self._draft_problem,
                template_problem=self._template.problem if self._template else None,
            ),
        )

    def generate(self, request: GenerationRequest, cancelled: Callable[[], bool]) -> Iterator[Notice | Event]:
        if request.start is not Start.WARM:
            self.forget(learned=False)
        started = time.perf_counter()
        target = self._target
        if target is None or self._template is None:
            raise UserFacingError("No model is loaded.", "", "Choose a target model first.")
        rendered = self._template.render(request.messages)
        if rendered.notice:
            yield Notice(rendered.notice)
        prompt = self._tokens_of(rendered, target)
        room = target.context_length
        if len(prompt) >= room:
            raise UserFacingError(
                f"The conversation is too long: {len(prompt):,} tokens do not fit into the context of {room:,}.",
                "The model can only read what fits into its context.",
                "Shorten the message, start a new chat, or choose a longer context in the settings.",
            )
        without = self._obstacle(request, target)
        drafting = self._drafting.anew() if request.start is Start.FRESH else self._drafting
        source, controller = drafting.prepare(
            request if without is None else replace(request, sources=()),
            self._draft,
            target.vocabulary.size,
            cancelled,
        )
        events = generate(
            target,
            _guarded(source, target),
            prompt,
            replace(self.sampler(request), constraint=self._constraint(request, rendered.text, target)),
            controller,
            DecodeSettings(
                rule=request.rule,
                max_tokens=request.max_tokens,
                stop=(*request.stop, *rendered.stop),
                alternatives=request.alternatives,
                without_source=without or "",
            ),
            cancelled,
            started,
        )
        try:
            yield from self._remembered(events, rendered.text, prompt, target)
        finally:
            if request.start is not Start.FRESH:
                self._costs.keep(soon=True)

    def _remembered(self, events: Iterator[Event], text: str, prompt: list[int], target: Model) -> Iterator[Event]:
        """The events of a reply to `prompt`, which is `text`; the next prompt may continue it.

        Raises UserFacingError where the reply cannot go on.
        """
        known, reply = self._known, ""
        tokens: list[int] = []
        known.read(text, prompt)
        try:
            for event in events:
                if isinstance(event, Step):
                    reply += "".join(token.text for token in event.emitted)
                    tokens += [token.id for token in event.emitted]
                yield _with_memory(event) if isinstance(event, Finished) else event
        except NoTokenLeftError as error:
            raise UserFacingError(
                "The reply cannot go on.",
                "What the grammar or schema asks for next cannot be written with the tokens that this model may use.",
                "Ban fewer tokens, or loosen the grammar or schema.",
            ) from error
        except EvaluationError as error:
            raise UserFacingError(
                "The target model failed in the middle of the reply.",
                f"{self.computer} says: {error}.",
                "Try again; if it happens again, load the model with a shorter context or fewer GPU layers.",
            ) from error
        finally:
            known.written(text, reply, tokens, target.vocabulary.piece)

    # What a parity check asks

    @property
    def loaded_request(self) -> LoadRequest | None:
        return self._request

    @contextmanager
    def bench(self, context_length: int) -> Iterator[Self]:
        """The same weights with short caches of their own, in the reproducible setting; what is loaded stays as it is.

        Raises UserFacingError.
        """
        if self._request is None or self._target is None:
            raise UserFacingError("No model is loaded.", "", "Choose a target model first.")
        twin = self._twin()
        settings = replace(self._request.settings, reproducible=True, context_length=context_length)
        request = replace(self._request, settings=settings)
        twin._template, twin._draft_problem = self._template, self._draft_problem
        try:
            twin._target = self._beside(self._target, settings)
            self._steady(twin._target)
            twin._draft = None if self._draft is None else self._beside(self._draft, settings)
            if twin._draft is not None:
                # It limits what the draft reads, where a model keeps the last tokens only.
                self._hindrance(twin._draft)
            conditions = self._conditions(request, twin._target, twin._draft is not None)
            twin._costs.settle(conditions, twin._target, twin._draft)
            twin._request = request
            yield twin
        finally:
            twin.close()

    @property
    def target(self) -> Model:
        assert self._target is not None
        return self._target

    def prompt(self, request: GenerationRequest) -> list[int]:
        assert self._template is not None
        return self._tokens_of(self._template.render(request.messages), self.target)

    def sampler(self, request: GenerationRequest) -> Sampler:
        """The request's sampling, completed by what the model's vocabulary says.

        Tokens that its file says must never be written are banned, and DRY has llama.cpp's breakers unless others are
        asked for.
        """
        sampling, vocabulary = request.sampling, self.target.vocabulary
        if vocabulary.suppressed:
            banned = tuple((token, -math.inf) for token in vocabulary.suppressed)
            sampling = replace(sampling, logit_bias=(*sampling.logit_bias, *banned))
        if sampling.repels and not sampling.dry_breakers:
            self._dry_breakers = self._dry_breakers or tokens_with(vocabulary, _DRY_BREAKERS)
            sampling = replace(sampling, dry_breakers=self._dry_breakers)
        return Sampler(sampling)

    def forget(self, *, learned: bool = True) -> None:
        """Empty the caches; with `learned` also forget what drafting has learned, as if the pair were just loaded."""
        for model in (self._draft, self._target):
            if model is not None:
                model.truncate(0)
        if learned:
            self._drafting.forget()
        self._known = KnownText()

    def close(self) -> None:
        self._costs.close()
        for model in (self._draft, self._target):
            if model is not None:
                model.close()
        self._draft = self._target = self._template = self._request = self._grammars = None
        self._draft_problem, self._dry_breakers, self._known = None, (), KnownText()

    def _load_draft(
        self, request: LoadRequest, target: Model, progress: ProgressListener, cancelled: Callable[[], bool]
    ) -> None:
        """A draft that cannot serve leaves the target as it is, and a reason."""
        if self._draft is not None:
            self._draft.close()
        self._draft, self._draft_problem = None, None
        if request.draft is None:
            return
        if target.no_rollback is not None:
            self._draft_problem = target.no_rollback
            return
        try:
            self._draft_problem = self._pair_check(request.target, request.draft)
            if self._draft_problem is None:
                self._draft = self._load_model(request, request.draft, 0.8, 0.2, progress, cancelled)
            if self._draft is not None and (hindrance := self._hindrance(self._draft)) is not None:
                self._draft.close()
                self._draft, self._draft_problem = None, hindrance
        except UserFacingError as error:
            self._draft_problem = str(error)

    def _obstacle(self, request: GenerationRequest, target: Model) -> str | None:
        """Why nothing drafts for this reply, if nothing does."""
        if not request.sources:
            return "Speculation is off for this message."
        if target.no_rollback is not None:
            return target.no_rollback
        if self._draft is None and all(source.uses_model for source in request.sources):
            return self._draft_problem or "No draft model is loaded."
        return None

    def _constraint(self, request: GenerationRequest, prompt: str, target: Model) -> Constraint | None:
        if request.json_schema is None and request.grammar is None:
            return None
        vocabulary = target.vocabulary
        marks = thought_marks(target.chat_template)
        if self._grammars is None:
            # A large library that most chats do without.
            from forespeak.engines.grammar import GrammarCompiler

            spelling = set(vocabulary.tokenize(marks.opener + marks.closer)) if marks else ()
            names = {token: vocabulary.text(token).encode() for token in spelling if not vocabulary.piece(token)}
            self._grammars = GrammarCompiler(vocabulary, names)
        thoughts = thoughts_behind(prompt, marks)
        if request.json_schema is not None:
            return self._grammars.json_schema(request.json_schema, thoughts)
        assert request.grammar is not None
        return self._grammars.grammar(request.grammar, thoughts)

    def _tokens_of(self, rendered: RenderedPrompt, target: Model) -> list[int]:
        """Tokens of the prompt; of what was read or written before, those that it was."""
        vocabulary = target.vocabulary
        known = self._known.tokens_of(rendered.text, vocabulary.tokenize, vocabulary.piece)
        if known is not None:
            return known
        tokens = vocabulary.tokenize(rendered.text)
        # Most templates write the BOS themselves; it must be there once.
        if vocabulary.adds_bos and tokens[:1] != [vocabulary.bos]:
            tokens.insert(0, vocabulary.bos)
        return tokens


def _guarded(source: DraftSource | None, target: EngineModel) -> DraftSource | None:
    limit = target.rollback_limit
    if source is None or limit is None:
        return source
    length, reason = limit
    return RollbackGuard(source, lambda: length - len(target.tokens), reason)


def _with_memory(event: Finished) -> Finished:
    return replace(event, stats=replace(event.stats, peak_memory_bytes=peak_memory_bytes()))


def peak_memory_bytes() -> int:
    """The most memory that this process has had resident so far."""
    if sys.platform == "win32":
        return psutil.Process().memory_info().peak_wset
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Kilobytes on Linux, bytes on macOS.
    return peak if sys.platform == "darwin" else peak * 1024

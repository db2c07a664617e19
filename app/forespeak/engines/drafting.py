"""What drafts for a loaded target, and how far: the same for every engine, and kept from reply to reply."""

from __future__ import annotations

from collections.abc import Callable

from forespeak.engines.engine import GenerationRequest
from forespeak.speculation.adaptive import AdaptiveDraftLength
from forespeak.speculation.controller import DraftController, FixedDraftLength
from forespeak.speculation.costs import Costs, measure_draft, measure_target
from forespeak.speculation.draft import DraftSource
from forespeak.speculation.draft_model import DraftModel
from forespeak.speculation.language_model import LanguageModel
from forespeak.speculation.ngram import NgramSimple, PromptLookup
from forespeak.speculation.ngram_cache import NgramCache
from forespeak.speculation.ngram_maps import NgramMapK, NgramMapK4V
from forespeak.speculation.ngram_mod import NgramMod
from forespeak.speculation.trace import Source
from forespeak.speculation.verify import Rule

MAX_DRAFT_LENGTH = 32
"""Scores are wanted for each drafted token and one more; engines make the buffers for them when they load."""

LONGEST_ADAPTIVE_DRAFT = 16

_TEXT_SOURCES: dict[Source, Callable[[], DraftSource]] = {
    Source.PROMPT_LOOKUP: PromptLookup,
    Source.NGRAM_SIMPLE: NgramSimple,
    Source.NGRAM_MAP_K: NgramMapK,
    Source.NGRAM_MAP_K4V: NgramMapK4V,
    Source.NGRAM_MOD: NgramMod,
    Source.NGRAM_CACHE: NgramCache,
}


class Drafting:
    """Sources, measured costs and what the controllers have learned, for one target and the draft model beside it."""

    def __init__(self) -> None:
        self._text_sources: dict[Source, DraftSource] = {}
        self._target_seconds: tuple[tuple[int, float], ...] = ()
        self._draft_seconds = (0.0, 0.0)
        self._controllers: dict[tuple[Source, Rule], AdaptiveDraftLength] = {}

    def measure_target(self, model: LanguageModel) -> None:
        """Time a target that has just been loaded. Its cache is empty afterwards."""
        self._target_seconds = measure_target(model)
        self._controllers.clear()

    def measure_draft(self, model: LanguageModel) -> None:
        """Time a draft model that has just been loaded. Its cache is empty afterwards."""
        self._draft_seconds = measure_draft(model)
        self._controllers = {key: kept for key, kept in self._controllers.items() if not key[0].uses_model}

    def forget(self) -> None:
        """As if the pair had just been loaded; the measured costs stay."""
        self._text_sources.clear()
        self._controllers.clear()

    def controller(self, request: GenerationRequest) -> DraftController:
        """How long the drafts of a reply are. One that adapts goes on with what it knows from earlier replies."""
        if request.draft_length is not None or request.source is None:
            return FixedDraftLength(min(request.draft_length or 0, MAX_DRAFT_LENGTH))
        key = (request.source, request.rule)
        if key not in self._controllers:
            drafted = self._draft_seconds if request.source.uses_model else (0.0, 0.0)
            self._controllers[key] = AdaptiveDraftLength(
                Costs(self._target_seconds, *drafted),
                LONGEST_ADAPTIVE_DRAFT,
                gated=request.source.uses_model,
                drops_tokens=request.rule is Rule.COUPLED,
            )
        return self._controllers[key]

    def text_source(self, source: Source) -> DraftSource:
        """A source without a model; it keeps its index of the chat for the next reply."""
        if source not in self._text_sources:
            self._text_sources[source] = _TEXT_SOURCES[source]()
        return self._text_sources[source]

    def model_source(
        self, request: GenerationRequest, draft: LanguageModel, vocabulary_size: int, cancelled: Callable[[], bool]
    ) -> DraftSource:
        """The draft model as a source for one reply. While it is paused, it does not read the prompt either."""
        controller = self.controller(request)
        return DraftModel(
            draft,
            vocabulary_size,
            request.rule,
            cancelled,
            gate=controller if isinstance(controller, AdaptiveDraftLength) else None,
            reads_prompt=controller.state.active,
        )

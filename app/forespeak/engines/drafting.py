"""What drafts for a loaded target, and how far: the same for every engine, and kept from reply to reply."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from forespeak.engines.engine import GenerationRequest, TextSourceSettings
from forespeak.speculation.adaptive import AdaptiveDraftLength
from forespeak.speculation.adaptive_chain import AdaptiveChain
from forespeak.speculation.adaptive_lookup import AdaptiveLookup
from forespeak.speculation.chain import Chain
from forespeak.speculation.controller import DraftController, FixedDraftLength
from forespeak.speculation.costs import Costs, RunningCosts, measure_draft, measure_target
from forespeak.speculation.draft import DraftSource
from forespeak.speculation.draft_model import DraftModel
from forespeak.speculation.language_model import LanguageModel
from forespeak.speculation.ngram import NgramSimple, PromptLookup, TextSource
from forespeak.speculation.ngram_cache import NgramCache
from forespeak.speculation.ngram_maps import NgramMapK, NgramMapK4V
from forespeak.speculation.ngram_mod import NgramMod
from forespeak.speculation.settings import Rule
from forespeak.speculation.trace import Source

MAX_DRAFT_LENGTH = 48
"""Scores are wanted for each drafted token and one more; engines make the buffers for them when they load."""

LONGEST_MODEL_DRAFT = 24
_LONGEST_LOOKUP = MAX_DRAFT_LENGTH


_Regime = tuple[Rule, int]
"""A rule and the temperature in quarters: what a draft's confidence is worth is another question at each of them."""


def _regime(request: GenerationRequest) -> _Regime:
    return request.rule, math.ceil(4.0 * min(request.sampling.temperature, 2.0))


class Drafting:
    """Sources, measured costs and what their judges have learned, for one target and the draft model beside it."""

    def __init__(self) -> None:
        self._settings = TextSourceSettings()
        self._text_sources: dict[Source, TextSource] = {}
        self._target_seconds: tuple[tuple[int, float], ...] = ((1, 0.0),)
        self._draft_seconds = (0.0, 0.0)
        self._start_anew()

    def measure_target(self, model: LanguageModel) -> None:
        """Time a target that has just been loaded. Its cache is empty afterwards."""
        self._target_seconds = measure_target(model)
        self._draft_seconds = (0.0, 0.0)
        self._start_anew()

    def measure_draft(self, model: LanguageModel) -> None:
        """Time a draft model that has just been loaded. Its cache is empty afterwards."""
        self._draft_seconds = measure_draft(model)
        self._start_anew()

    def anew(self) -> Drafting:
        """As if the pair had just been loaded, beside this one, which neither learns of it nor forgets anything."""
        other = Drafting()
        other._target_seconds, other._draft_seconds = self._target_seconds, self._draft_seconds
        other._start_anew()
        return other

    def forget(self) -> None:
        """As if the pair had just been loaded; the measured costs stay."""
        self._text_sources.clear()
        self._start_anew()

    def _start_anew(self) -> None:
        self._costs = RunningCosts(Costs(self._target_seconds, *self._draft_seconds))
        self._models: dict[_Regime, AdaptiveDraftLength] = {}
        self._lookups: dict[Source, AdaptiveLookup] = {}

    def prepare(
        self,
        request: GenerationRequest,
        draft: LanguageModel | None,
        vocabulary_size: int,
        cancelled: Callable[[], bool],
    ) -> tuple[DraftSource | None, DraftController]:
        """The source of a reply's drafts and what decides on their lengths, for `draft` or without a draft model.

        The source is None if there is none among those that the request names. `vocabulary_size` is the target's.
        """
        adapts = request.draft_length is None
        if request.text_sources != self._settings:
            self._settings = request.text_sources
            self._text_sources.clear()
        model = self._model_judge(_regime(request)) if adapts else None
        if model is not None:
            model.begin()
        members: dict[Source, DraftSource] = {}
        for source in request.sources:
            if not source.uses_model:
                members[source] = self._text_source(source)
            elif draft is not None:
                reads_prompt = model.active if model is not None else request.draft_length != 0
                members[source] = DraftModel(
                    draft, vocabulary_size, request.rule, cancelled, gate=model, reads_prompt=reads_prompt
                )
        if not members:
            return None, FixedDraftLength(0, self._costs)
        if request.draft_length is not None:
            alone = next(iter(members.values())) if len(members) == 1 else Chain(members)
            return alone, FixedDraftLength(min(request.draft_length, MAX_DRAFT_LENGTH), self._costs)
        assert model is not None
        if list(members) == [Source.DRAFT_MODEL]:
            return members[Source.DRAFT_MODEL], model
        lookups = {source: self._lookup_judge(source) for source in members if not source.uses_model}
        judge = model if Source.DRAFT_MODEL in members else None
        chain = AdaptiveChain(members, lookups, judge, self._costs, _LONGEST_LOOKUP)
        return chain, chain.controller

    def _model_judge(self, regime: _Regime) -> AdaptiveDraftLength:
        if regime not in self._models:
            rule, _ = regime
            self._models[regime] = AdaptiveDraftLength(
                self._costs, LONGEST_MODEL_DRAFT, drops_tokens=rule is Rule.COUPLED
            )
        return self._models[regime]

    def _lookup_judge(self, source: Source) -> AdaptiveLookup:
        if source not in self._lookups:
            self._lookups[source] = AdaptiveLookup(self._costs)
        return self._lookups[source]

    def _text_source(self, source: Source) -> TextSource:
        """A source without a model; it keeps its index of the chat for the next reply."""
        if source not in self._text_sources:
            self._text_sources[source] = _made(source, self._settings)
        return self._text_sources[source]

    # What is kept with the pair

    def learned(self) -> dict[str, object]:
        """What was measured and learned of the pair, as JSON values."""
        return {
            "target_seconds": [list(pair) for pair in self._target_seconds],
            "draft_seconds": list(self._draft_seconds),
            "models": {f"{rule.value} {heat}": judge.learned() for (rule, heat), judge in self._models.items()},
            "lookups": {source.value: judge.learned() for source, judge in self._lookups.items()},
        }

    def recall(self, learned: Mapping[str, object], *, costs: bool = True) -> None:
        """Go on from what `learned` gave for the same pair earlier. Without `costs` those measured now stay.

        Raises ValueError for anything else; then nothing has changed.
        """
        before = (self._target_seconds, self._draft_seconds)
        try:
            if costs:
                self._target_seconds = _seconds_by_size(learned["target_seconds"])
                one, more = (float(value) for value in _listed(learned["draft_seconds"]))
                if not (0.0 <= one < 60.0 and 0.0 <= more < 60.0):
                    raise ValueError("draft costs out of range")
                self._draft_seconds = (one, more)
            self._start_anew()
            for name, values in _named(learned["models"]).items():
                rule, heat = name.split(" ")
                self._model_judge((Rule(rule), int(heat))).recall(_named(values))
            for name, values in _named(learned["lookups"]).items():
                self._lookup_judge(Source(name)).recall(_named(values))
        except (KeyError, TypeError, ValueError) as error:
            self._target_seconds, self._draft_seconds = before
            self._start_anew()
            raise ValueError(f"not what a pair has learned: {error}") from error


def _made(source: Source, settings: TextSourceSettings) -> TextSource:
    match source:
        case Source.PROMPT_LOOKUP:
            return PromptLookup(settings.prompt_lookup)
        case Source.NGRAM_SIMPLE:
            return NgramSimple(settings.ngram_simple)
        case Source.NGRAM_MAP_K:
            return NgramMapK(settings.ngram_map_k)
        case Source.NGRAM_MAP_K4V:
            return NgramMapK4V(settings.ngram_map_k4v)
        case Source.NGRAM_MOD:
            return NgramMod(settings.ngram_mod, shared=settings.shared)
        case Source.NGRAM_CACHE:
            return NgramCache(settings.ngram_cache, shared=settings.shared)
        case Source.DRAFT_MODEL:
            raise ValueError("a draft model does not look the text up")


def _seconds_by_size(value: object) -> tuple[tuple[int, float], ...]:
    pairs = tuple((int(size), float(seconds)) for size, seconds in map(_listed, _listed(value)))
    sizes = [size for size, _ in pairs]
    if not pairs or sizes != sorted(set(sizes)) or sizes[0] < 1 or any(not 0.0 < s < 600.0 for _, s in pairs):
        raise ValueError("target costs out of range")
    return pairs


def _listed(value: object) -> list[float]:
    if not isinstance(value, list):
        raise TypeError("no list")
    return value


def _named(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError("no object")
    return value

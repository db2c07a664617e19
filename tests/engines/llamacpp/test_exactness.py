"""Both rules follow the target's own distribution, on the real models' scores and the real loop.

The scores behind each text are evaluated once and kept, so that thousands of seeds cost a few dozen evaluations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from chi_square import chi_square_p
from exact_continuations import exact_continuations
from forespeak.engines.llamacpp.bindings import NativeVocabulary
from forespeak.engines.llamacpp.engine import LlamaEngine
from forespeak.engines.llamacpp.model import LlamaModel
from forespeak.speculation.controller import FixedDraftLength
from forespeak.speculation.decode import DecodeSettings, generate
from forespeak.speculation.draft_model import DraftModel
from forespeak.speculation.language_model import Logits
from forespeak.speculation.sampling import Distribution, Sampler, distribution
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.speculation.trace import Step

SEEDS = 2000
TOKENS = 3


class Memorised:
    """A LanguageModel that evaluates each text once with the real one."""

    def __init__(self, real: LlamaModel) -> None:
        self._real = real
        self._rows: dict[tuple[int, ...], Logits] = {}
        self.tokens: list[int] = []
        self.context_length, self.batch_limit, self.output_limit = 512, 128, 16

    @property
    def vocabulary(self) -> NativeVocabulary:
        return self._real.vocabulary

    def evaluate(self, tokens: Sequence[int], outputs: int) -> Logits:
        self.tokens += tokens
        ends = range(len(self.tokens) - outputs + 1, len(self.tokens) + 1)
        return (
            np.stack([self.row(tuple(self.tokens[:end])) for end in ends]) if outputs else np.empty((0, 0), np.float32)
        )

    def row(self, text: tuple[int, ...]) -> Logits:
        if text not in self._rows:
            self._real.truncate(0)
            self._rows[text] = self._real.evaluate(text, 1)[0].copy()
        return self._rows[text]

    def truncate(self, length: int) -> None:
        del self.tokens[length:]


@pytest.fixture(scope="module")
def models(_engine: LlamaEngine) -> tuple[Memorised, Memorised]:
    assert _engine._target is not None
    assert _engine._draft is not None
    return Memorised(_engine._target), Memorised(_engine._draft)


FILTERS = {
    "temperature": SamplingSettings(temperature=1.5, top_k=3, top_p=1.0, min_p=0.0),
    "top-p": SamplingSettings(temperature=1.2, top_k=6, top_p=0.7, min_p=0.0),
    "min-p": SamplingSettings(temperature=1.2, top_k=6, top_p=1.0, min_p=0.15),
    "penalties": SamplingSettings(temperature=1.2, top_k=3, top_p=1.0, min_p=0.0, repeat_penalty=1.3),
}


@pytest.mark.parametrize("rule", list(Rule), ids=lambda rule: rule.value)
@pytest.mark.parametrize("name", FILTERS)
def test_the_next_tokens_follow_the_targets_distribution(
    models: tuple[Memorised, Memorised], rule: Rule, name: str
) -> None:
    target, draft = models
    prompt = tuple(target.vocabulary.tokenize("My favourite animal is the"))
    settings = FILTERS[name]

    def choices_behind(text: tuple[int, ...]) -> Distribution:
        return distribution(target.row(prompt + text), settings, prompt + text)

    expected = exact_continuations(choices_behind, TOKENS, target.vocabulary.ends_generation)
    counts: Counter[tuple[int, ...]] = Counter()
    for seed in range(SEEDS):
        seeded = SamplingSettings(
            temperature=settings.temperature,
            top_k=settings.top_k,
            top_p=settings.top_p,
            min_p=settings.min_p,
            repeat_penalty=settings.repeat_penalty,
            seed=seed,
        )
        source = DraftModel(draft, target.vocabulary.size, rule, lambda: False)
        events = generate(
            target, source, prompt, Sampler(seeded), FixedDraftLength(2), DecodeSettings(rule, max_tokens=TOKENS)
        )
        counts[tuple(t.id for event in events if isinstance(event, Step) for t in event.emitted)] += 1
    assert sum(expected.values()) == pytest.approx(1.0)
    assert chi_square_p(counts, expected) > 1e-3

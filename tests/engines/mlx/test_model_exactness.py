"""Both rules follow the target's own distribution, on a real network's scores and caches, in the real loop."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed (extra: mlx)")

from mlx_lm.utils import load_model, load_tokenizer

from chi_square import chi_square_p
from exact_continuations import exact_continuations
from forespeak.engines.mlx.model import MlxModel
from forespeak.engines.mlx.vocabulary import MlxVocabulary
from forespeak.speculation.controller import FixedDraftLength
from forespeak.speculation.decode import DecodeSettings, generate
from forespeak.speculation.draft_model import DraftModel
from forespeak.speculation.sampling import Distribution, Sampler, distribution
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.speculation.trace import Step
from tiny_llama import vocabulary

SEEDS, TOKENS = 1500, 3
SETTINGS = SamplingSettings(temperature=3.0, top_k=3, top_p=1.0, min_p=0.0)


def opened(folder: Path) -> MlxModel:
    network, _ = load_model(folder)
    tokens = MlxVocabulary(load_tokenizer(folder), len(vocabulary().tokens))
    return MlxModel(network, tokens, context_length=64, batch_limit=32, output_limit=16)


@pytest.mark.parametrize("rule", list(Rule), ids=lambda rule: rule.value)
def test_the_next_tokens_follow_the_targets_distribution(tiny: Path, near: Path, rule: Rule) -> None:
    target, draft = opened(tiny), opened(near)
    prompt = target.vocabulary.tokenize("the thing")

    def choices_behind(text: tuple[int, ...]) -> Distribution:
        target.truncate(0)
        return distribution(target.evaluate([*prompt, *text], 1)[0], SETTINGS, [*prompt, *text])

    expected = exact_continuations(choices_behind, TOKENS, target.vocabulary.ends_generation)
    assert sum(expected.values()) == pytest.approx(1.0)
    assert len(expected) > 20
    counts: Counter[tuple[int, ...]] = Counter()
    accepted = rejected = 0
    for seed in range(SEEDS):
        sampling = SamplingSettings(temperature=3.0, top_k=3, top_p=1.0, min_p=0.0, seed=seed)
        source = DraftModel(draft, target.vocabulary.size, rule, lambda: False)
        decode = DecodeSettings(rule, max_tokens=TOKENS)
        events = list(generate(target, source, prompt, Sampler(sampling), FixedDraftLength(2), decode))
        steps = [event for event in events if isinstance(event, Step)]
        counts[tuple(token.id for step in steps for token in step.emitted)] += 1
        accepted += sum(step.accepted_count for step in steps)
        rejected += sum(len(step.rejected) for step in steps)
    assert min(accepted, rejected) > SEEDS / 10
    assert chi_square_p(counts, expected) > 1e-3

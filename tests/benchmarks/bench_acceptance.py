"""How much of a draft each rule accepts at T = 0.8 (top-k 40, top-p 0.95), by pair and by the draft's fixed length.

    python tests/benchmarks/bench_acceptance.py [--tokens 200] [--seeds 3] [--categories ...] [--lengths 1,2,3,4]
        [--json FILE]

Two rates, over all categories and seeds:

- per place: accepted / (accepted + first rejected ones): the chance that a drafted token is accepted where it is judged
  at all. This is what the overlap of the two distributions bounds, and what is wanted: coupled at least 0.95 for
  F32 + Q4_1 and 0.62 for F32 + Q2_K, rejection not lower.
- accepted / tested, as the app shows it: tokens behind the first rejected one count as tested and lost, so the rate
  falls with the length even where each place is as good as the other.

For reference, over the texts that the target writes without drafts: the mean overlap sum min(p, q), which no rule can
surpass and rejection reaches; and the mean p(argmax q), which a draft that guesses greedily has.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.pair_runs import PAIR_PROMPTS, ask, filters, generate, load, machine, verdict, write_json
from forespeak.engines.llamacpp.engine import LlamaEngine
from forespeak.engines.llamacpp.model import LlamaModel
from forespeak.speculation.sampling import Distribution, Sampler
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.speculation.trace import Source

TEMPERATURE = 0.8
WANTED = {("F32", "Q4_1"): 0.95, ("F32", "Q2_K"): 0.62}
TOLERANCE = 0.01
"""Of a few thousand places, the rate is known no better."""


@dataclass(slots=True)
class Counts:
    """Of drafted tokens: accepted, tested, and the judged ones of them."""

    accepted: int = 0
    tested: int = 0
    judged: int = 0

    @property
    def per_place(self) -> float:
        return self.accepted / max(self.judged, 1)

    @property
    def of_tested(self) -> float:
        return self.accepted / max(self.tested, 1)


def distributions(model: LlamaModel, tokens: list[int], start: int, sampling: SamplingSettings) -> list[Distribution]:
    """What the model gives for every place from `start` on, knowing the text before it."""
    model.truncate(0)
    found: list[Distribution] = []
    sampler = Sampler(sampling)
    at = 0
    while at < len(tokens) - 1:
        size = (
            min(model.batch_limit, start - 1 - at) if at < start - 1 else min(model.output_limit, len(tokens) - 1 - at)
        )
        outputs = 0 if at < start - 1 else size
        rows = model.evaluate(tokens[at : at + size], outputs)
        found += [sampler.after(row, tokens[: at + place + 1], ()) for place, row in enumerate(rows)]
        at += size
    return found


def overlap(p: Distribution, q: Distribution) -> float:
    _, a, b = np.intersect1d(p.ids, q.ids, assume_unique=True, return_indices=True)
    return float(np.minimum(np.exp(p.log_probabilities[a]), np.exp(q.log_probabilities[b])).sum())


def references(engine: LlamaEngine, prompts: list[str], seeds: int, tokens: int) -> tuple[float, float, int]:
    """Mean overlap, mean p(argmax q), and of how many places."""
    target, draft = engine._target, engine._draft
    assert target is not None
    assert draft is not None
    overlaps: list[float] = []
    guesses: list[float] = []
    for prompt in prompts:
        for seed in range(seeds):
            sampling = filters(TEMPERATURE, seed)
            request = ask(prompt, tokens, sampling)
            steps, stats, _ = generate(engine, request)
            text = engine.prompt(request)[: stats.prompt_tokens]
            text += [token.id for step in steps for token in step.emitted]
            ps, qs = (distributions(model, text, stats.prompt_tokens, sampling) for model in (target, draft))
            overlaps += [overlap(p, q) for p, q in zip(ps, qs, strict=True)]
            guesses += [p.probability(q.top(1)[0][0]) for p, q in zip(ps, qs, strict=True)]
    return statistics.fmean(overlaps), statistics.fmean(guesses), len(overlaps)


def accepted(engine: LlamaEngine, rule: Rule, length: int, prompts: list[str], seeds: int, tokens: int) -> Counts:
    counts = Counts()
    for prompt in prompts:
        for seed in range(seeds):
            request = ask(prompt, tokens, filters(TEMPERATURE, seed), (Source.DRAFT_MODEL,), length)
            steps, _, _ = generate(engine, replace(request, rule=rule))
            for step in steps:
                counts.accepted += step.accepted_count
                counts.tested += step.tested_count
                counts.judged += step.accepted_count + bool(step.rejected)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--categories", type=lambda text: text.split(","), default=list(PAIR_PROMPTS))
    parser.add_argument("--lengths", type=lambda text: [int(part) for part in text.split(",")], default=[1, 2, 3, 4])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    prompts = [PAIR_PROMPTS[category] for category in options.categories]
    rows, missed = [], 0
    for (target, draft), wanted in WANTED.items():
        engine = load(target, draft)
        overlaps, guess, places = references(engine, prompts, options.seeds, options.tokens)
        print(
            f"{target} + {draft}: overlap {overlaps:.3f}, a greedy guess {guess:.3f}, over {places} places", flush=True
        )
        per_place: dict[tuple[Rule, int], float] = {}
        for length in options.lengths:
            for rule in Rule:
                counts = accepted(engine, rule, length, prompts, options.seeds, options.tokens)
                per_place[rule, length] = counts.per_place
                row = {"target": target, "draft": draft, "rule": rule.value, "length": length}
                rates = {"per_place": counts.per_place, "of_tested": counts.of_tested, "judged": counts.judged}
                rows.append(row | rates | {"overlap": overlaps, "p_of_argmax_q": guess})
                print(
                    f"  {rule.value:10} length {length}: per place {counts.per_place:.3f} of {counts.judged}, "
                    f"accepted / tested {counts.of_tested:.3f}",
                    flush=True,
                )
        means = {rule: statistics.fmean(per_place[rule, length] for length in options.lengths) for rule in Rule}
        for rule, mean in means.items():
            least = wanted if rule is Rule.COUPLED else means[Rule.COUPLED] - TOLERANCE
            print(f"  {rule.value:10} over all lengths {verdict(mean, least)}")
            missed += mean < least
        engine.close()
    write_json(options.json, {"machine": machine(), "tokens": options.tokens, "seeds": options.seeds, "cases": rows})
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

"""What the draft sources without a model cost at a long history.

    python tests/benchmarks/bench_ngram.py [--tokens 100000] [--limit 32] [--steps 1000] [--seed 1]

The text is made of words by Zipf's law, half of it passages said before with a few changes. Each source reads it,
then drafts and is told what really follows; then the chat branches in the middle. Memory is what a source holds of
10,000 tokens (of a table, the untouched pages too). Ends with 1 if a proposal's 99th percentile is above 0.2 ms.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
import tracemalloc
from collections.abc import Callable

from forespeak.speculation.draft import DraftSource
from forespeak.speculation.language_model import common_prefix_length
from forespeak.speculation.ngram import NgramSimple, PromptLookup
from forespeak.speculation.ngram_cache import NgramCache
from forespeak.speculation.ngram_maps import NgramMapK, NgramMapK4V
from forespeak.speculation.ngram_mod import NgramMod
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import SamplingSettings

BUDGET_MILLISECONDS = 0.2
SAMPLER = Sampler(SamplingSettings())
SOURCES: dict[str, Callable[[], DraftSource]] = {
    "prompt lookup": PromptLookup,
    "simple": NgramSimple,
    "map-k": NgramMapK,
    "map-k4v": NgramMapK4V,
    "mod": NgramMod,
    "mod, shared": lambda: NgramMod(shared=True),
    "cache": NgramCache,
    "cache, shared": lambda: NgramCache(shared=True),
}


def written(length: int, seed: int) -> list[int]:
    """Token ids of a vocabulary of 50,000."""
    randomness = random.Random(seed)
    weights = [1.0 / rank for rank in range(1, 50_001)]
    text: list[int] = []
    while len(text) < length:
        if len(text) > 500 and randomness.random() < 0.5:
            start = randomness.randrange(len(text) - 200)
            text += [
                randomness.randrange(50_000) if randomness.random() < 0.02 else token
                for token in text[start : start + 80]
            ]
        else:
            text += randomness.choices(range(50_000), weights, k=60)
    return text[:length]


def percentile(seconds: list[float], share: float) -> float:
    """In microseconds."""
    return sorted(seconds)[min(int(share * len(seconds)), len(seconds) - 1)] * 1e6


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=100_000)
    parser.add_argument("--limit", type=int, default=32)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    text = written(options.tokens + options.steps * (options.limit + 1), options.seed)
    history = text[: options.tokens]
    branch = [*history[: len(history) // 2], *written(1000, options.seed + 1)]
    texts = {"mixed": text, "one token": [7] * len(text)}
    print(f"{options.tokens} tokens, drafts of at most {options.limit}; index, branch in ms, then µs; memory in MiB")
    print(
        f"{'source':15}{'text':10}{'index':>7}{'branch':>7}{'propose p50':>12}{'p99':>7}{'accept p50':>11}{'p99':>7}",
        end="",
    )
    print(f"{'drafted':>9}{'accepted':>9}{'memory':>8}")
    worst = 0.0
    for name, make in SOURCES.items():
        for kind, whole in texts.items():
            source = make()
            gc.collect()
            before = time.perf_counter()
            source.begin(whole[: options.tokens], SAMPLER)
            index = time.perf_counter() - before
            proposing: list[float] = []
            accepting: list[float] = []
            place, drafted, accepted = options.tokens, 0, 0
            for _ in range(options.steps):
                before = time.perf_counter()
                draft = source.propose(options.limit).tokens
                proposing.append(time.perf_counter() - before)
                right = common_prefix_length(draft, whole[place : place + options.limit])
                emitted = whole[place : place + right + 1]
                before = time.perf_counter()
                source.accept(emitted)
                accepting.append(time.perf_counter() - before)
                place, drafted, accepted = place + len(emitted), drafted + len(draft), accepted + right
            source.begin(whole[: options.tokens], SAMPLER)
            before = time.perf_counter()
            source.begin(branch if kind == "mixed" else [*whole[: options.tokens // 2], 1], SAMPLER)
            branched = time.perf_counter() - before
            tracemalloc.start()
            read = make()
            read.begin(whole[:10_000], SAMPLER)
            memory = tracemalloc.get_traced_memory()[0] / 2**20
            tracemalloc.stop()
            p99 = percentile(proposing, 0.99)
            worst = max(worst, p99)
            print(
                f"{name:15}{kind:10}{index * 1e3:7.0f}{branched * 1e3:7.0f}{percentile(proposing, 0.5):12.1f}"
                f"{p99:7.1f}{percentile(accepting, 0.5):11.1f}{percentile(accepting, 0.99):7.1f}"
                f"{drafted:9}{accepted:9}{memory:8.1f}"
            )
    return 1 if worst > BUDGET_MILLISECONDS * 1e3 else 0


if __name__ == "__main__":
    sys.exit(main())

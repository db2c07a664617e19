"""Six pairs, six kinds of text, greedy and sampled: Auto and fixed lengths against plain. Run alone on the machine.

    python tests/benchmarks/bench_pairs.py [--pairs F32+Q4_1,…] [--lengths 2,4,8] [--tokens 200] [--runs 1] [--first]

The pairs are relatives of the starter model; "F32+ngram" drafts with what is offered where no second model does. One
prompt of each kind, T = 0 and 0.8, the same seed for all ways, in turning order. `--first` measures only the first
reply of a pair never seen before. Ratios are decode rates against plain of the same repetition; medians over
repetitions.

"within" is the same ratio by the replies' own plain steps: where many of Auto's steps drafted nothing, what they took
tells what a plain reply would have taken at the very same time, and so what drafting cost, whatever the machine did
between two replies.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.pair_runs import PAIR_PROMPTS, ask, generate, geometric_mean, load
from forespeak.engines.engine import Start
from forespeak.pairing.candidates import LOOKUP_SOURCES
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import Source, Step

PAIRS = "F32+Q4_1,F32+Q2_K,F16+Q4_1,Q8_0+Q2_K,Q4_1+Q4_1,F32+ngram"
KINDS = ("code", "prose", "rewrite", "json", "list", "translation")
ENOUGH_PLAIN_STEPS = 20


def by_own_plain_steps(steps: Sequence[Step]) -> float | None:
    """How much longer plain steps would have taken for these tokens, by the plain ones among them."""
    steps = steps[1:]
    plain = [step.target_seconds for step in steps if not step.tested_count and not step.ignored]
    if len(plain) < ENOUGH_PLAIN_STEPS:
        return None
    seconds = sum(step.draft_seconds + step.target_seconds for step in steps)
    return sum(len(step.emitted) for step in steps) * statistics.median(plain) / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", default=PAIRS)
    parser.add_argument("--lengths", default="2,4,8")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--temperatures", type=float, nargs="*", default=[0.0, 0.8])
    parser.add_argument("--first", action="store_true")
    options = parser.parse_args()
    lengths = [] if options.first else [int(length) for length in options.lengths.split(",") if length]
    all_plain: list[float] = []
    all_fixed: list[float] = []
    for pair in options.pairs.split(","):
        target, draft = pair.split("+")
        engine = load(target, None if draft == "ngram" else draft)
        sources = LOOKUP_SOURCES if draft == "ngram" else (Source.DRAFT_MODEL,)
        pair_plain: list[float] = []
        pair_fixed: list[float] = []
        pair_within: list[float] = []
        for temperature in options.temperatures:
            for kind in KINDS:
                rates: dict[str, list[float]] = {}
                own: dict[str, list[float | None]] = {}
                for run in range(options.runs):
                    request = ask(PAIR_PROMPTS[kind], options.tokens, SamplingSettings(temperature, seed=11 + run))
                    auto = replace(request, sources=sources, start=Start.FRESH if options.first else Start.WARM)
                    ways = {"plain": request, "auto": auto}
                    ways |= {f"k={k}": replace(request, sources=sources, draft_length=k) for k in lengths}
                    for name in list(ways) if run % 2 == 0 else reversed(ways):
                        steps, stats, _ = generate(engine, ways[name])
                        rates.setdefault(name, []).append(stats.tokens_per_second)
                        own.setdefault(name, []).append(by_own_plain_steps(steps))
                ratio = {
                    name: statistics.median(a / b for a, b in zip(rates[name], rates["plain"], strict=True))
                    for name in rates
                }
                best = max(ratio[name] for name in ratio if name != "auto")
                pair_plain.append(ratio["auto"])
                pair_fixed.append(ratio["auto"] / best)
                shown = "  ".join(f"{name} {value:.3f}" for name, value in ratio.items() if name != "plain")
                pairs = zip(own["auto"], own["plain"], strict=True)
                within = [a / b for a, b in pairs if a is not None and b is not None]
                shown += f"  within {statistics.median(within):.3f}" if within else ""
                pair_within += [statistics.median(within)] if within else []
                low = "  below 1" if ratio["auto"] < 1.0 else ""
                plain = statistics.median(rates["plain"])
                print(f"{pair:10} T={temperature} {kind:11} plain {plain:5.1f}/s  {shown}{low}", flush=True)
        engine.close()
        print(
            f"{pair:10} auto / plain {geometric_mean(pair_plain):.3f}, lowest {min(pair_plain):.3f}; "
            f"auto / best of plain and fixed {geometric_mean(pair_fixed):.3f}"
            + (f"; lowest within {min(pair_within):.3f}, of {len(pair_within)} cells" if pair_within else ""),
            flush=True,
        )
        all_plain += pair_plain
        all_fixed += pair_fixed
    print(
        f"all: auto / plain {geometric_mean(all_plain):.3f}, lowest {min(all_plain):.3f}, cells below 0.97: "
        f"{sum(ratio < 0.97 for ratio in all_plain)} of {len(all_plain)}; "
        f"auto / best fixed {geometric_mean(all_fixed):.3f}"
    )


if __name__ == "__main__":
    main()

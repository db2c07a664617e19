"""What drafts that do not pay cost: Auto against plain decoding, beside a draft of random tokens and a slow one.

    python tests/benchmarks/bench_hostile.py [--runs 5] [--later 2] [--tokens 200] [--categories code,prose]
        [--json FILE]

- random: target F32, draft Q4_1 whose scores are shuffled over the vocabulary: as dear as a real draft, as sure of
  itself, and never right.
- slow: target Q4_1, draft F32: nearly always right, and four times as dear as what it saves.

Each run begins as if the pair had just been loaded (its first reply), then `later` replies go on with what was learned.
Auto and plain take turns, in either order. Ratios are of paired replies: of the decode rate, and in brackets the whole
request's, in which a draft's reading of the prompt counts too. At least 0.97 is wanted.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.pair_runs import (
    PAIR_PROMPTS,
    Run,
    ask,
    filters,
    geometric_mean,
    load,
    machine,
    measure,
    ratio,
    verdict,
    warn_if_busy,
    write_json,
)
from forespeak.engines.llamacpp.engine import LlamaEngine
from forespeak.engines.llamacpp.model import LlamaModel
from forespeak.speculation.language_model import Logits
from forespeak.speculation.trace import Source

WANTED = 0.97


class Shuffled(LlamaModel):
    """A loaded model that gives each token the score of another."""

    def __init__(self, model: LlamaModel) -> None:
        # The same context and weights; only what comes out of it differs.
        for name, value in vars(model).items():
            setattr(self, name, value)
        self._other = np.random.default_rng(1).permutation(model.vocabulary.size)

    def evaluate(self, tokens: Sequence[int], outputs: int) -> Logits:
        return super().evaluate(tokens, outputs)[:, self._other]


def hostile_engine(kind: str) -> LlamaEngine:
    if kind == "slow":
        return load("Q4_1", "F32")
    engine = load("F32", "Q4_1")
    assert engine._draft is not None
    engine._draft = Shuffled(engine._draft)
    return engine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--later", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--categories", type=lambda text: text.split(","), default=["code", "prose"])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warn_if_busy()
    before, rows = machine(), []
    for kind in ("random", "slow"):
        engine = hostile_engine(kind)
        for temperature in (0.0, 0.8):
            autos: dict[str, list[Run]] = {"first": [], "later": []}
            plains: dict[str, list[Run]] = {"first": [], "later": []}
            for run in range(options.runs):
                for category in options.categories:
                    engine.forget()
                    for reply in range(1 + options.later):
                        when = "later" if reply else "first"
                        sampling = filters(temperature, run * 10 + reply)
                        plain = ask(PAIR_PROMPTS[category], options.tokens, sampling)
                        auto = ask(PAIR_PROMPTS[category], options.tokens, sampling, (Source.DRAFT_MODEL,))
                        turns = [(plains, plain), (autos, auto)]
                        for results, request in turns if (run + reply) % 2 == 0 else reversed(turns):
                            results[when].append(measure(engine, request))
            for when, auto_runs in autos.items():
                if not auto_runs:
                    continue
                rates = ratio([run.rate for run in auto_runs], [run.rate for run in plains[when]])
                walls = ratio([run.wall_rate for run in auto_runs], [run.wall_rate for run in plains[when]])
                drafted = statistics.fmean(run.drafted for run in auto_runs)
                accepted = statistics.fmean(run.accepted for run in auto_runs)
                row = {"draft": kind, "temperature": temperature, "reply": when, "drafted": drafted}
                rows.append(row | {"accepted": accepted, "ratio": asdict(rates), "whole_request_ratio": asdict(walls)})
                print(
                    f"{kind:7} T={temperature} {when} replies: auto / plain {rates} [{walls}], "
                    f"{drafted:.0f} tested, {accepted:.0f} accepted of {options.tokens}; "
                    f"{verdict(rates.median, WANTED)}",
                    flush=True,
                )
        engine.close()
    medians = [float(row["ratio"]["median"]) for row in rows]  # type: ignore[index]
    print(f"all cases: geometric mean {geometric_mean(medians):.3f}, worst {verdict(min(medians), WANTED)}")
    write_json(options.json, {"machine": before, "runs": options.runs, "tokens": options.tokens, "cases": rows})
    return 0 if min(medians) >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())

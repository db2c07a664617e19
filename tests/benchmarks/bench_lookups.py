"""Auto without a draft model on recorded replies: what the lookups' judges decide, without a clock's noise.

    python tests/benchmarks/bench_lookups.py [--machines F32,Q8_0,…] [--seeds 11,12] [--rounds 6] [--jitter 0.03]
        [--again] [--set NAME=VALUE …] [--verbose]

Recorded once (minutes; anything may run beside): plain replies of the starter to all prompts of the suite, greedy and
at T = 0.8. Under the coupled rule the words do not depend on drafts, so a reply can be played to any judge with the
costs of any machine, in milliseconds. `--set` tries other constants of speculation/adaptive_lookup.py.

Each round begins with an unknown model and has an order and noise of its own; all replies follow one another, as in a
session. Ratios are against plain steps.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.pair_runs import ask, generate, geometric_mean, load
from benchmarks.relatives import CACHE
from forespeak.compare.prompts import suite
from forespeak.engines.engine import TextSourceSettings
from forespeak.pairing.candidates import LOOKUP_SOURCES
from forespeak.speculation import adaptive_lookup
from forespeak.speculation.adaptive_chain import AdaptiveChain
from forespeak.speculation.adaptive_lookup import AdaptiveLookup
from forespeak.speculation.costs import Costs, RunningCosts
from forespeak.speculation.draft import DraftSource
from forespeak.speculation.language_model import common_prefix_length
from forespeak.speculation.ngram import PromptLookup
from forespeak.speculation.ngram_cache import NgramCache
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import Source
from speculation.played_step import played_draft

LONGEST = 48
SHORTEST = 20
"""Tokens of a reply below which a ratio says nothing."""
MACHINES = {
    "F32": Costs(((1, 0.025), (2, 0.031), (3, 0.034), (5, 0.042), (9, 0.049), (17, 0.075), (33, 0.120))),
    "F16": Costs(((1, 0.019), (2, 0.030), (5, 0.036), (9, 0.043), (17, 0.060), (33, 0.100))),
    "Q8_0": Costs(((1, 0.0135), (2, 0.024), (5, 0.035), (9, 0.054), (17, 0.090), (33, 0.170))),
    "GPU": Costs(((1, 0.030), (2, 0.031), (5, 0.032), (9, 0.034), (17, 0.038), (33, 0.045))),
}
"""Seconds: the starter in three forms on two cores, and a large model on a graphics card."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Token ids of a prompt and of what the target wrote."""

    kind: str
    temperature: float
    seed: int
    prompt: list[int]
    tokens: list[int]


def recorded(tokens: int, seeds: Sequence[int], *, again: bool) -> list[Reply]:
    """Plain replies, greedy once and sampled once per seed; kept in the cache folder."""
    path = CACHE / f"replies-{tokens}-{'-'.join(map(str, seeds))}.json"
    if again or not path.exists():
        engine = load("Q8_0", None)
        replies = []
        for temperature, seed in ((0.0, seeds[0]), *((0.8, seed) for seed in seeds)):
            for prompt in suite():
                print(f"recording T={temperature} {seed} {prompt.category} {prompt.name}", file=sys.stderr, flush=True)
                request = ask(prompt.text, tokens, SamplingSettings(temperature, seed=seed))
                steps, _, _ = generate(engine, request)
                ids = [token.id for step in steps for token in step.emitted]
                replies.append(asdict(Reply(prompt.category, temperature, seed, engine.prompt(request), ids)))
        engine.close()
        path.write_text(json.dumps(replies), encoding="utf-8")
    return [Reply(**reply) for reply in json.loads(path.read_text(encoding="utf-8"))]


def play(
    reply: Reply, costs: Costs, running: RunningCosts, judges: dict[Source, AdaptiveLookup], noise: Callable[[], float]
) -> float:
    """How many times as fast as plain steps the reply was written."""
    settings = TextSourceSettings()
    members: dict[Source, DraftSource] = {
        Source.PROMPT_LOOKUP: PromptLookup(settings.prompt_lookup),
        Source.NGRAM_CACHE: NgramCache(settings.ngram_cache, shared=settings.shared),
    }
    chain = AdaptiveChain(members, judges, None, running, LONGEST)
    controller = chain.controller
    chain.begin(reply.prompt, Sampler(SamplingSettings(temperature=0.0)))
    chain.accept(reply.tokens[:1])
    written, seconds, index = 1, 0.0, 0
    while written < len(reply.tokens):
        index += 1
        draft = chain.propose(min(controller.next_length(), len(reply.tokens) - written - 1))
        accepted = common_prefix_length(draft.tokens, reply.tokens[written:])
        emitted = reply.tokens[written : written + accepted + 1]
        step = played_draft(index, draft, emitted, costs, slower=noise())
        seconds += step.target_seconds
        controller.observe(step)
        chain.accept(emitted)
        written += len(emitted)
    return (written - 1) * costs.target_seconds(1) / seconds


def one_round(replies: Sequence[Reply], costs: Costs, seed: int, jitter: float) -> list[float]:
    """The ratio of each reply, played in an order that depends on `seed`."""
    chance = random.Random(seed)
    order = list(range(len(replies)))
    chance.shuffle(order)
    running = RunningCosts(costs)
    judges = {source: AdaptiveLookup(running) for source in LOOKUP_SOURCES}
    found = {
        number: play(replies[number], costs, running, judges, lambda: max(0.5, chance.gauss(1.0, jitter)))
        for number in order
    }
    return [found[number] for number in range(len(replies))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", default=",".join(MACHINES))
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--seeds", default="11,12")
    parser.add_argument("--rounds", type=int, default=6, help="each with an order and noise of its own")
    parser.add_argument("--jitter", type=float, default=0.03, help="of a step's time, as a share")
    parser.add_argument("--again", action="store_true", help="record anew")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--verbose", action="store_true", help="a line for each reply")
    options = parser.parse_args()
    for assignment in options.set:
        name, value = assignment.split("=")
        if not hasattr(adaptive_lookup, name):
            raise SystemExit(f"speculation/adaptive_lookup.py has no {name}.")
        setattr(adaptive_lookup, name, float(value))
    seeds = [int(seed) for seed in options.seeds.split(",")]
    replies = [reply for reply in recorded(options.tokens, seeds, again=options.again) if len(reply.tokens) > SHORTEST]
    for machine in options.machines.split(","):
        rounds = [one_round(replies, MACHINES[machine], seed, options.jitter) for seed in range(options.rounds)]
        of_reply = list(zip(*rounds, strict=True))
        if options.verbose:
            for reply, ratios in zip(replies, of_reply, strict=True):
                print(
                    f"{machine:5} T={reply.temperature} {reply.seed} {reply.kind:11} {len(reply.tokens):3} tokens  "
                    f"{geometric_mean(ratios):.3f} ({min(ratios):.3f}–{max(ratios):.3f})"
                )
        by_heat: dict[float, list[float]] = {}
        for reply, of_one in zip(replies, of_reply, strict=True):
            by_heat.setdefault(reply.temperature, []).extend(of_one)
        everything = [ratio for ratios in by_heat.values() for ratio in ratios]
        means = ", ".join(f"T = {heat} {geometric_mean(ratios):.4f}" for heat, ratios in by_heat.items())
        print(
            f"{machine:5} auto / plain {geometric_mean(everything):.4f} ({means}); below 0.97 "
            f"{sum(ratio < 0.97 for ratio in everything) / len(everything):.1%} of {len(everything)} replies, "
            f"lowest {min(everything):.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()

"""Auto on recorded drafts: what the length's judge decides, by itself, without a clock's noise.

    python tests/benchmarks/bench_controller.py [--pairs F32+Q4_1,…] [--tokens 200] [--seeds 11] [--again]
        [--set NAME=VALUE …] [--jitter 0.03] [--verbose]

Recorded once per draft (minutes; anything may run beside): the replies of bench_pairs.py, and before each of their
tokens what the draft model would propose there, how sure it was, and how much of it the reply confirms. Under the
coupled rule the words do not depend on drafts, so every judge meets the same guesses, and a reply can be played to any
of them with a pair's costs: in milliseconds, and alike on every machine. `--set` tries other constants of
speculation/adaptive.py.

Each pair starts unknown, and its replies follow one another, as in a session; in another order each round. Ratios are
against plain steps.
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

from benchmarks.pair_runs import PAIR_PROMPTS, ask, generate, geometric_mean, load
from benchmarks.relatives import CACHE
from forespeak.engines.llamacpp.engine import LlamaEngine
from forespeak.speculation import adaptive
from forespeak.speculation.adaptive import AdaptiveDraftLength
from forespeak.speculation.costs import Costs, RunningCosts
from forespeak.speculation.language_model import LanguageModel, common_prefix_length
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import SamplingSettings
from speculation.played_step import played_step

KINDS = ("code", "prose", "rewrite", "json", "list", "translation")
LONGEST = 16
DEPTH = 12
"""Tokens of a recorded proposal; of longer drafts, which are rare, the rest counts as refused."""
BEHIND = 3
"""Tokens recorded from the first one on that the reply does not confirm."""
COSTS = {
    "F32+Q4_1": Costs(((1, 0.025), (2, 0.036), (5, 0.044), (9, 0.051), (17, 0.075)), 0.0105, 0.002),
    "F32+Q2_K": Costs(((1, 0.025), (2, 0.036), (5, 0.044), (9, 0.051), (17, 0.075)), 0.0095, 0.002),
    "F16+Q4_1": Costs(((1, 0.019), (2, 0.030), (5, 0.036), (9, 0.043), (17, 0.060)), 0.0105, 0.002),
    "Q8_0+Q2_K": Costs(((1, 0.0135), (2, 0.024), (5, 0.035), (9, 0.054), (17, 0.090)), 0.0095, 0.002),
    "Q4_1+Q4_1": Costs(((1, 0.011), (2, 0.017), (5, 0.025), (9, 0.040), (17, 0.070)), 0.011, 0.002),
}
"""Seconds on two cores. The targets hold nearly the same numbers, so the F32 one's replies stand for all of them."""


@dataclass(frozen=True, slots=True)
class Reply:
    """`drafts`: before each token but the first, the probabilities of a proposal's tokens and how many of them the
    reply confirms.
    """

    kind: str
    temperature: float
    seed: int
    prompt_tokens: int
    drafts: list[tuple[list[float], int]]


def record(engine: LlamaEngine, kind: str, temperature: float, seed: int, tokens: int) -> Reply:
    request = ask(PAIR_PROMPTS[kind], tokens, SamplingSettings(temperature, seed=seed))
    steps, _, _ = generate(engine, request)
    reply = [token.id for step in steps for token in step.emitted]
    prompt = engine.prompt(request)
    sampler, model = engine.sampler(request), engine._draft
    assert model is not None
    model.truncate(0)
    for start in range(0, len(prompt), model.batch_limit):
        model.evaluate(prompt[start : start + model.batch_limit], 0)
    drafts = []
    for place in range(1, len(reply)):
        text = [*prompt, *reply[:place]]
        drafts.append(_proposal(model, sampler, text, reply[place:]))
        held = common_prefix_length(model.tokens, [*text, reply[place]])
        model.truncate(min(held, len(text)))
    return Reply(kind, temperature, seed, len(prompt), drafts)


def _proposal(
    model: LanguageModel, sampler: Sampler, text: Sequence[int], follows: Sequence[int]
) -> tuple[list[float], int]:
    """The probabilities of what the draft model proposes behind `text`, and how many of its tokens follow there."""
    drafted: list[int] = []
    probabilities: list[float] = []
    unseen = text[len(model.tokens) :]
    confirmed, right = 0, True
    while len(drafted) < min(DEPTH, len(follows)) and len(drafted) < confirmed + BEHIND:
        choices = sampler.after(model.evaluate(unseen, 1)[0], text, drafted)
        token = sampler.choose(choices, len(text) + len(drafted))
        right = right and token == follows[len(drafted)]
        confirmed += right
        drafted.append(token)
        probabilities.append(round(choices.probability(token), 4))
        unseen = [token]
    return probabilities, confirmed


def recorded(draft: str, tokens: int, seeds: Sequence[int], *, again: bool) -> list[Reply]:
    """The replies of the F32 target with a draft model, by temperature, seed and kind; kept in the cache folder."""
    path = CACHE / f"drafts-{draft}-{tokens}-{'-'.join(map(str, seeds))}.json"
    if again or not path.exists():
        engine = load("F32", draft)
        replies = []
        for temperature in (0.0, 0.8):
            for seed in seeds if temperature else seeds[:1]:
                for kind in KINDS:
                    print(f"recording F32+{draft} T={temperature} {kind}", file=sys.stderr, flush=True)
                    replies.append(asdict(record(engine, kind, temperature, seed, tokens)))
        engine.close()
        path.write_text(json.dumps(replies), encoding="utf-8")
    return [Reply(**reply) for reply in json.loads(path.read_text(encoding="utf-8"))]


@dataclass
class Played:
    """What a reply took."""

    tokens: int = 1
    seconds: float = 0.0
    drafts: int = 0
    drafted: int = 0
    accepted: int = 0

    @property
    def rate(self) -> float:
        return (self.tokens - 1) / self.seconds


def play(
    reply: Reply,
    costs: Costs,
    judge: AdaptiveDraftLength | None,
    fixed: int = 0,
    noise: Callable[[], float] = lambda: 1.0,
) -> Played:
    """A reply with a judge, or with drafts of a fixed length."""
    played, unread = Played(), 0
    if judge is not None:
        judge.begin()
        # Its prompt is read by a draft model that drafts.
        unread = 0 if judge.active else reply.prompt_tokens
    end, index = len(reply.drafts) + 1, 0
    while played.tokens < end:
        index += 1
        probabilities, confirmed = reply.drafts[played.tokens - 1]
        room = end - played.tokens - 1
        length = min(fixed if judge is None else judge.next_length(), room)
        read, drafted = 0, 0
        if length > 0:
            read = unread if judge is None else judge.may_read(unread)
            probabilities = [*probabilities, *probabilities[-1:] * (LONGEST - len(probabilities))]
            drafted = 1
            while drafted < length and (judge is None or judge.worth_another(probabilities[:drafted])):
                drafted += 1
        tested = drafted if judge is None else judge.worth_testing(probabilities[:drafted])
        accepted = min(tested, confirmed)
        step = played_step(index, probabilities[:drafted], tested, accepted, read, costs, noise())
        unread = int(accepted == drafted) if drafted else unread + 1
        played.seconds += step.draft_seconds + step.target_seconds
        played.tokens += accepted + 1
        played.drafts += bool(drafted)
        played.drafted += drafted
        played.accepted += accepted
        if judge is not None:
            judge.observe(step)
    return played


def judged(costs: Costs, replies: Sequence[Reply], seed: int, jitter: float) -> list[Played]:
    """All replies of a pair never seen before, one after the other; in the order of bench_pairs.py for seed 0."""
    running = RunningCosts(costs)
    judges: dict[float, AdaptiveDraftLength] = {}
    chance = random.Random(seed)
    order = list(range(len(replies)))
    if seed:
        chance.shuffle(order)
    found: dict[int, Played] = {}

    def noise() -> float:
        return max(0.5, chance.gauss(1.0, jitter))

    for number in order:
        judge = judges.setdefault(replies[number].temperature, AdaptiveDraftLength(running, LONGEST))
        found[number] = play(replies[number], costs, judge, noise=noise)
    return [found[number] for number in range(len(replies))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", default=",".join(COSTS))
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--seeds", default="11")
    parser.add_argument("--again", action="store_true", help="record anew")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--jitter", type=float, default=0.03, help="of a step's time, as a share")
    parser.add_argument("--verbose", action="store_true", help="a line for each reply")
    parser.add_argument("--rounds", type=int, default=12, help="each with an order and noise of its own")
    options = parser.parse_args()
    for assignment in options.set:
        name, value = assignment.split("=")
        if not hasattr(adaptive, name):
            raise SystemExit(f"speculation/adaptive.py has no {name}.")
        setattr(adaptive, name, type(getattr(adaptive, name))(float(value)))
    seeds = [int(seed) for seed in options.seeds.split(",")]
    everything: list[float] = []
    of_best: list[float] = []
    for pair in options.pairs.split(","):
        costs, replies = COSTS[pair], recorded(pair.split("+")[1], options.tokens, seeds, again=options.again)
        rounds = [judged(costs, replies, seed, options.jitter) for seed in range(options.rounds)]
        ratios, best_ratios, singles = [], [], []
        for number, reply in enumerate(replies):
            plain = play(reply, costs, None).rate
            fixed = {length: play(reply, costs, None, length).rate / plain for length in range(1, 9)}
            auto = [played[number].rate / plain for played in rounds]
            ratio = geometric_mean(auto)
            best = max(fixed, key=lambda length: fixed[length])
            ratios.append(ratio)
            singles += auto
            best_ratios.append(ratio / max(1.0, fixed[best]))
            if options.verbose:
                first = rounds[0][number]
                print(
                    f"{pair:10} T={reply.temperature} {reply.seed} {reply.kind:11} auto {ratio:.3f} "
                    f"({min(auto):.3f}–{max(auto):.3f})  best fixed k={best} {fixed[best]:.3f}  "
                    f"{first.drafts} drafts, {first.accepted} of {first.drafted}"
                )
        everything += ratios
        of_best += best_ratios
        print(
            f"{pair:10} auto / plain {geometric_mean(ratios):.3f}, lowest {min(ratios):.3f}, "
            f"{sum(ratio < 0.97 for ratio in ratios)} of {len(ratios)} below 0.97; of all replies "
            f"{sum(single < 0.97 for single in singles) / len(singles):.1%}, lowest {min(singles):.3f}; "
            f"auto / best fixed {geometric_mean(best_ratios):.3f}",
            flush=True,
        )
    print(
        f"all: auto / plain {geometric_mean(everything):.3f}, lowest {min(everything):.3f}, below 0.97: "
        f"{sum(ratio < 0.97 for ratio in everything)} of {len(everything)}; "
        f"auto / best of plain and fixed {geometric_mean(of_best):.3f}"
    )


if __name__ == "__main__":
    main()

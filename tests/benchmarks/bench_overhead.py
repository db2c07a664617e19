"""What our Python costs per step when the models cost nothing, and whether a long context makes it dearer.

    python tests/benchmarks/bench_overhead.py [--steps 200] [--repeats 3] [--vocabulary 151936] [--profile CASE]
        [--only TEXT] [--json FILE]

Target and draft are doubles that hand out views of two fixed score matrices (float32, 152k wide: a broad normal heap, a
few dozen high scores, and the token of a given text on top; the draft disagrees in every tenth place). What passes in
their calls is taken off. What is left is ours: the loop, the sampler, verification, the draft source, the lengths'
judge and the Steps. Drafts are four tokens long in every step: the judge
of Auto is asked and told everything, then overruled, and told of a real pair's seconds. Milliseconds of this thread's
processor time per step, so that what runs beside counts for little; the median of the repeats.

Flatness: the same behind 1,000 and 32,000 tokens. Model-free sources are not overruled; they draft from a reply that
repeats a passage of the prompt, and `tested` says how much.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.bench_ngram import written
from forespeak.engines.drafting import Drafting
from forespeak.engines.engine import GenerationRequest
from forespeak.engines.grammar import GrammarCompiler
from forespeak.speculation.constraint import Constraint
from forespeak.speculation.controller import DraftController
from forespeak.speculation.decode import DecodeSettings, generate
from forespeak.speculation.draft_model import DraftModel
from forespeak.speculation.events import Finished
from forespeak.speculation.language_model import Logits
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import Source, SpeculationState, Step

LENGTH = 4
ROWS = 16
"""Different rows of scores; a batch of five must not find its own twice."""
GREEDY_MILLISECONDS, SAMPLED_MILLISECONDS, FLAT = 0.5, 2.0, 1.2
SHORT, LONG, PASSAGE = 1_000, 32_000, 300
WARM_UP = 40
"""Steps before the clock starts: sources have then seen enough of the passage again."""
LEARNED: dict[str, object] = {
    "target_seconds": [[1, 0.033], [2, 0.043], [5, 0.045], [9, 0.056], [17, 0.085]],
    "draft_seconds": [0.004, 0.001],
    "models": {},
    "lookups": {},
}
"""Seconds of a pair like the starter's."""
GREEDY = SamplingSettings(temperature=0.0)
SAMPLED = SamplingSettings(temperature=0.8, top_k=40, top_p=0.95, min_p=0.05, seed=3)
SCHEMA = '{"type": "array", "minItems": 10000, "items": {"type": "string"}}'


def _clock_seconds() -> float:
    """What it takes to look at the clock: a system call, about a microsecond."""
    reads = 2_000
    started = time.thread_time()
    for _ in range(reads):
        time.thread_time()
    return (time.thread_time() - started) / reads


class NotOurs:
    """Seconds of processor time that are none of ours: what passes inside, and looking at the clock for that."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._look = min(_clock_seconds() for _ in range(5))
        self._before = 0.0

    def __enter__(self) -> None:
        self._before = time.thread_time()

    def __exit__(self, *_: object) -> None:
        # Of each of the two looks, about a half lies outside.
        self.seconds += time.thread_time() - self._before + self._look


class Words:
    """A vocabulary of single bytes and made-up words; the last id ends a reply."""

    def __init__(self, size: int) -> None:
        randomness = np.random.default_rng(5)
        letters = randomness.integers(97, 123, size=(size, 7), dtype=np.uint8)
        lengths = randomness.integers(2, 8, size=size)
        words = [b" " + letters[token, : lengths[token]].tobytes() for token in range(size)]
        self._pieces = [bytes([token]) if token < 256 else words[token] for token in range(size)]
        self.size = size

    def piece(self, token: int) -> bytes:
        return self._pieces[token]

    def ends_generation(self, token: int) -> bool:
        return token == self.size - 1


class Reciting:
    """A LanguageModel whose scores are ready before it is asked: what passes in `evaluate` counts as the model's time.

    The token of `text` at a place gets the highest score there, or its neighbour where `errs` says so.
    """

    def __init__(
        self, vocabulary: Words, text: Sequence[int], context: int, errs: Callable[[int], bool], seed: int
    ) -> None:
        self._vocabulary = vocabulary
        self._text = text
        self._errs = errs
        self._context = context
        self._tokens: list[int] = []
        randomness = np.random.default_rng(seed)
        rows = randomness.normal(0.0, 2.0, size=(ROWS, vocabulary.size)).astype(np.float32)
        high = randomness.integers(0, vocabulary.size - 1, size=(ROWS, 60))
        for row in range(ROWS):
            rows[row, high[row]] = 18.0 - 0.18 * np.arange(60)
        # Twice in a row, so that every batch is one view.
        self._rows = np.concatenate((rows, rows))
        self._changed: list[tuple[int, int, float]] = []
        self.clock = NotOurs()
        """In all evaluations and truncations."""

    @property
    def vocabulary(self) -> Words:
        return self._vocabulary

    @property
    def tokens(self) -> Sequence[int]:
        return self._tokens

    @property
    def context_length(self) -> int:
        return self._context

    @property
    def batch_limit(self) -> int:
        return 512

    @property
    def output_limit(self) -> int:
        return ROWS

    def evaluate(self, tokens: Sequence[int], outputs: int) -> Logits:
        with self.clock:
            self._tokens += tokens
            for row, token, score in reversed(self._changed):
                self._rows[row, token] = score
            self._changed.clear()
            first = len(self._tokens) - outputs
            for place in range(outputs):
                at = first + place + 1
                token = self._text[at % len(self._text)]
                token = (token + 1) % (self._vocabulary.size - 1) if self._errs(at) else token
                row = first % ROWS + place
                self._changed.append((row, token, float(self._rows[row, token])))
                self._rows[row, token] = 20.0
            return self._rows[first % ROWS : first % ROWS + outputs]

    def truncate(self, length: int) -> None:
        with self.clock:
            del self._tokens[length:]


class Held:
    """Asks and tells a judge everything, and then drafts `LENGTH` tokens whatever it says."""

    def __init__(self, judge: DraftController) -> None:
        self._judge = judge
        self.clock = NotOurs()
        """For telling it."""

    @property
    def state(self) -> SpeculationState:
        return self._judge.state

    def next_length(self) -> int:
        self._judge.next_length()
        return LENGTH

    def observe(self, step: Step) -> None:
        with self.clock:
            step = replace(step, target_seconds=0.045, draft_seconds=0.016)
        self._judge.observe(step)


class HeldGate:
    """The same for a draft model's questions while it drafts."""

    def __init__(self, gate: object) -> None:
        self._gate = gate

    def may_read(self, unread: int) -> int:
        self._gate.may_read(unread)  # type: ignore[attr-defined]
        return unread

    def worth_another(self, probabilities: Sequence[float]) -> bool:
        self._gate.worth_another(probabilities)  # type: ignore[attr-defined]
        return len(probabilities) < LENGTH

    def worth_testing(self, probabilities: Sequence[float]) -> int:
        self._gate.worth_testing(probabilities)  # type: ignore[attr-defined]
        return len(probabilities)


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the table. `wanted`: milliseconds per step, None where only flatness is."""

    name: str
    sampling: SamplingSettings
    sources: tuple[Source, ...] = (Source.DRAFT_MODEL,)
    wanted: float | None = None
    grammar: bool = False
    held: bool = True


CASES = (
    Case("greedy", GREEDY, wanted=GREEDY_MILLISECONDS),
    Case("sampled", SAMPLED, wanted=SAMPLED_MILLISECONDS),
    Case("greedy, plain", GREEDY, ()),
    Case("sampled, plain", SAMPLED, ()),
    Case("sampled, repeat penalty", replace(SAMPLED, repeat_penalty=1.1, penalty_window=64)),
    Case("sampled, DRY, window 1,024", replace(SAMPLED, dry_multiplier=0.8, dry_penalty_last_n=1024)),
    Case("sampled, DRY, all of it", replace(SAMPLED, dry_multiplier=0.8)),
    Case("greedy, JSON", GREEDY, grammar=True),
    Case("sampled, JSON", SAMPLED, grammar=True),
    *(Case(source.value, GREEDY, (source,), held=False) for source in Source if not source.uses_model),
    Case(
        "chain with the draft model",
        GREEDY,
        (Source.NGRAM_MAP_K4V, Source.NGRAM_MOD, Source.PROMPT_LOOKUP, Source.DRAFT_MODEL),
        held=False,
    ),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """Milliseconds per step of what is ours, and the draft tokens that a step tested."""

    step: float
    tested: float


class Bench:
    """The doubles' vocabulary and texts, and the grammar over it."""

    def __init__(self, size: int, steps: int) -> None:
        self.vocabulary = Words(size)
        self.steps = steps
        prompt = [token % (size - 1) for token in written(LONG, 1)]
        # Ever the same passage, and so the guess of every source.
        self.text = prompt + prompt[-PASSAGE:] * (1 + (steps + WARM_UP) * ROWS // PASSAGE)
        self._compiler: GrammarCompiler | None = None

    def constraint(self, case: Case) -> Constraint | None:
        if not case.grammar:
            return None
        if self._compiler is None:
            self._compiler = GrammarCompiler(self.vocabulary)
        return self._compiler.json_schema(SCHEMA)

    def run(self, case: Case, context: int, profile: cProfile.Profile | None = None) -> Measured:
        text = self.text[LONG - context :]
        room = len(text)
        target = Reciting(self.vocabulary, text, room, lambda _: False, 11)
        draft = Reciting(self.vocabulary, text, room, lambda at: at % 10 == 0, 11)
        drafting = Drafting()
        drafting.recall(LEARNED)
        request = GenerationRequest((), case.sources, case.sampling)
        source, judge = drafting.prepare(request, draft, self.vocabulary.size, lambda: False)
        if case.held and isinstance(source, DraftModel):
            source._gate = HeldGate(source._gate)
        held = Held(judge)
        doubles = (target, draft, held)
        events = generate(
            target,
            source,
            text[:context],
            Sampler(case.sampling, self.constraint(case)),
            held if case.held else judge,
            DecodeSettings(),
        )
        count = tested = 0
        started = theirs = 0.0
        for event in events:
            if isinstance(event, Finished):
                raise SystemExit(f"{case.name}: the reply ended after {count} steps")
            if not isinstance(event, Step):
                continue
            if count == WARM_UP:
                tested, theirs = 0, sum(double.clock.seconds for double in doubles)
                if profile is not None:
                    profile.enable()
                started = time.thread_time()
            count, tested = count + 1, tested + event.tested_count
            if count == WARM_UP + self.steps:
                break
        seconds = time.thread_time() - started - (sum(double.clock.seconds for double in doubles) - theirs)
        if profile is not None:
            profile.disable()
        events.close()  # type: ignore[attr-defined]
        return Measured(seconds / self.steps * 1e3, tested / self.steps)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--vocabulary", type=int, default=151_936)
    parser.add_argument("--profile", help="print where the time of this case goes")
    parser.add_argument("--only", help="cases whose name contains this")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    bench = Bench(options.vocabulary, options.steps)
    if options.profile:
        profile = cProfile.Profile()
        case = next(case for case in CASES if case.name == options.profile)
        bench.run(case, SHORT, profile)
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        return 0
    print(
        f"{'ms per step, ' + format(options.vocabulary, ',') + ' wide':28}{'1k':>8}{'32k':>8}{'32k/1k':>8}{'tested':>8}"
    )
    missed, rows = 0, []
    for case in CASES:
        if options.only and options.only not in case.name:
            continue
        # In turns: what drifts hits both.
        runs = [(bench.run(case, SHORT), bench.run(case, LONG)) for _ in range(options.repeats)]
        near, far = (statistics.median(pair[i].step for pair in runs) for i in (0, 1))
        flat = statistics.median(pair[1].step / pair[0].step for pair in runs)
        verdicts = []
        if case.wanted is not None:
            verdicts.append(f"wanted {case.wanted} ms: {'met' if near <= case.wanted else 'MISSED'}")
        verdicts.append("flat" if flat <= FLAT else f"wanted {FLAT} x: MISSED")
        missed += sum("MISSED" in verdict for verdict in verdicts)
        tested = runs[-1][1].tested
        print(
            f"{case.name:28}{near:8.3f}{far:8.3f}{flat:8.2f}{tested:8.1f}  {', '.join(verdicts)}",
            flush=True,
        )
        rows.append(
            {
                "case": case.name,
                "ms_1k": near,
                "ms_32k": far,
                "ratio": flat,
                "tested_per_step": tested,
            }
        )
    if options.json is not None:
        import json

        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

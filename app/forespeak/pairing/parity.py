"""The parity check: with one seed, speculation must not change a word. A difference is explained, not excused.

Rows of scores that are evaluated together differ a little from the same rows evaluated one by one: another kernel adds
up in another order, and where weights are quantised, so are the activations, which makes small differences larger. Two
tokens whose scores are nearly equal may then change places. That is a numeric tie, and it is shown, not assumed: the
target reads the reply again, token by token and in the batches that the reply with speculation was made of. A tie it is
only if the first way chooses the plain reply's token, the second the other one, and no score moved further between the
two than this target's scores move anyway. In the reproducible setting that is less than 0.001 for F32 weights (some
0.00003 were measured); for others it is measured before the first prompt. Everything else is a fault of ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice

import numpy as np

from forespeak import __version__
from forespeak.engines.engine import ChatMessage, GenerationRequest, Progress, Role
from forespeak.engines.pair_knowledge import ParityBench
from forespeak.engines.parity_result import (
    DifferenceKind,
    FirstDifference,
    ParityCase,
    ParityRequest,
    ParityResult,
    TokenScores,
)
from forespeak.pairing.parity_prompts import PROMPTS, SAMPLED_TEMPERATURE, SEED
from forespeak.speculation.events import Finished
from forespeak.speculation.language_model import LanguageModel, Logits, common_prefix_length
from forespeak.speculation.sampling import Distribution, Sampler
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import FinishReason, Step

REPRODUCIBLE_LIMIT = 0.001
"""What batches may move a score in the reproducible setting, before temperature, if no more was measured."""
WORST_LIMIT = 4.0
"""What they may move at the most: beyond it the evaluation of batches itself is wrong, whatever was measured."""
_MEASURED_MARGIN = 2.0
"""The measurement sees a few dozen places; a reply has more."""
_CONTENDER_LOGITS = 12.0
"""Tokens whose score is this far below the best cannot be chosen; how much theirs move does not matter."""
_MEASURED_TOKENS = 80
"""llama.cpp's attention adds up in another order from 33 places on; before that, nothing may move at all."""
_BATCHES = (2, 5, 9)
"""For some kinds of weights the kernel changes with the second token, for others with the ninth."""


@dataclass(frozen=True, slots=True)
class _Written:
    steps: tuple[Step, ...]

    @property
    def ids(self) -> list[int]:
        return [token.id for step in self.steps for token in step.emitted]

    @property
    def tested(self) -> int:
        return sum(step.tested_count for step in self.steps)

    @property
    def accepted(self) -> int:
        return sum(step.accepted_count for step in self.steps)


def check(
    bench: ParityBench,
    request: ParityRequest,
    progress: Callable[[Progress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> ParityResult:
    """Write every prompt with and without speculation and compare. Cancelled, it gives the cases that are done.

    Raises UserFacingError where a generation does.
    """
    started = time.perf_counter()
    prompts = list(islice(PROMPTS.items(), request.prompts))
    ways: dict[str, int | None] = {"auto": None, _fixed(request.draft_length): request.draft_length}
    temperatures = (0.0, SAMPLED_TEMPERATURE)
    planned = len(prompts) * len(temperatures)
    progress(Progress(0.0, "Measuring how far batches move the scores"))
    text = " ".join(list(PROMPTS.values())[:4])
    moved = batch_movement(bench.target, bench.prompt(_ask(text, 0.0, request)), cancelled)
    limit = min(max(REPRODUCIBLE_LIMIT, _MEASURED_MARGIN * moved), WORST_LIMIT)
    cases: list[ParityCase] = []
    for name, text in prompts:
        for temperature in temperatures:
            done = len(cases) / planned
            progress(Progress(done, f"{name}, {'greedy' if temperature == 0.0 else 'sampled'}"))
            case = _case(bench, request, name, _ask(text, temperature, request), ways, limit, cancelled)
            if case is None:
                break
            cases.append(case)
        if cancelled():
            break
    return ParityResult(
        cases=tuple(cases),
        planned=planned,
        sources=request.sources,
        moved=moved,
        seconds=time.perf_counter() - started,
        checked_at=datetime.now(UTC).astimezone().isoformat(timespec="seconds"),
        engine=bench.engine,
        version=__version__,
        ways=tuple(ways),
    )


def context_needed(request: ParityRequest) -> int:
    """Tokens that a bench's caches must hold."""
    return 512 + request.tokens


def _fixed(length: int) -> str:
    return "1 token" if length == 1 else f"{length} tokens"


def _ask(text: str, temperature: float, request: ParityRequest) -> GenerationRequest:
    return GenerationRequest(
        (ChatMessage(Role.USER, text),),
        sampling=SamplingSettings(temperature=temperature, seed=SEED),
        max_tokens=request.tokens,
    )


def _case(
    bench: ParityBench,
    request: ParityRequest,
    name: str,
    ask: GenerationRequest,
    ways: dict[str, int | None],
    limit: float,
    cancelled: Callable[[], bool],
) -> ParityCase | None:
    """One prompt at one temperature; None if it was cancelled."""
    prompt = bench.prompt(ask)
    plain = _write(bench, prompt, ask, cancelled)
    if plain is None:
        return None
    differences: list[FirstDifference] = []
    tested = accepted = 0
    for way, length in ways.items():
        drafted = _write(bench, prompt, replace(ask, sources=request.sources, draft_length=length), cancelled)
        if drafted is None:
            return None
        tested += drafted.tested
        accepted += drafted.accepted
        if drafted.ids != plain.ids:
            difference = explain(bench.target, bench.sampler(ask), prompt, plain.ids, drafted.steps, limit, way)
            differences.append(difference)
    return ParityCase(name, ask.sampling.temperature, len(plain.ids), tested, accepted, tuple(differences))


def _write(
    bench: ParityBench, prompt: Sequence[int], ask: GenerationRequest, cancelled: Callable[[], bool]
) -> _Written | None:
    if cancelled():
        return None
    # Every reply begins with the same cache, and so does the reading again.
    _hold(bench.target, prompt)
    steps: list[Step] = []
    for event in bench.generate(ask, cancelled):
        if isinstance(event, Step):
            steps.append(event)
        elif isinstance(event, Finished) and event.reason is FinishReason.CANCELLED:
            return None
    return _Written(tuple(steps))


def _hold(target: LanguageModel, prompt: Sequence[int]) -> None:
    """Bring the cache to all of the prompt but its last token, evaluated in the chunks of a first reading."""
    if list(target.tokens[: len(prompt) - 1]) != list(prompt[:-1]):
        target.truncate(0)
    target.truncate(len(prompt) - 1)
    while (at := len(target.tokens)) < len(prompt) - 1:
        target.evaluate(prompt[at : min(at + target.batch_limit, len(prompt) - 1)], 0)


def explain(
    target: LanguageModel,
    sampler: Sampler,
    prompt: Sequence[int],
    plain: Sequence[int],
    steps: Sequence[Step],
    limit: float,
    way: str = "",
) -> FirstDifference:
    """Why a reply with speculation (`steps`) parts from the `plain` one, which differs from it.

    The target reads both ways anew. `limit` is what batches may move a score, before temperature.
    """
    drafted = [token.id for step in steps for token in step.emitted]
    place = common_prefix_length(plain, drafted)
    text = [*prompt, *plain[:place]]
    alone = _row_alone(target, prompt, text)
    batched = _row_batched(target, prompt, steps, place)
    if batched is None or place >= min(len(plain), len(drafted)):
        # One reply goes on where the other has ended, and nobody chose its end.
        nothing = TokenScores(None, None)
        ours, theirs = (_text(target, ids[place] if place < len(ids) else None) for ids in (plain, drafted))
        return FirstDifference(way, place, ours, theirs, nothing, nothing, 0.0, limit, DifferenceKind.FAULT)
    choices = [sampler.after(row, text, ()) for row in (alone, batched)]
    scores = [_scores(sampler, each, len(text), plain[place], drafted[place]) for each in choices]
    chosen = [sampler.choose(each, len(text)) for each in choices]
    moved = _movement(alone, batched, choices)
    shown = chosen == [plain[place], drafted[place]] and moved <= limit
    return FirstDifference(
        way=way,
        place=place,
        plain_text=_text(target, plain[place]),
        drafted_text=_text(target, drafted[place]),
        alone=scores[0],
        batched=scores[1],
        moved=moved,
        limit=limit,
        kind=DifferenceKind.TIE if shown else DifferenceKind.FAULT,
    )


def _row_alone(target: LanguageModel, prompt: Sequence[int], text: Sequence[int]) -> Logits:
    _hold(target, prompt)
    row = target.evaluate(text[len(prompt) - 1 : len(prompt)], 1)
    for token in text[len(prompt) :]:
        row = target.evaluate([token], 1)
    return np.array(row[0])


def _row_batched(target: LanguageModel, prompt: Sequence[int], steps: Sequence[Step], place: int) -> Logits | None:
    """The scores for the reply's token at `place`, evaluated as its steps were; None if the steps end before it."""
    _hold(target, prompt)
    history = list(prompt)
    for step in steps:
        emitted = [token.id for token in step.emitted]
        accepted = step.accepted_count
        batch = [history[-1], *emitted[:accepted], *(token.id for token in step.rejected)]
        rows = target.evaluate(batch, len(batch))
        row = place - (len(history) - len(prompt))
        if row < len(emitted):
            # A step whose end was cut off may have had more rows than its record tells of.
            return np.array(rows[min(row, len(batch) - 1)])
        target.truncate(len(history) + accepted)
        history += emitted
    return None


def _scores(sampler: Sampler, choices: Distribution, position: int, plain: int, drafted: int) -> TokenScores:
    by_id = dict(zip(choices.ids.tolist(), sampler.scores(choices, position).tolist(), strict=True))
    return TokenScores(by_id.get(plain), by_id.get(drafted))


def _movement(alone: Logits, batched: Logits, choices: Sequence[Distribution]) -> float:
    """The largest difference between two rows, over the tokens that could be chosen by one of them."""
    ids = np.union1d(choices[0].ids, choices[1].ids)
    ids = ids[alone[ids] >= alone.max() - _CONTENDER_LOGITS]
    return float(np.abs(alone[ids] - batched[ids]).max()) if ids.size else 0.0


def _text(target: LanguageModel, token: int | None) -> str:
    return "" if token is None else target.vocabulary.piece(token).decode("utf-8", errors="replace")


def batch_movement(
    target: LanguageModel, tokens: Sequence[int], cancelled: Callable[[], bool] = lambda: False
) -> float:
    """How far evaluating several tokens at once moves scores, before temperature: the most of a few dozen places.

    `tokens` are any text. The cache is empty afterwards.
    """
    tokens = list(tokens[:_MEASURED_TOKENS])
    target.truncate(0)
    alone = []
    for token in tokens:
        if cancelled():
            return 0.0
        alone.append(target.evaluate([token], 1)[0].copy())
    most = 0.0
    for size in _BATCHES:
        if size > min(target.batch_limit, target.output_limit):
            break
        target.truncate(0)
        for at in range(0, len(tokens), size):
            chunk = tokens[at : at + size]
            for row, other in zip(target.evaluate(chunk, len(chunk)), alone[at:], strict=False):
                likely = other >= other.max() - _CONTENDER_LOGITS
                most = max(most, float(np.abs(row - other)[likely].max()))
    target.truncate(0)
    return most

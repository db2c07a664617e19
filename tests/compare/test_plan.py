"""The order of runs, and what each of them asks of the engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compare.timed_engine import AUTO, DRAFT, FOUR, MODEL, TARGET, comparison, prompts
from forespeak.compare.plan import (
    PLAIN,
    WARM_UP_TOKENS,
    Pair,
    Task,
    Way,
    generation_request,
    turned,
    visits,
    warm_up,
)
from forespeak.engines.drafting import Drafting
from forespeak.engines.engine import Role, Start, TextSourceSettings
from forespeak.speculation.decode import DecodeSettings, generate
from forespeak.speculation.settings import NgramModSettings, SamplingSettings
from forespeak.speculation.trace import Source, Step
from scripted import GREEDY, ScriptedModel, letters

LOOKUP = Way((Source.PROMPT_LOOKUP,), 4)


def test_two_ways_run_as_abba() -> None:
    assert [turned((PLAIN, AUTO), turn) for turn in range(4)] == [
        (PLAIN, AUTO),
        (AUTO, PLAIN),
        (AUTO, PLAIN),
        (PLAIN, AUTO),
    ]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_every_way_has_every_place_equally_often(count: int) -> None:
    ways = [Way((MODEL,), length) for length in range(1, count + 1)]
    orders = [turned(ways, turn) for turn in range(2 * count)]
    for place in range(count):
        assert sorted(order[place].draft_length or 0 for order in orders) == sorted([*range(1, count + 1)] * 2)


def test_a_visit_holds_all_ways_of_one_prompt() -> None:
    plan = comparison(temperatures=(0.0, 0.8), runs=3)
    all_visits = list(visits(plan, 0, plan.ways_of(plan.pairs[0])))
    assert len(all_visits) == 3 * 2 * 2
    for visit in all_visits:
        assert {task.way for task in visit} == {PLAIN, AUTO, FOUR}
        assert len({(task.prompt, task.temperature, task.repetition) for task in visit}) == 1
        assert [task.place for task in visit] == [0, 1, 2]
    assert [visit[0].repetition for visit in all_visits] == [0] * 4 + [1] * 4 + [2] * 4


def test_the_order_of_one_prompt_turns_from_repetition_to_repetition() -> None:
    plan = comparison(runs=4, prompts=prompts("code", each=6))
    orders = [
        [task.way for task in visit]
        for visit in visits(plan, 0, plan.ways_of(plan.pairs[0]))
        if visit[0].prompt == plan.prompts[0]
    ]
    assert len({tuple(order) for order in orders}) == 4


def test_ways_that_need_a_draft_model_are_left_out_without_one() -> None:
    plan = comparison(pairs=(Pair(TARGET, DRAFT), Pair(TARGET)), ways=(AUTO, LOOKUP))
    assert plan.ways_of(plan.pairs[0]) == (PLAIN, AUTO, LOOKUP)
    assert plan.ways_of(plan.pairs[1]) == (PLAIN, LOOKUP)


def test_no_draft_model_is_loaded_where_none_is_used() -> None:
    assert comparison(ways=(LOOKUP,)).load_request(Pair(TARGET, DRAFT)).draft is None
    assert comparison().load_request(Pair(TARGET, DRAFT)).draft == DRAFT


def test_the_ways_of_a_repetition_share_a_seed_and_repetitions_do_not() -> None:
    plan = comparison(sampling=SamplingSettings(seed=2**64 - 1, top_k=5), temperatures=(0.7,))
    requests = [
        [generation_request(plan, task) for task in visit]
        for visit in visits(plan, 0, plan.ways_of(plan.pairs[0]))
        if visit[0].prompt == plan.prompts[0]
    ]
    assert [{request.sampling.seed for request in visit} for visit in requests] == [{2**64 - 1}, {0}]
    first = requests[0][0]
    assert (first.sampling.temperature, first.sampling.top_k, first.max_tokens) == (0.7, 5, 9)
    assert [(message.role, message.content) for message in first.messages] == [(Role.USER, "Write code 0.")]
    assert {(request.sources, request.draft_length) for request in requests[0]} == {
        ((), None),
        ((MODEL,), None),
        ((MODEL,), 4),
    }


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (Start.COLD, [Start.COLD, Start.COLD]),
        (Start.FRESH, [Start.FRESH, Start.FRESH]),
        # The second way of a visit finds the prompt in the cache; the first must not find the last visit's.
        (Start.WARM, [Start.COLD, Start.WARM]),
    ],
)
def test_what_a_run_begins_with(start: Start, expected: list[Start]) -> None:
    plan = comparison(start=start)
    tasks = [Task(0, plan.prompts[0], 0.0, AUTO, 0, place) for place in (0, 1)]
    assert [generation_request(plan, task).start for task in tasks] == expected


@pytest.mark.parametrize("source", [Source.NGRAM_MOD, Source.NGRAM_CACHE], ids=lambda source: source.value)
def test_no_run_looks_up_what_another_has_written(source: Source) -> None:
    wanted = TextSourceSettings(ngram_mod=NgramModSettings(n_match=2, n_min=1), shared=True)
    plan = comparison(ways=(Way((source,), 4),), text_sources=wanted)
    task = Task(0, plan.prompts[0], 0.0, plan.ways[0], 0)
    # Pairs of its tokens do not come again, so that nothing within one reply is to be found.
    model = ScriptedModel(lambda text: -abs(np.arange(60.0, dtype=np.float32) - text[-1] - 1), letters(60))
    drafting = Drafting()
    drafting.measure_target(model)

    def drafted() -> list[int]:
        request = generation_request(plan, task)
        found, controller = drafting.prepare(request, None, 60, lambda: False)
        events = generate(model, found, [0, 1, 2], GREEDY, controller, DecodeSettings(max_tokens=30))
        return [event.tested_count for event in events if isinstance(event, Step)]

    assert [drafted() for _ in range(8)] == [[0] * 30] * 8


def test_a_warm_up_is_short_and_has_every_way() -> None:
    plan = comparison(tokens=500)
    tasks = warm_up(plan, 0, plan.ways_of(plan.pairs[0]))
    assert [task.way for task in tasks] == [PLAIN, AUTO, FOUR]
    assert {generation_request(plan, task).max_tokens for task in tasks} == {WARM_UP_TOKENS}
    assert {task.repetition for task in tasks} == {None}


def test_names() -> None:
    assert PLAIN.name == "plain"
    assert AUTO.name == "draft-model auto"
    assert Way((Source.PROMPT_LOOKUP, MODEL), 6).name == "prompt-lookup+draft-model 6"
    assert Pair(Path("a/big.gguf"), Path("b/small.gguf")).name == "big + small"
    assert Pair(Path("a/big.gguf")).name == "big"


@pytest.mark.parametrize(
    "wrong",
    [
        {"pairs": ()},
        {"ways": ()},
        {"prompts": ()},
        {"temperatures": ()},
        {"ways": (AUTO, AUTO)},
        {"ways": (PLAIN,)},
        {"temperatures": (0.0, 0.0)},
        {"tokens": 1},
        {"runs": 0},
    ],
    ids=str,
)
def test_plans_that_measure_nothing(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"comparison|plain"):
        comparison(**wrong)

"""Plans: which lanes share a load, where each is measured, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compare.lane_plans import FOUR, LOOKUP, OFF, OTHER, SMALL, plan
from compare.timed_engine import DRAFT, MODEL, TARGET
from forespeak.compare.lanes import Lane
from forespeak.compare.plan import PLAIN, Way, visits
from forespeak.engines.engine import CacheType, LoadRequest, LoadSettings, Split
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import Source


def test_lanes_with_one_draft_share_a_load_and_those_without_join_the_first() -> None:
    wanted = plan(OFF, SMALL, FOUR, LOOKUP, OTHER)
    first, second = wanted.loads
    assert (first.draft, set(first.lanes)) == (DRAFT, {OFF, SMALL, FOUR, LOOKUP})
    # The target alone is measured beside each draft.
    assert (second.draft, second.lanes) == (OTHER.draft, (OFF, OTHER))
    assert [pair.draft for pair in wanted.comparison().pairs] == [DRAFT, OTHER.draft]
    assert wanted.places[OFF] == ((0, 0.0, PLAIN), (1, 0.0, PLAIN))
    assert wanted.places[FOUR] == ((0, 0.0, Way((MODEL,), 4)),)


def test_the_target_alone_is_measured_even_if_no_lane_says_so() -> None:
    wanted = plan(SMALL, replace(FOUR, temperature=0.8))
    assert [lane.name for lane in wanted.all_lanes] == [
        "Off, temperature 0",
        "Off, temperature 0.8",
        "Small",
        "Small, 4",
    ]
    assert plan(SMALL).all_lanes[0] == OFF
    assert plan(replace(SMALL, name="Off")).all_lanes[0].name == "Off "


def test_each_temperature_has_its_own_base_and_only_its_own_lanes() -> None:
    warm = replace(SMALL, name="Warm", temperature=0.8)
    comparison = plan(OFF, SMALL, warm, FOUR).comparison()
    found = {
        (task.temperature, task.way)
        for visit in visits(comparison, 0, comparison.ways_of(comparison.pairs[0]))
        for task in visit
    }
    assert found == {(0.0, PLAIN), (0.0, Way((MODEL,))), (0.0, Way((MODEL,), 4)), (0.8, PLAIN), (0.8, Way((MODEL,)))}


def test_equal_lanes_are_told_apart() -> None:
    again = replace(OFF, name="Off again")
    wanted = plan(OFF, again)
    assert wanted.places == {OFF: ((0, 0.0, PLAIN),), again: ((0, 0.0, Way(twin=1)),)}
    assert wanted.comparison().load_request(wanted.comparison().pairs[0]).draft is None
    assert wanted.lane_at((0, 0.0, Way(twin=1))) == again
    with pytest.raises(KeyError):
        wanted.lane_at((0, 0.5, PLAIN))


def test_no_draft_is_loaded_for_lanes_that_look_up() -> None:
    comparison = plan(OFF, LOOKUP).comparison()
    assert comparison.load_request(comparison.pairs[0]).draft is None


def test_settings_reach_the_comparison() -> None:
    settings = LoadSettings(512, True, 2, 7, 0, "CUDA0", "CPU", Split.NONE, CacheType.Q8_0, True)
    wanted = plan(SMALL, sampling=SamplingSettings(temperature=0.3, seed=5), load_settings=settings)
    comparison = wanted.comparison()
    assert (comparison.temperatures, comparison.sampling.seed) == ((0.3,), 5)
    assert comparison.load_request(comparison.pairs[0]) == LoadRequest(TARGET, DRAFT, settings)


@pytest.mark.parametrize(
    ("lanes", "words"),
    [
        ((OFF,), "a lane beside the target alone"),
        ((SMALL, replace(FOUR, name="Small")), "different names"),
    ],
)
def test_what_is_no_comparison(lanes: tuple[Lane, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        plan(*lanes)
    with pytest.raises(ValueError, match="some time"):
        plan(budget_seconds=0.0)
    with pytest.raises(ValueError, match="needs prompts"):
        plan(prompts=())


def test_what_is_no_lane() -> None:
    with pytest.raises(ValueError, match="not both"):
        Lane("Small", (MODEL,))
    with pytest.raises(ValueError, match="not both"):
        Lane("Lookup", (Source.PROMPT_LOOKUP,), DRAFT)
    with pytest.raises(ValueError, match="a name"):
        Lane(" ")

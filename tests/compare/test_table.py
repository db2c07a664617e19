"""The report in words: it fits its width, and says what is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from compare.timed_engine import AUTO, DRAFT, FOUR, MODEL, TARGET, TimedEngine, comparison, measured, prompts
from forespeak.compare.plan import Pair, Way
from forespeak.compare.prompts import CATEGORIES, MORE_CATEGORIES
from forespeak.compare.runner import Results
from forespeak.compare.statistics import Estimate, Interval, summarise
from forespeak.compare.table import WIDTH, ratio_words, report, way_label
from forespeak.engines.engine import CacheType, GenerationRequest, LoadSettings, Start
from forespeak.speculation.settings import Rule
from forespeak.speculation.trace import Source

LONG = Way((Source.PROMPT_LOOKUP, Source.NGRAM_MAP_K4V, Source.NGRAM_CACHE, MODEL))
CHAIN = Way((Source.PROMPT_LOOKUP, MODEL), 4)


def text_of(results: Results) -> str:
    return report(results, summarise(results))


def words_of(results: Results) -> str:
    """The report without its line breaks."""
    return " ".join(text_of(results).split())


def uneven(request: GenerationRequest) -> float:
    if not request.sources:
        return 0.1
    return 0.1 / (0.8 if "prose" in request.messages[0].content else 1.8)


def test_a_table_of_ratios_with_verdicts() -> None:
    text = text_of(
        measured(TimedEngine(seconds=uneven), ways=(AUTO,), runs=6, prompts=prompts("code", "prose", "list"))
    )
    assert "big + small, temperature 0\n" in text
    assert "                   plain               auto\n" in text
    assert "code            10.0 t/s  1.80× (1.80–1.80)\n" in text
    assert "geometric mean  10.0 t/s  1.37×" in text
    assert "Auto: 1.37× (0.80–1.80), never below 0.80× (prose). No clear difference from plain." in text
    assert "Below 1.00×\n  0.80× (0.80–0.80)  prose, auto, temperature 0\n" in text
    assert "In brackets: 95 % intervals" in " ".join(text.split())


def test_the_mean_of_plain_is_that_of_the_rates_above_it() -> None:
    def seconds(request: GenerationRequest) -> float:
        return 0.1 if "code" in request.messages[0].content else 0.025

    lines = text_of(measured(TimedEngine(seconds=seconds))).splitlines()
    assert [line.split()[-6] for line in lines[3:5]] == ["10.0", "40.0"]
    assert lines[5].startswith("geometric mean  20.0 t/s")


def test_verdicts() -> None:
    slow = words_of(measured(TimedEngine(seconds=lambda request: 0.2 if request.sources else 0.1), ways=(AUTO,)))
    assert "Slower than plain." not in slow  # of two categories there is no interval
    assert "Too few values to be sure." in slow
    one = prompts("code")
    assert "Auto: 0.50× (0.50–0.50). Slower than plain in all 2 runs." in words_of(
        measured(TimedEngine(seconds=lambda request: 0.2 if request.sources else 0.1), ways=(AUTO,), prompts=one)
    )
    assert "Auto: 2.00× (2.00–2.00). Faster than plain in all 2 runs." in words_of(measured(ways=(AUTO,), prompts=one))
    assert "Auto: 2.00× (2.00–2.00). Faster than plain." in words_of(measured(ways=(AUTO,), prompts=one, runs=6))
    assert "Auto: 2.00×. One run is too few to be sure." in words_of(measured(ways=(AUTO,), prompts=one, runs=1))


def test_the_prompt_counts_in_whole_replies() -> None:
    """Nine tokens: 0.25 s for the first, then 0.8 s or, twice as fast, 0.4 s."""
    assert "With the time to the first token: 1.62×." in words_of(measured(ways=(AUTO,)))
    assert "With the time to" not in words_of(measured(ways=(AUTO,), start=Start.WARM))


def test_few_runs_are_owned_up_to() -> None:
    assert "the lowest and the highest of 3, which hold the true median with a probability of 75 %" in words_of(
        measured(runs=3)
    )
    assert "One run each tells nothing" in words_of(measured(runs=1))


def test_it_fits_whatever_is_measured() -> None:
    ways = (
        *(Way((MODEL,), length) for length in (None, 1, 2, 4, 6, 8)),
        *(Way((s,)) for s in Source if s is not MODEL),
        CHAIN,
        LONG,
    )
    pairs = (
        Pair(Path("a-model-with-a-very-long-name-as-they-are-found-out-there-Instruct-F32-00001-of-00004.gguf"), DRAFT),
        Pair(TARGET, Path("x" * 130 + ".gguf")),
    )
    results = measured(
        TimedEngine(parts_at=4, fails=lambda r: "word " * 80 if r.draft_length == 8 else None),
        ways=ways,
        pairs=pairs,
        prompts=prompts(*CATEGORIES, *MORE_CATEGORIES),
        temperatures=(0.0, 0.8),
        tokens=60,
        others=lambda: 1.5,
    )
    lines = text_of(results).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert all(line == line.rstrip() for line in lines)
    for way in ways[:-1]:
        assert any(way_label(way, results.comparison) in line for line in lines)


@pytest.mark.parametrize(
    ("ways", "labels"),
    [
        ((AUTO, FOUR), ["auto", "4 tokens"]),
        ((AUTO, CHAIN, Way((Source.NGRAM_MAP_K4V,))), ["model auto", "lookup+model 4", "map-k4v auto"]),
    ],
)
def test_ways_are_named_as_shortly_as_they_can_be(ways: tuple[Way, ...], labels: list[str]) -> None:
    assert [way_label(way, comparison(ways=ways)) for way in ways] == labels


def test_the_figures_behind_it() -> None:
    text = text_of(measured())
    lines = text.splitlines()
    at = next(place for place, line in enumerate(lines) if "per check" in line)
    head, plain, auto = lines[at : at + 3]
    assert head.split()[-2:] == ["first", "token"]
    assert plain.split() == ["plain", "–", "–", "–", "100/100/100", "–", "250", "ms"]
    assert auto.split() == [*("auto", "50", "%", "2.00", "25", "%", "50.0/50.0/50.0", "4", "of", "4", "250", "ms")]
    assert "accepted by position, auto: 1.00 0.00" in text
    assert "first token" not in text_of(measured(start=Start.WARM))


def test_other_words_are_told() -> None:
    parted = TimedEngine(parts_at=4)
    assert "8 runs wrote other words than plain, the earliest from token 5 on." in words_of(measured(parted))
    assert "this should not happen" in words_of(
        measured(TimedEngine(parts_at=4), load_settings=LoadSettings(reproducible=True))
    )
    assert "vary with the draft" in words_of(measured(TimedEngine(parts_at=4), rule=Rule.REJECTION))
    assert "other words" not in words_of(measured())


def test_how_models_were_loaded_is_told_where_it_is_not_as_usual() -> None:
    assert "Loaded with" not in words_of(measured())
    small = LoadSettings(512, cache_type=CacheType.Q8_0)
    told = words_of(measured(load_settings=small))
    assert "Loaded with: a context of 512 tokens" in told
    assert "cache Q8_0" in told


def test_a_busy_machine_is_told() -> None:
    busy = iter([0.0, 0.1, 0.0, 0.8] * 6)
    assert "Other programs were busy during 6 of 12 runs, with up to 0.8 processor cores" in words_of(
        measured(others=lambda: next(busy))
    )
    assert "Other programs" not in words_of(measured())


def test_what_went_wrong_is_told() -> None:
    failing = words_of(
        measured(TimedEngine(fails=lambda r: "The prompt is too long." if r.draft_length == 4 else None))
    )
    assert "4 runs failed. The prompt is too long." in failing
    pairs = (Pair(Path("broken.gguf"), DRAFT), Pair(TARGET, DRAFT))
    text = words_of(measured(TimedEngine(refuses=frozenset({"broken"})), pairs=pairs))
    assert "broken + small could not be measured: broken.gguf could not be loaded. It is broken." in text
    engine = TimedEngine()
    assert "Stopped early" in words_of(measured(engine, stop=lambda: len(engine.requests) == 5))
    lookup = Way((Source.PROMPT_LOOKUP,))
    refused = words_of(measured(TimedEngine(draft_problem="Other words."), ways=(AUTO, lookup)))
    assert "big + small: there is no draft. Other words." in refused


def test_each_way_of_beginning_is_told() -> None:
    assert "as if the pair had just been loaded" in words_of(measured(start=Start.FRESH))
    assert "only decoding is compared" in words_of(measured(start=Start.WARM))


def test_everything_together() -> None:
    text = text_of(measured(TimedEngine(seconds=uneven), temperatures=(0.0, 0.8)))
    assert "Over all cells\n  auto: 1.20×" in text
    assert "geometric mean of 4 cells" in text
    assert "auto against each cell's best fixed length, plain included: 0.89× (0.80–1.00), worst cell 0.80×" in text


def test_a_ratio_in_words() -> None:
    assert ratio_words(Estimate(1.314, 3, Interval(1.249, 1.381, 0.75))) == "1.31× (1.25–1.38)"
    assert ratio_words(Estimate(1.314, 1)) == "1.31×"
    assert ratio_words(None) == "–"

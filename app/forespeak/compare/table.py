"""A comparison as plain text, at most 100 columns wide: tables of ratios, what lies behind them, and verdicts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from forespeak.compare.machine import busy_words
from forespeak.compare.plan import Comparison, Way
from forespeak.compare.runner import Results
from forespeak.compare.statistics import COVERAGE, Cell, Estimate, Summary, Total, geometric_mean_of
from forespeak.engines.engine import LoadSettings, Start
from forespeak.engines.load_record import load_words
from forespeak.models.sizes import size_words
from forespeak.speculation.settings import Rule
from forespeak.speculation.trace import Source

WIDTH = 100
_GAP = "  "
_LABEL = 18
"""The longest name of a column or a line: the widest line then fits."""
_POSITIONS = 16
"""Places of a draft whose acceptance is shown; longer drafts are rare, and their figures made of little."""
_NONE = "–"


def report(results: Results, summary: Summary) -> str:
    """All that was found out, in words and tables; lines end without spaces."""
    comparison = results.comparison
    blocks: list[str] = []
    for pair in range(len(comparison.pairs)):
        name = comparison.pairs[pair].name
        if pair in results.problems:
            blocks.append(wrapped(f"{name} could not be measured: {results.problems[pair]}"))
        for temperature in comparison.temperatures:
            cells = [cell for cell in summary.cells if (cell.pair, cell.temperature) == (pair, temperature)]
            totals = [total for total in summary.totals if (total.pair, total.temperature) == (pair, temperature)]
            if totals:
                title = wrapped(f"{name}, temperature {temperature:g}")
                blocks.append("\n".join([title, "", *_ratios(comparison, cells, totals)]))
                blocks.append("\n".join(_behind(comparison, totals)))
                blocks.append("\n".join(_verdicts(comparison, totals)))
    blocks += _over_everything(results, summary)
    blocks.append("\n".join(_notes(results, summary)))
    return "\n\n".join(block for block in blocks if block) + "\n"


def way_label(way: Way, comparison: Comparison) -> str:
    """A way's name for people, as short as it can be without being mistaken for another of the same comparison."""
    if way.is_plain:
        return "plain"
    length = "auto" if way.draft_length is None else f"{way.draft_length} tokens"
    if len({other.sources for other in comparison.ways}) == 1:
        return length
    sources = "+".join(_short(source) for source in way.sources)
    return f"{sources} {'auto' if way.draft_length is None else way.draft_length}"


def _short(source: Source) -> str:
    return {Source.DRAFT_MODEL: "model", Source.PROMPT_LOOKUP: "lookup"}.get(
        source, source.value.removeprefix("ngram-")
    )


def ratio_words(estimate: Estimate | None) -> str:
    """Such as `1.31× (1.25–1.38)`."""
    if estimate is None:
        return _NONE
    interval = estimate.interval
    return f"{estimate.value:.2f}×" + (f" ({interval.low:.2f}–{interval.high:.2f})" if interval else "")


# The tables


def _ratios(comparison: Comparison, cells: Sequence[Cell], totals: Sequence[Total]) -> Iterable[str]:
    """A line per category, a column per way; as many tables as it takes to keep them narrow."""
    by_place = {(cell.category, cell.way): cell.figures for cell in cells}
    categories = list(dict.fromkeys(cell.category for cell in cells))
    columns: list[list[str]] = []
    for total in totals:
        is_plain = total.way.is_plain
        figures = [by_place.get((category, total.way)) for category in categories]
        column = ["plain" if is_plain else _fitted(way_label(total.way, comparison))]
        rates = [one.rate if one else None for one in figures]
        column += (
            [_rate(rate) for rate in rates]
            if is_plain
            else [ratio_words(one.ratio if one else None) for one in figures]
        )
        if len(categories) > 1:
            mean = geometric_mean_of([rate.value for rate in rates if rate])
            column.append(_rate(mean) if is_plain else ratio_words(total.ratio))
        columns.append(column)
    names = ["", *categories, *(["geometric mean"] if len(categories) > 1 else [])]
    fixed = [names, *(column for column, total in zip(columns, totals, strict=True) if total.way.is_plain)]
    ways = [column for column, total in zip(columns, totals, strict=True) if not total.way.is_plain]
    first = True
    while ways:
        count = max(1, sum(_width([*fixed, *ways[: more + 1]]) <= WIDTH for more in range(len(ways))))
        if not first:
            yield ""
        yield from aligned(list(zip(*fixed, *ways[:count], strict=True)))
        ways, first = ways[count:], False


def _width(columns: Sequence[Sequence[str]]) -> int:
    return sum(max(map(len, column)) for column in columns) + len(_GAP) * (len(columns) - 1)


def _rate(rate: Estimate | None) -> str:
    return f"{rate.value:.1f} t/s" if rate is not None else _NONE


def _behind(comparison: Comparison, totals: Sequence[Total]) -> Iterable[str]:
    reads_prompt = comparison.start is not Start.WARM
    head = ["", "accepted", "per check", "drafting", "ms a token p50/p95/p99", "same words"]
    rows = [[*head, "first token"] if reads_prompt else head]
    for total in totals:
        figures = total.figures
        row = [
            _fitted(way_label(total.way, comparison)),
            _percent(figures.acceptance_rate),
            f"{figures.mean_acceptance_length:.2f}" if figures.mean_acceptance_length is not None else _NONE,
            _percent(figures.draft_time_share) if figures.acceptance_rate is not None else _NONE,
            "/".join(map(_milliseconds, figures.gaps)) if figures.gaps else _NONE,
            f"{figures.identical} of {figures.compared}" if figures.compared else _NONE,
        ]
        first = f"{figures.first_token * 1000:.0f} ms" if figures.first_token is not None else _NONE
        rows.append([*row, first] if reads_prompt else row)
    yield from aligned(rows)
    for total in totals:
        if total.figures.acceptance_by_position:
            rates = " ".join(f"{rate:.2f}" for rate in total.figures.acceptance_by_position[:_POSITIONS])
            yield wrapped(f"accepted by position, {way_label(total.way, comparison)}: {rates}", "  ")


def _milliseconds(seconds: float) -> str:
    value = seconds * 1000
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _fitted(label: str) -> str:
    return label if len(label) <= _LABEL else f"{label[: _LABEL // 2]}…{label[-(_LABEL - _LABEL // 2 - 1) :]}"


def _percent(share: float | None) -> str:
    return f"{share * 100:.0f} %" if share is not None else _NONE


def aligned(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Columns as wide as what stands in them; the first one to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        first = row[0].ljust(widths[0])
        others = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        yield _GAP.join((first, *others)).rstrip()


# The words


def _verdicts(comparison: Comparison, totals: Sequence[Total]) -> Iterable[str]:
    for total in totals:
        if total.way.is_plain or total.ratio is None:
            continue
        label = way_label(total.way, comparison)
        words = f"{label[0].upper()}{label[1:]}: {ratio_words(total.ratio)}"
        worst = total.worst
        if worst is not None and worst.figures.ratio is not None and total.ratio.value != worst.figures.ratio.value:
            words += f", never below {worst.figures.ratio.value:.2f}× ({worst.category})"
        words += f". {_judgement(total.ratio)}"
        if comparison.start is not Start.WARM and total.figures.whole_ratio is not None:
            words += f" With the time to the first token: {total.figures.whole_ratio:.2f}×."
        yield wrapped(words, "  ")


def _judgement(ratio: Estimate) -> str:
    interval = ratio.interval
    if interval is None:
        return "One run is too few to be sure." if ratio.count == 1 else "Too few values to be sure."
    # Where no 95 % interval can be had, its ends are the lowest and the highest run: say no more than that.
    runs = "" if interval.coverage >= COVERAGE else f" in all {ratio.count} runs"
    if interval.low > 1.0:
        return f"Faster than plain{runs}."
    if interval.high < 1.0:
        return f"Slower than plain{runs}."
    return "No clear difference from plain."


def _over_everything(results: Results, summary: Summary) -> Iterable[str]:
    comparison = results.comparison
    lines = []
    if len({(cell.pair, cell.temperature) for cell in summary.cells}) > 1:
        for way, estimate in summary.overall:
            lines.append(
                f"{way_label(way, comparison)}: {ratio_words(estimate)}, geometric mean of {estimate.count} cells"
            )
    lines += [
        f"{way_label(against.auto, comparison)} against each cell's best fixed length, plain included: "
        f"{ratio_words(against.ratio)}" + (f", worst cell {against.worst:.2f}×" if against.ratio.count > 1 else "")
        for against in summary.against_fixed
    ]
    if lines:
        yield "\n".join(["Over all cells", *(wrapped(f"  {line}", "    ") for line in lines)])
    slower = [
        cell for cell in summary.cells if cell.figures.ratio is not None and round(cell.figures.ratio.value, 2) < 1.0
    ]
    if slower:
        several = len(comparison.pairs) > 1
        yield "\n".join(
            [
                "Below 1.00×",
                *(
                    wrapped(
                        f"  {ratio_words(cell.figures.ratio)}  {cell.category}, {way_label(cell.way, comparison)}, "
                        f"temperature {cell.temperature:g}"
                        + (f", {comparison.pairs[cell.pair].name}" if several else ""),
                        "    ",
                    )
                    for cell in slower
                ),
            ]
        )


def _notes(results: Results, summary: Summary) -> Iterable[str]:
    comparison = results.comparison
    if not results.complete:
        yield "Stopped early: what was finished by then is shown."
    yield wrapped(_interval_words(summary))
    if comparison.start is Start.FRESH:
        yield wrapped("Each run began as if the pair had just been loaded: nothing was learned before it.")
    if comparison.start is Start.WARM:
        yield wrapped("The ways of drafting shared each prompt's cache: only decoding is compared.")
    yield from _notes_on_words(comparison, summary)
    disturbed = busy_words([run.others_cores for run in results.runs])
    if disturbed is not None:
        yield wrapped(disturbed)
    short = min((cell.figures.tokens for cell in summary.cells if cell.figures.tokens is not None), default=None)
    if short is not None and short < min(32, comparison.tokens):
        yield wrapped(f"Some replies were short: the model ended one category's after {short:.0f} tokens.")
    failures = [failure for total in summary.totals for failure in total.figures.failures]
    if failures:
        runs = "1 run" if len(failures) == 1 else f"{len(failures)} runs"
        yield wrapped(f"{runs} failed. {failures[0]}")
    for pair, loaded in results.loaded.items():
        if loaded.draft_problem and pair not in results.problems:
            yield wrapped(f"{comparison.pairs[pair].name}: there is no draft. {loaded.draft_problem}")
    yield wrapped(_machine_words(results))
    if comparison.load_settings != LoadSettings():
        yield wrapped(f"Loaded with: {', '.join(load_words(comparison.load_settings))}.")


def _interval_words(summary: Summary) -> str:
    estimates = [cell.figures.ratio for cell in summary.cells if cell.figures.ratio is not None]
    if not estimates:
        return "Nothing could be compared."
    words = "Ratios are medians of decode rates, each run against plain in the same repetition."
    known = [(estimate.interval.coverage, estimate.count) for estimate in estimates if estimate.interval is not None]
    coverage, runs = min(known, default=(0.0, 1))
    if not known:
        words += " One run each tells nothing of how sure they are."
    elif coverage < COVERAGE:
        words += (
            f" In brackets: the lowest and the highest of {runs}, which hold the true median with a probability of "
            f"{coverage * 100:.0f} % only; more runs say more."
        )
    else:
        words += " In brackets: 95 % intervals."
    if len({(cell.pair, cell.temperature, cell.category) for cell in summary.cells}) >= 3:
        words += " Those of geometric means are 95 % intervals over what they are the means of."
    return words


def _notes_on_words(comparison: Comparison, summary: Summary) -> Iterable[str]:
    different = [total.figures for total in summary.totals if total.figures.identical < total.figures.compared]
    if not different:
        return
    if comparison.rule is Rule.REJECTION:
        yield wrapped("Under the rejection rule the words vary with the draft.")
        return
    count = sum(figures.compared - figures.identical for figures in different)
    first = min(figures.first_difference or 0 for figures in different)
    runs = "1 run" if count == 1 else f"{count} runs"
    words = f"{runs} wrote other words than plain, the earliest from token {first + 1} on"
    if comparison.load_settings.reproducible:
        yield wrapped(f"{words}. In the reproducible setting this should not happen.")
    else:
        yield wrapped(
            f"{words}. Scores computed several at a time differ in their last digits, which can tip a choice between "
            "nearly equal tokens; in the reproducible setting they do not."
        )


def _machine_words(results: Results) -> str:
    machine, loaded = results.machine, list(results.loaded.values())
    parts = [machine.processor, "1 core" if machine.cores == 1 else f"{machine.cores} cores"]
    if loaded:
        parts.append(f"{loaded[0].threads} threads" if loaded[0].threads != 1 else "1 thread")
        if not loaded[0].computes_on_cpu:
            parts += loaded[0].devices
    parts.append(f"load at the start {machine.load[0]:.1f}")
    peak = max((run.stats.peak_memory_bytes or 0 for run in results.runs), default=0)
    if peak:
        parts.append(f"{size_words(peak)} of memory at most")
    parts += [f"{name} {version}" for name, version in machine.versions if name in {"forespeak", "llama-cpp-python"}]
    return ", ".join(parts) + "."


def wrapped(text: str, indent: str = "") -> str:
    """In lines of at most WIDTH."""
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=True, break_on_hyphens=False)

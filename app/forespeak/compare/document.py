"""What a report says, as headings, texts, tables and charts, before it becomes Markdown or HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from forespeak.compare.charts import acceptance_chart, drafting_chart, rates_chart
from forespeak.compare.lane_report import without_folders
from forespeak.compare.lane_results import ComparisonResult, LaneCell, LaneResult
from forespeak.compare.lanes import Lane, Plan
from forespeak.compare.statistics import COVERAGE
from forespeak.compare.table import ratio_words
from forespeak.engines.engine import TextSourceSettings
from forespeak.engines.load_record import load_words
from forespeak.models.formats import model_stem
from forespeak.models.sizes import size_words
from forespeak.speculation.settings import SamplingSettings

_NONE = "–"
_MOST_POSITIONS = 8
_MOST_DIFFERENCES = 10
_TOLD = {"temperature", "top_k", "top_p", "min_p", "seed"}
"""The settings of sampling that every report tells."""


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows as long as the head; all columns but the first hold figures."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """`svg` is a whole element."""

    title: str
    svg: str


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of a prompt or of a reply."""

    title: str
    text: str


Block = Heading | Text | Bullets | Table | Chart | Quote


def document_of(
    result: ComparisonResult, models: Sequence[Mapping[str, Any]], *, private: bool = False, name: str = ""
) -> tuple[Block, ...]:
    """The whole report. `models` are those of `model_files.model_records`."""
    return tuple(_blocks(result, models, private, name or model_stem(result.plan.target)))


def _blocks(result: ComparisonResult, models: Sequence[Mapping[str, Any]], private: bool, name: str) -> Iterator[Block]:
    yield Heading(1, name)
    yield Text(result.headline)
    if result.notes:
        yield Bullets(tuple(without_folders(note, result.plan) for note in result.notes))
    yield Heading(2, "Lanes")
    yield _lanes(result)
    yield Bullets(tuple(f"{lane.lane.name}: {_verdict_words(result.plan, lane)}" for lane in result.lanes))
    if len(result.categories) > 1:
        yield Heading(2, "By kind of work")
        yield _ratios(result)
        yield Text(_interval_words(result))
    else:
        yield Text(_interval_words(result))
    yield from _charts(result)
    yield Heading(2, "Behind the figures")
    yield _behind(result)
    if any(lane.overall.figures.acceptance_by_position for lane in result.lanes):
        yield _positions(result)
    yield from _words(result, private)
    yield Heading(2, "To repeat it")
    yield from _settings(result, models, private)


def _verdict_words(plan: Plan, result: LaneResult) -> str:
    return without_folders(result.problem or result.overall.verdict.full_words, plan)


def lane_words(plan: Plan, lane: Lane) -> str:
    """What a lane is, beside its name."""
    parts = []
    if lane.is_off:
        parts.append("the target alone")
    else:
        parts.append(" then ".join(source.label for source in lane.sources))
        parts.append("as many tokens as pay" if lane.draft_length is None else f"{lane.draft_length} tokens")
    if lane.draft is not None:
        parts.append(lane.draft.name)
    return ", ".join([*parts, f"temperature {plan.temperature_of(lane):g}"])


def _lanes(result: ComparisonResult) -> Table:
    head = ("Lane", "Tokens/s", "Against off", "First token", "Accepted", "Per check", "Failures")
    return Table(head, tuple((lane.lane.name, *_line(lane.overall)) for lane in result.lanes))


def _line(cell: LaneCell) -> tuple[str, ...]:
    figures = cell.figures
    return (
        f"{figures.rate.value:.1f}" if figures.rate else _NONE,
        ratio_words(cell.ratio),
        _milliseconds(figures.first_token),
        _percent(figures.acceptance_rate),
        f"{figures.mean_acceptance_length:.2f}" if figures.mean_acceptance_length is not None else _NONE,
        str(len(figures.failures)),
    )


def _ratios(result: ComparisonResult) -> Table:
    rows = []
    for place, category in enumerate(result.categories):
        cells = [lane.cells[place] for lane in result.lanes]
        rows.append((category, *(_cell_words(cell) for cell in cells)))
    rows.append(("over all", *(_cell_words(lane.overall) for lane in result.lanes)))
    return Table(("", *(lane.lane.name for lane in result.lanes)), tuple(rows))


def _cell_words(cell: LaneCell) -> str:
    if cell.ratio is not None:
        return ratio_words(cell.ratio)
    return f"{cell.figures.rate.value:.1f} tokens/s" if cell.figures.rate else _NONE


def _interval_words(result: ComparisonResult) -> str:
    coverages = [
        cell.ratio.interval.coverage
        for lane in result.lanes
        for cell in (lane.overall, *lane.cells)
        if cell.ratio is not None and cell.ratio.interval is not None
    ]
    words = "Ratios are of decoded tokens per second, each run against the target alone in the same repetition."
    if not coverages:
        return f"{words} One run each tells nothing of how sure they are."
    if min(coverages) >= COVERAGE:
        return f"{words} In brackets: 95 % intervals."
    return (
        f"{words} In brackets: 95 % intervals, or where there are too few runs the lowest and the highest, which hold "
        f"the true value with a probability of {min(coverages) * 100:.0f} % at least."
    )


def _charts(result: ComparisonResult) -> Iterator[Block]:
    for title, svg in (
        ("Tokens per second", rates_chart(result)),
        ("Acceptance by position in the draft", acceptance_chart(result)),
        ("Share of the time spent on drafting", drafting_chart(result)),
    ):
        if svg:
            yield Chart(title, svg)


def _behind(result: ComparisonResult) -> Table:
    head = ("Lane", "Runs", "Prompt tokens/s", "ms a token p50", "p95", "p99", "Drafting", "Whole reply", "Memory")
    rows = []
    for lane in result.lanes:
        figures = lane.overall.figures
        gaps = figures.gaps or (None, None, None)
        rows.append(
            (
                lane.lane.name,
                str(figures.runs),
                f"{figures.prompt_rate:.0f}" if figures.prompt_rate else _NONE,
                *(f"{gap * 1000:.1f}" if gap is not None else _NONE for gap in gaps),
                _percent(figures.draft_time_share if figures.acceptance_rate is not None else None),
                f"{figures.whole_ratio:.2f}×" if figures.whole_ratio and lane.base else _NONE,
                size_words(figures.peak_memory_bytes) if figures.peak_memory_bytes else _NONE,
            )
        )
    return Table(head, tuple(rows))


def _positions(result: ComparisonResult) -> Table:
    lanes = [lane for lane in result.lanes if lane.overall.figures.acceptance_by_position]
    count = min(_MOST_POSITIONS, max(len(lane.overall.figures.acceptance_by_position) for lane in lanes))
    rows = []
    for lane in lanes:
        shares = [_percent(share) for share in lane.overall.figures.acceptance_by_position[:count]]
        rows.append((lane.lane.name, *shares, *[_NONE] * (count - len(shares))))
    return Table(("Accepted at position", *(str(place + 1) for place in range(count))), tuple(rows))


def _words(result: ComparisonResult, private: bool) -> Iterator[Block]:
    yield Heading(2, "Words")
    lines = []
    for lane in result.lanes:
        figures = lane.overall.figures
        if figures.compared:
            lines.append(f"{lane.lane.name}: the same words in {figures.identical} of {figures.compared} runs.")
        for difference in lane.differences[:_MOST_DIFFERENCES]:
            task = difference.run.task
            where = f"{task.prompt.category}, {task.prompt.name}, repetition {(task.repetition or 0) + 1}"
            parted = ""
            if private or not task.prompt.private:
                parted = f" (“{difference.base_text}” and “{difference.text}”)"
            lines.append(f"{lane.lane.name}, {where}: {difference.words}{parted}")
        if len(lane.differences) > _MOST_DIFFERENCES:
            lines.append(f"{lane.lane.name}: {len(lane.differences) - _MOST_DIFFERENCES} more runs differ.")
    yield Bullets(tuple(lines)) if lines else Text("There was nothing to compare.")


def _settings(result: ComparisonResult, models: Sequence[Mapping[str, Any]], private: bool) -> Iterator[Block]:
    plan, machine = result.plan, result.results.machine
    sampling = plan.sampling
    about = f"{machine.processor}, {machine.cores} cores, {size_words(machine.memory_bytes)} of memory"
    replies = f"at most {plan.tokens} tokens, {plan.repeats} times each; seed {sampling.seed} and those after it"
    filters = f"top-k {sampling.top_k}, top-p {sampling.top_p:g}, min-p {sampling.min_p:g}; rule {plan.rule.value}"
    warm_up = "after a warm-up" if plan.warm_up else "without a warm-up"
    lines = [
        f"Machine: {about}, {machine.system}; load at the start {machine.load[0]:.1f}.",
        f"Versions: {', '.join(f'{name} {version}' for name, version in machine.versions)}.",
        f"Measured: {result.results.began_at.isoformat(timespec='seconds')}, {len(result.results.runs)} runs.",
        f"Replies: {replies}; {filters}.",
        *([f"More settings of replies: {more}."] if (more := ", ".join(_unusual(plan))) else []),
        f"Loaded with: {', '.join(load_words(plan.load_settings))}.",
        f"Each run began {plan.start.value}; lanes took turns in going first, {warm_up}.",
    ]
    yield Bullets((*lines, *(f"Lane {lane.name}: {lane_words(plan, lane)}." for lane in plan.all_lanes)))
    yield Table(
        ("Model file", "Size", "Quantisation", "SHA-256"),
        tuple(
            (
                part["file"],
                size_words(model["size_bytes"]) if model["size_bytes"] else _NONE,
                model["quantisation"] or _NONE,
                part["sha256"] or _NONE,
            )
            for model in models
            for part in model["parts"]
        ),
    )
    yield Heading(3, "Prompts")
    hidden = 0
    for prompt in plan.prompts:
        if private or not prompt.private:
            yield Quote(f"{prompt.category}, {prompt.name}", prompt.text)
        else:
            hidden += 1
    if hidden:
        count = "1 prompt is" if hidden == 1 else f"{hidden} prompts are"
        yield Text(f"{count} private and left out.")


def _unusual(plan: Plan) -> Iterator[str]:
    """The settings of replies that nobody changes without a reason; those of one source stand in the JSON."""
    sampling, usual = plan.sampling, SamplingSettings()
    for setting in fields(sampling):
        value = getattr(sampling, setting.name)
        if setting.name not in _TOLD and value != getattr(usual, setting.name):
            words = f"{value:g}" if isinstance(value, int | float) else f"{len(value)} entries"
            yield f"{setting.name.replace('_', ' ')} {words}"
    for source in fields(plan.text_sources):
        chosen, default = (getattr(each, source.name) for each in (plan.text_sources, TextSourceSettings()))
        # In no run of a comparison are texts shared, whatever was asked for.
        if source.name != "shared" and chosen != default:
            yield f"{source.name.replace('_', ' ')} set otherwise than usual"


def _percent(share: float | None) -> str:
    return f"{share * 100:.0f} %" if share is not None else _NONE


def _milliseconds(seconds: float | None) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds is not None else _NONE

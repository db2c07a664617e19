"""From what a comparison found to what the page shows of it: words and numbers, without any widget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from PySide6.QtCore import QCoreApplication, QDate, QDateTime, QLocale

from forespeak.compare.lane_results import ComparisonResult, LaneCell, LaneResult
from forespeak.compare.lanes import Lane, Plan
from forespeak.compare.runner import Results, Run
from forespeak.compare.statistics import Estimate, Figures
from forespeak.compare.store import State, StoredComparison
from forespeak.compare.verdicts import VerdictKind
from forespeak.models.formats import model_stem
from forespeak.models.sizes import size_words
from forespeak.ui.compare_parts import ratio_words
from forespeak.ui.compare_prompt_files import OWN
from forespeak.ui.compare_values import (
    HistoryRow,
    LaneFigures,
    Rate,
    Recorded,
    ResultValues,
    SpeedUp,
    SpeedUps,
    Tone,
)
from forespeak.ui.replay import LaneRecording

_NONE = "–"
_TONES = {VerdictKind.FASTER: Tone.GOOD, VerdictKind.SLOWER: Tone.BAD}


def _tr(words: str) -> str:
    return QCoreApplication.translate("CompareReading", words)


def result_values(stored: StoredComparison, result: ComparisonResult) -> ResultValues:
    """Of the lane that came out best, the ratio and the verdict; of all of them, the rest."""
    others = [lane for lane in result.lanes if lane.base is not None]
    measured = [lane for lane in others if lane.overall.ratio is not None]
    main = max(measured, key=_ratio_of, default=None)
    ordered = sorted(measured, key=lambda lane: lane is not main)
    return ResultValues(
        id=stored.id,
        name=stored.name,
        subtitle=subtitle_of(stored, result),
        ratio=None if main is None else _ratio_of(main),
        tone=Tone.EVEN if main is None else _TONES.get(main.overall.verdict.kind, Tone.EVEN),
        headline=result.headline,
        details=_details(result, main),
        advice=("" if main is None else main.overall.verdict.advice) or "",
        sameness=_sameness(measured),
        speed_ups=tuple(_speed_ups(lane) for lane in ordered),
        lanes=tuple(_figures_of(lane) for lane in result.lanes if lane.overall.figures.runs),
        table=table_of(result.lanes),
        recorded=recorded_of(result.plan, result.results),
        notes=tuple(_notes(result, others, main)),
        resumable=stored.can_resume,
    )


def history_row(stored: StoredComparison) -> HistoryRow:
    state = {
        State.COMPLETE: "",
        State.OUT_OF_TIME: _tr("out of time after {0} of {1} runs"),
        State.STOPPED: _tr("ended after {0} of {1} runs"),
        State.INTERRUPTED: _tr("interrupted after {0} of {1} runs"),
        State.RUNNING: _tr("being measured, {0} of {1} runs so far"),
    }[stored.state].format(stored.done, stored.planned)
    summary = " · ".join(part for part in (state, stored.headline) if part)
    return HistoryRow(stored.id, stored.name, when_words(stored.created_at), summary)


def when_words(when: datetime) -> str:
    """“today 14:05”, “3 May, 14:05”, as the system writes days."""
    local = QDateTime.fromSecsSinceEpoch(int(when.timestamp()))
    locale, today = QLocale(), QDate.currentDate()
    clock = locale.toString(local.time(), QLocale.FormatType.ShortFormat)
    day = local.date()
    if day == today:
        return _tr("today {0}").format(clock)
    return f"{locale.toString(day, 'd MMMM' if day.year() == today.year() else 'd MMMM yyyy')}, {clock}"


def subtitle_of(stored: StoredComparison, result: ComparisonResult) -> str:
    plan = result.plan
    kinds = list(dict.fromkeys(prompt.category for prompt in plan.prompts))
    prompts = _counted(len(plan.prompts), _tr("1 prompt"), _tr("{0} prompts"))
    if len(kinds) > 1:
        prompts += _tr(" of {0} kinds").format(len(kinds))
    devices = [loaded.devices for loaded in result.results.loaded.values() if loaded.devices]
    machine = result.results.machine.processor
    if devices and any(device != "CPU" for device in devices[0]):
        machine = ", ".join(devices[0])
    parts = (
        model_stem(plan.target),
        prompts,
        _tr("{0} tokens").format(plan.tokens),
        _tr("temperature {0}").format(_and(f"{each:g}" for each in sorted(plan.bases))),
        when_words(stored.created_at),
        machine,
    )
    return " · ".join(part for part in parts if part)


def _and(words: Iterable[str]) -> str:
    *first, last = words
    return _tr("{0} and {1}").format(", ".join(first), last) if first else last


def kind_words(category: str | None) -> str:
    """A category as people read it."""
    return _tr("your own") if category == OWN else category or ""


def _counted(count: int, one: str, many: str) -> str:
    return one if count == 1 else many.format(count)


def _ratio_of(lane: LaneResult) -> float:
    return 0.0 if lane.overall.ratio is None else lane.overall.ratio.value


def _details(result: ComparisonResult, main: LaneResult | None) -> str:
    plan = result.plan
    runs = _counted(plan.repeats, _tr("1 run each"), _tr("{0} runs each"))
    prompts = _counted(len(plan.prompts), _tr("1 prompt"), _tr("{0} prompts"))
    parts = [_tr("{0}, {1}, order balanced, same seed.").format(prompts, runs)]
    if main is not None:
        parts.insert(0, main.overall.verdict.words)
        interval = None if main.overall.ratio is None else main.overall.ratio.interval
        if interval is not None:
            # Its ends stand in the verdict's words.
            parts.append(_tr("{0} % interval.").format(f"{interval.coverage * 100:.0f}"))
        else:
            parts.append(_tr("Too few runs for an interval."))
    return " ".join(parts)


def _sameness(lanes: Sequence[LaneResult]) -> str:
    compared = sum(lane.overall.figures.compared for lane in lanes)
    identical = sum(lane.overall.figures.identical for lane in lanes)
    if not compared:
        return ""
    if identical == compared == 1:
        return _tr("The words were the same.")
    if identical == compared:
        return _tr("The words were the same in all {0} runs that were compared.").format(compared)
    words = _tr("The words were the same in {0} of {1} runs.").format(identical, compared)
    first = next((difference for lane in lanes for difference in lane.differences), None)
    return words if first is None else f"{words} {first.words}"


def _speed_ups(lane: LaneResult) -> SpeedUps:
    rows = [_speed_up(kind_words(cell.category), cell) for cell in lane.cells if cell.ratio is not None]
    if len(rows) != 1:
        rows.append(_speed_up(_tr("all together"), lane.overall))
    base = "" if lane.base is None else lane.base.name
    return SpeedUps(_tr("{0} against {1}").format(lane.lane.name, base), tuple(rows))


def _speed_up(label: str, cell: LaneCell) -> SpeedUp:
    assert cell.ratio is not None
    interval = cell.ratio.interval
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return SpeedUp(label, cell.ratio.value, low, high, f"{label}: {cell.verdict.words}")


def _figures_of(lane: LaneResult) -> LaneFigures:
    figures = lane.overall.figures
    rates = tuple(
        Rate(kind_words(cell.category), rate.value, *_ends(rate))
        for cell in lane.cells
        if (rate := cell.figures.rate) is not None
    )
    share = figures.draft_time_share if lane.lane.sources else None
    return LaneFigures(lane.lane.name, lane.lane.is_off, rates, figures.acceptance_by_position, share)


def _ends(estimate: Estimate) -> tuple[float | None, float | None]:
    return (None, None) if estimate.interval is None else (estimate.interval.low, estimate.interval.high)


def _notes(result: ComparisonResult, others: Iterable[LaneResult], main: LaneResult | None) -> Iterable[str]:
    for lane in others:
        if not lane.overall.figures.runs:
            yield _tr("{0} was not measured: {1}").format(lane.lane.name, _why_not(result, lane))
        elif lane is not main:
            advice = f" {lane.overall.verdict.advice}" if lane.overall.verdict.advice else ""
            yield f"{lane.lane.name}: {lane.overall.verdict.words}{advice}"
    yield from result.notes


def _why_not(result: ComparisonResult, lane: LaneResult) -> str:
    """A lane's own failure, or that of the draft it needs."""
    failures = lane.overall.figures.failures
    loads = [result.results.loaded.get(pair) for pair, _, _ in result.plan.places[lane.lane]]
    drafts = [loaded.draft_problem for loaded in loads if loaded is not None and lane.lane.needs_model]
    found = [lane.problem, *failures[:1], *drafts]
    return next((words for words in found if words), lane.overall.verdict.words)


# The table


def table_of(lanes: Sequence[LaneResult]) -> tuple[tuple[str, ...], ...]:
    """A column per lane, all its categories together."""
    shown = [lane for lane in lanes if lane.overall.figures.runs or lane.overall.figures.failures]
    rows: list[tuple[str, ...]] = [("", *(lane.lane.name for lane in shown))]
    for words, cell in _METRICS:
        cells = tuple(cell(lane) for lane in shown)
        if any(each != _NONE for each in cells):
            rows.append((_tr(words), *cells))
    return tuple(rows)


def _number(value: float | None, digits: int = 1, unit: str = "", scale: float = 1.0) -> str:
    return _NONE if value is None else f"{value * scale:,.{digits}f}{unit}"


def _of_gap(place: int, lane: LaneResult) -> str:
    gaps = lane.overall.figures.gaps
    return _NONE if gaps is None else _number(gaps[place], 1, " ms", 1e3)


def _interval_words(lane: LaneResult) -> str:
    ratio = lane.overall.ratio
    if ratio is None:
        return _NONE
    interval = ratio.interval
    return ratio_words(ratio.value) + (f" ({interval.low:.2f} – {interval.high:.2f})" if interval else "")


def _f(lane: LaneResult) -> Figures:
    return lane.overall.figures


def _memory(lane: LaneResult) -> str:
    peak = _f(lane).peak_memory_bytes
    return _NONE if peak is None else size_words(peak)


def _same_words(lane: LaneResult) -> str:
    figures = _f(lane)
    return f"{figures.identical} / {figures.compared}" if figures.compared else _NONE


_METRICS = (
    ("Tokens per second", lambda lane: _number(None if (rate := _f(lane).rate) is None else rate.value)),
    ("Speed-up", _interval_words),
    ("Speed-up of the whole reply", lambda lane: _NONE if lane.base is None else ratio_words(_f(lane).whole_ratio)),
    ("Time to first token", lambda lane: _number(_f(lane).first_token, 3, " s")),
    ("Prompt tokens per second", lambda lane: _number(_f(lane).prompt_rate)),
    ("Time per token, median", lambda lane: _of_gap(0, lane)),
    ("Time per token, 95th percentile", lambda lane: _of_gap(1, lane)),
    ("Time per token, 99th percentile", lambda lane: _of_gap(2, lane)),
    ("Drafts accepted", lambda lane: _number(_f(lane).acceptance_rate, 0, " %", 100)),
    ("Tokens from each check", lambda lane: _number(_f(lane).mean_acceptance_length, 2)),
    ("Time spent on drafting", lambda lane: _number(_f(lane).draft_time_share if lane.base else None, 0, " %", 100)),
    ("Peak memory", _memory),
    ("Tokens per reply, median", lambda lane: _number(_f(lane).tokens, 0)),
    ("Same words as the target alone", _same_words),
    ("Runs", lambda lane: str(_f(lane).runs)),
    ("Failed runs", lambda lane: str(len(_f(lane).failures)) if _f(lane).failures else _NONE),
)


# What can be replayed


def recorded_of(plan: Plan, results: Results) -> tuple[Recorded, ...]:
    """For each prompt the first run of each lane that was recorded, off first."""
    lanes, lane_at = plan.all_lanes, plan.lanes_by_place
    found: dict[tuple[str, str], dict[Lane, Run]] = {}
    for run in results.runs:
        task = run.task
        lane = lane_at.get(task.where)
        if lane is None or not run.recording:
            continue
        kept = found.setdefault((task.prompt.category, task.prompt.name), {})
        before = kept.get(lane)
        if before is None or (task.repetition or 0) < (before.task.repetition or 0):
            kept[lane] = run
    shown = []
    for (category, name), runs in found.items():
        in_order = [(lane, runs[lane]) for lane in lanes if lane in runs]
        if len(in_order) > 1:
            shown.append(
                Recorded(
                    f"{kind_words(category)}: {name}",
                    tuple(_recording(lane, run, _base_of(plan, lane)) for lane, run in in_order),
                )
            )
    return tuple(shown)


def _base_of(plan: Plan, lane: Lane) -> str:
    base = plan.bases[plan.temperature_of(lane)]
    return "" if lane == base else base.name


def _recording(lane: Lane, run: Run, base: str) -> LaneRecording:
    steps = tuple(recorded.step for recorded in run.recording)
    ends = tuple(recorded.at for recorded in run.recording)
    return LaneRecording(lane.name, lane.is_off, steps, ends, run.rate, base)

"""Charts of a comparison as SVG, drawn by hand: they need no script, and can be told apart in grey.

Lanes differ by their lightness and by a hatching of their own, lines by their dashes and marks. Those that draft
nothing are all grey.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from unicodedata import east_asian_width

from forespeak.compare.lane_results import ComparisonResult, LaneResult
from forespeak.compare.statistics import Estimate

_FILLS = ("#d0d0d0", "#1b6f9c", "#dc8f2a", "#2d1b57", "#8fc1a9", "#a23b3b", "#3d3d3d", "#d9a5c7")
"""Far apart in lightness from one to the next."""
_LINES = ("#6f6f6f", "#1b6f9c", "#b35f00", "#2d1b57", "#3d8a63", "#a23b3b", "#1f1f1f", "#a0527f")
"""The same hues, dark enough for a line on white."""
_LINES_ON_DARK = ("#b8b8b8", "#6db7dd", "#f0a94e", "#b9a3ff", "#8fc1a9", "#ef8f8f", "#ffffff", "#e5a8c6")
_HATCHES = (
    "",
    "M0 8 L8 0",
    "M0 0 L8 8",
    "M4 0 L4 8",
    "M0 4 L8 4",
    "M0 8 L8 0 M0 0 L8 8",
    "M2 2 L3 3",
    "M0 4 L8 4 M4 0 L4 8",
)
_DASHES = ("", "6 3", "2 3", "8 3 2 3", "10 4", "4 4", "1 4", "12 3 3 3")
_WIDTH, _LABELS, _BAR, _GAP = 760, 150, 14, 12
_MOST_POSITIONS = 16
_SIGN = 36
"""A sign of the legend, and what stands between it and its name."""

DARK_LINES = (
    "@media (prefers-color-scheme: dark) {"
    + "".join(
        f" svg path.lane{index} {{ stroke: {colour}; }} svg circle.lane{index} {{ fill: {colour}; }}"
        for index, colour in enumerate(_LINES_ON_DARK)
    )
    + " }"
)
"""For the style sheet of whatever shows the charts: their lines on a dark ground."""


def rates_chart(result: ComparisonResult) -> str:
    """Decoded tokens per second, by category and lane, with the interval of each median."""
    lanes = [lane for lane in result.lanes if lane.overall.figures.rate is not None]
    categories = [each for each in result.categories if any(_rate(lane, each) for lane in lanes)]
    if not lanes or not categories:
        return ""
    longest = max(
        max(rate.value, rate.interval.high if rate.interval else 0.0)
        for lane in lanes
        for category in categories
        if (rate := _rate(lane, category)) is not None
    )
    scale = (_WIDTH - _LABELS - 60) / longest
    parts, y = [], 8.0
    for category in categories:
        middle = y + len(lanes) * _BAR / 2 + 4
        name = _fitting(category, _LABELS - 10)
        parts.append(f'<text x="{_LABELS - 10}" y="{middle:.1f}" text-anchor="end">{name}</text>')
        for lane in lanes:
            rate = _rate(lane, category)
            if rate is not None:
                end = _LABELS + rate.value * scale
                parts.append(_bar(_LABELS, y, rate.value * scale, _look_of(result, lane)))
                if rate.interval is not None:
                    low, high = _LABELS + rate.interval.low * scale, _LABELS + rate.interval.high * scale
                    at = y + _BAR / 2 - 1
                    path = f"M{low:.1f} {at:.1f} H{high:.1f} M{low:.1f} {at - 3:.1f} v6 M{high:.1f} {at - 3:.1f} v6"
                    # On a ground of its own, so that it is seen on dark bars too.
                    parts.append(f'<path d="{path}" class="halo"/><path d="{path}" class="line"/>')
                    end = max(end, high)
                parts.append(f'<text x="{end + 6:.1f}" y="{y + _BAR - 3:.1f}" class="small">{rate.value:.1f}</text>')
            y += _BAR
        y += _GAP
    return _svg("Tokens per second", y, [*parts, *_legend(result, lanes, y)], len(lanes))


def acceptance_chart(result: ComparisonResult) -> str:
    """Of the steps that tested a token at a place of their draft, the share that accepted it."""
    lanes = [lane for lane in result.lanes if lane.overall.figures.acceptance_by_position]
    if not lanes:
        return ""
    count = min(_MOST_POSITIONS, max(len(lane.overall.figures.acceptance_by_position) for lane in lanes))
    top, height, width = 12.0, 180.0, _WIDTH - _LABELS - 60

    def x_of(place: int) -> float:
        return _LABELS + (width * place / (count - 1) if count > 1 else width / 2)

    parts = []
    for share in (0, 25, 50, 75, 100):
        y = top + height * (1 - share / 100)
        parts += [
            f'<path d="M{_LABELS} {y:.1f} H{_LABELS + width}" class="grid"/>',
            f'<text x="{_LABELS - 10}" y="{y + 4:.1f}" text-anchor="end" class="small">{share} %</text>',
        ]
    parts += [
        f'<text x="{x_of(place):.1f}" y="{top + height + 16:.1f}" text-anchor="middle" class="small">{place + 1}</text>'
        for place in range(count)
    ]
    for lane in lanes:
        look = _look_of(result, lane)
        shares = lane.overall.figures.acceptance_by_position[:count]
        points = [(x_of(place), top + height * (1 - share)) for place, share in enumerate(shares)]
        path = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        parts.append(_line(f"M{path}", look))
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{_LINES[look.colour]}" class="mark lane{look.colour}"/>'
            for x, y in points
        ]
    bottom = top + height + 28
    return _svg(
        "Acceptance by position in the draft", bottom, [*parts, *_legend(result, lanes, bottom, lines=True)], len(lanes)
    )


def drafting_chart(result: ComparisonResult) -> str:
    """The share of the time that drafting takes, by lane; the rest is the target's."""
    lanes = [lane for lane in result.lanes if lane.overall.figures.acceptance_rate is not None]
    if not lanes:
        return ""
    width, parts, y = _WIDTH - _LABELS - 60, [], 8.0
    for lane in lanes:
        share = lane.overall.figures.draft_time_share or 0.0
        # Above its bar: names that differ at their ends only can be told apart there.
        parts.append(f'<text x="{_LABELS}" y="{y + 10:.1f}">{_fitting(lane.lane.name, width)}</text>')
        y += 16
        parts += [
            _bar(_LABELS, y, share * width, _look_of(result, lane)),
            f'<rect x="{_LABELS}" y="{y:.1f}" width="{width}" height="{_BAR - 2}" class="frame"/>',
            f'<text x="{_LABELS + width + 6}" y="{y + _BAR - 3:.1f}" class="small">{share * 100:.0f} %</text>',
        ]
        y += _BAR + _GAP / 2
    return _svg("Share of the time spent on drafting", y, parts, 0)


def _rate(lane: LaneResult, category: str) -> Estimate | None:
    return next((cell.figures.rate for cell in lane.cells if cell.category == category), None)


@dataclass(frozen=True, slots=True)
class _Look:
    """The numbers of a lane's colour and of its hatching or dashes."""

    colour: int
    pattern: int


def _look_of(result: ComparisonResult, lane: LaneResult) -> _Look:
    """Grey for all that draft nothing, at whatever temperature; each has a pattern of its own."""
    pattern = result.lanes.index(lane) % len(_HATCHES)
    if lane.lane.is_off:
        return _Look(0, pattern)
    drafting = [each for each in result.lanes if not each.lane.is_off]
    return _Look(1 + drafting.index(lane) % (len(_FILLS) - 1), pattern)


def _bar(x: float, y: float, width: float, look: _Look) -> str:
    height = _BAR - 2
    place = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 1.0):.1f}" height="{height}"'
    # White would not be seen on the grey.
    hatch = f"{'hatch' if look.colour else 'dark'}{look.pattern}"
    return f'<rect {place} fill="{_FILLS[look.colour]}"/><rect {place} fill="url(#{hatch})" class="frame"/>'


def _legend(result: ComparisonResult, lanes: Sequence[LaneResult], y: float, *, lines: bool = False) -> list[str]:
    parts = []
    for row, lane in enumerate(lanes):
        at, look = y + 4 + row * 20, _look_of(result, lane)
        sign = _bar(_LABELS, at, 28, look)
        if lines:
            sign = _line(f"M{_LABELS} {at + 6:.1f} H{_LABELS + 28}", look)
        name = _fitting(lane.lane.name, _WIDTH - _LABELS - _SIGN)
        parts += [sign, f'<text x="{_LABELS + _SIGN}" y="{at + 10:.1f}">{name}</text>']
    return parts


def _line(path: str, look: _Look) -> str:
    return (
        f'<path d="{path}" fill="none" stroke="{_LINES[look.colour]}" stroke-width="2.5" '
        f'stroke-dasharray="{_DASHES[look.pattern]}" class="lane{look.colour}"/>'
    )


def _fitting(words: str, room: float) -> str:
    """Escaped, and short of its middle where all would not be seen; the whole then shows under the pointer."""
    widths = [14.0 if east_asian_width(letter) in "WF" else 7.6 for letter in words]
    if sum(widths) <= room:
        return escape(words)
    first, last = 0, len(words)
    taken = widths[0] + 14.0
    while taken <= room:
        # From both ends in turn: long names often differ at their ends only.
        if first <= len(words) - last:
            first += 1
            taken += widths[first]
        else:
            last -= 1
            taken += widths[last - 1]
    return f"{escape(words[:first])}…{escape(words[last:])}<title>{escape(words)}</title>"


def _svg(title: str, height: float, parts: Sequence[str], legend_rows: int) -> str:
    hatches = "".join(
        f'<pattern id="{name}{index}" width="8" height="8" patternUnits="userSpaceOnUse">'
        + (f'<path d="{path}" stroke="{colour}" stroke-opacity="0.75" stroke-width="1.5"/>' if path else "")
        + "</pattern>"
        for name, colour in (("hatch", "#ffffff"), ("dark", "#4a4a4a"))
        for index, path in enumerate(_HATCHES)
    )
    whole = height + legend_rows * 20 + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {whole:.0f}" role="img" '
        f'aria-label="{escape(title)}"><defs>{hatches}</defs>{"".join(parts)}</svg>'
    )

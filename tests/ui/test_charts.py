from __future__ import annotations

import time

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from forespeak.speculation.trace import Source, Token
from forespeak.ui.charts import Chart, ContextMeter, PositionBars, Sparkline, StepsStrip, draw_bar_label
from forespeak.ui.theme import LIGHT, MarkKind, source_kind, ui_font
from ui.replies import accepted, bonus, corrected, plain, step


def grab(chart: QWidget) -> QImage:
    return chart.grab().toImage()


def count(image: QImage, colour: str) -> int:
    """Pixels of about that colour: the edges of lines are smoothed."""
    wanted = QColor(colour)

    def near(pixel: QColor) -> bool:
        there = (pixel.red() - wanted.red(), pixel.green() - wanted.green(), pixel.blue() - wanted.blue())
        return pixel.alpha() == 255 and max(map(abs, there)) < 24

    return sum(near(image.pixelColor(x, y)) for x in range(image.width()) for y in range(image.height()))


def shown(qtbot: QtBot, chart: Chart, width: int = 280) -> Chart:
    qtbot.addWidget(chart)
    chart.resize(width, chart.height())
    chart.show()
    return chart


def test_the_line_grows_with_the_rates_and_keeps_the_baseline(qtbot: QtBot) -> None:
    line = Sparkline()
    shown(qtbot, line)
    line.set_baseline(50.0)
    empty = grab(line)
    assert count(empty, LIGHT.muted) > 20
    for rate in range(200):
        line.add(60.0 + rate % 3)
    assert count(grab(line), LIGHT.accepted_model.line) > 100
    line.reset()
    assert grab(line) == empty


def test_a_higher_rate_has_a_higher_bar(qtbot: QtBot) -> None:
    bars = PositionBars()
    shown(qtbot, bars)
    bars.set_rates((0.9, 0.3))
    image = grab(bars)
    colour = QColor(LIGHT.accepted_model.line).name()

    def height(x: int) -> int:
        return sum(image.pixelColor(x, y).name() == colour for y in range(image.height()))

    assert height(28) == pytest.approx(3 * height(56 + 7 + 28), abs=3)
    assert bars.accessibleName() == "Accepted by position: 90%, 30%"


def test_a_label_at_the_edge_is_written_whole(qapp: QApplication) -> None:
    ink = []
    for middle in (2.0, 140.0, 278.0):
        image = QImage(280, 20, QImage.Format.Format_ARGB32)
        image.fill(Qt.GlobalColor.white)
        painter = QPainter(image)
        painter.setFont(ui_font(11))
        draw_bar_label(painter, "95", middle, 2.0, 280.0)
        painter.end()
        ink.append(sum(image.pixelColor(x, y).lightness() < 160 for x in range(280) for y in range(20)))
    assert min(ink) > 10
    assert max(ink) - min(ink) <= 0.2 * max(ink)


@pytest.mark.parametrize("rates", [(), (0.0,), (1.0,), tuple(n / 16 for n in range(16))])
def test_bars_fit_whatever_the_draft_length(qtbot: QtBot, rates: tuple[float, ...]) -> None:
    bars = PositionBars()
    shown(qtbot, bars, 240)
    bars.set_rates(rates)
    grab(bars)
    assert bars.accessibleName()


def test_where_nothing_was_accepted_no_source_has_a_bar(qtbot: QtBot) -> None:
    bars = PositionBars()
    shown(qtbot, bars, 240)
    bars.set_rates((1.0, 0.0), [{MarkKind.ACCEPTED_LOOKUP: 3}, {}])
    image = grab(bars)
    assert count(image, LIGHT.accepted_lookup.line) > 100
    assert count(image, LIGHT.accepted_model.line) == 0


def test_the_strip_shows_every_kind_of_token(qtbot: QtBot) -> None:
    strip = StepsStrip()
    shown(qtbot, strip)
    strip.add([step(0, plain("a")), step(1, accepted("a"), corrected("b"), rejected=("x",))])
    strip.add([step(2, accepted("a", source), bonus("b")) for source in Source])
    image = grab(strip)
    for kind in MarkKind:
        assert count(image, LIGHT.mark(kind).line) > 3, kind
    assert strip.accessibleName() == "Newest step: 1 accepted, 0 rejected"


def test_kinds_differ_in_shape_not_only_in_colour(qtbot: QtBot) -> None:
    def shape(*tokens: Token) -> tuple[bool, ...]:
        strip = StepsStrip()
        shown(qtbot, strip)
        strip.add([step(1, *tokens)])
        image = grab(strip)
        paper = image.pixelColor(270, 5)
        return tuple(image.pixelColor(x, y) != paper for x in range(10) for y in range(15))

    shapes = {shape(accepted("a", source)) for source in Source} | {shape(bonus("a")), shape(corrected("a"))}
    assert len(shapes) == len(Source) + 2


def test_a_bar_shows_which_sources_the_accepted_tokens_came_from(qtbot: QtBot) -> None:
    bars = PositionBars()
    shown(qtbot, bars)
    model, lookup = source_kind(Source.DRAFT_MODEL), source_kind(Source.PROMPT_LOOKUP)
    bars.set_rates((1.0, 0.5), ({model: 3, lookup: 1}, {lookup: 2}))
    image = grab(bars)

    def tall(x: int, kind: MarkKind) -> int:
        return sum(image.pixelColor(x, y) == QColor(LIGHT.mark(kind).line) for y in range(image.height()))

    assert tall(28, model) == pytest.approx(3 * tall(28, lookup), abs=4)
    assert tall(56 + 7 + 28, model) == 0
    assert tall(56 + 7 + 28, lookup) > 10


def test_the_newest_step_is_always_in_view_and_thousands_do_not_slow_it(qtbot: QtBot) -> None:
    strip = StepsStrip()
    shown(qtbot, strip)
    strip.add([step(n, accepted("a"), accepted("b"), corrected("c")) for n in range(20_000)])
    grab(strip)
    before = time.perf_counter()
    for _ in range(10):
        grab(strip)
    assert (time.perf_counter() - before) / 10 < 0.1
    assert count(grab(strip), LIGHT.bonus.line) == 0
    strip.add([step(20_000, bonus("a"))])
    assert count(grab(strip), LIGHT.bonus.line) > 3


def test_a_new_step_leaves_the_others_where_they_are(qtbot: QtBot) -> None:
    strip = StepsStrip()
    shown(qtbot, strip)
    strip.add([step(n, accepted("a"), accepted("b"), corrected("c"), rejected=("x",)) for n in range(1001)])
    before = grab(strip)
    strip.add([step(1001, bonus("a"))])
    after = grab(strip)
    moved = before.copy(0, 0, 280, 6 * 17) != after.copy(0, 0, 280, 6 * 17)
    scrolled = before.copy(0, 17, 280, 5 * 17) == after.copy(0, 0, 280, 5 * 17)
    assert not moved or scrolled


def test_the_meter_fills_and_warns(qtbot: QtBot) -> None:
    meter = ContextMeter()
    shown(qtbot, meter, 110)
    meter.set_use(2540, 8192)
    assert meter.accessibleName() == "Context: 2,540 of 8,192 tokens"
    half = count(grab(meter), LIGHT.muted)
    meter.set_use(8000, 8192)
    image = grab(meter)
    assert count(image, LIGHT.danger) > half
    meter.set_use(0, 0)
    assert count(grab(meter), LIGHT.muted) == 0

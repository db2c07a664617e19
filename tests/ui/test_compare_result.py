"""A result as it is read: verdict, rows, charts, table, and the picture of it all."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from forespeak.ui.compare_charts import lane_colours
from forespeak.ui.compare_result import CompareResult
from forespeak.ui.compare_values import SpeedUp, SpeedUps, Tone
from forespeak.ui.compare_verdict import SpeedUpRows
from forespeak.ui.theme import DARK, DARK_COLOUR_BLIND, LIGHT, LIGHT_COLOUR_BLIND, Theme
from ui.compare_doubles import recorded, values


@pytest.fixture
def result(qtbot: QtBot) -> CompareResult:
    shown = CompareResult()
    qtbot.addWidget(shown)
    shown.set_theme(LIGHT)
    shown.resize(1000, 900)
    shown.show()
    qtbot.waitExposed(shown)
    return shown


def test_the_verdict_in_numbers_and_words(result: CompareResult) -> None:
    result.show_result(values())
    verdict = result.verdict
    assert verdict.ratio.text() == "1.36×"
    assert LIGHT.success in verdict.ratio.styleSheet()
    assert "worth it" in verdict.headline.text()
    assert "same in all 30" in verdict.sameness.text()
    assert verdict.advice.isVisible()
    assert result.title.words.startswith("Llama 3.1 8B")


@pytest.mark.parametrize(("tone", "colour"), [(Tone.BAD, LIGHT.danger), (Tone.EVEN, LIGHT.ink)])
def test_what_is_no_gain_is_not_green(result: CompareResult, tone: Tone, colour: str) -> None:
    result.show_result(values(ratio=0.9, tone=tone, advice=""))
    assert colour in result.verdict.ratio.styleSheet()
    assert not result.verdict.advice.isVisible()


def test_nothing_compared_claims_nothing(result: CompareResult) -> None:
    result.show_result(
        values(ratio=None, tone=Tone.EVEN, speed_ups=(), lanes=(), recorded=(), table=(), headline="Nothing compared.")
    )
    result.draw_charts()
    assert not result.verdict.ratio.isVisible()
    assert not result.speed_up_rows
    assert not result.replay.isVisible()
    assert result.charts is not None
    assert not result.charts.rates_card.isVisible()
    assert not result.charts.tokens_card.isVisible()


def test_a_row_for_each_kind_of_work_and_lane(result: CompareResult) -> None:
    rows = values().speed_ups[0].rows
    result.show_result(values(speed_ups=(SpeedUps("A against Off", rows), SpeedUps("B against Off", rows[:2]))))
    assert [each.rows for each in result.speed_up_rows] == [rows, rows[:2]]
    assert "coding: 1.71× 1.62 – 1.80" in result.speed_up_rows[0].accessibleName()


def test_charts_come_with_their_words(result: CompareResult, qtbot: QtBot) -> None:
    result.show_result(values())
    qtbot.waitUntil(lambda: result.charts is not None)
    charts = result.charts
    assert charts is not None
    assert "Off, coding: 50.1" in charts.rates.accessibleDescription()
    assert "Llama 3.2 1B · Auto, coding: 85.7" in charts.rates.accessibleDescription()
    assert "Off: 35 tokens in 0.9 s" in charts.tokens.accessibleDescription()
    assert "17%" in charts.shares.accessibleName()
    assert len(charts._bars) == 1
    assert "91%" in charts._bars[0].accessibleName()


def test_another_prompt_draws_its_own_tokens(result: CompareResult, qtbot: QtBot) -> None:
    short = recorded("math: sum")
    result.show_result(values(recorded=(recorded(), short)))
    result.draw_charts()
    assert result.charts is not None
    drawn = len(result.charts.tokens.plot.listDataItems())
    assert drawn == 2
    QTest.keyClick(result.replay.prompts, Qt.Key.Key_Down)
    assert result.charts._recorded == short.lanes


def test_lanes_with_long_names_fit_a_narrow_window(result: CompareResult) -> None:
    long = "Lookup + A very long name of a draft model · Q4_K_M · Auto · temperature 0.7"
    shown = values()
    lanes = tuple(replace(lane, name=f"{lane.name} {long}") for lane in shown.lanes)
    groups = tuple(SpeedUps(f"{long} {place} against Off, temperature 0.7", shown.speed_ups[0].rows) for place in "ab")
    result.show_result(replace(shown, lanes=lanes, speed_ups=groups, recorded=(recorded(lanes=3),)))
    result.draw_charts()
    assert result.content.minimumSizeHint().width() <= 440
    result.resize(440, 900)
    against = result.replay.against
    assert against.shown_words(against.width()) == against.currentText()
    assert against.shown_words(100).endswith("Auto")
    assert "…" in against.shown_words(100)


def test_names_are_no_markup(result: CompareResult) -> None:
    name = '<b>Small</b> <img src="x.png">'
    rows = (SpeedUp("coding", 1.4, note=f"{name}: faster"),)
    result.show_result(values(name=name, headline=name, speed_ups=(SpeedUps(name, rows), SpeedUps("b", rows))))
    labels = [label for label in result.content.findChildren(QLabel) if name in label.text()]
    assert len(labels) == 3
    assert {label.textFormat() for label in labels} == {Qt.TextFormat.PlainText}
    assert "&lt;b&gt;Small&lt;/b&gt;" in result.speed_up_rows[0].toolTip()


def test_the_mouse_moves_no_chart(result: CompareResult) -> None:
    result.show_result(values())
    result.draw_charts()
    assert result.charts is not None
    for plot in (result.charts.rates, result.charts.tokens):
        assert plot.plot.testAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        assert plot.plot.plotItem.vb.state["mouseEnabled"] == [False, False]
        assert plot.plot.focusPolicy() is Qt.FocusPolicy.NoFocus


def test_all_figures_stand_in_the_table(result: CompareResult) -> None:
    result.show_result(values())
    table = result.table
    assert table.rowCount() == 9
    assert table.item(0, 2).text() == "68.4"  # type: ignore[union-attr]
    assert table.horizontalHeaderItem(1).text() == "Off"  # type: ignore[union-attr]
    inside = table.horizontalHeader().height() + sum(table.rowHeight(row) for row in range(9))
    assert table.height() >= inside


def test_another_result_replaces_the_first_one(result: CompareResult) -> None:
    result.show_result(values(resumable=True))
    assert result.resume_button.isVisible()
    result.draw_charts()
    result.show_result(values(name="Other", table=(("", "Off"), ("Runs", "3"))))
    result.draw_charts()
    assert not result.resume_button.isVisible()
    assert result.title.words == "Other"
    assert (result.table.rowCount(), result.table.columnCount()) == (1, 2)


def test_what_can_be_done_with_it(result: CompareResult, qtbot: QtBot) -> None:
    result.show_result(values(resumable=True))
    menu = result.export_button.menu()
    assert menu is not None
    assert [action.data() for action in menu.actions()] == ["png", "html", "md", "json", "csv"]
    with qtbot.waitSignal(result.exportRequested) as wanted:
        menu.actions()[1].trigger()
    assert wanted.args == ["html"]
    with qtbot.waitSignal(result.againRequested):
        result.again_button.click()
    with qtbot.waitSignal(result.resumeRequested):
        result.resume_button.click()


def luminance(colour: str) -> float:
    """WCAG's relative luminance."""

    def linear(channel: float) -> float:
        return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4

    colours = QColor(colour)
    return 0.2126 * linear(colours.redF()) + 0.7152 * linear(colours.greenF()) + 0.0722 * linear(colours.blueF())


@pytest.mark.parametrize("theme", [LIGHT, DARK, LIGHT_COLOUR_BLIND, DARK_COLOUR_BLIND], ids=lambda theme: theme.name)
def test_lanes_are_seen_on_the_card_without_colour(theme: Theme) -> None:
    ground = luminance(theme.card)
    for colour in lane_colours(theme, (True, False, False, False)):
        high, low = max(ground, luminance(colour)), min(ground, luminance(colour))
        assert (high + 0.05) / (low + 0.05) >= 3.0


def test_lanes_without_drafts_are_grey_at_any_temperature(result: CompareResult) -> None:
    off, drafted = values().lanes
    lanes = (off, drafted, replace(off, name="Off, warm"), replace(drafted, name="Warm"))
    result.show_result(values(lanes=lanes))
    result.draw_charts()
    plain, drafting = [True, False, True, False], lane_colours(LIGHT, (True, False, False))
    assert lane_colours(LIGHT, plain) == [LIGHT.muted, drafting[1], LIGHT.muted, drafting[2]]
    assert result.charts is not None
    pictures = [key.grab().toImage().convertToFormat(QImage.Format.Format_RGB32) for key in result.charts._keys]
    colourful = [
        max(picture.pixelColor(x, y).hsvSaturation() for x in range(picture.width()) for y in range(picture.height()))
        for picture in pictures
    ]
    assert max(colourful[0], colourful[2]) < min(colourful[1], colourful[3])
    # A line and a point of its own for each.
    grey = [picture.convertToFormat(QImage.Format.Format_Grayscale8) for picture in pictures]
    assert all(one != other for number, one in enumerate(grey) for other in grey[:number])


ROWS = (
    SpeedUp("faster", 1.5, 1.4, 1.6),
    SpeedUp("none", 1.0, 0.97, 1.03),
    SpeedUp("slower", 0.7, 0.65, 0.75),
)


def test_dots_differ_in_greyscale(qtbot: QtBot) -> None:
    """Filled and round, hollow, filled and square."""
    rows = SpeedUpRows()
    qtbot.addWidget(rows)
    rows.set_rows(ROWS)
    rows.resize(900, rows.sizeHint().height())
    image = rows.grab().toImage().convertToFormat(QImage.Format.Format_Grayscale8)
    low, high = rows.scale()
    assert low < high
    filled, corners = [], []
    ground = image.pixelColor(2, 2).value()
    for number, row in enumerate(ROWS):
        x, y = rows.dot_at(number)
        centre = image.pixelColor(round(x), round(y)).value()
        filled.append(abs(centre - ground) > 60)
        corner = image.pixelColor(round(x) + 5, round(y) + 5).value()
        corners.append(abs(corner - ground) > 60)
        assert row.ratio > 0
    assert filled == [True, False, True]
    assert corners == [False, False, True]


def test_twice_as_fast_lies_as_far_from_even_as_half_as_fast(qtbot: QtBot) -> None:
    rows = SpeedUpRows()
    qtbot.addWidget(rows)
    rows.resize(900, 100)
    rows.set_rows((SpeedUp("a", 2.0), SpeedUp("b", 1.0), SpeedUp("c", 0.5)))
    places = [rows.dot_at(number)[0] for number in range(3)]
    right, left = (abs(one - other) for one, other in pairwise(places))
    assert right == pytest.approx(left)


def test_a_scale_never_makes_one_per_cent_look_like_much(qtbot: QtBot) -> None:
    rows = SpeedUpRows()
    qtbot.addWidget(rows)
    rows.resize(900, 100)
    rows.set_rows((SpeedUp("a", 1.01), SpeedUp("b", 1.0)))
    assert abs(rows.dot_at(0)[0] - rows.dot_at(1)[0]) < 40


def test_no_rows_say_so(qtbot: QtBot) -> None:
    rows = SpeedUpRows()
    qtbot.addWidget(rows)
    rows.set_rows(())
    assert not rows.grab().isNull()

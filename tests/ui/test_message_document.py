from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QApplication

from forespeak.speculation.trace import Origin, Step, text_of
from forespeak.ui.block_boxes import CodeBox
from forespeak.ui.message_document import MessageDocument
from forespeak.ui.text_look import Look
from forespeak.ui.theme import DARK, LIGHT
from ui.replies import EXAMPLE_TEXT, accepted, bonus, corrected, example, plain, step
from ui.scripted_engine import scripted_steps

MARKDOWN = """Some **bold** words first, then 京都 🍁.

```python
def f(x):

    return x
```
After the code.

- one
- two

| a | b |
|---|---|
| 1 | 2 |

The end.
"""


def document(width: float = 600) -> MessageDocument:
    made = MessageDocument()
    made.set_look(Look(LIGHT))
    made.set_width(width)
    return made


def finished(text: str, steps: list[Step] | tuple[Step, ...], width: float = 600) -> MessageDocument:
    made = document(width)
    made.set_text(text, steps)
    made.ensure(0, 1e9)
    return made


def picture(made: MessageDocument, look: Look | None = None) -> QImage:
    image = QImage(620, int(made.height) + 10, QImage.Format.Format_RGB32)
    image.fill(QColor("white"))
    painter = QPainter(image)
    made.paint(painter, QRectF(image.rect()), look or Look(LIGHT))
    painter.end()
    return image


def shown(made: MessageDocument) -> str:
    everything = made.everything()
    return made.selected_text(everything) if everything else ""


def test_a_reply_that_streamed_ends_as_one_that_was_opened(qapp: QApplication) -> None:
    steps = scripted_steps(MARKDOWN)
    assert text_of(steps) == MARKDOWN
    streamed = document()
    for one in steps:
        streamed.append([one])
        streamed.ensure(0, 1e9)
    streamed.finish()
    streamed.ensure(0, 1e9)
    opened = finished(MARKDOWN, steps)
    assert streamed.height == opened.height
    assert picture(streamed) == picture(opened)
    assert shown(streamed) == shown(opened)


def test_all_tokens_are_on_the_screen_while_they_stream(qapp: QApplication) -> None:
    made = document()
    so_far = ""
    for one in scripted_steps("Plain words only, and no markup at all in them."):
        made.append([one])
        so_far += text_of([one])
        made.ensure(0, 1e9)
        assert shown(made) == so_far


@pytest.mark.parametrize("text", [" A space first, then plain words.", "Plain words.\n\n And a space later.\n\nEnd"])
def test_plain_paragraphs_are_kept_and_look_as_if_rendered(qapp: QApplication, text: str) -> None:
    steps = scripted_steps(text)
    streamed = document()
    for one in steps:
        streamed.append([one])
    streamed.finish()
    streamed.ensure(0, 1e9)
    assert picture(streamed) == picture(finished(text, steps))


def test_a_token_is_found_where_it_is_painted(qapp: QApplication) -> None:
    made = finished(EXAMPLE_TEXT, example())
    found = set()
    for number in range(len(made.provenance)):
        ref = made.provenance.ref(number)
        for rect in made.token_rects(ref):
            there = made.token_at(rect.center())
            assert there is not None
            found.add(number)
            assert there.number == number
    # All but the last, which has no text: even "ld**" and " **wor" show some of theirs.
    assert found == set(range(len(made.provenance) - 1))


def test_rendered_text_keeps_the_colour_of_its_token(qapp: QApplication) -> None:
    steps = (step(1, accepted("**bo"), corrected("ld**"), bonus(" end")),)
    made = finished("**bold** end", steps)
    rects = [made.token_rects(made.provenance.ref(n))[0] for n in range(3)]
    image = picture(made)
    for rect, mark in zip(rects, (LIGHT.accepted_model, LIGHT.corrected, LIGHT.bonus), strict=True):
        assert image.pixelColor(int(rect.center().x()), int(rect.top()) + 2).name() == mark.fill.lower()


def test_marks_are_left_out_when_the_steps_are_of_another_text(qapp: QApplication) -> None:
    made = finished("Another text", example())
    assert len(made.provenance) == 0
    assert made.token_at(QPointF(5, 10)) is None


def test_what_follows_unknown_text_stays_without_marks(qapp: QApplication) -> None:
    made = document()
    made.begin("Saved before. ", ())
    made.append([step(1, accepted("New words."))])
    made.ensure(0, 1e9)
    assert made.text == "Saved before. New words."
    assert made.token_at(QPointF(5, 25)) is None
    assert LIGHT.accepted_model.line.lower() not in {
        picture(made).pixelColor(x, y).name() for x in range(300) for y in range(int(made.height))
    }


def test_the_source_can_be_shown_instead(qapp: QApplication) -> None:
    made = finished(EXAMPLE_TEXT, example())
    assert shown(made) == "Hello big 🍁 world.\n\nEnd"
    made.set_raw(True)
    made.ensure(0, 1e9)
    assert "**world**" in shown(made)
    made.set_raw(False)
    made.ensure(0, 1e9)
    assert shown(made) == "Hello big 🍁 world.\n\nEnd"


def test_code_becomes_a_card_before_its_fence_is_closed(qapp: QApplication) -> None:
    made = document()
    made.append([step(0, plain("Here:\n\n```py"), plain("thon\nx = 1\n\ny"), plain(" = 2"))])
    made.ensure(0, 1e9)
    ((box, _),) = made.code_boxes(0, 1e9)
    assert (box.language, box.code) == ("python", "x = 1\n\ny = 2")
    made.append([step(1, plain("\n``"), plain("`"))])
    made.ensure(0, 1e9)
    ((box, _),) = made.code_boxes(0, 1e9)
    assert box.code.rstrip("\n") == "x = 1\n\ny = 2", "the closing fence is not code"
    made.finish()
    made.ensure(0, 1e9)
    ((box, _),) = made.code_boxes(0, 1e9)
    assert isinstance(box, CodeBox)
    assert box.code == "x = 1\n\ny = 2"


def test_only_what_is_near_is_laid_out(qapp: QApplication) -> None:
    text = "A paragraph of some words.\n\n" * 3000
    made = document()
    made.set_text(text, ())
    estimated = made.height
    made.ensure(0, 500)
    assert made.hit(QPointF(5, 10)) is not None
    assert made.hit(QPointF(5, estimated - 30)) is None
    made.ensure(made.height - 500, made.height)
    assert made.hit(QPointF(5, made.height - 15)) is not None


def test_growth_above_the_view_is_reported(qapp: QApplication) -> None:
    made = document(300)
    made.set_text("# Heading\n\n" + "words " * 400 + "\n\nlast", ())
    before = made.height
    grown = made.ensure(0, 1e9)
    assert grown == 0, "nothing stands above the top"
    made.set_text("# Heading\n\n" + "words " * 400 + "\n\nlast", ())
    assert made.ensure(before - 1, before) == pytest.approx(made.height - before)


def test_a_selection_goes_across_paragraphs(qapp: QApplication) -> None:
    made = finished("First words.\n\nSecond words.\n\nThird.", ())
    start = made.place_at(QPointF(0, 5))
    end = made.place_at(QPointF(5000, made.height - 5))
    assert start is not None
    assert end is not None
    assert made.selected_text((start, end)) == "First words.\n\nSecond words.\n\nThird."


def test_what_is_copied_unseen_stays_where_it_was(qapp: QApplication) -> None:
    text = "# A heading\n\n" + "Some words that wrap. " * 40 + "\n\n- one\n- two\n\nlast"
    made = document(300)
    made.set_text(text, ())
    everything = made.everything()
    assert everything is not None
    copied = made.selected_text(everything)
    made.ensure(0, 1e9)
    assert copied == made.selected_text(everything)
    assert picture(made) == picture(finished(text, (), 300))


def test_colours_follow_the_theme(qapp: QApplication) -> None:
    made = finished("[link](http://x.y)", ())
    made.set_look(Look(DARK))
    made.ensure(0, 1e9)
    image = picture(made, Look(DARK))
    assert QColor(DARK.accent).name() in {image.pixelColor(x, y).name() for x in range(60) for y in range(30)}


def test_a_link_is_found(qapp: QApplication) -> None:
    made = finished("[link](http://x.y) text", ())
    assert made.link_at(QPointF(6, 12)) == "http://x.y"
    assert made.link_at(QPointF(60, 12)) is None


def test_bonus_origin_is_reported_as_verified(qapp: QApplication) -> None:
    made = finished(EXAMPLE_TEXT, example())
    origins = {made.provenance.ref(n).token.origin for n in range(len(made.provenance))}
    assert origins == {Origin.TARGET, Origin.ACCEPTED, Origin.CORRECTED, Origin.BONUS}


def test_nothing_at_all(qapp: QApplication) -> None:
    made = finished("", ())
    assert made.height == 0
    assert made.place_at(QPointF(5, 5)) is None
    assert made.everything() is None
    assert made.token_near(0) is None

"""The chip at the composer: there while replies are held to something, and the way in and out."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from forespeak.ui.composer import Composer
from forespeak.ui.output_chip import OutputChip
from forespeak.ui.settings_dialog import STRUCTURED_PAGE
from forespeak.ui.structured_output import ANY_OBJECT, OutputKind, StructuredOutput
from ui.conftest import AppMaker


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (StructuredOutput(), None),
        (StructuredOutput(False, OutputKind.GRAMMAR, grammar="x"), None),
        (StructuredOutput(True), "JSON"),
        (StructuredOutput(True, schema="{}"), "JSON schema"),
        (StructuredOutput(True, OutputKind.GRAMMAR, grammar="x"), "Grammar"),
        (StructuredOutput(True, OutputKind.GRAMMAR), None),
    ],
)
def test_it_says_what_holds(qtbot: QtBot, output: StructuredOutput, words: str | None) -> None:
    chip = OutputChip()
    qtbot.addWidget(chip)
    chip.show_output(output)
    assert chip.isHidden() is (words is None)
    if words is not None:
        assert chip.name.text() == words
        assert chip.off.accessibleName() == f"Switch off: {words}"
    chip.hide()


def test_from_the_switch_to_the_reply_and_back(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    session, chip = app.session, app.window.composer.chip
    held = [not chip.isHidden()]
    session._open_structured()
    dialog = session._settings
    assert dialog is not None
    assert dialog.tabs.currentIndex() == STRUCTURED_PAGE
    dialog.structured.switch.click()
    held.append(not chip.isHidden())
    session.chats.send("Write JSON.")
    qtbot.waitUntil(lambda: bool(app.engine.generations) and not session.chats.busy)
    last = session.chats.last_reply()
    assert last is not None
    kept = app.store.message(last).settings
    assert (kept["json_schema"], kept["grammar"]) == (ANY_OBJECT, None)
    QTest.mouseClick(chip.off, Qt.MouseButton.LeftButton)
    held.append(not chip.isHidden())
    assert held == [False, True, False]
    assert not dialog.structured.switch.isChecked()
    session.chats.send("And now prose.")
    qtbot.waitUntil(lambda: len(app.engine.generations) == 2 and not session.chats.busy)
    assert [made.json_schema for made in app.engine.generations] == [ANY_OBJECT, None]
    dialog.close()


def test_the_chip_leads_to_the_page(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app(output=StructuredOutput(True, OutputKind.GRAMMAR, grammar='root ::= "a"'))
    chip = app.window.composer.chip
    assert chip.name.text() == "Grammar"
    QTest.mouseClick(chip.name, Qt.MouseButton.LeftButton)
    dialog = app.session._settings
    assert dialog is not None
    assert dialog.tabs.currentIndex() == STRUCTURED_PAGE
    assert dialog.structured.text.toPlainText() == 'root ::= "a"'
    app.session.chats.send("Say a.")
    qtbot.waitUntil(lambda: bool(app.engine.generations) and not app.session.chats.busy)
    assert app.engine.generations[-1].grammar == 'root ::= "a"'
    dialog.close()


def test_a_narrow_composer_keeps_the_chip_and_lets_the_meter_go(qtbot: QtBot) -> None:
    composer = Composer()
    qtbot.addWidget(composer)
    composer.set_context(2540, 8192)
    composer.resize(400, 100)
    composer.show()
    shown = []
    for on in (False, True, False):
        composer.set_output(StructuredOutput(on))
        shown.append(not composer.context.isHidden())
    assert shown == [True, False, True]
    composer.set_output(StructuredOutput(True, schema="{}"))
    qtbot.waitUntil(lambda: composer.minimumSizeHint().width() <= 400)
    composer.hide()

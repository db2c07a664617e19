"""The list of kept pairs: what it says of them, and what can be done with each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from forespeak.pairing.named_pair import NamedPair, PairSettings
from forespeak.pairing.pairs import NamedPairs
from forespeak.pairing.ranking import Measurement, Range
from forespeak.speculation.trace import Source
from forespeak.ui.wizard_state import WizardStep
from ui.wizard_doubles import Wizard, some_models, wizard
from ui.wizard_steps import PATIENCE, found, measured, shown

MEASURED = Measurement(
    10.0, 16.2, Range(1.62, 1.4, 1.9), 0.7, 300, (("prose", 1.62),), "2026-11-30T10:00:00+00:00", "scripted", "1"
)


def keep(named: NamedPairs, folder: Path, name: str, draft: int | None = 1, **more: object) -> NamedPair:
    models = some_models(folder / "models")
    path = None if draft is None else models[draft].path
    sources = (Source.PROMPT_LOOKUP,) if draft is None else (Source.DRAFT_MODEL,)
    return named.keep(name, models[0].path, path, PairSettings(sources), **more)  # type: ignore[arg-type]


@contextmanager
def listed(qtbot: QtBot, folder: Path, **first: object) -> Iterator[tuple[Wizard, list[NamedPair]]]:
    """The page with a pair “A”, of which `first` tells more, and a pair “B” that was not tested."""

    def before(named: NamedPairs) -> None:
        keep(named, folder, "A", **first)  # type: ignore[arg-type]
        keep(named, folder, "B", None)

    with wizard(folder, before=before) as world:
        shown(qtbot, world)
        qtbot.waitUntil(lambda: len(world.page.pairs.lines) == 2, timeout=PATIENCE)
        yield world, list(world.named.all())


def test_it_is_the_front_of_the_page_and_says_what_each_has_brought(qtbot: QtBot, tmp_path: Path) -> None:
    with listed(qtbot, tmp_path, measurement=MEASURED, as_default=True) as (world, (one, other)):
        page = world.page
        assert page.stack.currentWidget() is page.pairs
        line = page.pairs.lines[one.id]
        assert line.models.text() == "Llama-3.1-8B-Instruct-Q8_0 + Llama-3.2-1B-Instruct-Q4_0"
        assert line.gain.text() == "1.62×"
        assert line.gain_note.text().startswith("measured 30")
        assert line.badge.words == "Default"
        assert line.parity.text() == "not checked"
        plain = page.pairs.lines[other.id]
        assert (plain.gain.text(), plain.gain_note.text()) == ("—", "not tested")
        assert "no draft model" in plain.models.text()
        page.next.click()
        assert page.stack.currentWidget() is page.target
        page.back.click()
        assert page.stack.currentWidget() is page.pairs


def test_rename_with_the_keyboard(qtbot: QtBot, tmp_path: Path) -> None:
    with listed(qtbot, tmp_path) as (world, (pair, _)):
        line = world.page.pairs.lines[pair.id]
        qtbot.waitUntil(line.button.hasFocus, timeout=PATIENCE)
        QTest.keyClick(line.button, Qt.Key.Key_F2)
        assert line.editor.hasFocus()
        QTest.keyClicks(line.editor, "New")
        QTest.keyClick(line.editor, Qt.Key.Key_Escape)
        assert line.editor.isHidden()
        assert line.name.words == "A"
        QTest.keyClick(line.button, Qt.Key.Key_F2)
        QTest.keyClicks(line.editor, "New name")
        QTest.keyClick(line.editor, Qt.Key.Key_Return)
        qtbot.waitUntil(lambda: "New name" in [each.name for each in world.named.all()], timeout=PATIENCE)
        assert line.name.words == "New name"


def test_remove_can_be_taken_back_until_the_window_closes(qtbot: QtBot, tmp_path: Path) -> None:
    with listed(qtbot, tmp_path, as_default=True) as (world, (pair, _)):
        line = world.page.pairs.lines[pair.id]
        line.button.setFocus()
        qtbot.waitUntil(line.button.hasFocus, timeout=PATIENCE)
        QTest.keyClick(line.button, Qt.Key.Key_Delete)
        qtbot.waitUntil(lambda: pair.id not in world.page.pairs.lines, timeout=PATIENCE)
        assert world.page.can_undo
        assert "Removed “A”." in world.page.toast.label.text()
        world.page.undo()
        qtbot.waitUntil(lambda: pair.id in world.page.pairs.lines, timeout=PATIENCE)
        assert world.named.default_for(pair.target.path) == world.named.get(pair.id)
        assert world.controller.keeper.removals == []
        world.page.pairs.lines[pair.id].remove_action.trigger()
        qtbot.waitUntil(lambda: world.page.can_undo, timeout=PATIENCE)
    assert [each.name for each in world.named.all()] == ["B"]
    assert not list((tmp_path / "named-pairs").glob("*.removed"))


def test_the_default_of_a_target_moves(qtbot: QtBot, tmp_path: Path) -> None:
    with listed(qtbot, tmp_path, as_default=True) as (world, (pair, other)):
        lines = world.page.pairs.lines
        lines[other.id].default_action.trigger()
        qtbot.waitUntil(lambda: lines[other.id].badge.words == "Default", timeout=PATIENCE)
        assert lines[pair.id].badge.words == ""
        lines[other.id].default_action.trigger()
        qtbot.waitUntil(lambda: lines[other.id].badge.words == "", timeout=PATIENCE)
        assert world.named.default_for(pair.target.path) is None


def test_what_has_become_of_its_files_is_said(qtbot: QtBot, tmp_path: Path) -> None:
    with listed(qtbot, tmp_path, measurement=MEASURED) as (world, (pair, _)):
        assert pair.draft is not None
        pair.draft.path.write_bytes(b"another one")
        world.controller.keeper.refresh()
        line = world.page.pairs.lines[pair.id]
        qtbot.waitUntil(line.problem.isVisible, timeout=PATIENCE)
        assert "has changed since" in line.problem.text()
        assert line.gain_note.text().endswith("out of date")
        assert line.button.isEnabled()
        pair.draft.path.unlink()
        world.controller.keeper.refresh()
        qtbot.waitUntil(lambda: "any more" in line.problem.text(), timeout=PATIENCE)
        assert not line.button.isEnabled()
        assert not line.retest_action.isEnabled()


def test_a_new_test_takes_the_place_of_the_old_one(qtbot: QtBot, tmp_path: Path) -> None:
    with listed(qtbot, tmp_path, measurement=MEASURED, as_default=True) as (world, (pair, _)):
        world.page.pairs.lines[pair.id].retest_action.trigger()
        found(qtbot, world)
        assert world.step() is WizardStep.TEST
        assert world.controller.state.kind == "prose"
        world.page.test.start_button.click()
        measured(qtbot, world)
        world.page.next.click()
        assert world.page.keep.name.text() == "A"
        assert world.page.next.text() == "Update the pair"
        world.page.next.click()
        qtbot.waitUntil(lambda: world.page.stack.currentWidget() is world.page.pairs, timeout=PATIENCE)
        now = world.named.all()[0]
        assert now.id == pair.id
        assert now.is_default
        assert now.current_measurement is not None
        assert now.current_measurement.engine == "scripted 1"


def test_a_pair_that_is_used_is_handed_on(qtbot: QtBot, tmp_path: Path) -> None:
    with listed(qtbot, tmp_path) as (world, (pair, _)):
        world.page.pairs.lines[pair.id].button.click()
        assert world.used == [pair]

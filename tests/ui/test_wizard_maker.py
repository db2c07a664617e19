"""Making a draft in the pairing wizard: with the keyboard, cancelled, failing, and closed in the middle."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from forespeak.engines.engine import Body, ConversionRequest, Converted, Failed
from forespeak.models.library import LibraryItem
from forespeak.models.roots import own_root
from forespeak.ui.wizard_state import WizardStep
from forespeak.ui.wizard_words import CandidateLine
from models.gguf_writer import ModelFile
from ui.fake_library import item
from ui.scripted_engine import ScriptedEngine
from ui.wizard_doubles import FakeFinder, Wizard, made_from, wizard
from ui.wizard_steps import PATIENCE, at_drafts, found, press, walk_to

FACTS = {"quantisation": "Q8_0", "size_bytes": 8_540_000_000}


def models(own: Path) -> list[LibraryItem]:
    """One real target of a few bytes, as far as its file goes."""
    own.mkdir(parents=True, exist_ok=True)
    ModelFile(["a", "b"]).write(own / "Sprout-8B-Q8_0.gguf")
    return [item("Sprout-8B-Q8_0", own_root(own), **FACTS)]


def copied(request: ConversionRequest) -> Body:
    shutil.copyfile(request.source, request.destination)
    return Converted(request.destination)


def begun(folder: Path, answer: Callable[[ConversionRequest], Body] = copied) -> dict[str, object]:
    own = folder / "models"

    def prepare(engine: ScriptedEngine) -> None:
        engine.convert_answer = answer

    return {
        "items": models(own),
        "finder": FakeFinder(made=lambda target: made_from(target, own)),
        "prepare": prepare,
    }


def making(world: Wizard, label: str = "Q4_0") -> CandidateLine:
    return next(line for line in world.controller.lines if line.makes and line.name.endswith(label))


def test_it_is_made_and_tested_with_the_keyboard(qtbot: QtBot, tmp_path: Path) -> None:
    with wizard(tmp_path, **begun(tmp_path)) as world:  # type: ignore[arg-type]
        at_drafts(qtbot, world)
        line = making(world)
        assert line.name == "Made from Sprout-8B-Q8_0 · Q4_0"
        assert line.place.startswith("to be made, about 4.6")
        assert line.badge == "same vocabulary"
        row = world.page.draft.rows[line.key]
        assert row.button.text() == "Make"
        qtbot.waitUntil(row.button.isVisible, timeout=PATIENCE)
        world.page.take_focus()
        keys = [each.key for each in world.controller.lines if not each.problem]
        steps = keys.index(line.key) - keys.index("lookup")
        press(Qt.Key.Key_Down if steps > 0 else Qt.Key.Key_Up, abs(steps))
        assert world.controller.state.chosen == line.key
        assert not world.page.next.isEnabled()
        made = tmp_path / "models" / "Sprout-8B-Q8_0-draft-Q4_0.gguf"
        world.library.items.append(replace(item(made.stem, own_root(made.parent), **FACTS), quantisation="Q4_0"))
        press(Qt.Key.Key_Return)
        assert row.button.text() == "Cancel"
        qtbot.waitUntil(lambda: str(made) in world.page.draft.rows, timeout=PATIENCE)
        assert made.exists()
        assert line.key not in world.page.draft.rows
        assert world.controller.state.chosen == str(made)
        there = world.page.draft.rows[str(made)]
        assert there.place.text().startswith("made from the target")
        assert there.button.text() == "Test"
        qtbot.waitUntil(there.button.isVisible, timeout=PATIENCE)
        walk_to(there.button)
        press(Qt.Key.Key_Space)
        assert world.step() is WizardStep.TEST
        (request,) = [each for each in world.engines[0].requests if isinstance(each, ConversionRequest)]
        assert request.number_format.value == "Q4_0"


def test_a_cancel_leaves_nothing_and_it_can_be_made_again(qtbot: QtBot, tmp_path: Path) -> None:
    gate = threading.Event()
    told: list[ConversionRequest] = []

    def slow(request: ConversionRequest) -> Body:
        told.append(request)
        gate.wait(5)
        return copied(request)

    with wizard(tmp_path, **begun(tmp_path, slow)) as world:  # type: ignore[arg-type]
        at_drafts(qtbot, world)
        row = world.page.draft.rows[making(world).key]
        row.button.click()
        qtbot.waitUntil(lambda: bool(told), timeout=PATIENCE)
        assert row.bar.value() > 0
        assert row.note.text().startswith("Unpacking: ")
        row.button.click()
        assert row.button.text() == "Make"
        gate.set()
        qtbot.waitUntil(lambda: world.controller.maker._worker.idle, timeout=PATIENCE)
        assert [each.name for each in (tmp_path / "models").iterdir()] == ["Sprout-8B-Q8_0.gguf"]
        assert row.button.text() == "Make"
        row.button.click()
        made = tmp_path / "models" / "Sprout-8B-Q8_0-draft-Q4_0.gguf"
        qtbot.waitUntil(made.exists, timeout=PATIENCE)


def test_why_it_could_not_be_made_is_told_in_its_row(qtbot: QtBot, tmp_path: Path) -> None:
    def fails(request: ConversionRequest) -> Body:
        return Failed("The model could not be written.", "The disk is full.", "Make room on it.")

    with wizard(tmp_path, **begun(tmp_path, fails)) as world:  # type: ignore[arg-type]
        at_drafts(qtbot, world)
        row = world.page.draft.rows[making(world).key]
        row.button.click()
        qtbot.waitUntil(lambda: "The disk is full." in row.note.text(), timeout=PATIENCE)
        assert row.button.text() == "Try again"
        found(qtbot, world)
        assert row.isVisibleTo(world.page)


def test_without_another_model_the_text_is_chosen_not_what_is_to_be_made(qtbot: QtBot, tmp_path: Path) -> None:
    with wizard(tmp_path, **begun(tmp_path)) as world:  # type: ignore[arg-type]
        at_drafts(qtbot, world)
        assert world.controller.state.chosen == "lookup"
        assert world.page.draft.nothing.isVisibleTo(world.page)
        assert world.page.next.isEnabled()


def test_a_window_that_closes_in_the_middle_ends_it(qtbot: QtBot, tmp_path: Path) -> None:
    started = threading.Event()

    def slow(request: ConversionRequest) -> Body:
        started.set()
        threading.Event().wait(0.3)
        return copied(request)

    with wizard(tmp_path, **begun(tmp_path, slow)) as world:  # type: ignore[arg-type]
        at_drafts(qtbot, world)
        world.page.draft.rows[making(world).key].button.click()
        qtbot.waitUntil(started.is_set, timeout=PATIENCE)
    assert [each.name for each in (tmp_path / "models").iterdir()] == ["Sprout-8B-Q8_0.gguf"]

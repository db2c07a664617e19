"""The Pair page from a target to a kept pair, as a person meets it: with the keyboard, and when things go wrong."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from forespeak.engines.engine import CPU_DEVICE, Failed, LoadRequest, LoadSettings
from forespeak.engines.parity_result import ParityCase, ParityResult
from forespeak.errors import UserFacingError
from forespeak.models.download_record import DownloadState
from forespeak.models.formats import ModelFormat
from forespeak.models.hub_files import HubFile, HubFileGroup
from forespeak.models.roots import own_root
from forespeak.pairing.advice import AdviceKind
from forespeak.pairing.named_pair import NamedPair
from forespeak.pairing.ranking import Range
from forespeak.speculation.trace import Source
from forespeak.ui.theme import DARK
from forespeak.ui.wizard_fetcher import FetchStep
from forespeak.ui.wizard_state import WizardStep
from forespeak.ui.wizard_tester import ChatWork, Room, RoomFound, TestPhase
from forespeak.ui.wizard_words import key_of
from ui.fake_library import item
from ui.hub_doubles import no_network
from ui.models_doubles import pair as good_pair
from ui.scripted_engine import ScriptedEngine
from ui.wizard_doubles import FakeFinder, Wizard, hub_group, some_models, wizard
from ui.wizard_steps import (
    PATIENCE,
    after_test,
    at_drafts,
    at_test,
    focus,
    found,
    held,
    loading_for_test,
    measured,
    press,
    shown,
    walk_to,
    with_target,
)


def test_from_the_start_to_a_kept_pair_with_the_keyboard(qtbot: QtBot, tmp_path: Path) -> None:
    with wizard(tmp_path) as world:
        shown(qtbot, world)
        page, controller = world.page, world.controller
        assert focus() is page.target.search
        QTest.keyClicks(page.target.search, "8B")
        assert page.target.list.count() == 1
        press(Qt.Key.Key_Return)
        found(qtbot, world)
        best = page.draft.rows[controller.state.chosen or ""]
        assert best.line.name.startswith("Llama-3.2-1B")
        # What joins a layout is shown a moment later; before that, no key reaches it.
        qtbot.waitUntil(lambda: focus() is best.radio and best.button.isVisible(), timeout=PATIENCE)
        press(Qt.Key.Key_Down)
        second = controller.line
        assert second is not None
        assert second.key != best.line.key
        press(Qt.Key.Key_Up)
        assert controller.state.chosen == best.line.key
        walk_to(best.button)
        press(Qt.Key.Key_Space)
        assert world.step() is WizardStep.TEST
        assert focus() is page.test.start_button
        press(Qt.Key.Key_Space)
        measured(qtbot, world)
        assert page.test.headline.text()
        walk_to(page.next)
        press(Qt.Key.Key_Space)
        assert world.step() is WizardStep.KEEP
        assert focus() is page.keep.name
        QTest.keyClicks(page.keep.name, "My pair")
        press(Qt.Key.Key_Return)
        qtbot.waitUntil(lambda: len(page.pairs.lines) == 1, timeout=PATIENCE)
        (pair,) = world.named.all()
        assert (pair.name, pair.is_default) == ("My pair", True)
        assert pair.draft is not None
        assert pair.draft.path.stem == "Llama-3.2-1B-Instruct-Q4_0"
        # As chats draft, and tested so.
        assert pair.settings.sources == (Source.PROMPT_LOOKUP, Source.DRAFT_MODEL)
        sources = {each.sources for engine in world.engines for each in engine.generations}
        assert sources == {(), (Source.PROMPT_LOOKUP, Source.DRAFT_MODEL)}
        assert pair.current_measurement is not None
        assert pair.current_measurement.engine == "scripted 1"
        line = page.pairs.lines[pair.id]
        qtbot.waitUntil(lambda: focus() is line.button, timeout=PATIENCE)
        press(Qt.Key.Key_Space)
        assert world.used == [pair]
        assert world.step() is WizardStep.TARGET


def test_the_test_runs_in_an_engine_of_its_own_that_ends_with_it(qtbot: QtBot, tmp_path: Path) -> None:
    with wizard(tmp_path) as world:
        at_drafts(qtbot, world)
        world.controller.go(WizardStep.TEST)
        world.controller.set_kind("prose")
        world.page.test.start_button.click()
        measured(qtbot, world)
        (engine,) = world.engines
        target, draft = (each.path for each in world.controller.targets[:2])
        assert [(load.target, load.draft) for load in engine.loads] == [(target, draft)]
        assert {bool(each.sources) for each in engine.generations} == {True, False}
        status = world.controller.tester.status
        assert status.result is not None
        assert status.result.test.kind == "prose"
        assert len(status.prompts) == 3
        qtbot.waitUntil(lambda: not engine._thread.is_alive(), timeout=PATIENCE)
        # What was measured takes the place of what was predicted.
        world.controller.go(WizardStep.DRAFT)
        row = world.page.draft.rows[str(draft)]
        assert row.gain_note.text().startswith("measured")


def test_advice_knows_what_the_test_has_shown(qtbot: QtBot, tmp_path: Path) -> None:
    with wizard(tmp_path) as world:
        after_test(qtbot, world)
        controller = world.controller
        candidate, measurement = controller.candidate, controller.state.measurement
        assert candidate is not None
        assert measurement is not None
        for speed_up, worse in ((0.5, True), (9.0, False)):
            measured_so = replace(measurement, speed_up=Range(speed_up, speed_up, speed_up))
            controller._measured[key_of(candidate)] = measured_so
            controller._show_lines()
            assert controller.candidate is not None
            advice = {each.kind for each in controller.candidate.advice}
            assert (AdviceKind.WORSE_THAN_LOOKUP in advice) is worse


def test_leaving_going_back_and_coming_back_lose_nothing(qtbot: QtBot, tmp_path: Path) -> None:
    with wizard(tmp_path) as world:
        after_test(qtbot, world)
        before = world.controller.state.measurement
        world.page.hide()
        world.page.show()
        QTest.keyClick(world.page, Qt.Key.Key_Escape)
        assert world.step() is WizardStep.DRAFT
        world.page.back.click()
        assert world.step() is WizardStep.TARGET
        world.page.steps.buttons[WizardStep.KEEP].click()
        assert world.step() is WizardStep.KEEP
        assert world.controller.state.measurement == before
        world.page.keep.name.setText("Half written")
        world.page.back.click()
        world.page.next.click()
        assert world.page.keep.name.text() == "Half written"


def test_a_restart_goes_on_where_it_was(qtbot: QtBot, tmp_path: Path) -> None:
    with wizard(tmp_path) as world:
        after_test(qtbot, world)
        world.controller.go(WizardStep.KEEP)
        before = world.controller.state
    with wizard(tmp_path) as world:
        shown(qtbot, world)
        found(qtbot, world)
        assert world.controller.state == before
        assert world.page.stack.currentWidget() is world.page.keep
        # Filled in once its models are known again.
        keep = world.page.keep
        assert keep.name.text().startswith("Llama-3.1-8B")
        assert keep.looks_up.isVisible()
        world.page.next.click()
        qtbot.waitUntil(lambda: len(world.named.all()) == 1, timeout=PATIENCE)
        (pair,) = world.named.all()
        assert pair.measurement == before.measurement
        assert not pair.is_stale
        assert pair.settings.sources == (Source.PROMPT_LOOKUP, Source.DRAFT_MODEL)


def test_the_reasons_of_the_excluded_are_one_click_away(qtbot: QtBot, tmp_path: Path) -> None:
    with wizard(tmp_path) as world:
        at_drafts(qtbot, world)
        step = world.page.draft
        assert step.fold.text().endswith("2 others cannot draft for it")
        row = next(row for row in step.rows.values() if row.line.name.startswith("Qwen"))
        assert not row.isVisible()
        step.fold.setFocus()
        press(Qt.Key.Key_Space)
        qtbot.waitUntil(row.isVisible, timeout=PATIENCE)
        assert row.reason.text() == "token 0: “!” in the target, “<|begin_of_text|>” in the draft"
        assert row.radio.isHidden()
        row.button.setFocus()
        press(Qt.Key.Key_Space)
        assert "The target has 128,256 tokens, the draft 151,936." in row.note.text()
        press(Qt.Key.Key_Space)
        assert row.note.isHidden()


def test_no_candidate_at_all(qtbot: QtBot, tmp_path: Path) -> None:
    with wizard(tmp_path, some_models(tmp_path / "models")[:1]) as world:
        at_drafts(qtbot, world)
        step = world.page.draft
        assert step.nothing.isVisible()
        assert "No other model here" in step.nothing.text()
        assert [row.line.name for row in step.rows.values() if not row.line.problem] == [
            "No model: n-grams of the chat"
        ]
        assert world.page.next.isEnabled()
        world.page.next.click()
        assert world.step() is WizardStep.TEST
        test = world.controller.quick_test()
        assert test is not None
        assert test.draft is None
        assert test.sources
        assert test.load_request == LoadRequest(test.target)
        world.controller._load_request = lambda target, draft: LoadRequest(
            target, draft, LoadSettings(device=CPU_DEVICE, threads=3)
        )
        test = world.controller.quick_test()
        assert test is not None
        assert test.load_request == LoadRequest(test.target, settings=LoadSettings(device=CPU_DEVICE, threads=3))


def test_fifty_candidates_come_in_order_and_answer_to_the_keyboard(qtbot: QtBot, tmp_path: Path) -> None:
    root = own_root(tmp_path / "models")
    many = [
        item(f"Draft-{n:02d}", root, parameters=10**8 * (n + 1), size_bytes=60_000_000 * (n + 1)) for n in range(50)
    ]
    with wizard(tmp_path, [some_models(tmp_path / "models")[0], *many]) as world:
        at_drafts(qtbot, world)
        step = world.page.draft
        qtbot.waitUntil(lambda: step.complete, timeout=PATIENCE)
        lines = [line for line in world.controller.lines if not line.problem]
        assert len(step.rows) == len(world.controller.lines) == 51
        card = step._usable.layout()
        assert card is not None
        items = [card.itemAt(number) for number in range(len(lines))]
        placed = [None if entry is None else entry.widget() for entry in items]
        assert placed == [step.rows[line.key] for line in lines]
        qtbot.waitUntil(lambda: focus() is step.rows[world.controller.state.chosen or ""].radio, timeout=PATIENCE)
        first = world.controller.state.chosen
        press(Qt.Key.Key_Down, 3)
        assert world.controller.state.chosen == lines[3].key != first


def test_a_draft_from_the_hub_is_downloaded_in_place(qtbot: QtBot, tmp_path: Path) -> None:
    group = hub_group()
    with wizard(tmp_path, finder=FakeFinder(hub=[group])) as world:
        at_drafts(qtbot, world)
        world.page.hub_button.click()
        key = f"{group.repo}/{group.files[0].path}"
        qtbot.waitUntil(lambda: key in world.page.draft.rows, timeout=PATIENCE)
        row = world.page.draft.rows[key]
        assert row.button.text() == "Download"
        row.radio.click()
        assert not world.page.next.isEnabled()
        row.button.click()
        qtbot.waitUntil(lambda: row.button.text() == "Cancel", timeout=PATIENCE)
        world.queue.change(world.download(), done_bytes=group.size_bytes // 2)
        qtbot.waitUntil(lambda: row.bar.value() == 500, timeout=PATIENCE)
        # The network goes in the middle of it.
        world.queue.change(world.download(), state=DownloadState.FAILED, error=no_network())
        qtbot.waitUntil(lambda: "There is no network." in row.note.text(), timeout=PATIENCE)
        assert row.bar.value() == 500
        assert row.button.text() == "Try again"
        row.button.click()
        qtbot.waitUntil(lambda: row.button.text() == "Cancel", timeout=PATIENCE)
        (path,) = world.queue.of(world.download()).paths
        path.parent.mkdir(parents=True)
        path.touch()
        come = item(path.stem, own_root(tmp_path / "models"), parameters=3_210_000_000, quantisation="Q5_K_M")
        world.library.items.append(replace(come, path=path, size_bytes=group.size_bytes))
        world.queue.change(world.download(), state=DownloadState.DONE, done_bytes=group.size_bytes)
        qtbot.waitUntil(lambda: str(path) in world.page.draft.rows, timeout=PATIENCE)
        assert world.controller.state.chosen == str(path)
        assert key not in world.page.draft.rows
        assert world.page.draft.rows[str(path)].button.text() == "Test"
        assert world.page.next.isEnabled()
        assert world.page.banner.text() == ""


def test_a_draft_in_the_mlx_format_arrives_as_its_folder(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forespeak.models.library_item.mlx_is_installed", lambda: True)
    files = (HubFile("config.json", 400), HubFile("model.safetensors", 710_000_000))
    group = HubFileGroup("mlx/Llama-3.2-1B-Instruct-4bit", "c" * 40, "4-bit", ModelFormat.MLX, files)
    with wizard(tmp_path, finder=FakeFinder(hub=[group])) as world:
        at_drafts(qtbot, world)
        world.page.hub_button.click()
        key = "mlx/Llama-3.2-1B-Instruct-4bit/"
        qtbot.waitUntil(lambda: key in world.page.draft.rows, timeout=PATIENCE)
        row = world.page.draft.rows[key]
        assert row.line.name == "Llama-3.2-1B-Instruct-4bit"
        row.radio.click()
        row.button.click()
        qtbot.waitUntil(lambda: row.button.text() == "Cancel", timeout=PATIENCE)
        first, _ = world.queue.of(world.download()).paths
        folder = first.parent
        folder.mkdir(parents=True)
        come = item(folder.name, own_root(tmp_path / "models"), parameters=1_240_000_000, quantisation="4-bit")
        world.library.items.append(replace(come, path=folder, format=ModelFormat.MLX, size_bytes=group.size_bytes))
        world.queue.change(world.download(), state=DownloadState.DONE, done_bytes=group.size_bytes)
        qtbot.waitUntil(lambda: str(folder) in world.page.draft.rows, timeout=PATIENCE)
        assert world.controller.state.chosen == str(folder)
        assert world.page.banner.text() == ""


def test_a_search_without_a_network_says_so_and_can_be_tried_again(qtbot: QtBot, tmp_path: Path) -> None:
    finder = FakeFinder(problems=[str(no_network())])
    with wizard(tmp_path, finder=finder) as world:
        at_drafts(qtbot, world)
        rows = set(world.page.draft.rows)
        world.page.hub_button.click()
        step = world.page.draft
        qtbot.waitUntil(lambda: "There is no network." in step.hub_words.text(), timeout=PATIENCE)
        assert set(step.rows) == rows
        assert world.page.hub_button.text() == "Try the Hub again"
        finder.problems, finder.hub = (), [hub_group()]
        world.page.hub_button.click()
        qtbot.waitUntil(lambda: len(step.rows) == len(rows) + 1, timeout=PATIENCE)
        assert "There is no network." not in step.hub_words.text()


def test_a_search_on_the_hub_can_be_stopped(qtbot: QtBot, tmp_path: Path) -> None:
    gate = threading.Event()
    with wizard(tmp_path, finder=FakeFinder(hub=[hub_group()], hub_gate=gate)) as world:
        at_drafts(qtbot, world)
        world.page.hub_button.click()
        qtbot.waitUntil(lambda: world.page.draft.hub_words.text() == "Searching the Hub", timeout=PATIENCE)
        assert world.page.hub_button.text() == "Stop searching"
        world.page.hub_button.click()
        assert world.page.hub_button.text() == "Find more on the Hub"
        assert world.page.draft.hub_bar.isHidden()
        gate.set()


def test_the_target_is_removed_in_the_middle(qtbot: QtBot, tmp_path: Path) -> None:
    hold = threading.Event()
    with wizard(tmp_path, prepare=held(hold)) as world:
        loading_for_test(qtbot, world)
        world.library.items.pop(0)
        world.models.rescan()
        qtbot.waitUntil(lambda: world.step() is WizardStep.TARGET, timeout=PATIENCE)
        assert "“Llama-3.1-8B-Instruct-Q8_0.gguf” is not there any more." in world.page.banner.text()
        assert world.page.target.list.count() == 4
        assert not world.controller.tester.status.running
        hold.set()


def test_the_draft_is_removed_in_the_middle(qtbot: QtBot, tmp_path: Path) -> None:
    with wizard(tmp_path) as world:
        at_drafts(qtbot, world)
        chosen = world.controller.state.chosen
        world.controller.go(WizardStep.TEST)
        world.page.test.start_button.click()
        measured(qtbot, world)
        world.controller.go(WizardStep.KEEP)
        del world.library.items[1]
        world.models.rescan()
        qtbot.waitUntil(lambda: world.step() is WizardStep.DRAFT, timeout=PATIENCE)
        assert "“Llama-3.2-1B-Instruct-Q4_0.gguf” is not there any more." in world.page.banner.text()
        assert world.controller.state.chosen != chosen
        assert world.controller.state.measurement is None
        assert world.page.next.isEnabled()


def test_memory_that_holds_only_one_pair_is_asked_about(qtbot: QtBot, tmp_path: Path) -> None:
    with wizard(tmp_path) as world:
        world.chat.answer = RoomFound(Room.ALONE, "Both need 20 GB of the 16 GB that are free.")
        at_test(qtbot, world)
        step = world.page.test
        qtbot.waitUntil(step.question.isVisible, timeout=PATIENCE)
        assert "Both need 20 GB" in step.question_words.text()
        assert "unloaded for the test" in step.question_words.text()
        assert (world.chat.unloads, world.engines) == (0, [])
        step.refuse_button.click()
        assert step.question.isHidden()
        assert world.chat.unloads == 0
        step.start_button.click()
        qtbot.waitUntil(step.question.isVisible, timeout=PATIENCE)
        qtbot.waitUntil(lambda: focus() is step.allow_button, timeout=PATIENCE)
        press(Qt.Key.Key_Space)
        measured(qtbot, world)
        assert world.chat.unloads == 1


def test_a_reply_in_the_chat_goes_first(qtbot: QtBot, tmp_path: Path) -> None:
    hold = threading.Event()
    with wizard(tmp_path, prepare=held(hold)) as world:
        loading_for_test(qtbot, world)
        world.chat.work = ChatWork.REPLY
        world.controller.tester.chat_became_busy()
        assert world.controller.tester.status.phase is TestPhase.FAILED
        assert "A reply is being written" in world.page.test.why.text()
        world.page.test.start_button.click()
        assert world.controller.tester.status.phase is TestPhase.FAILED
        world.chat.work = None
        hold.set()
        world.page.test.start_button.click()
        measured(qtbot, world)


def test_a_test_can_be_stopped(qtbot: QtBot, tmp_path: Path) -> None:
    hold = threading.Event()
    with wizard(tmp_path, prepare=held(hold)) as world:
        loading_for_test(qtbot, world)
        assert focus() is world.page.test.stop_button
        press(Qt.Key.Key_Space)
        qtbot.waitUntil(lambda: world.controller.tester.status.phase is TestPhase.IDLE, timeout=PATIENCE)
        assert world.controller.state.measurement is None
        hold.set()


def test_a_pair_that_cannot_be_loaded_says_why(qtbot: QtBot, tmp_path: Path) -> None:
    def prepare(engine: ScriptedEngine) -> None:
        engine.load_answer = lambda _: Failed("It could not be loaded.", "A tensor is missing.", "Download it anew.")

    with wizard(tmp_path, prepare=prepare) as world:
        at_test(qtbot, world)
        qtbot.waitUntil(lambda: world.controller.tester.status.phase is TestPhase.FAILED, timeout=PATIENCE)
        assert "A tensor is missing." in world.page.test.why.text()
        assert world.page.test.start_button.text() == "Test again"


def test_other_settings_than_the_tested_ones_make_its_figures_old(qtbot: QtBot, tmp_path: Path) -> None:
    with wizard(tmp_path) as world:
        after_test(qtbot, world)
        world.controller.go(WizardStep.KEEP)
        keep = world.page.keep
        assert keep.settings_note.isHidden()
        assert keep.looks_up.isChecked()
        keep.looks_up.click()
        assert keep.settings_note.isVisible()
        world.page.second.click()
        qtbot.waitUntil(lambda: len(world.used) == 1, timeout=PATIENCE)
        (pair,) = world.named.all()
        assert pair.settings.sources == (Source.DRAFT_MODEL,)
        assert pair.is_stale
        assert pair.measurement is not None


def kept_as(qtbot: QtBot, world: Wizard, name: str) -> NamedPair:
    """The pair at hand, tested and kept under a name, without lookups."""
    after_test(qtbot, world)
    world.controller.go(WizardStep.KEEP)
    keep = world.page.keep
    keep.name.setText(name)
    keep.looks_up.click()
    world.page.next.click()
    qtbot.waitUntil(lambda: len(world.page.pairs.lines) == 1, timeout=PATIENCE)
    return world.named.all()[0]


def test_the_next_pair_of_the_same_models_begins_with_what_is_usual(qtbot: QtBot, tmp_path: Path) -> None:
    with wizard(tmp_path) as world:
        kept_as(qtbot, world, "Mine")
        world.page.next.click()
        with_target(qtbot, world)
        world.controller.go(WizardStep.KEEP)
        keep = world.page.keep
        assert keep.name.text().startswith("Llama-3.1-8B")
        assert keep.looks_up.isChecked()
        # The first one is the default, and stays it.
        assert not keep.default.isChecked()


def test_a_pair_that_was_changed_since_is_not_changed_back(qtbot: QtBot, tmp_path: Path) -> None:
    with wizard(tmp_path) as world:
        pair = kept_as(qtbot, world, "Mine")
        page, keeper = world.page, world.controller.keeper
        page.pairs.lines[pair.id].retestRequested.emit(pair)
        found(qtbot, world)
        world.controller.go(WizardStep.KEEP)
        assert (page.keep.name.text(), page.keep.default.isChecked()) == ("Mine", True)
        keeper.rename(pair, "Renamed")
        keeper.set_default(pair, False)
        qtbot.waitUntil(lambda: [(each.name, each.is_default) for each in keeper.pairs] == [("Renamed", False)])
        page.pairs.retestRequested.emit(keeper.pairs[0])
        found(qtbot, world)
        world.controller.go(WizardStep.KEEP)
        assert (page.keep.name.text(), page.keep.default.isChecked()) == ("Renamed", False)
        assert page.next.text() == "Update the pair"
        page.next.click()
        qtbot.waitUntil(lambda: world.step() is WizardStep.TARGET, timeout=PATIENCE)
        (after,) = world.named.all()
        assert (after.name, after.is_default, after.settings) == ("Renamed", False, pair.settings)


def test_a_well_known_target_is_downloaded_in_the_first_step(qtbot: QtBot, tmp_path: Path) -> None:
    good = good_pair().target

    def ask(name: str, cancelled: object) -> None:
        raise no_network()

    with wizard(tmp_path, goods=[good], ask_repo=ask) as world:
        shown(qtbot, world)
        step = world.page.target
        QTest.keyClicks(step.search, good.name)
        assert step.list.count() == 1
        assert world.page.next.text() == "Download"
        press(Qt.Key.Key_Return)
        qtbot.waitUntil(lambda: "There is no network." in step.note.text(), timeout=PATIENCE)
        assert world.page.next.text() == "Try again"
        fetch = world.controller.fetcher.fetch_of(f"{good.repo}/{good.file}")
        assert fetch is not None
        assert fetch.step is FetchStep.STOPPED


@pytest.mark.parametrize("width", [480, 1180])
def test_it_fits_narrow_windows_in_the_dark(qtbot: QtBot, tmp_path: Path, width: int) -> None:
    with wizard(tmp_path) as world:
        shown(qtbot, world, width)
        world.page.set_theme(DARK)
        with_target(qtbot, world)
        for step in WizardStep:
            world.controller.go(step)
            QApplication.processEvents()
            assert world.page.width() == width
            for button in (world.page.back, world.page.second, world.page.next):
                if button.isVisible():
                    assert 0 <= button.x() <= world.page.width() - button.width()


def test_a_problem_with_the_pairs_is_told_on_the_page(qtbot: QtBot, tmp_path: Path) -> None:
    with wizard(tmp_path) as world:
        shown(qtbot, world)
        world.controller.keeper.problemFound.emit(UserFacingError("The pair could not be saved.", "The disk is full."))
        assert "The disk is full." in world.page.banner.text()


def test_the_words_are_checked_before_a_pair_is_kept(qtbot: QtBot, tmp_path: Path) -> None:
    gate = threading.Event()
    case = ParityCase("Recipe", 0.0, 48, 60, 41)
    result = ParityResult((case, case), 2, (Source.DRAFT_MODEL,), 0.0, 3.0, "2026-11-30T10:00:00+00:00", "e", "1")

    def prepare(engine: ScriptedEngine) -> None:
        engine.check_answer, engine.check_gate = result, gate

    with wizard(tmp_path, prepare=prepare) as world:
        at_drafts(qtbot, world)
        world.controller.go(WizardStep.KEEP)
        keep = world.page.keep
        walk_to(keep.check_button)
        press(Qt.Key.Key_Space)
        qtbot.waitUntil(lambda: keep.check_words.text() == "Recipe, greedy", timeout=PATIENCE)
        assert keep.check_button.text() == "Stop"
        gate.set()
        qtbot.waitUntil(lambda: "2 of 2 replies have the same words." in keep.check_words.text(), timeout=PATIENCE)
        assert [load.draft for load in world.engines[0].loads] == [world.controller.targets[1].path]
        world.page.next.click()
        qtbot.waitUntil(lambda: len(world.page.pairs.lines) == 1, timeout=PATIENCE)
        (pair,) = world.named.all()
        assert pair.parity == result
        assert world.page.pairs.lines[pair.id].parity.text() == "same words"


SAME = ParityCase("Recipe", 0.0, 48, 60, 41)
CHECKED = ParityResult((SAME, SAME), 2, (Source.DRAFT_MODEL,), 0.0, 3.0, "2026-11-30T10:00:00+00:00", "e", "1")


def checking(engine: ScriptedEngine) -> None:
    engine.check_answer = CHECKED


def test_a_check_that_is_asked_for_takes_the_place_of_a_tests_question(qtbot: QtBot, tmp_path: Path) -> None:
    gate = threading.Event()

    def prepare(engine: ScriptedEngine) -> None:
        engine.check_answer, engine.check_gate = CHECKED, gate

    with wizard(tmp_path, prepare=prepare) as world:
        world.chat.answer = RoomFound(Room.ALONE, "Both need 20 GB of the 16 GB that are free.")
        at_test(qtbot, world)
        test, keep, tester = world.page.test, world.page.keep, world.controller.tester
        qtbot.waitUntil(test.question.isVisible, timeout=PATIENCE)
        world.page.steps.buttons[WizardStep.KEEP].click()
        world.chat.answer = RoomFound(Room.BESIDE)
        keep.check_button.click()
        qtbot.waitUntil(lambda: keep.check_words.text() == "Recipe, greedy", timeout=PATIENCE)
        world.page.steps.buttons[WizardStep.TEST].click()
        assert test.question.isHidden()
        # Neither a late answer nor another test ends the check, or keeps it from ending.
        tester.allow()
        test.start_button.click()
        gate.set()
        qtbot.waitUntil(lambda: tester.check.result == CHECKED and not tester.check.running, timeout=PATIENCE)
        test.start_button.click()
        measured(qtbot, world)


def test_a_check_asks_before_the_chats_pair_is_unloaded(qtbot: QtBot, tmp_path: Path) -> None:
    with wizard(tmp_path, prepare=checking) as world:
        world.chat.answer = RoomFound(Room.ALONE, "Both need 20 GB of the 16 GB that are free.")
        at_drafts(qtbot, world)
        world.controller.go(WizardStep.KEEP)
        keep = world.page.keep
        assert keep.refuse_button.isHidden()
        walk_to(keep.check_button)
        press(Qt.Key.Key_Space)
        qtbot.waitUntil(keep.refuse_button.isVisible, timeout=PATIENCE)
        assert "Both need 20 GB" in keep.check_words.text()
        assert "unloaded for the check" in keep.check_words.text()
        assert (world.chat.unloads, world.engines) == (0, [])
        # A second press of the same key unloads nothing.
        assert focus() is keep.refuse_button
        press(Qt.Key.Key_Space)
        assert keep.refuse_button.isHidden()
        assert focus() is keep.check_button
        assert "A dozen prompts" in keep.check_words.text()
        press(Qt.Key.Key_Space)
        qtbot.waitUntil(keep.refuse_button.isVisible, timeout=PATIENCE)
        assert keep.check_button.text() == "Unload it and check"
        keep.check_button.click()
        qtbot.waitUntil(lambda: world.controller.tester.check.result == CHECKED, timeout=PATIENCE)
        assert world.chat.unloads == 1


def test_a_reply_since_the_question_keeps_the_chats_pair(qtbot: QtBot, tmp_path: Path) -> None:
    with wizard(tmp_path, prepare=checking) as world:
        world.chat.answer = RoomFound(Room.ALONE, "Both need 20 GB.")
        at_test(qtbot, world)
        qtbot.waitUntil(world.page.test.question.isVisible, timeout=PATIENCE)
        world.chat.work = ChatWork.REPLY
        world.page.test.allow_button.click()
        assert "A reply is being written" in world.page.test.why.text()
        world.chat.work = None
        keep = world.page.keep
        world.page.steps.buttons[WizardStep.KEEP].click()
        keep.check_button.click()
        qtbot.waitUntil(keep.refuse_button.isVisible, timeout=PATIENCE)
        world.chat.work = ChatWork.REPLY
        keep.check_button.click()
        assert "A reply is being written" in keep.check_words.text()
        assert (world.chat.unloads, world.engines) == (0, [])


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (ChatWork.REPLY, "A reply is being written in the chat."),
        (ChatWork.LOADING, "The chat’s model is being loaded."),
        (ChatWork.CHECK, "The words of the chat’s pair are being checked."),
    ],
)
def test_what_the_chat_does_is_said_as_it_is(qtbot: QtBot, tmp_path: Path, work: ChatWork, words: str) -> None:
    with wizard(tmp_path) as world:
        world.chat.work = work
        at_test(qtbot, world)
        assert world.page.test.why.text().startswith(words)
        world.controller.go(WizardStep.KEEP)
        world.page.keep.check_button.click()
        assert world.page.keep.check_words.text().startswith(words)


def test_a_window_that_closes_in_the_middle_of_a_test_ends_all_of_it(qtbot: QtBot, tmp_path: Path) -> None:
    hold = threading.Event()
    with wizard(tmp_path, prepare=held(hold)) as world:
        loading_for_test(qtbot, world)
    # Threads that are left fail this test.
    assert not any(engine._thread.is_alive() for engine in world.engines)

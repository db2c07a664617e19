"""The library off the UI thread: reading, tasks, cancelling, removal with undo, watching, the end."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from forespeak.errors import UserFacingError
from forespeak.models.library import ImportResult, ImportWay
from forespeak.models.roots import Root, RootKind, own_root
from forespeak.ui.badge import BadgeTone
from forespeak.ui.library_controller import WEIGHED_AT_ONCE, starter_only
from forespeak.ui.library_model import FitWords
from forespeak.ui.library_state import TaskKind
from ui.fake_library import FakeRemoval, item
from ui.models_doubles import Surroundings, my_models, some_items


def read(qtbot: QtBot, around: Surroundings) -> None:
    around.controller.start()
    qtbot.waitUntil(lambda: around.controller.state.read and around.controller.state.scan is None)


def test_the_disk_is_read_on_threads_of_its_own(qtbot: QtBot, tmp_path: Path) -> None:
    with my_models(tmp_path) as around:
        read(qtbot, around)
        state = around.controller.state
        assert [entry.name for entry in state.items] == ["Big-8B-Q8_0", "Small-1B-Q4_0", "Coder-7B", "Broken-70B"]
        assert state.own_count == 3
        assert state.own_bytes == 8_500_000_000 + 770_000_000 + 20_000_000_000
        assert state.free_bytes == 210_000_000_000
        around.controller.verify(state.items[0])
        qtbot.waitUntil(lambda: around.controller.task is None)
        assert around.library.threads == {"library-scan", "library-task"}


def test_what_is_unusable_is_not_judged_by_its_size(qtbot: QtBot, tmp_path: Path) -> None:
    with my_models(tmp_path) as around:
        read(qtbot, around)
        fits = around.controller.state.fits
        assert {path.stem for path in fits} == {"Big-8B-Q8_0", "Small-1B-Q4_0", "Coder-7B"}


def test_progress_of_a_scan_is_shown_and_a_second_wish_is_one_more_scan(qtbot: QtBot, tmp_path: Path) -> None:
    gate = threading.Event()
    with my_models(tmp_path, gate=gate) as around:
        around.controller.start()
        qtbot.waitUntil(lambda: around.controller.state.scan == (0, 4))
        for _ in range(5):
            around.controller.rescan()
        gate.set()
        qtbot.waitUntil(lambda: around.controller.state.scan is None and around.library.scans == 2)


def test_files_that_come_while_it_is_first_read_are_noticed(qtbot: QtBot, tmp_path: Path) -> None:
    gate = threading.Event()
    with my_models(tmp_path, gate=gate) as around:
        around.controller.start()
        qtbot.waitUntil(lambda: around.controller.state.scan == (0, 4))
        assert around.library.changed is not None
        around.library.changed()
        gate.set()
        qtbot.waitUntil(lambda: around.controller.state.scan is None and around.library.scans == 2)


def test_files_that_come_are_listed_by_themselves(qtbot: QtBot, tmp_path: Path) -> None:
    with my_models(tmp_path) as around:
        read(qtbot, around)
        qtbot.waitUntil(lambda: around.library.changed is not None)
        around.library.items.append(item("Late-3B", own_root(around.library.own)))
        assert around.library.changed is not None
        # The library tells from a thread of its own.
        teller = threading.Thread(target=around.library.changed)
        teller.start()
        teller.join()
        qtbot.waitUntil(lambda: len(around.controller.state.items) == 5)
    assert around.library.unwatched


@pytest.mark.parametrize("way", list(ImportWay))
def test_an_import_is_a_task_with_bytes_and_ends_in_the_list(qtbot: QtBot, tmp_path: Path, way: ImportWay) -> None:
    gate = threading.Event()
    with my_models(tmp_path, task_gate=gate) as around:
        read(qtbot, around)
        said: list[str] = []
        around.controller.noticed.connect(said.append)
        around.controller.import_models([tmp_path / "new.gguf"], way)
        qtbot.waitUntil(lambda: around.controller.task is not None and around.controller.task.total == 4_000_000)
        task = around.controller.task
        assert task is not None
        assert (task.kind, task.name, task.done) == (TaskKind.IMPORT, "new.gguf", 1_000_000)
        gate.set()
        qtbot.waitUntil(lambda: any(entry.name == "new" for entry in around.controller.state.items))
        assert around.library.imports == [((tmp_path / "new.gguf",), way)]
        assert said == ["Imported “new”."]


def test_a_cancelled_import_leaves_nothing_and_says_so(qtbot: QtBot, tmp_path: Path) -> None:
    with my_models(tmp_path, task_gate=threading.Event()) as around:
        read(qtbot, around)
        said: list[str] = []
        around.controller.noticed.connect(said.append)
        around.controller.import_models([tmp_path / "new.gguf"], ImportWay.COPY)
        around.controller.cancel()
        task = around.controller.task
        assert task is not None
        assert task.cancelling
        qtbot.waitUntil(lambda: around.controller.task is None)
        assert said == ["Stopped. Nothing was imported."]
        assert (around.library.imports, around.problems) == ([], [])


def test_what_is_there_already_is_said(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with my_models(tmp_path) as around:
        read(qtbot, around)
        one, two = (tmp_path / "models" / name for name in ("big/big-00001-of-00002.gguf", "Some-v0.1-4bit"))
        said: list[str] = []
        around.controller.noticed.connect(said.append)
        for result in (
            ImportResult((one,)),
            ImportResult((two,), there=(two,)),
            ImportResult((one, two), there=(two,)),
            ImportResult((one, two), there=(one, two)),
            ImportResult((one,), cancelled=True),
            ImportResult((one, two), cancelled=True),
        ):
            monkeypatch.setattr(around.library, "import_models", lambda *_, result=result: result)
            around.controller.import_models([tmp_path / "new"], ImportWay.COPY)
            qtbot.waitUntil(lambda: around.controller.task is None)
        assert said == [
            "Imported “big”.",
            "It is in the models folder already, as “Some-v0.1-4bit”.",
            "Imported 1 of 2 models; the others are there already.",
            "All 2 models are in the models folder already.",
            "Stopped. One model was imported before.",
            "Stopped. 2 models were imported before.",
        ]


def test_one_task_at_a_time(qtbot: QtBot, tmp_path: Path) -> None:
    with my_models(tmp_path, task_gate=threading.Event()) as around:
        read(qtbot, around)
        around.controller.move_to(tmp_path / "elsewhere")
        around.controller.import_models([tmp_path / "new.gguf"], ImportWay.COPY)
        assert [problem.what for problem in around.problems] == ["Something else is still being done."]
        around.controller.cancel()
        qtbot.waitUntil(lambda: around.controller.task is None)
        assert around.library.imports == []


def test_what_was_refused_is_told_beside_what_came(qtbot: QtBot, tmp_path: Path) -> None:
    with my_models(tmp_path) as around:
        read(qtbot, around)
        paths = [tmp_path / name for name in ("good.gguf", "notes.txt", "list.csv")]
        around.controller.import_models(paths, ImportWay.COPY)
        qtbot.waitUntil(lambda: bool(around.problems))
        assert around.problems[0].what == "2 of 3 models could not be imported."
        around.controller.import_models([tmp_path / f"{number}.txt" for number in range(7)], ImportWay.COPY)
        qtbot.waitUntil(lambda: len(around.problems) == 2)
        assert around.problems[1].what == "None of the 7 models could be imported."
        assert around.problems[1].why.endswith("And 2 more.")
        assert "notes.txt" in around.problems[0].why
        assert "list.csv" in around.problems[0].why
        qtbot.waitUntil(lambda: any(entry.name == "good" for entry in around.controller.state.items))


def test_a_failed_task_tells_why(qtbot: QtBot, tmp_path: Path) -> None:
    error = UserFacingError("There is not enough disk space.", "It needs 9 GB.", "Make room.")
    with my_models(tmp_path, task_error=error) as around:
        read(qtbot, around)
        around.controller.import_models([tmp_path / "new.gguf"], ImportWay.COPY)
        qtbot.waitUntil(lambda: around.problems == [error])
        assert around.controller.task is None


def test_a_removed_model_comes_back_until_the_end_and_is_gone_after_it(qtbot: QtBot, tmp_path: Path) -> None:
    with my_models(tmp_path) as around:
        read(qtbot, around)
        first, second = around.controller.state.items[:2]
        for entry in (first, second):
            around.controller.remove(entry)
        qtbot.waitUntil(lambda: len(around.controller.removals) == 2)
        assert [entry.name for entry in around.controller.state.items] == ["Coder-7B", "Broken-70B"]
        around.controller.undo()
        qtbot.waitUntil(lambda: any(entry.path == second.path for entry in around.controller.state.items))
        assert [name for name, _ in around.controller.removals] == [first.name]
        assert not any(removal.finished for removal in around.library.removals)
    assert [(removal.item.name, removal.finished) for removal in around.library.removals] == [
        (first.name, True),
        (second.name, False),
    ]


def test_an_undo_that_fails_can_be_tried_again(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with my_models(tmp_path) as around:
        read(qtbot, around)
        first = around.controller.state.items[0]
        around.controller.remove(first)
        qtbot.waitUntil(lambda: bool(around.controller.removals))
        problem = UserFacingError("It cannot be brought back.", "There is another one.", "Rename it.")

        def refuse(_: FakeRemoval) -> None:
            raise problem

        with monkeypatch.context() as patch:
            patch.setattr(FakeRemoval, "undo", refuse)
            around.controller.undo()
            qtbot.waitUntil(lambda: around.problems == [problem])
        assert [name for name, _ in around.controller.removals] == [first.name]
        around.controller.undo()
        qtbot.waitUntil(lambda: any(entry.path == first.path for entry in around.controller.state.items))


def test_neither_undo_nor_the_drafts_for_a_target_wait_for_a_task(qtbot: QtBot, tmp_path: Path) -> None:
    with my_models(tmp_path, task_gate=threading.Event()) as around:
        read(qtbot, around)
        first = around.controller.state.items[0]
        around.controller.remove(first)
        qtbot.waitUntil(lambda: bool(around.controller.removals))
        around.controller.move_to(tmp_path / "elsewhere")
        found: list[frozenset[Path]] = []
        around.controller.partners_of(around.controller.state.items[-1], found.append)
        qtbot.waitUntil(lambda: bool(found))
        around.controller.undo()
        assert [problem.what for problem in around.problems] == ["Something else is still being done."]
        assert len(around.controller.removals) == 1
        around.controller.cancel()


def test_moving_tells_the_new_folder(qtbot: QtBot, tmp_path: Path) -> None:
    with my_models(tmp_path) as around:
        read(qtbot, around)
        with qtbot.waitSignal(around.controller.folderMoved) as moved:
            around.controller.move_to(tmp_path / "disk")
        assert moved.args == [tmp_path / "disk"]
        qtbot.waitUntil(lambda: bool(around.controller.state.roots))
        qtbot.waitUntil(lambda: around.controller.state.roots[0].path == tmp_path / "disk")


def test_drafts_for_a_target_are_found_by_vocabulary_and_size(qtbot: QtBot, tmp_path: Path) -> None:
    with my_models(tmp_path) as around:
        read(qtbot, around)
        found: list[frozenset[Path]] = []
        around.controller.partners_of(around.controller.state.items[0], found.append)
        qtbot.waitUntil(lambda: bool(found))
        assert {path.stem for path in found[0]} == {"Small-1B-Q4_0"}
        # One vocabulary is judged once, however many models have it.
        assert around.library.judged == [("Big-8B-Q8_0.gguf", "Coder-7B.gguf")]
        around.controller.partners_of(around.controller.state.items[0], found.append)
        qtbot.waitUntil(lambda: len(found) == 2)
        assert len(around.library.judged) == 1


def test_a_scan_that_fails_is_told_once_and_the_page_goes_on(qtbot: QtBot, tmp_path: Path) -> None:
    error = UserFacingError("The models folder cannot be read.")
    with my_models(tmp_path, error=error) as around:
        around.controller.start()
        qtbot.waitUntil(lambda: around.problems == [error])
        assert around.controller.state.read
        assert around.controller.state.scan is None


def test_the_end_does_not_wait_for_a_scan(qtbot: QtBot, tmp_path: Path) -> None:
    with my_models(tmp_path, gate=threading.Event()) as around:
        around.controller.start()
        qtbot.waitUntil(lambda: around.library.scans == 1)
        around.controller.close()
    assert "library-scan" not in {thread.name for thread in threading.enumerate()}


def test_nothing_but_the_starter_is_an_empty_library(tmp_path: Path) -> None:
    package = Root(tmp_path / "package", "Comes with Forespeak", read_only=True, kind=RootKind.STARTER)
    mine = own_root(tmp_path / "models")
    draft = item("SmolLM2-135M-Instruct.Q4_1", package)
    target = item("SmolLM2-135M-Instruct-F32", mine)
    assert starter_only(())
    assert starter_only((draft, target))
    assert not starter_only((draft, target, some_items(tmp_path / "models")[0]))
    assert not starter_only((replace(draft, root=mine),))


def test_what_headers_show_is_told_after_the_list(qtbot: QtBot, tmp_path: Path) -> None:
    exact = FitWords("Tight", BadgeTone.CAUTION, "The model needs 9 GB of memory.", 1)
    with my_models(tmp_path, weighed={"Small-1B-Q4_0": exact}) as around:
        with qtbot.waitSignal(around.controller.fitsChanged):
            read(qtbot, around)
        fits = around.controller.state.fits
        assert [fit for path, fit in fits.items() if path.stem == "Small-1B-Q4_0"] == [exact]
        assert len(fits) == 3, "the others are judged as before"


def test_many_headers_are_told_some_at_a_time(qtbot: QtBot, tmp_path: Path) -> None:
    own = own_root(tmp_path / "models")
    exact = FitWords("Tight", BadgeTone.CAUTION, "The model needs 9 GB of memory.", 1)
    many = [item(f"m{number}", own) for number in range(WEIGHED_AT_ONCE + 1)]
    with my_models(tmp_path, items=many, weighed={entry.name: exact for entry in many}) as around:
        told: list[int] = []
        around.controller.fitsChanged.connect(
            lambda: told.append(list(around.controller.state.fits.values()).count(exact))
        )
        read(qtbot, around)
        qtbot.waitUntil(lambda: told == [WEIGHED_AT_ONCE, WEIGHED_AT_ONCE + 1])

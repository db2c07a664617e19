"""The tab of my models as a person uses it: find, look, use, import, remove and take back, and the empty library."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from PySide6.QtCore import QMimeData, QObject, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QLabel, QWidget
from pytestqt.qtbot import QtBot

from forespeak.models.library import ImportWay
from forespeak.ui import model_actions
from forespeak.ui.import_models import ImportDialog
from forespeak.ui.models_folder import FoldersDialog
from forespeak.ui.my_models import MyModels
from forespeak.ui.removal_dialog import RemovalDialog
from forespeak.ui.theme import DARK
from ui.models_doubles import Surroundings, my_models, pair

T = TypeVar("T", bound=QObject)
CONTROL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def around(qtbot: QtBot, tmp_path: Path) -> Iterator[Surroundings]:
    with my_models(tmp_path) as made:
        show(qtbot, made)
        yield made


def show(qtbot: QtBot, around: Surroundings, size: tuple[int, int] = (1200, 700)) -> None:
    qtbot.addWidget(around.page)
    around.page.resize(*size)
    around.page.set_theme(DARK)
    around.page.show()
    around.controller.start()
    qtbot.waitUntil(lambda: around.controller.state.read)


def names(page: MyModels) -> list[str]:
    return [str(page.model.index(row, 0).data()) for row in range(page.model.rowCount())]


def choose(page: MyModels, name: str) -> None:
    assert page.table.choose(next(entry.path for entry in page.model.items if entry.name == name))


def dialog(qtbot: QtBot, page: MyModels, kind: type[T]) -> T:
    qtbot.waitUntil(lambda: page.window().findChild(kind) is not None)
    found = page.window().findChild(kind)
    assert isinstance(found, kind)
    return found


def test_search_format_and_counts(around: Surroundings) -> None:
    page = around.page
    assert page.scan_words.text() == "4 models"
    QTest.keyClicks(page.search, "coder")
    assert names(page) == ["Coder-7B"]
    assert page.scan_words.text() == "1 of 4 models"
    page.search.clear()
    page.format_box.setCurrentIndex(page.format_box.findText("MLX"))
    assert names(page) == []
    assert page.nothing.isVisible()
    assert "all formats" in page.nothing.text()


def test_esc_empties_the_search(around: Surroundings) -> None:
    page = around.page
    QTest.keyClicks(page.search, "coder")
    assert names(page) == ["Coder-7B"]
    QTest.keyClick(page.search, Qt.Key.Key_Escape)
    assert len(names(page)) == 4


def test_drafts_for_a_target(qtbot: QtBot, around: Surroundings) -> None:
    page = around.page
    page.partner_box.setCurrentIndex(page.partner_box.findText("Drafts for Big-8B-Q8_0"))
    qtbot.waitUntil(lambda: names(page) == ["Small-1B-Q4_0"])
    page.partner_box.setCurrentIndex(page.partner_box.findText("Drafts for Small-1B-Q4_0"))
    qtbot.waitUntil(lambda: names(page) == [])
    assert "vocabulary" in page.nothing.text()
    page.partner_box.setCurrentIndex(0)
    assert len(names(page)) == 4


def test_the_details_have_all_facts(around: Surroundings) -> None:
    page = around.page
    choose(page, "Big-8B-Q8_0")
    told = {label.accessibleName() for label in page.details.findChildren(QLabel)}
    assert "Parameters: 8B (8,030,000,000)" in told
    assert "Context: 131,072 tokens" in told
    assert "Vocabulary: 128,256 tokens" in told
    assert "Chat template: Yes" in told
    assert f"Path: {around.library.own / 'Big-8B-Q8_0.gguf'}" in told
    assert page.details.fit_badge.words == "Tight"
    choose(page, "Broken-70B")
    assert page.details.problem.text() == "Part 2 of 3 is missing."
    assert page.details.problem.isVisible()
    assert not page.actions_of_model.chat.isEnabled()
    assert page.actions_of_model.remove.isEnabled()


def test_what_is_in_use_is_said(around: Surroundings) -> None:
    page = around.page
    big, small = (entry.path for entry in page.model.items[:2])
    choose(page, "Small-1B-Q4_0")
    page.set_uses(big, small)
    assert page.details.note.text() == "Draft now"


def test_a_model_is_used_by_buttons_menu_and_keys(around: Surroundings) -> None:
    page = around.page
    asked: list[tuple[str, str]] = []
    for name in ("chatRequested", "targetRequested", "draftRequested"):
        getattr(page, name).connect(lambda path, name=name: asked.append((name, path.stem)))
    choose(page, "Big-8B-Q8_0")
    page.details.buttons[0].click()
    page.table.setFocus()
    QTest.keyClick(page.table, Qt.Key.Key_T, CONTROL)
    QTest.keyClick(page.table, Qt.Key.Key_D, CONTROL)
    QTest.keyClick(page.table, Qt.Key.Key_Return)
    menu = page.actions_of_model.menu(page)
    next(action for action in menu.actions() if action.text() == "Use as draft").trigger()
    menu.deleteLater()
    who = "Big-8B-Q8_0"
    assert asked == [
        ("chatRequested", who),
        ("targetRequested", who),
        ("draftRequested", who),
        ("chatRequested", who),
        ("draftRequested", who),
    ]
    choose(page, "Broken-70B")
    QTest.keyClick(page.table, Qt.Key.Key_Return)
    assert len(asked) == 5


def test_the_path_is_copied_and_the_file_shown(
    qtbot: QtBot, around: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = around.page
    shown: list[Path] = []

    def unanswered(path: Path) -> bool:
        shown.append(path)
        return False

    monkeypatch.setattr(model_actions, "reveal", unanswered)
    choose(page, "Coder-7B")
    page.table.setFocus()
    QTest.keyClick(page.table, Qt.Key.Key_C, CONTROL)
    path = page.table.current.path if page.table.current else None
    assert QGuiApplication.clipboard().text() == str(path)
    QTest.keyClick(page.table, Qt.Key.Key_O, CONTROL | Qt.KeyboardModifier.ShiftModifier)
    qtbot.waitUntil(lambda: shown == [path])
    qtbot.waitUntil(lambda: page.toast.label.text().startswith("No file manager answered"))


def test_a_check_of_the_files_tells_its_outcome(qtbot: QtBot, around: Surroundings) -> None:
    page = around.page
    choose(page, "Big-8B-Q8_0")
    page.actions_of_model.verify.trigger()
    qtbot.waitUntil(lambda: page.toast.label.text() == "“Big-8B-Q8_0” is as it was published.")
    assert not page.toast.button.isVisible()


def test_removing_asks_and_can_be_taken_back(qtbot: QtBot, around: Surroundings) -> None:
    page = around.page
    choose(page, "Big-8B-Q8_0")
    page.set_uses(page.model.items[0].path, None)
    page.table.setFocus()
    QTest.keyClick(page.table, Qt.Key.Key_Delete)
    box = dialog(qtbot, page, RemovalDialog)
    assert "8.5 GB" in box.text.text()
    assert any("in use now" in label.text() for label in box.findChildren(QLabel))
    assert box.cancel.isDefault()
    QTest.keyClick(box, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: page.window().findChild(RemovalDialog) is None)
    assert around.library.removals == [], "Enter alone removes nothing"
    page.actions_of_model.remove.trigger()
    dialog(qtbot, page, RemovalDialog).remove.click()
    qtbot.waitUntil(lambda: "Big-8B-Q8_0" not in names(page))
    assert page.toast.label.text() == "Removed “Big-8B-Q8_0”"
    assert page.toast.geometry().bottom() < page.folder_bar.y(), "its buttons stay free"
    assert page.can_undo
    page.toast.button.click()
    qtbot.waitUntil(lambda: "Big-8B-Q8_0" in names(page))
    assert not page.can_undo


def test_what_is_another_programs_cannot_be_removed(around: Surroundings) -> None:
    choose(around.page, "Coder-7B")
    assert not around.page.actions_of_model.remove.isEnabled()
    assert "another program" in around.page.actions_of_model.remove.toolTip()


def test_what_is_only_a_link_is_not_said_to_be_deleted(qtbot: QtBot, around: Surroundings) -> None:
    page = around.page
    linked = replace(around.library.items[0], linked=True)
    around.library.items[0] = linked
    around.controller.rescan()
    qtbot.waitUntil(lambda: linked in page.model.items)
    assert page.folder_bar.facts.text().startswith("3 models, 20.8 GB"), "a link takes nothing"
    choose(page, linked.name)
    assert ("Where", "Models folder, as a link") in page.details.facts_of(linked)
    page.actions_of_model.remove.trigger()
    box = dialog(qtbot, page, RemovalDialog)
    assert "It is a link" in box.text.text()
    assert "deleted" not in box.text.text()
    box.reject()


def test_a_long_name_in_a_message_goes_on_in_the_next_line(qtbot: QtBot, around: Surroundings) -> None:
    page = around.page
    page.resize(420, 600)
    page.toast.offer("Removed “" + "a_name_that_does_not_end" * 6 + "”", "Undo", lambda: None)
    assert page.rect().contains(page.toast.geometry())
    assert page.toast.label.height() >= page.toast.label.heightForWidth(page.toast.label.width())
    high = page.toast.height()
    page.toast.tell("Copied the path.")
    assert page.toast.height() < high
    assert page.toast.width() < 300
    assert page.toast.geometry().bottom() < page.folder_bar.y()


def drop(page: MyModels, *paths: Path) -> bool:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    button, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    actions = Qt.DropAction.CopyAction | Qt.DropAction.MoveAction
    enter = QDragEnterEvent(QPoint(9, 9), actions, data, button, keys)
    enter.setDropAction(Qt.DropAction.MoveAction)
    page.dragEnterEvent(enter)
    assert page.veil.isVisible() is enter.isAccepted()
    if enter.isAccepted():
        event = QDropEvent(QPointF(9, 9), actions, data, button, keys)
        event.setDropAction(Qt.DropAction.MoveAction)
        page.dropEvent(event)
        # For a move, a file manager would delete the file.
        assert enter.dropAction() == event.dropAction() == Qt.DropAction.CopyAction
        assert not page.veil.isVisible()
    return enter.isAccepted()


def test_a_dropped_model_is_imported_as_asked_once(qtbot: QtBot, around: Surroundings, tmp_path: Path) -> None:
    page = around.page
    remembered: list[ImportWay | None] = []
    page.importWayChanged.connect(remembered.append)
    assert drop(page, tmp_path / "first.gguf")
    asked = dialog(qtbot, page, ImportDialog)
    assert asked.way is ImportWay.COPY
    asked.choices[ImportWay.LINK].setChecked(True)
    asked.remember.setChecked(True)
    asked.ok.click()
    qtbot.waitUntil(lambda: "first" in names(page))
    qtbot.waitUntil(lambda: page.table.current is not None and page.table.current.name == "first")
    assert remembered == [ImportWay.LINK]
    assert page.import_button.way_actions[ImportWay.LINK].isChecked()
    qtbot.waitUntil(lambda: page.window().findChild(ImportDialog) is None)
    assert drop(page, tmp_path / "second.gguf")
    qtbot.waitUntil(lambda: "second" in names(page))
    assert [way for _, way in around.library.imports] == [ImportWay.LINK] * 2
    page.import_button.way_actions[None].trigger()
    assert remembered == [ImportWay.LINK, None]


def test_what_is_no_model_is_not_taken(around: Surroundings, tmp_path: Path) -> None:
    assert not drop(around.page, tmp_path / "notes.txt")


def test_import_by_dialog(qtbot: QtBot, around: Surroundings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = around.page
    page.set_import_way(ImportWay.COPY)
    chosen = [str(tmp_path / "a.gguf"), str(tmp_path / "b.gguf")]
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_: (chosen, ""))
    page.import_button.files_action.trigger()
    qtbot.waitUntil(lambda: {"a", "b"} <= set(names(page)))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "")
    page.import_button.folder_action.trigger()
    assert len(around.library.imports) == 1


def test_a_task_shows_how_far_it_is_and_can_be_stopped(qtbot: QtBot, tmp_path: Path) -> None:
    with my_models(tmp_path, task_gate=threading.Event()) as around:
        show(qtbot, around)
        page = around.page
        page.set_import_way(ImportWay.COPY)
        page.import_paths([tmp_path / "new.gguf"])
        qtbot.waitUntil(lambda: page.task_bar.words.text() == "Importing new.gguf: 1 MB of 4 MB")
        assert page.task_bar.isVisible()
        assert not page.import_button.isEnabled()
        assert not page.folder_bar.change_button.isEnabled()
        assert drop(page, tmp_path / "other.gguf")
        assert [problem.what for problem in around.problems] == ["Something else is still being done."]
        assert page.window().findChild(ImportDialog) is None, "nobody is asked how for nothing"
        page.task_bar.cancel.setFocus()
        page.task_bar.cancel.click()
        assert page.table.hasFocus()
        qtbot.waitUntil(page.task_bar.isHidden)
        assert "new" not in names(page)
        assert page.toast.label.text() == "Stopped. Nothing was imported."


def test_the_models_folder_and_the_others(qtbot: QtBot, around: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    page = around.page
    moves: list[Path] = []
    added: list[tuple[Path, ...]] = []
    page.moveRequested.connect(moves.append)
    page.addedFoldersChanged.connect(added.append)
    assert page.folder_bar.facts.text() == "3 models, 29.3 GB · 210 GB free"
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "/media/disk/models")
    page.folder_bar.change_button.click()
    assert moves == [Path("/media/disk/models")]
    page.folder_bar.others_button.click()
    folders = dialog(qtbot, page, FoldersDialog)
    folders.add_button.click()
    assert added == [(Path("/media/disk/models"),)]
    qtbot.waitUntil(lambda: any(root.path == Path("/media/disk/models") for root in around.controller.state.roots))
    assert folders.remove_button.isEnabled()
    folders.remove_button.click()
    assert added[-1] == ()
    folders.close()


def test_the_page_says_what_it_reads(qtbot: QtBot, tmp_path: Path) -> None:
    gate = threading.Event()
    with my_models(tmp_path, gate=gate) as around:
        qtbot.addWidget(around.page)
        around.page.show()
        around.controller.start()
        qtbot.waitUntil(lambda: around.page.scan_words.text() == "Reading 1 of 4 models")
        assert around.page.nothing.text() == "Looking for models"
        assert not around.page.refresh_button.isEnabled()
        gate.set()
        qtbot.waitUntil(lambda: around.page.scan_words.text() == "4 models")


def test_an_empty_library_offers_good_pairs(qtbot: QtBot, tmp_path: Path) -> None:
    offered = pair("small")
    with my_models(tmp_path, items=[], pairs=[offered]) as around:
        show(qtbot, around)
        page = around.page
        qtbot.waitUntil(lambda: page.good_pairs is not None and page.good_pairs.complete)
        assert page.good_pairs is not None
        assert page.good_pairs.isVisible()
        assert page.pairs_button.isChecked()
        page.pairs_button.click()
        assert page.nothing.isVisible()
        # Also later, when there are models.
        page.pairs_button.click()
        assert page.good_pairs.isVisible()


def test_who_searches_sees_what_is_found_and_not_the_good_pairs(qtbot: QtBot, tmp_path: Path) -> None:
    with my_models(tmp_path, pairs=[pair("small")]) as around:
        show(qtbot, around)
        page = around.page
        page.pairs_button.click()
        assert page.good_pairs is not None
        assert page.good_pairs.isVisible()
        assert page.scan_words.text() == ""
        QTest.keyClicks(page.search, "coder")
        assert page.table.isVisible()
        assert page.scan_words.text() == "1 of 4 models"
        page.pairs_button.click()
        page.partner_box.activated.emit(0)
        assert page.table.isVisible()
        page.pairs_button.click()
        QTest.keyClick(page.search, Qt.Key.Key_Down)
        assert page.table.hasFocus()


@pytest.mark.parametrize("width", [1200, 700, 540, 420])
def test_nothing_is_cut_at_any_width(qtbot: QtBot, tmp_path: Path, width: int) -> None:
    with my_models(tmp_path) as around:
        show(qtbot, around, (width, 640))
        page = around.page
        around.library.set_added([tmp_path / f"folder {number}" for number in range(12)])
        around.controller.rescan()
        qtbot.waitUntil(lambda: "(12)" in page.folder_bar.others_button.text())
        choose(page, "Big-8B-Q8_0")
        qtbot.waitUntil(page.details.isVisible)
        bar = page.folder_bar
        buttons = (page.import_button, bar.others_button, bar.open_button, bar.change_button)
        qtbot.waitUntil(lambda: all(part.width() >= part.sizeHint().width() for part in buttons))
        for part in (page.search, page.table, page.details, bar.facts, *buttons):
            place = part.mapTo(page, QPoint(0, 0))
            assert page.rect().contains(place), part
            assert page.rect().contains(place + QPoint(part.width() - 1, part.height() - 1)), part
        assert bar.facts.width() >= bar.facts.sizeHint().width()
        assert page.table.height() >= 120
        rows = {part.mapTo(page, QPoint(0, 0)).y() for part in (page.search, page.format_box, page.import_button)}
        assert len(rows) == {1200: 1, 700: 2, 540: 2, 420: 3}[width]
        # What is larger than its row would lie over its neighbour.
        assert page.format_box.geometry().right() < page.partner_box.geometry().left()


def test_in_a_low_window_nothing_lies_over_anything(qtbot: QtBot, around: Surroundings) -> None:
    page = around.page
    page.resize(560, 380)
    choose(page, "Big-8B-Q8_0")

    def top(part: QWidget) -> int:
        return part.mapTo(page, QPoint(0, 0)).y()

    table, details = page.table, page.details
    qtbot.waitUntil(lambda: table.height() >= 150 and top(details) >= top(table) + table.height())
    below = page.stack.geometry().bottom()
    assert below < page.folder_bar.y()
    assert page.rect().contains(page.folder_bar.geometry())
    # Whoever goes on with the keyboard is taken along.
    first = details.buttons[0]
    table.setFocus()
    QTest.keyClick(table, Qt.Key.Key_Tab)
    qtbot.waitUntil(first.hasFocus)
    qtbot.waitUntil(lambda: top(first) + first.height() <= below)


def test_long_names_and_many_files_fit(qtbot: QtBot, tmp_path: Path) -> None:
    with my_models(tmp_path) as around:
        long = replace(
            around.library.items[0],
            name="A-model-with-a-name-as-long-as-people-make-them-" * 4,
            files=tuple(tmp_path / f"part-{number:05}.gguf" for number in range(40)),
        )
        around.library.items[0] = long
        show(qtbot, around, (1000, 700))
        page = around.page
        choose(page, long.name)
        assert page.details.width() < 360
        assert page.width() == 1000
        assert page.table.geometry().right() < page.details.geometry().left() + page.details.width()
        told = {label.accessibleName() for label in page.details.findChildren(QLabel)}
        assert any(words.startswith("Files: part-00000.gguf") and words.endswith("and 28 more") for words in told)

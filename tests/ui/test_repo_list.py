"""The list of repos: what each row says, choosing with mouse and keys, and asking for more near the end."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from forespeak.models.hub_results import Gate, HubModel
from forespeak.ui.repo_list import RepoList
from forespeak.ui.theme import DARK
from forespeak.ui.tool_tips import plain_tip
from ui.hub_doubles import model


@pytest.fixture
def repos(qtbot: QtBot) -> RepoList:
    made = RepoList()
    qtbot.addWidget(made)
    made.resize(360, 400)
    made.show()
    return made


def spoken(repos: RepoList, row: int) -> str:
    return str(repos.repos.index(row).data(Qt.ItemDataRole.AccessibleTextRole))


def test_a_row_says_all_that_is_known(repos: RepoList) -> None:
    repos.set_models([model("someone/Model"), HubModel("bare/Model"), model("x/Y", gate=Gate.MANUAL, private=True)])
    repos.repos.set_here({"someone/Model"})
    assert spoken(repos, 0) == "Model, Here, someone, 7.6B, qwen2, 1.2M downloads, 890 likes, 3 days ago"
    assert spoken(repos, 1) == "Model, bare"
    assert spoken(repos, 2).startswith("Y, Gated, Private, x")


def test_the_keys_choose_and_enter_opens(qtbot: QtBot, repos: RepoList) -> None:
    repos.set_models([model(f"o/M{number}") for number in range(3)])
    chosen: list[HubModel] = []
    opened: list[HubModel] = []
    repos.repoChosen.connect(chosen.append)
    repos.repoOpened.connect(opened.append)
    repos.setFocus()
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Return):
        QTest.keyClick(repos, key)
    assert [each.name for each in chosen][-1] == "M1"
    assert [each.name for each in opened] == ["M1"]


def test_a_click_opens(qtbot: QtBot, repos: RepoList) -> None:
    repos.set_models([model(f"o/M{number}") for number in range(3)])
    with qtbot.waitSignal(repos.repoOpened) as opened:
        place = repos.visualRect(repos.repos.index(2)).center()
        QTest.mouseClick(repos.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert opened.args is not None
    assert opened.args[0].name == "M2"


def test_the_end_of_the_list_asks_for_more(qtbot: QtBot, repos: RepoList) -> None:
    with qtbot.waitSignal(repos.moreWanted):
        repos.set_models([model("o/M")])
        repos.look_ahead()
    repos.set_models([model(f"o/M{number}") for number in range(60)])
    with qtbot.assertNotEmitted(repos.moreWanted, wait=50):
        repos.look_ahead()
    with qtbot.waitSignal(repos.moreWanted):
        repos.scrollToBottom()


def test_more_rows_leave_the_place(repos: RepoList) -> None:
    first = [model(f"o/M{number}") for number in range(30)]
    repos.set_models(first)
    repos.select("o/M7")
    repos.doItemsLayout()
    repos.verticalScrollBar().setValue(400)
    repos.set_models([*first, model("o/Last")])
    assert repos.currentIndex().row() == 7
    assert repos.verticalScrollBar().value() == 400
    repos.set_models([model("o/Other")])
    assert not repos.currentIndex().isValid()


def test_selecting_tells_nobody(qtbot: QtBot, repos: RepoList) -> None:
    repos.set_models([model(f"o/M{number}") for number in range(3)])
    with qtbot.assertNotEmitted(repos.repoChosen):
        repos.select("o/M2")
        repos.select("o/Absent")


def test_long_names_are_cut_and_painted(repos: RepoList) -> None:
    long = model("owner/" + "Very-Long-" * 20, gate=Gate.AUTOMATIC)
    repos.set_models([long, model("o/M")])
    repos.repos.set_here({"o/M"})
    repos.select(long.repo)
    repos.set_theme(DARK)
    assert not repos.grab().isNull()
    assert str(repos.repos.index(0).data(Qt.ItemDataRole.ToolTipRole)) == plain_tip(long.repo)

"""The Downloads tab: rows that stay while they change, order, limit, and what is said when there is nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from forespeak.models.download_record import DownloadState
from ui.hub_desk import Desk
from ui.hub_doubles import GB, download_of, gated, group


@pytest.fixture
def desk(qtbot: QtBot, tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    made.tabs.setCurrentIndex(2)
    qtbot.waitUntil(lambda: made.ready)
    made.page.activateWindow()
    yield made
    made.close()


def put(qtbot: QtBot, desk: Desk, *states: tuple[str, DownloadState]) -> None:
    for name, state in states:
        desk.queue.put(download_of(group(name.upper()), name, state))
    qtbot.waitUntil(lambda: all(name in desk.tab.rows for name, _ in states))


def order(desk: Desk) -> list[str]:
    return [row.download.id for row in desk.tab._in_order()]


def test_an_empty_list_says_where_to_go(qtbot: QtBot, desk: Desk) -> None:
    assert desk.tab.empty.isVisible()
    assert desk.tab.empty.title.text() == "Nothing is being downloaded"
    with qtbot.waitSignal(desk.tab.discoverRequested):
        desk.tab.empty.primary.click()


def test_what_is_finished_stands_at_the_end(qtbot: QtBot, desk: Desk) -> None:
    put(qtbot, desk, ("a", DownloadState.DONE), ("b", DownloadState.RUNNING), ("c", DownloadState.QUEUED))
    assert order(desk) == ["b", "c", "a"]
    assert desk.tab.summary.text() == "1 running · 1 waiting"
    row = desk.tab.rows["b"]
    desk.queue.change("b", state=DownloadState.DONE)
    qtbot.waitUntil(lambda: order(desk)[0] == "c")
    assert desk.tab.rows["b"] is row
    desk.queue.change("c", state=DownloadState.DONE)
    qtbot.waitUntil(lambda: desk.tab.summary.text() == "3 downloads are done")
    QTest.mouseClick(desk.tab.clear, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(desk.tab.empty.isVisible)


def test_the_summary_adds_up(qtbot: QtBot, desk: Desk) -> None:
    put(qtbot, desk, ("a", DownloadState.RUNNING), ("b", DownloadState.RUNNING), ("c", DownloadState.PAUSED),
        ("d", DownloadState.FAILED))  # fmt: skip
    desk.queue.change("a", done_bytes=2_680_000_000, bytes_per_second=10e6)
    desk.queue.change("b", done_bytes=3_680_000_000, bytes_per_second=15e6)
    qtbot.waitUntil(lambda: "25 MB/s" in desk.tab.summary.text())
    assert desk.tab.summary.text() == "2 running · 1 paused · 1 failed · 25 MB/s · 2 min left"


def test_the_keyboard_moves_pauses_and_cancels(qtbot: QtBot, desk: Desk) -> None:
    put(qtbot, desk, *((name, DownloadState.QUEUED) for name in "abc"))
    desk.tab.take_focus()
    assert desk.tab.rows["a"].hasFocus()
    QTest.keyClick(desk.tab.rows["a"], Qt.Key.Key_Down)
    assert desk.tab.rows["b"].hasFocus()
    QTest.keyClick(desk.tab.rows["b"], Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    qtbot.waitUntil(lambda: order(desk) == ["b", "a", "c"])
    assert desk.tab.rows["b"].hasFocus()
    QTest.keyClick(desk.tab.rows["b"], Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: desk.queue.of("b").state is DownloadState.PAUSED)
    QTest.keyClick(desk.tab.rows["b"], Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: order(desk) == ["a", "c"])
    assert desk.tab.rows["a"].hasFocus(), "the keyboard stays in the list"


def test_all_at_once(qtbot: QtBot, desk: Desk) -> None:
    put(qtbot, desk, ("a", DownloadState.RUNNING), ("b", DownloadState.QUEUED))
    assert desk.tab.pause_all.text() == "Pause all"
    desk.tab.pause_all.click()
    qtbot.waitUntil(lambda: desk.tab.pause_all.text() == "Go on with all")
    desk.tab.pause_all.click()
    qtbot.waitUntil(lambda: desk.tab.pause_all.text() == "Pause all")


def test_the_limit_is_for_all(qtbot: QtBot, desk: Desk) -> None:
    put(qtbot, desk, ("a", DownloadState.RUNNING))
    with qtbot.waitSignal(desk.parts.downloads.limitChanged) as changed:
        place = desk.tab.limit.findText("At most 5 MB/s")
        desk.tab.limit.setCurrentIndex(place)
        desk.tab.limit.activated.emit(place)
    assert changed.args == [5_000_000]
    qtbot.waitUntil(lambda: desk.queue.limit == 5_000_000)
    desk.parts.downloads.set_limit(3_000_000)
    assert desk.tab.limit.currentText() == "At most 3 MB/s"
    desk.parts.downloads.set_limit(None)
    assert desk.tab.limit.currentText() == "As fast as it goes"


def test_a_finished_one_can_be_used(qtbot: QtBot, desk: Desk) -> None:
    put(qtbot, desk, ("a", DownloadState.DONE))
    row = desk.tab.rows["a"]
    path = row.download.paths[0]
    for button, draft in (("target", False), ("draft", True)):
        with qtbot.waitSignal(desk.view.useRequested) as used:
            row.buttons[button].click()
        assert used.args == [path, draft]
    with qtbot.waitSignal(desk.view.showRequested) as shown:
        row.buttons["show"].click()
    assert shown.args == [path]


def test_a_gated_one_leads_to_its_page(qtbot: QtBot, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(QUrl(url).toString()))
    put(qtbot, desk, ("a", DownloadState.RUNNING))
    desk.queue.change("a", state=DownloadState.FAILED, error=gated("owner/Gated"))
    qtbot.waitUntil(desk.tab.rows["a"].buttons["page"].isVisible)
    assert "accept its licence" in desk.tab.rows["a"].state.text()
    desk.tab.rows["a"].buttons["page"].click()
    assert opened == ["https://hub.example/owner/Gated"]
    with qtbot.waitSignal(desk.tab.tokenRequested):
        desk.tab.rows["a"].buttons["token"].click()
    desk.tab.rows["a"].buttons["retry"].click()
    qtbot.waitUntil(lambda: desk.queue.of("a").state is DownloadState.QUEUED)


def test_the_note_about_closing(desk: Desk, qtbot: QtBot) -> None:
    put(qtbot, desk, ("a", DownloadState.RUNNING))
    assert "go on where they were when it opens again" in desk.tab.note.text()
    assert desk.tab.note.isVisible()


def test_many_rows_are_scrolled_to(qtbot: QtBot, desk: Desk) -> None:
    put(qtbot, desk, *((f"d{number}", DownloadState.QUEUED) for number in range(12)))
    desk.tab.show_download(desk.queue.of("d11"))
    assert desk.tab.rows["d11"].hasFocus()
    area = desk.tab.area
    assert not desk.tab.rows["d11"].visibleRegion().isEmpty()
    assert area.verticalScrollBar().value() > 0


def test_progress_keeps_the_row(qtbot: QtBot, desk: Desk) -> None:
    put(qtbot, desk, ("a", DownloadState.RUNNING))
    row = desk.tab.rows["a"]
    desk.queue.put(replace(desk.queue.of("a"), done_bytes=GB))
    qtbot.waitUntil(lambda: row.bar.value() == 214)
    assert desk.tab.rows["a"] is row

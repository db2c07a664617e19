"""A download in a row: its state in words, its buttons and its keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from forespeak.errors import UserFacingError
from forespeak.models.download_queue import Download
from forespeak.models.download_record import DownloadState
from forespeak.models.formats import NO_MLX, ModelFormat
from forespeak.models.hub_files import HubFile
from forespeak.models.part_file import Verification
from forespeak.ui import download_row
from forespeak.ui.download_row import WIDE, DownloadRow, state_words
from forespeak.ui.theme import DARK
from forespeak.ui.tool_tips import plain_tip
from ui.hub_doubles import GB, download_of, gated, group

RUNNING = download_of(group(), done_bytes=GB, bytes_per_second=21_400_000.0, seconds_left=172.0)
Make = Callable[[Download], DownloadRow]


@pytest.fixture
def make(qtbot: QtBot) -> Make:
    def made(download: Download) -> DownloadRow:
        row = DownloadRow(download)
        qtbot.addWidget(row)
        row.resize(WIDE + 200, 120)
        row.show()
        row.activateWindow()
        qtbot.waitUntil(row.isActiveWindow)
        return row

    return made


def buttons(row: DownloadRow) -> set[str]:
    return {key for key, button in row.buttons.items() if button.isVisible()}


@pytest.mark.parametrize(
    ("download", "words"),
    [
        (RUNNING, "Downloading · 1 GB of 4.68 GB · 21.4 MB/s · 3 min left"),
        (replace(RUNNING, bytes_per_second=None, seconds_left=None), "Downloading · 1 GB of 4.68 GB"),
        (replace(RUNNING, notice="The Hub is busy. Trying again in 20 seconds."),
         "The Hub is busy. Trying again in 20 seconds. 1 GB of 4.68 GB"),
        (replace(RUNNING, state=DownloadState.VERIFYING), "Checking what is here · 1 GB of 4.68 GB"),
        (replace(RUNNING, state=DownloadState.QUEUED), "Waiting for its turn · 1 GB of 4.68 GB"),
        (replace(RUNNING, state=DownloadState.QUEUED, done_bytes=0), "Waiting for its turn · 4.68 GB"),
        (replace(RUNNING, state=DownloadState.PAUSED), "Paused · 1 GB of 4.68 GB"),
        (replace(RUNNING, state=DownloadState.DONE), "Done · 4.68 GB"),
        (
            replace(RUNNING, state=DownloadState.DONE, verified=(Verification.SHA256, Verification.GIT)),
            "Done and verified by SHA-256 · 4.68 GB",
        ),
        (
            replace(RUNNING, state=DownloadState.DONE, verified=(Verification.SHA256, Verification.SIZE)),
            "Done; the server states no hash, so only sizes could be checked · 4.68 GB",
        ),
        (replace(RUNNING, state=DownloadState.FAILED, error=UserFacingError("Full.", "No room.", "Make some.")),
         "Full. No room. Make some. 1 GB are kept."),
        (replace(RUNNING, state=DownloadState.FAILED, done_bytes=0), "It failed."),
    ],
)  # fmt: skip
def test_the_state_in_words(make: Make, download: Download, words: str) -> None:
    assert state_words(download) == words
    row = make(download)
    assert row.state.text() == words
    assert row.accessibleDescription() == words


def test_progress_and_name(make: Make) -> None:
    row = make(RUNNING)
    assert row.bar.value() == 214
    assert row.name.words == "Small-7B-GGUF · Q4_K_M"
    assert row.repo.words == "someone · small-7b-q4_k_m"
    row.show_download(download_of(group(shards=3), state=DownloadState.DONE))
    assert row.repo.words == "someone · 3 files"
    assert not row.bar.isVisible()


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (DownloadState.RUNNING, {"pause", "cancel"}),
        (DownloadState.VERIFYING, {"pause", "cancel"}),
        (DownloadState.QUEUED, {"pause", "cancel"}),
        (DownloadState.PAUSED, {"resume", "cancel"}),
        (DownloadState.FAILED, {"retry", "cancel"}),
        (DownloadState.DONE, {"target", "draft", "show", "clear"}),
    ],
)
def test_what_can_be_done(make: Make, state: DownloadState, shown: set[str]) -> None:
    assert buttons(make(replace(RUNNING, state=state))) == shown


def test_a_gated_one_says_where_to_go(qtbot: QtBot, make: Make) -> None:
    row = make(replace(RUNNING, state=DownloadState.FAILED, error=gated("owner/Gated")))
    assert buttons(row) == {"retry", "cancel", "page", "token"}
    with qtbot.waitSignal(row.pageRequested) as page:
        row.buttons["page"].click()
    assert page.args == ["https://hub.example/owner/Gated"]
    with qtbot.waitSignal(row.tokenRequested):
        row.buttons["token"].click()


def test_an_mlx_model_can_be_used_where_mlx_lm_is(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    files = (HubFile("config.json", 10), HubFile("model.safetensors", 100))
    done = download_of(replace(group(), files=files, format=ModelFormat.MLX), state=DownloadState.DONE)
    monkeypatch.setattr(download_row, "mlx_is_installed", lambda: True)
    row = make(done)
    assert buttons(row) == {"target", "draft", "show", "clear"}
    assert NO_MLX not in row.state.text()
    monkeypatch.setattr(download_row, "mlx_is_installed", lambda: False)
    row = make(done)
    assert buttons(row) == {"show", "clear"}
    assert row.state.text().endswith(NO_MLX)


@pytest.mark.parametrize(
    ("state", "key", "signal"),
    [
        (DownloadState.RUNNING, Qt.Key.Key_Space, "pauseRequested"),
        (DownloadState.QUEUED, Qt.Key.Key_Space, "pauseRequested"),
        (DownloadState.PAUSED, Qt.Key.Key_Space, "resumeRequested"),
        (DownloadState.PAUSED, Qt.Key.Key_Return, "resumeRequested"),
        (DownloadState.FAILED, Qt.Key.Key_Return, "retryRequested"),
        (DownloadState.DONE, Qt.Key.Key_Return, "showRequested"),
        (DownloadState.QUEUED, Qt.Key.Key_Delete, "cancelRequested"),
        (DownloadState.DONE, Qt.Key.Key_Delete, "clearRequested"),
        (DownloadState.RUNNING, Qt.Key.Key_Down, "stepRequested"),
    ],
)
def test_keys(qtbot: QtBot, make: Make, state: DownloadState, key: Qt.Key, signal: str) -> None:
    row = make(replace(RUNNING, state=state, done_bytes=1000))
    with qtbot.waitSignal(getattr(row, signal)):
        QTest.keyClick(row, key)


def test_what_has_come_is_not_lost_by_a_slip(qtbot: QtBot, make: Make) -> None:
    row = make(RUNNING)
    with qtbot.assertNotEmitted(row.cancelRequested):
        QTest.keyClick(row, Qt.Key.Key_Delete)
    row.show_download(replace(RUNNING, done_bytes=2 * GB))
    assert row.buttons["cancel"].text() == "Delete 2 GB"
    with qtbot.waitSignal(row.cancelRequested):
        row.buttons["cancel"].click()
    row.buttons["cancel"].click()
    row.show_download(replace(RUNNING, state=DownloadState.PAUSED))
    assert row.buttons["cancel"].text() == "Cancel"


def test_alt_and_an_arrow_move(qtbot: QtBot, make: Make) -> None:
    row = make(RUNNING)
    row.set_places(can_up=False, can_down=True)
    assert row.down.isVisible()
    assert not row.up.isEnabled()
    with qtbot.assertNotEmitted(row.moveRequested):
        QTest.keyClick(row, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    with qtbot.waitSignal(row.moveRequested) as moved:
        QTest.keyClick(row, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    assert moved.args == ["d1", False]
    with qtbot.waitSignal(row.moveRequested):
        row.down.click()


def test_a_button_that_goes_leaves_the_keyboard_to_the_row(make: Make) -> None:
    row = make(RUNNING)
    row.buttons["pause"].setFocus()
    row.show_download(replace(RUNNING, state=DownloadState.PAUSED))
    assert row.hasFocus()


def test_buttons_stand_where_there_is_room(qtbot: QtBot, make: Make) -> None:
    row = make(RUNNING)
    pause = row.buttons["pause"]

    def corner() -> QPoint:
        return pause.mapTo(row, QPoint(0, 0))

    qtbot.waitUntil(lambda: corner().x() > row.width() // 2)
    row.resize(420, 160)
    qtbot.waitUntil(lambda: corner().x() < 40 and corner().y() > row.bar.y())


def test_a_long_name_is_cut(make: Make) -> None:
    row = make(download_of(group(repo="owner/" + "Long-" * 60)))
    row.set_theme(DARK)
    assert "…" in row.name.text()
    assert row.name.words.startswith("Long-")
    assert row.name.toolTip() == plain_tip(row.name.words)
    assert row.minimumSizeHint().width() < 420

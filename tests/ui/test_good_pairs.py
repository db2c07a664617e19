"""Good pairs: what fits stands first, one click fetches both, what is here is used, what is gone is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from forespeak.errors import UserFacingError
from forespeak.models.download_record import DownloadState
from forespeak.models.formats import ModelFormat
from forespeak.models.memory import Fit
from forespeak.models.roots import own_root
from forespeak.ui.good_pairs import GoodPairs, PairRow
from forespeak.ui.theme import DARK
from ui.fake_library import item
from ui.models_doubles import Surroundings, my_models, pair

SMALL, LARGE = pair("small", 8), pair("large", 24, 19_000_000_000)


def opened(qtbot: QtBot, around: Surroundings) -> GoodPairs:
    qtbot.addWidget(around.page)
    around.page.resize(1200, 700)
    around.page.show()
    around.page.set_theme(DARK)
    around.controller.start()
    qtbot.waitUntil(lambda: around.page.good_pairs is not None and around.page.good_pairs.complete)
    assert around.page.good_pairs is not None
    return around.page.good_pairs


def row(pairs: GoodPairs, name: str) -> PairRow:
    return pairs.rows[name]


def test_what_fits_stands_first(qtbot: QtBot, tmp_path: Path) -> None:
    with my_models(tmp_path, items=[], pairs=[LARGE, SMALL]) as around:
        pairs = opened(qtbot, around)
        assert list(pairs.rows) == ["small", "large"]
        assert [entry.badge.words for entry in pairs.rows.values()] == ["Fits", "Too large"]
        assert all(entry.button.accessibleName().startswith("Download both: ") for entry in pairs.rows.values())
        assert pairs.focusProxy() is row(pairs, "small").button


def test_one_click_fetches_both_and_follows_them(qtbot: QtBot, tmp_path: Path) -> None:
    with my_models(tmp_path, items=[], pairs=[SMALL]) as around:
        pairs = opened(qtbot, around)
        line = row(pairs, "small")
        line.button.setFocus()
        QTest.keyClick(line.button, Qt.Key.Key_Space)
        assert line.button.text() == "Asking the Hub"
        qtbot.waitUntil(lambda: len(around.downloads.added) == 2)
        assert [group.files[0].path for group in around.downloads.added] == [SMALL.target.file, SMALL.draft.file]
        qtbot.waitUntil(lambda: line.button.text() == "Downloading")
        target, draft = around.downloads.added
        around.downloads.set(target, DownloadState.RUNNING, 400_000)
        around.fetcher.downloads_changed()
        assert line.note.text() == "400 kB of 2 MB"
        assert line.bar.value() == 200
        for group in (target, draft):
            around.downloads.set(group, DownloadState.DONE, group.size_bytes)
        around.fetcher.downloads_changed()
        assert line.button.text() == "Downloading", "they are not in the library yet"
        mine = own_root(around.library.own)
        around.library.items += [item(str(model.file)[:-5], mine) for model in (SMALL.target, SMALL.draft)]
        around.controller.rescan()
        qtbot.waitUntil(lambda: line.button.text() == "Use this pair")
        used: list[tuple[Path, Path]] = []
        pairs.pairRequested.connect(lambda *paths: used.append(paths))
        line.button.click()
        assert used == [(mine.path / str(SMALL.target.file), mine.path / str(SMALL.draft.file))]


def test_only_what_is_missing_is_fetched(qtbot: QtBot, tmp_path: Path) -> None:
    draft = item(str(SMALL.draft.file)[:-5], own_root(tmp_path / "models"))
    with my_models(tmp_path, items=[draft], pairs=[SMALL]) as around:
        qtbot.addWidget(around.page)
        around.page.show()
        around.controller.start()
        qtbot.waitUntil(lambda: around.controller.state.read)
        around.page.pairs_button.click()
        pairs = around.page.good_pairs
        assert pairs is not None
        qtbot.waitUntil(lambda: pairs.complete)
        line = row(pairs, "small")
        assert line.button.text() == "Download the other"
        line.button.click()
        qtbot.waitUntil(lambda: len(around.downloads.added) == 1)
        assert around.hub.asked == [SMALL.target.repo]


def test_a_file_that_is_gone_begins_nothing_and_is_told(qtbot: QtBot, tmp_path: Path) -> None:
    with my_models(tmp_path, items=[], pairs=[SMALL]) as around:
        around.hub.repos[SMALL.draft.repo] = ("another-Q8_0.gguf",)
        pairs = opened(qtbot, around)
        line = row(pairs, "small")
        line.button.click()
        qtbot.waitUntil(lambda: "no longer in" in line.note.text())
        assert "Discover" in line.note.text()
        assert around.downloads.added == []
        assert line.button.isEnabled()


def test_without_a_network_it_can_be_tried_again(qtbot: QtBot, tmp_path: Path) -> None:
    with my_models(tmp_path, items=[], pairs=[SMALL]) as around:
        around.hub.error = UserFacingError("The Hub does not answer.", "There is no network.", "Try again later.")
        pairs = opened(qtbot, around)
        line = row(pairs, "small")
        line.button.click()
        qtbot.waitUntil(lambda: "The Hub does not answer." in line.note.text())
        around.hub.error = None
        line.button.click()
        qtbot.waitUntil(lambda: len(around.downloads.added) == 2)
        qtbot.waitUntil(lambda: "Hub" not in line.note.text())


def test_a_stopped_download_leads_to_the_downloads(qtbot: QtBot, tmp_path: Path) -> None:
    with my_models(tmp_path, items=[], pairs=[SMALL]) as around:
        pairs = opened(qtbot, around)
        line = row(pairs, "small")
        line.button.click()
        qtbot.waitUntil(lambda: len(around.downloads.added) == 2)
        why = UserFacingError("The disk is full.")
        around.downloads.set(around.downloads.added[0], DownloadState.FAILED, 5, why)
        around.fetcher.downloads_changed()
        assert line.button.text() == "See downloads"
        assert line.note.text() == "The disk is full."
        with qtbot.waitSignal(pairs.downloadsRequested):
            line.button.click()


@pytest.mark.parametrize("installed", [False, True])
def test_mlx_pairs_say_what_they_need(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, installed: bool
) -> None:
    monkeypatch.setattr("forespeak.ui.good_pairs.mlx_is_installed", lambda: installed)
    folder = replace(SMALL, id="mlx", format=ModelFormat.MLX)
    with my_models(tmp_path, items=[]) as around:
        with_mlx = GoodPairs([SMALL, folder], around.fetcher, lambda _: Fit.FITS, mlx=True)
        without = GoodPairs([SMALL, folder], around.fetcher, lambda _: Fit.FITS, mlx=False)
        for pairs in (with_mlx, without):
            qtbot.addWidget(pairs)
            pairs.show()
        qtbot.waitUntil(lambda: with_mlx.complete and without.complete)
        assert with_mlx.mlx_note.isVisible() != installed
        assert set(with_mlx.rows) == {"small", "mlx"}
        assert not without.mlx_note.isVisible()
        assert set(without.rows) == {"small"}


def test_a_narrow_page_shows_all_of_a_row(qtbot: QtBot, tmp_path: Path) -> None:
    with my_models(tmp_path, items=[], pairs=[SMALL]) as around:
        pairs = opened(qtbot, around)
        around.page.resize(420, 700)
        line = row(pairs, "small")
        parts = (line.title, line.badge, line.size_words, line.button)
        qtbot.waitUntil(lambda: 0 < line.width() <= 420)
        qtbot.waitUntil(lambda: all(part.geometry().right() < line.width() for part in parts))

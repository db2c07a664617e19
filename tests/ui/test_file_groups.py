"""The files of a repo: sizes, badges with reasons, and one thing to do with each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from forespeak.models.formats import NO_MLX, ModelFormat
from forespeak.models.gguf import GgufKind
from forespeak.models.hub_files import HubFile, HubFileGroup
from forespeak.models.memory import Fit
from forespeak.ui import file_groups
from forespeak.ui.badge import BadgeTone
from forespeak.ui.file_groups import FileGroups, GroupRow, GroupView, LocalCopy
from forespeak.ui.form import scrolled
from forespeak.ui.hub_verdicts import GroupVerdict
from forespeak.ui.recommended import SizeFit
from ui.hub_doubles import group, groups

FITS = SizeFit(Fit.FITS, "It fits well.")
LARGE = SizeFit(Fit.TOO_LARGE, "It is too large by far.")
HERE = LocalCopy(Path("/models/a.gguf"), "Models folder", same_repo=True)
TWIN = LocalCopy(Path("/lm/a.gguf"), "LM Studio", same_repo=False)


@pytest.fixture
def files(qtbot: QtBot) -> FileGroups:
    made = FileGroups()
    qtbot.addWidget(made)
    made.show()
    return made


def shown(files: FileGroups, view: GroupView) -> GroupRow:
    files.show_views([view])
    return files.rows[0]


def test_a_row_says_what_it_is(files: FileGroups) -> None:
    row = shown(files, GroupView(group(shards=3), FITS, recommended="Because."))
    assert row.name.text() == "Q4_K_M"
    assert row.facts.text() == "4.68 GB · 3 parts · small-7b-q4_k_m"
    assert (row.fit.words, row.fit.tone, row.fit.toolTip()) == ("Fits", BadgeTone.GOOD, "It fits well.")
    assert row.advice.words == "Recommended"
    assert row.note.text() == "Because."
    assert "Q4_K_M, Recommended, Fits" in row.accessibleName()
    assert row.button.objectName() == "primaryButton"


@pytest.mark.parametrize("width", [400, 620])
def test_both_buttons_are_whole_in_a_narrow_window_too(qtbot: QtBot, width: int) -> None:
    files = FileGroups()
    area = scrolled(files)
    qtbot.addWidget(area)
    area.resize(width, 400)
    area.show()
    row = shown(files, GroupView(group(), FITS, recommended="It is a good one."))
    files.show_views([replace(row.view, verdict=GroupVerdict("Big-70B"))])
    buttons = (row.other, row.button)
    qtbot.waitUntil(lambda: row.other.isVisible() and all(each.x() > 0 for each in buttons))
    qtbot.waitUntil(lambda: files.width() == area.viewport().width())
    for each in buttons:
        assert each.width() >= each.sizeHint().width()
        assert each.mapTo(files, QPoint(each.width(), 0)).x() <= files.width()
    same_line = abs(row.other.geometry().center().y() - row.button.geometry().center().y()) < 3
    assert same_line == (width == 620)
    assert same_line or row.button.y() < row.other.y(), "the first to be wanted stands above"


def test_download_asks_for_it(qtbot: QtBot, files: FileGroups) -> None:
    view = GroupView(group(), FITS)
    row = shown(files, view)
    with qtbot.waitSignal(files.downloadRequested) as asked:
        QTest.mouseClick(row.button, Qt.MouseButton.LeftButton)
    assert asked.args == [view]


def test_what_is_too_large_is_asked_about_twice(qtbot: QtBot, files: FileGroups) -> None:
    view = GroupView(group("F16"), LARGE)
    row = shown(files, view)
    with qtbot.assertNotEmitted(files.downloadRequested):
        row.button.click()
    assert row.button.text() == "Download anyway"
    assert row.note.text() == "It is too large by far."
    with qtbot.waitSignal(files.downloadRequested):
        row.button.click()


def test_the_keyboard_stays_at_a_row_whose_buttons_change(qtbot: QtBot, files: FileGroups) -> None:
    one = group()
    row = shown(files, GroupView(one, FITS, copy=TWIN))
    qtbot.waitUntil(row.isVisible)
    files.activateWindow()
    row.other.setFocus()
    shown(files, GroupView(one, FITS, checking="Comparing the two files…"))
    assert row.hasFocus()
    shown(files, GroupView(one, FITS, progress="Downloading"))
    assert row.button.hasFocus()


def test_what_is_here_is_used(qtbot: QtBot, files: FileGroups) -> None:
    row = shown(files, GroupView(group(), FITS, copy=HERE))
    assert row.here.words == "Here"
    assert row.fit.words == ""
    assert row.note.text() == "In Models folder."
    with qtbot.waitSignal(files.useRequested):
        row.button.click()


def test_a_file_as_large_elsewhere_is_offered(qtbot: QtBot, files: FileGroups) -> None:
    row = shown(files, GroupView(group(), FITS, copy=TWIN))
    assert row.note.text() == "A file of the same size is here (LM Studio). It is compared before it is used."
    with qtbot.waitSignal(files.compareRequested):
        row.button.click()
    with qtbot.waitSignal(files.downloadRequested):
        row.other.click()
    row = shown(files, GroupView(group(), FITS, copy=TWIN, checking="Comparing…"))
    assert row.note.text() == "Comparing…"
    assert not row.button.isVisible()
    assert not row.other.isVisible()


def test_what_is_being_downloaded_says_how_far_it_is(qtbot: QtBot, files: FileGroups) -> None:
    row = shown(files, GroupView(group(), FITS, recommended="Because.", progress="Downloading · 1 GB"))
    assert row.note.text() == "Downloading · 1 GB"
    with qtbot.waitSignal(files.showDownloadRequested):
        row.button.click()


def test_an_incomplete_set_cannot_be_taken(files: FileGroups) -> None:
    row = shown(files, GroupView(group(shards=3, missing=(2,)), FITS))
    assert row.note.text() == row.view.group.problem
    assert not row.button.isVisible()


def test_projectors_are_mentioned_only(files: FileGroups) -> None:
    files.show_views([GroupView(each) for each in groups()])
    assert [row.name.text() for row in files.rows] == ["Q2_K", "Q4_K_M", "Q6_K", "Q8_0", "F16"]
    assert files.others.text() == "Also in this repo, and no models: a projector for images."
    projector = group(kind=GgufKind.PROJECTOR)
    matrix = group(kind=GgufKind.IMATRIX)
    files.show_views([GroupView(each) for each in (projector, replace(projector, label="X"), matrix)])
    assert files.rows == []
    assert files.others.text() == (
        "No file here is a model that can be downloaded. "
        "Also in this repo, and no models: 2 projectors for images and an importance matrix."
    )


def test_progress_leaves_the_keyboard_where_it_is(qtbot: QtBot, files: FileGroups) -> None:
    views = [GroupView(each, FITS) for each in groups()]
    files.show_views(views)
    files.activateWindow()
    files.rows[2].button.setFocus()
    before = list(files.rows)
    files.show_views([replace(views[0], progress="Downloading"), *views[1:]])
    assert files.rows == before
    assert files.rows[2].button.hasFocus()
    assert files.rows[0].note.text() == "Downloading"


def test_a_file_without_a_quant_in_its_name(files: FileGroups) -> None:
    row = shown(files, GroupView(group(None), FITS))
    assert row.name.text() == "small-7b-x"
    assert row.facts.text() == "4.68 GB"


def test_an_mlx_model_that_is_here_is_used_where_mlx_lm_is(
    qtbot: QtBot, files: FileGroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = (HubFile("config.json", 10), HubFile("model.safetensors", 1000))
    of_mlx = HubFileGroup("maker/Small-4bit", "c" * 40, "4-bit", ModelFormat.MLX, parts)
    view = GroupView(of_mlx, copy=LocalCopy(Path("/models/maker/Small-4bit"), "Models folder", same_repo=True))
    monkeypatch.setattr(file_groups, "mlx_is_installed", lambda: True)
    row = shown(files, view)
    assert (row.button.text(), row.note.text()) == ("Use", "In Models folder.")
    with qtbot.waitSignal(files.useRequested) as used:
        QTest.mouseClick(row.button, Qt.MouseButton.LeftButton)
    assert used.args == [view]
    monkeypatch.setattr(file_groups, "mlx_is_installed", lambda: False)
    row.show_view(view)
    assert row.button.isHidden()
    assert row.note.text() == f"In Models folder. {NO_MLX}"
    assert NO_MLX in row.accessibleName()

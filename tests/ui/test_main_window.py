"""The window's parts: folding, keys, dropping files, names for screen readers, themes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QAbstractSpinBox, QApplication, QComboBox, QLineEdit, QPlainTextEdit
from pytestqt.qtbot import QtBot

from forespeak.ui.actions import ShortcutsDialog
from forespeak.ui.appearance import AppearanceKeeper, mark_style
from forespeak.ui.main_window import MainWindow
from forespeak.ui.model_picker import Place
from forespeak.ui.preferences import Appearance, Preferences, PreferencesFile
from forespeak.ui.theme import DARK, DARK_COLOUR_BLIND, LIGHT, LIGHT_COLOUR_BLIND, MarkStyle
from ui.conftest import AppMaker


@pytest.fixture
def window(qtbot: QtBot) -> MainWindow:
    made = MainWindow()
    qtbot.addWidget(made)
    made.resize(1280, 820)
    made.show()
    return made


def open_parts(window: MainWindow) -> tuple[bool, bool]:
    return window.sidebar.isVisible(), window.panel_side.isVisible()


def test_a_narrow_window_folds_its_sides_and_a_wide_one_brings_them_back(window: MainWindow) -> None:
    seen = []
    for width in (1280, 980, 700, 980, 1280):
        window.resize(width, 700)
        seen.append(open_parts(window))
    assert seen == [(True, True), (True, False), (False, False), (True, False), (True, True)]
    assert window.sidebar_open
    assert window.panel_open


def test_a_side_can_be_opened_in_a_narrow_window_and_stays_closed_in_a_wide_one(window: MainWindow) -> None:
    window.resize(700, 700)
    window.toggle_sidebar()
    assert open_parts(window) == (True, False)
    window.resize(1280, 700)
    assert open_parts(window) == (True, True)
    window.toggle_panel()
    window.resize(900, 700)
    window.resize(1280, 700)
    assert open_parts(window) == (True, False)
    assert not window.panel_open


def test_the_smallest_size_shows_everything_that_is_needed(window: MainWindow) -> None:
    window.resize(window.minimumSize())
    QApplication.processEvents()
    area = window.rect()
    for part in (window.composer.button, window.composer.edit, window.top.target, window.top.speculation.switch):
        place = part.mapTo(window, QPoint(0, 0))
        assert area.contains(place), part
        assert area.contains(place + QPoint(part.width() - 1, part.height() - 1)), part


def test_the_keys(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    control = Qt.KeyboardModifier.ControlModifier
    QTest.keyClick(app.window, Qt.Key.Key_B, control)
    QTest.keyClick(app.window, Qt.Key.Key_Period, control)
    assert open_parts(app.window) == (False, False)
    QTest.keyClick(app.window, Qt.Key.Key_F, control)
    assert open_parts(app.window) == (True, False)
    assert app.window.chats.search.hasFocus()
    QTest.keyClick(app.window, Qt.Key.Key_Comma, control)
    assert app.session._settings is not None
    app.session._settings.close()
    QTest.keyClick(app.window, Qt.Key.Key_Slash, control)
    dialog = app.window.findChild(ShortcutsDialog)
    assert isinstance(dialog, ShortcutsDialog)
    dialog.close()
    keys = dict(app.commands.lines)
    for words in ("New chat", "Search", "Stop", "Write another version", "Rename chat", "Settings"):
        assert keys[words]


def file_drag(path: Path) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    return data


ACTIONS = Qt.DropAction.CopyAction | Qt.DropAction.MoveAction


def enter(window: MainWindow, data: QMimeData) -> QDragEnterEvent:
    event = QDragEnterEvent(QPoint(5, 5), ACTIONS, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    event.setDropAction(Qt.DropAction.MoveAction)
    window.dragEnterEvent(event)
    return event


@pytest.mark.parametrize("place", list(Place))
def test_a_dropped_file_goes_where_it_is_dropped(window: MainWindow, tmp_path: Path, place: Place) -> None:
    dropped: list[tuple[Place, Path]] = []
    window.veil.fileDropped.connect(lambda where, path: dropped.append((where, path)))
    data = file_drag(tmp_path / "model.gguf")
    entered = enter(window, data)
    assert entered.isAccepted()
    assert window.veil.isVisible()
    QApplication.processEvents()
    centre = QPointF(window.veil.zones[place].geometry().center())
    event = QDropEvent(centre, ACTIONS, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    event.setDropAction(Qt.DropAction.MoveAction)
    window.veil.dropEvent(event)
    # For a move, a file manager would delete the file.
    assert entered.dropAction() == event.dropAction() == Qt.DropAction.CopyAction
    assert dropped == [(place, tmp_path / "model.gguf")]
    assert not window.veil.isVisible()


def test_a_dragged_text_is_not_the_windows(window: MainWindow) -> None:
    data = QMimeData()
    data.setText("words")
    assert not enter(window, data).isAccepted()
    assert not window.veil.isVisible()


def test_a_dropped_draft_is_loaded(qtbot: QtBot, make_app: AppMaker, tmp_path: Path) -> None:
    app = make_app()
    app.window.veil.fileDropped.emit(Place.DRAFT, tmp_path / "dropped.gguf")
    qtbot.waitUntil(lambda: app.engine.loads[-1].draft == tmp_path / "dropped.gguf")


def test_everything_that_takes_the_focus_has_a_name(make_app: AppMaker) -> None:
    app = make_app()
    app.session.open_settings()
    settings = app.session._settings
    assert settings is not None
    kinds = (QAbstractButton, QLineEdit, QPlainTextEdit, QAbstractSpinBox, QComboBox)
    nameless = []
    for root in (app.window, settings):
        for kind in kinds:
            for widget in root.findChildren(kind):
                inside = isinstance(widget.parentWidget(), QAbstractSpinBox | QLineEdit)
                words = widget.text() if isinstance(widget, QAbstractButton) else ""
                named = widget.accessibleName() or words or widget.objectName().startswith("qt_") or inside
                if widget.isVisibleTo(root) and widget.focusPolicy() is not Qt.FocusPolicy.NoFocus and not named:
                    nameless.append(widget)
    settings.close()
    assert nameless == []


@pytest.fixture
def keeper(window: MainWindow) -> Iterator[AppearanceKeeper]:
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    yield AppearanceKeeper(application, window)
    application.setStyleSheet("")
    application.setPalette(application.style().standardPalette())


def test_the_theme_is_the_chosen_one(window: MainWindow, keeper: AppearanceKeeper) -> None:
    for appearance, theme, colour_blind in (
        (Appearance.LIGHT, LIGHT, False),
        (Appearance.DARK, DARK, False),
        (Appearance.LIGHT, LIGHT_COLOUR_BLIND, True),
        (Appearance.DARK, DARK_COLOUR_BLIND, True),
    ):
        keeper.apply(replace(Preferences(), appearance=appearance, colour_blind=colour_blind))
        assert window.conversation._look.theme is theme
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        assert theme.window in application.styleSheet()
        image = window.grab().toImage()
        assert image.pixelColor(260, 200).name() == theme.window.lower()
        assert "$" not in application.styleSheet()


def test_marks_have_a_default() -> None:
    assert mark_style("strong") is MarkStyle.STRONG
    assert mark_style("from a newer version") is MarkStyle.SUBTLE


def test_size_and_folding_are_remembered(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    app.window.resize(1100, 720)
    app.window.toggle_panel()
    app.window.close()
    kept = PreferencesFile(app.folder / "preferences.json").read()
    assert kept.window_size == (1100, 720)
    assert kept.sidebar_open
    assert not kept.panel_open

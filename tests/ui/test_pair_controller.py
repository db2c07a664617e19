"""From nothing to a loaded pair: the starter, picking, refusals, failures."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from forespeak.engines.engine import ConversionRequest, Failed, Loaded, LoadRequest
from forespeak.errors import UserFacingError
from forespeak.speculation.trace import Source
from forespeak.ui.dialogs import ErrorDialog
from forespeak.ui.pair_controller import Fit, PairState
from forespeak.ui.preferences import PreferencesFile
from ui.conftest import TEXT, App, AppMaker, FakeModels
from ui.scripted_engine import ScriptedEngine, summary


def card_words(app: App) -> str:
    card = app.window.card
    return f"{card.title.text()} {card.text.text()}" if card.isVisible() else ""


def click(app: App, which: str) -> None:
    QTest.mouseClick(getattr(app.window.card, which), Qt.MouseButton.LeftButton)


def test_a_first_start_offers_the_starter_and_unpacks_it_on_use(
    qtbot: QtBot, make_app: AppMaker, tmp_path: Path
) -> None:
    app = make_app(ready=False, models=FakeModels(tmp_path, unpacked=False))
    qtbot.waitUntil(lambda: "Small starter pair" in card_words(app))
    assert "540 MB" in card_words(app)
    assert not app.window.composer.button.isEnabled()
    assert app.window.composer.note.text() == "Choose a model first."
    assert app.engines == [], "nothing is started before it is wanted"
    click(app, "primary")
    qtbot.waitUntil(lambda: app.session.pair.status.state is PairState.UNPACKING)
    qtbot.waitUntil(lambda: app.session.pair.status.state is PairState.READY)
    conversion, load = app.engine.requests
    assert isinstance(conversion, ConversionRequest)
    assert isinstance(load, LoadRequest)
    assert load.target == conversion.destination
    assert load.draft == conversion.source
    assert not app.window.card.isVisible()
    assert app.window.top.draft.words() == ("Draft · same vocabulary", "Small · Q4_1")


def test_unpacking_can_be_cancelled_and_is_offered_again(qtbot: QtBot, make_app: AppMaker, tmp_path: Path) -> None:
    app = make_app(ready=False, models=FakeModels(tmp_path, unpacked=False))
    qtbot.waitUntil(lambda: app.session.pair.status.state is PairState.OFFERED)
    click(app, "primary")
    qtbot.waitUntil(app.window.card.bar.isVisible)
    click(app, "secondary")
    qtbot.waitUntil(lambda: app.session.pair.status.state is PairState.OFFERED)
    assert app.session.preferences.target is None


def test_without_a_starter_a_file_is_asked_for(qtbot: QtBot, make_app: AppMaker, tmp_path: Path) -> None:
    app = make_app(ready=False, models=FakeModels(tmp_path, has_starter=False))
    qtbot.waitUntil(lambda: "Choose a model to start" in card_words(app))


def test_a_full_disk_is_a_calm_card_with_a_way_on(qtbot: QtBot, make_app: AppMaker, tmp_path: Path) -> None:
    models = FakeModels(
        tmp_path, starter_error=UserFacingError("There is not enough disk space.", "540 MB are needed.")
    )
    app = make_app(ready=False, models=models)
    qtbot.waitUntil(lambda: "540 MB are needed." in card_words(app))
    models.starter_error = None
    click(app, "primary")
    qtbot.waitUntil(lambda: app.session.pair.status.state is PairState.OFFERED)


def test_a_message_sent_while_loading_is_answered_when_the_model_is_there(qtbot: QtBot, make_app: AppMaker) -> None:
    gate = threading.Event()

    def prepare(engine: ScriptedEngine) -> None:
        engine.load_gate = gate

    models = FakeModels(Path("/models"))
    starter = models.starter()
    assert starter is not None
    app = make_app(ready=False, models=models, prepare=prepare, target=starter.target, draft=starter.draft)
    qtbot.waitUntil(lambda: app.session.pair.status.progress is not None)
    assert app.window.top.target.words()[0] == "Target · loading 50 %"
    assert app.window.composer.note.text() == "Will be answered when the model is ready."
    QTest.keyClicks(app.window.composer.edit, "Early")
    QTest.keyClick(app.window.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: len(app.session.chats.items) == 2)
    assert app.engine.generations == []
    gate.set()
    qtbot.waitUntil(lambda: bool(app.session.chats.items[-1].text) and not app.session.chats.busy)
    assert app.session.chats.items[-1].text == TEXT


def test_a_load_that_fails_says_why_and_ends_what_waited(qtbot: QtBot, make_app: AppMaker) -> None:
    gate = threading.Event()
    failed = Failed("The model cannot be loaded.", "Its file is damaged.", "Download it again.", "gguf: bad magic")

    def prepare(engine: ScriptedEngine) -> None:
        engine.load_gate = gate
        engine.load_answer = lambda request: failed

    models = FakeModels(Path("/models"))
    starter = models.starter()
    assert starter is not None
    app = make_app(ready=False, models=models, prepare=prepare, target=starter.target)
    qtbot.waitUntil(lambda: app.session.pair.status.state is PairState.LOADING)
    app.session.chats.send("Early")
    qtbot.waitUntil(lambda: len(app.session.chats.items) == 2)
    gate.set()
    qtbot.waitUntil(lambda: "Its file is damaged. Download it again." in card_words(app))
    assert app.window.card.details.isVisible()
    assert app.session.chats.items[-1].state == "failed"
    assert "Its file is damaged." in app.session.chats.items[-1].note
    app.engine.load_answer = None
    click(app, "primary")
    qtbot.waitUntil(lambda: app.session.pair.status.state is PairState.READY)


def test_a_draft_that_does_not_fit_is_named_and_the_target_stays(
    qtbot: QtBot, make_app: AppMaker, tmp_path: Path
) -> None:
    why = "Token 7 is “a” in the target and “b” in the draft."

    def prepare(engine: ScriptedEngine) -> None:
        engine.load_answer = lambda request: Loaded(summary(request.target), None, why if request.draft else None)

    models = FakeModels(tmp_path, fits=lambda target, draft: Fit(False, "vocabulary differs", why))
    app = make_app(models=models, prepare=prepare)
    qtbot.waitUntil(lambda: app.window.top.draft.words()[0] == "Draft · vocabulary differs")
    assert why in app.window.banner.text()
    assert app.session.pair.status.state is PairState.READY
    assert app.session.pair.status.draft_problem == why
    labels = [label.text() for label in app.window.panel.findChildren(QLabel)]
    assert any(why in words for words in labels), "the reason stays visible in the panel"
    assert any("Prompt lookup drafts in its place." in words for words in labels)
    speculation = app.window.top.speculation
    assert speculation.source_button.text() == "Prompt lookup"
    assert not speculation.menu.boxes[Source.DRAFT_MODEL].isEnabled()
    app.session.chats.send("Go on without it")
    qtbot.waitUntil(lambda: bool(app.engine.generations) and not app.session.chats.busy)
    assert app.engine.generations[-1].sources == (Source.PROMPT_LOOKUP,)


def test_picking_from_the_menus(qtbot: QtBot, make_app: AppMaker, tmp_path: Path) -> None:
    app = make_app()
    other = tmp_path / "other-model.gguf"
    other.write_bytes(b"GGUF")
    app.window.top.draft.picked.emit(other)
    qtbot.waitUntil(lambda: app.engine.loads[-1].draft == other and app.session.pair.status.state is PairState.READY)
    assert app.window.top.draft.words()[1] == "Other Model"
    menu = app.window.top.draft.fill_menu()
    words = [action.text() for action in menu.actions() if not action.isSeparator()]
    expected = [
        "Small · F32",
        "Small · Q4_1",
        "Other Model",
        "No draft model",
        "Find a draft…",
        "Choose a model file…",
    ]
    assert words == expected
    before = len(app.engine.loads)
    next(action for action in menu.actions() if action.text() == "No draft model").trigger()
    qtbot.waitUntil(lambda: len(app.engine.loads) == before + 1 and app.session.pair.status.state is PairState.READY)
    assert app.engine.loads[-1].draft is None
    assert app.window.top.draft.words() == ("Draft · no model", "Prompt lookup")
    assert PreferencesFile(app.folder / "none.json").read().draft is None


def test_a_file_that_is_no_model_is_refused_and_the_pair_stays(
    qtbot: QtBot, make_app: AppMaker, tmp_path: Path
) -> None:
    app = make_app()
    loaded = app.session.pair.status.loaded
    app.window.top.target.picked.emit(tmp_path / "notes.txt")
    qtbot.waitUntil(lambda: app.window.findChild(ErrorDialog) is not None)
    dialog = app.window.findChild(ErrorDialog)
    assert isinstance(dialog, ErrorDialog)
    assert any("not a GGUF file" in label.text() for label in dialog.findChildren(QLabel))
    dialog.close()
    assert app.session.pair.status.loaded is loaded
    assert len(app.engine.loads) == 1


def test_a_newer_choice_makes_the_older_load_worthless(qtbot: QtBot, make_app: AppMaker, tmp_path: Path) -> None:
    gate = threading.Event()
    app = make_app()
    app.engine.load_gate = gate
    for name in ("first.gguf", "second.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
        app.window.top.target.picked.emit(tmp_path / name)
        qtbot.waitUntil(lambda name=name: app.engine.loads[-1].target.name == name)  # type: ignore[misc]
    gate.set()
    qtbot.waitUntil(lambda: app.session.pair.status.state is PairState.READY)
    assert app.session.pair.status.loaded is not None
    assert app.session.pair.status.loaded.target.path.name == "second.gguf"


@pytest.mark.parametrize("change", ["reproducible", "context"])
def test_settings_of_the_model_load_it_again_as_the_dialog_closes(
    qtbot: QtBot, make_app: AppMaker, change: str
) -> None:
    app = make_app()
    app.commands["settings"].trigger()
    dialog = app.session._settings
    assert dialog is not None
    if change == "reproducible":
        dialog.model.reproducible.setChecked(True)
    else:
        dialog.model.context_length.setValue(4096)
    assert len(app.engine.loads) == 1
    dialog.close()
    qtbot.waitUntil(lambda: len(app.engine.loads) == 2)
    assert (app.engine.loads[1].settings.reproducible, app.engine.loads[1].settings.context_length) == (
        (True, None) if change == "reproducible" else (False, 4096)
    )


def test_the_starter_is_unpacked_where_the_models_are_now(qtbot: QtBot, make_app: AppMaker, tmp_path: Path) -> None:
    app = make_app(ready=False, models=FakeModels(tmp_path, unpacked=False))
    pair = app.session.pair
    qtbot.waitUntil(lambda: pair.status.state is PairState.OFFERED)
    assert pair.starter is not None
    name, called = pair.starter.target.name, pair.name(pair.starter.target)
    pair.follow_move(tmp_path, tmp_path / "new")
    assert pair.starter.target == tmp_path / "new" / name
    assert pair.name(pair.starter.target) == called
    pair.use_starter()
    qtbot.waitUntil(lambda: app.session.pair.status.state is PairState.READY)
    conversion, load = app.engine.requests
    assert isinstance(conversion, ConversionRequest)
    assert isinstance(load, LoadRequest)
    assert load.target == conversion.destination == tmp_path / "new" / name

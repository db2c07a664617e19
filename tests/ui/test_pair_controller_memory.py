"""Loading what cannot fit asks first and says why."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from forespeak.engines.engine import CacheType, LoadRequest, LoadSettings
from forespeak.models.machine_memory import Gpu, Machine
from forespeak.models.memory import Fit, MemoryPlan, SuggestionKind
from forespeak.pairing.load_plan import plan_load
from forespeak.ui.dialogs import ErrorDialog
from forespeak.ui.pair_controller import PairState
from models import architectures
from ui.conftest import App, AppMaker

GB = 10**9


class Memory:
    """A machine of the test's making, which weighs real headers."""

    def __init__(self, available: int) -> None:
        self.machine = Machine(64 * GB, available)
        self.asked: list[LoadRequest] = []
        self.before: list[MemoryPlan | None] = []

    def __call__(self, request: LoadRequest, loaded: MemoryPlan | None) -> MemoryPlan | None:
        assert threading.current_thread() is not threading.main_thread()
        self.asked.append(request)
        self.before.append(loaded)
        return plan_load(request, self.machine) if request.target.stat().st_size else None


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return architectures.llama().write(tmp_path / "large.gguf")


def with_memory(app: App, available: int) -> Memory:
    memory = Memory(available)
    app.session.pair.check_memory = memory
    return memory


def pick(qtbot: QtBot, app: App, path: Path, state: PairState) -> None:
    app.window.top.target.picked.emit(path)
    qtbot.waitUntil(lambda: app.session.pair.status.target == path and app.session.pair.status.state is state)


def click(app: App, which: str) -> None:
    QTest.mouseClick(getattr(app.window.card, which), Qt.MouseButton.LeftButton)


def needed(model: Path, length: int | None = None) -> int:
    return plan_load(
        LoadRequest(model, settings=LoadSettings(context_length=length)), Machine(64 * GB, 64 * GB)
    ).needed_bytes


def test_what_fits_is_loaded_and_its_plan_is_on_the_chip(qtbot: QtBot, make_app: AppMaker, model: Path) -> None:
    app = make_app(draft=None)
    memory = with_memory(app, 48 * GB)
    pick(qtbot, app, model, PairState.READY)
    assert [request.target for request in memory.asked] == [model]
    assert app.engine.loads[-1].target == model
    app.window.top.set_memory(2 * GB, 16 * GB)
    tip = app.window.top.memory.toolTip()
    assert "Target weights" in tip
    assert "Engine" in tip


def test_what_is_too_large_is_not_loaded_but_asked_about(qtbot: QtBot, make_app: AppMaker, model: Path) -> None:
    app = make_app(draft=None, load_settings=LoadSettings(32768))
    with_memory(app, needed(model, 16384))
    before = len(app.engine.loads)
    pick(qtbot, app, model, PairState.TOO_LARGE)
    card = app.window.card
    assert card.isVisible()
    assert card.title.text() == "This does not fit into memory"
    plan = app.session.pair.status.plan
    assert plan is not None
    assert plan.fit is Fit.TOO_LARGE
    assert plan.sentence in card.text.text()
    assert card.primary.text() == "Use a context of 16,384"
    assert card.secondary.text() == "Load anyway"
    assert len(app.engine.loads) == before
    assert not app.window.composer.button.isEnabled()
    assert app.window.top.target.words()[0] == "Target · not loaded"


def test_the_advice_is_followed_with_a_click_and_kept(qtbot: QtBot, make_app: AppMaker, model: Path) -> None:
    app = make_app(draft=None, load_settings=LoadSettings(32768))
    with_memory(app, needed(model, 16384))
    pick(qtbot, app, model, PairState.TOO_LARGE)
    click(app, "primary")
    qtbot.waitUntil(lambda: app.session.pair.status.state is PairState.READY)
    assert app.engine.loads[-1].settings.context_length == 16384
    assert app.session.preferences.load_settings.context_length == 16384
    assert not app.window.card.isVisible()


def test_it_is_loaded_anyway_if_the_user_says_so(qtbot: QtBot, make_app: AppMaker, model: Path) -> None:
    app = make_app(draft=None)
    memory = with_memory(app, 1000)
    pick(qtbot, app, model, PairState.TOO_LARGE)
    click(app, "secondary")
    qtbot.waitUntil(lambda: app.session.pair.status.state is PairState.READY)
    assert app.engine.loads[-1].target == model
    assert len(memory.asked) == 1


def test_a_draft_that_is_too_much_can_be_left_out(qtbot: QtBot, make_app: AppMaker, model: Path) -> None:
    app = make_app(draft=model, load_settings=LoadSettings(1024))
    with_memory(app, needed(model, 1024))
    pick(qtbot, app, model, PairState.TOO_LARGE)
    assert app.window.card.primary.text() == "Leave out the draft model"
    click(app, "primary")
    qtbot.waitUntil(lambda: app.session.pair.status.state is PairState.READY)
    assert app.engine.loads[-1].draft is None
    assert app.session.preferences.draft is None


def test_the_reproducible_setting_can_be_given_up(qtbot: QtBot, make_app: AppMaker, model: Path) -> None:
    small = LoadSettings(1024, reproducible=True, cache_type=CacheType.Q8_0)
    app = make_app(draft=None, load_settings=small)
    with_memory(app, needed(model, 1024))
    pick(qtbot, app, model, PairState.TOO_LARGE)
    plan = app.session.pair.status.plan
    assert plan is not None
    assert [each.kind for each in plan.suggestions] == [SuggestionKind.REPRODUCIBLE]
    click(app, "primary")
    qtbot.waitUntil(lambda: app.session.pair.status.state is PairState.READY)
    assert not app.engine.loads[-1].settings.reproducible
    assert app.engine.loads[-1].settings.cache_type is CacheType.Q8_0, "as it was chosen before"


def test_a_cache_that_was_chosen_too_large_becomes_the_usual_one(qtbot: QtBot, make_app: AppMaker, model: Path) -> None:
    app = make_app(draft=None, load_settings=LoadSettings(1024, cache_type=CacheType.F32))
    with_memory(app, needed(model, 1024))
    pick(qtbot, app, model, PairState.TOO_LARGE)
    assert app.window.card.primary.text().startswith("Keep the cache in F16")
    click(app, "primary")
    qtbot.waitUntil(lambda: app.session.pair.status.state is PairState.READY)
    assert app.engine.loads[-1].settings.cache_type is CacheType.F16
    assert app.session.preferences.load_settings == LoadSettings(1024)


def test_layers_that_a_gpu_has_no_room_for_can_stay_off_it(qtbot: QtBot, make_app: AppMaker, model: Path) -> None:
    # Asked for by number: where it is left open, as many are taken as fit.
    app = make_app(draft=None, load_settings=LoadSettings(1024, gpu_layers=999))
    memory = with_memory(app, 48 * GB)
    all_of_it = replace(memory.machine, gpus=(Gpu("Card", 64 * GB, 64 * GB),))
    on_card = {
        each.device: each
        for each in plan_load(LoadRequest(model, settings=LoadSettings(context_length=1024)), all_of_it).devices
    }
    memory.machine = replace(memory.machine, gpus=(Gpu("Card", on_card["Card"].needed_bytes - 1, 64 * GB),))
    pick(qtbot, app, model, PairState.TOO_LARGE)
    plan = app.session.pair.status.plan
    assert plan is not None
    advice = next(each for each in plan.suggestions if each.kind is SuggestionKind.GPU_LAYERS)
    assert app.window.card.primary.text() == advice.words.removesuffix(".")
    click(app, "primary")
    qtbot.waitUntil(lambda: app.session.pair.status.state is PairState.READY)
    assert app.engine.loads[-1].settings.gpu_layers == advice.settings.gpu_layers >= 0
    assert app.session.preferences.load_settings.gpu_layers == advice.settings.gpu_layers


def test_the_details_show_every_part(qtbot: QtBot, make_app: AppMaker, model: Path) -> None:
    app = make_app(draft=None)
    with_memory(app, 1000)
    pick(qtbot, app, model, PairState.TOO_LARGE)
    click(app, "details")
    qtbot.waitUntil(lambda: app.window.findChild(ErrorDialog) is not None)
    dialog = app.window.findChild(ErrorDialog)
    assert isinstance(dialog, ErrorDialog)
    assert any("Target weights" in label.text() for label in dialog.findChildren(QLabel))
    dialog.close()


def test_nothing_that_helps_leaves_another_file(qtbot: QtBot, make_app: AppMaker, model: Path) -> None:
    app = make_app(draft=None)
    with_memory(app, 1000)
    pick(qtbot, app, model, PairState.TOO_LARGE)
    assert app.window.card.primary.text() == "Choose a model file…"


def test_a_newer_choice_is_the_one_that_is_weighed(
    qtbot: QtBot, make_app: AppMaker, tmp_path: Path, model: Path
) -> None:
    app = make_app(draft=None)
    with_memory(app, needed(model) - 1)
    pick(qtbot, app, model, PairState.TOO_LARGE)
    small = architectures.lfm2().write(tmp_path / "small.gguf")
    pick(qtbot, app, small, PairState.READY)
    app.session.pair.load_anyway()
    assert app.engine.loads[-1].target == small, "what was held is forgotten"


def test_a_plan_that_cannot_be_made_holds_nothing_up(qtbot: QtBot, make_app: AppMaker, tmp_path: Path) -> None:
    app = make_app(draft=None)
    memory = with_memory(app, 1000)
    (tmp_path / "empty.gguf").touch()
    pick(qtbot, app, tmp_path / "empty.gguf", PairState.READY)
    assert len(memory.asked) == 1


def test_a_load_that_is_still_weighed_can_be_cancelled(qtbot: QtBot, make_app: AppMaker, model: Path) -> None:
    app = make_app(draft=None)
    gate = threading.Event()
    memory = Memory(48 * GB)

    def slow(request: LoadRequest, loaded: MemoryPlan | None) -> MemoryPlan | None:
        gate.wait(5)
        return memory(request, loaded)

    app.session.pair.check_memory = slow
    before = len(app.engine.loads)
    app.window.top.target.picked.emit(model)
    qtbot.waitUntil(lambda: app.session.pair.status.target == model)
    click(app, "secondary")
    gate.set()
    qtbot.waitUntil(lambda: app.session.pair.status.state is PairState.OFFERED)
    qtbot.waitUntil(lambda: len(memory.asked) == 1)
    qtbot.wait(50)
    assert len(app.engine.loads) == before


def test_what_is_loaded_now_is_told_to_the_next_weighing(qtbot: QtBot, make_app: AppMaker, model: Path) -> None:
    app = make_app(draft=None)
    memory = with_memory(app, 48 * GB)
    pick(qtbot, app, model, PairState.READY)
    plan = app.session.pair.status.plan
    app.session.set_preferences(replace(app.session.preferences, load_settings=LoadSettings(2048)))
    app.session.pair.reload()
    qtbot.waitUntil(lambda: len(app.engine.loads) == 3)
    assert memory.before == [None, plan]

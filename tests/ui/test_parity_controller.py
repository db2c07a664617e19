"""The check of a pair in the window: read, run, stopped, and out of a message's way."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from forespeak.engines.engine import Failed
from forespeak.engines.parity_result import ParityCase, ParityRequest, ParityResult
from forespeak.speculation.trace import Source
from forespeak.ui.parity_controller import ParityController, ParityState
from ui.conftest import App, AppMaker
from ui.scripted_engine import ScriptedEngine

CASES = tuple(ParityCase(f"prompt {number}", 0.0, 48, 20, 15) for number in range(4))
RESULT = ParityResult(
    CASES, 4, (Source.DRAFT_MODEL,), 2e-5, 30.0, "2026-11-29T21:00:00+00:00", "toy 1", "0.1", ("auto", "4 tokens")
)


@dataclass
class Kept:
    result: ParityResult | None = None
    asked: tuple[Path, Path | None] | None = None

    def parity(self, target: Path, draft: Path | None) -> ParityResult | None:
        self.asked = (target, draft)
        return self.result


def ready(app: App, qtbot: QtBot) -> ParityController:
    qtbot.waitUntil(lambda: app.session.parity.status.state is ParityState.IDLE)
    return app.session.parity


def gated(engine: ScriptedEngine) -> None:
    engine.check_answer, engine.check_gate = RESULT, threading.Event()


def test_a_pair_that_was_not_checked_says_so(make_app: AppMaker, qtbot: QtBot) -> None:
    parity = ready(make_app(), qtbot)
    assert parity.status.result is None


def test_without_a_pair_there_is_nothing_to_check(make_app: AppMaker) -> None:
    app = make_app(ready=False)
    assert app.session.parity.status.state is ParityState.UNAVAILABLE
    assert not app.window.panel.parity.isVisible()
    app.session.parity.start()
    assert app.session.parity.status.state is ParityState.UNAVAILABLE


def test_what_was_kept_of_the_loaded_files_is_shown(make_app: AppMaker, qtbot: QtBot) -> None:
    kept = Kept(RESULT)
    app = make_app(kept=kept)
    parity = ready(app, qtbot)
    assert parity.status.result == RESULT
    loaded = app.session.pair.status.loaded
    assert loaded is not None
    assert loaded.draft is not None
    assert kept.asked == (loaded.target.path, loaded.draft.path)


def test_a_check_runs_with_progress_to_its_result(make_app: AppMaker, qtbot: QtBot) -> None:
    app = make_app(prepare=gated)
    parity = ready(app, qtbot)
    app.window.panel.parity._button.click()
    assert parity.status.state is ParityState.RUNNING
    (request,) = [each for each in app.engine.requests if isinstance(each, ParityRequest)]
    assert request.sources == app.session.preferences.drafting
    parity.start()
    assert len([each for each in app.engine.requests if isinstance(each, ParityRequest)]) == 1
    qtbot.waitUntil(lambda: parity.status.progress is not None and parity.status.progress.doing != "")
    assert app.engine.check_gate is not None
    app.engine.check_gate.set()
    qtbot.waitUntil(lambda: parity.status.state is ParityState.IDLE)
    assert parity.status.result == RESULT


def test_a_stopped_check_shows_what_is_done(make_app: AppMaker, qtbot: QtBot) -> None:
    earlier = Kept(RESULT)
    app = make_app(prepare=gated, kept=earlier)
    parity = ready(app, qtbot)
    parity.start()
    parity.stop()
    assert parity.status.stopping
    qtbot.waitUntil(lambda: parity.status.state is ParityState.IDLE)
    # Nothing was done: what was known before stays.
    assert parity.status.result == RESULT


def test_a_message_goes_first(make_app: AppMaker, qtbot: QtBot) -> None:
    app = make_app(prepare=gated)
    parity = ready(app, qtbot)
    parity.start()
    qtbot.waitUntil(lambda: parity.status.progress is not None and parity.status.progress.doing != "")
    app.window.composer.edit.setPlainText("Hello")
    QTest.keyClick(app.window.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: parity.status.state is ParityState.IDLE)
    qtbot.waitUntil(lambda: not app.session.chats.busy and app.session.chats.last_reply() is not None)
    assert len(app.engine.generations) == 1


def test_a_failure_is_told(make_app: AppMaker, qtbot: QtBot) -> None:
    def failing(engine: ScriptedEngine) -> None:
        engine.check_answer = Failed("There is not enough memory beside the loaded models.", "It is full.")

    app = make_app(prepare=failing)
    parity = ready(app, qtbot)
    parity.start()
    qtbot.waitUntil(lambda: parity.status.state is ParityState.IDLE)
    assert parity.status.problem == "There is not enough memory beside the loaded models. It is full."
    assert parity.status.problem in app.window.panel.parity._note.text()


def test_another_pair_ends_the_check(make_app: AppMaker, qtbot: QtBot) -> None:
    app = make_app(prepare=gated)
    parity = ready(app, qtbot)
    parity.start()
    app.session.pair.pick_draft(None)
    assert parity.status.state is ParityState.UNAVAILABLE
    qtbot.waitUntil(lambda: parity.status.state is ParityState.IDLE)
    assert parity.status.result is None


@pytest.mark.parametrize(("fractions", "left"), [([0.25], None), ([0.25, 0.5], 20.0)])
def test_the_time_left_follows_the_pace(
    make_app: AppMaker, qtbot: QtBot, fractions: list[float], left: float | None
) -> None:
    parity = ready(make_app(), qtbot)
    now = [0.0]
    parity._clock = lambda: now[0]
    found = None
    for fraction in fractions:
        found = parity._seconds_left(fraction)
        now[0] += 10.0
    assert found == (None if left is None else pytest.approx(left))

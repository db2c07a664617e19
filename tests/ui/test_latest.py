"""Of questions asked one after the other only the newest is answered."""

from __future__ import annotations

import threading

import pytest
from pytestqt.qtbot import QtBot

from forespeak.ui.latest import Latest


def test_the_newest_question_is_answered(qtbot: QtBot) -> None:
    latest, answers = Latest("test"), list[int]()
    hold = threading.Event()
    stops: list[threading.Event] = []

    def slow(stop: threading.Event) -> int:
        stops.append(stop)
        hold.wait(5)
        return 1

    latest.run(slow, answers.append)
    qtbot.waitUntil(lambda: bool(stops))
    latest.run(lambda _: 2, answers.append)
    assert stops[0].is_set()
    qtbot.waitUntil(lambda: answers == [2])
    hold.set()
    qtbot.wait(30)
    assert answers == [2]
    assert not latest.busy
    latest.close(2.0)


def test_waiting_questions_make_few_threads(qtbot: QtBot) -> None:
    latest, answers = Latest("many"), list[int]()
    hold = threading.Event()

    def ask(number: int) -> None:
        latest.run(lambda _: (hold.wait(5) and number) or 0, answers.append)

    for number in range(1, 21):
        ask(number)
    assert sum(thread.name == "many" for thread in threading.enumerate()) <= 3
    hold.set()
    qtbot.waitUntil(lambda: answers == [20])
    latest.close(2.0)


def test_a_failure_is_told(qtbot: QtBot) -> None:
    latest, failures = Latest("test"), list[Exception]()

    def fail(_: threading.Event) -> int:
        raise OSError("gone")

    latest.run(fail, lambda _: None, failures.append)
    qtbot.waitUntil(lambda: [str(each) for each in failures] == ["gone"])
    latest.close(2.0)


def test_a_failure_that_nobody_expects_is_raised(qtbot: QtBot) -> None:
    latest = Latest("test")

    def fail(_: threading.Event) -> int:
        raise ValueError("ours")

    with qtbot.captureExceptions() as caught:
        latest.run(fail, lambda _: None)
        qtbot.waitUntil(lambda: not latest.busy)
    assert [kind for kind, _, _ in caught] == [ValueError]
    latest.close(2.0)


@pytest.mark.parametrize("end", ["cancel", "close"])
def test_nothing_comes_after_a_cancel(qtbot: QtBot, end: str) -> None:
    latest, answers = Latest("test"), list[int]()
    hold = threading.Event()
    latest.run(lambda _: int(hold.wait(5)), answers.append)
    getattr(latest, end)()
    hold.set()
    qtbot.wait(50)
    assert answers == []
    assert not latest.busy
    latest.close(2.0)

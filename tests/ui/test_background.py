"""Jobs off the UI thread: order, outcomes, failures, the end."""

from __future__ import annotations

import threading
import time
from functools import partial

import pytest
from pytestqt.exceptions import capture_exceptions
from pytestqt.qtbot import QtBot

from forespeak.ui.background import Worker


def test_jobs_run_in_order_elsewhere_and_report_here(qtbot: QtBot) -> None:
    worker = Worker("test")
    here = threading.get_ident()
    ran: list[int] = []
    reports: list[tuple[int, bool]] = []

    def job(number: int) -> int:
        ran.append(number)
        return threading.get_ident()

    def report(number: int, where: int) -> None:
        reports.append((number, where != here and threading.get_ident() == here))

    for number in range(20):
        worker.run(partial(job, number), partial(report, number))
    qtbot.waitUntil(lambda: worker.idle)
    assert ran == list(range(20))
    assert reports == [(number, True) for number in range(20)]
    assert worker.close()


def test_a_failure_goes_to_its_receiver(qtbot: QtBot) -> None:
    worker = Worker("test")
    failures: list[Exception] = []
    error = ValueError("no")

    def fail() -> None:
        raise error

    worker.run(fail, lambda _: pytest.fail("it did not succeed"), failures.append)
    qtbot.waitUntil(lambda: failures == [error])
    worker.run(lambda: 1, lambda one: failures.append(KeyError(one)))
    qtbot.waitUntil(lambda: len(failures) == 2)
    worker.close()


def test_a_failure_without_a_receiver_is_not_lost(qtbot: QtBot) -> None:
    worker = Worker("test")

    def fail() -> None:
        raise LookupError("gone")

    with capture_exceptions() as exceptions:
        worker.run(fail)
        qtbot.waitUntil(lambda: bool(exceptions))
    assert exceptions[0][0] is LookupError
    worker.close()


def test_closing_does_what_waits_and_reports_no_more(qtbot: QtBot) -> None:
    worker = Worker("test")
    done: list[int] = []
    reported: list[int] = []

    def job(number: int) -> None:
        time.sleep(0.01)
        done.append(number)

    for number in range(5):
        worker.run(partial(job, number), lambda _: reported.append(1))
    assert worker.close()
    assert done == [0, 1, 2, 3, 4]
    worker.run(lambda: done.append(9))
    qtbot.wait(20)
    assert done == [0, 1, 2, 3, 4]
    assert reported == []


def test_closing_gives_up_on_a_job_that_hangs(qtbot: QtBot) -> None:
    worker = Worker("test")
    release = threading.Event()
    worker.run(release.wait)
    assert not worker.close(0.05)
    release.set()

"""The limit that all share, and the speed that people see."""

from __future__ import annotations

import threading
import time

import pytest

from forespeak.models.transfer_rate import Limiter, Speed


class Sleeper:
    """Counts what a limiter wants slept; time itself is not waited for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.slept = 0.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        self.slept += seconds
        return False


def test_a_limit_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    sleeper = Sleeper(monkeypatch)
    limiter = Limiter(1000.0)
    for _ in range(50):
        limiter.take(100, sleeper.wait)
    # The first tenth of a second is a head start.
    assert sleeper.slept == pytest.approx(5.0, abs=0.2)


def test_no_limit_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sleeper = Sleeper(monkeypatch)
    limiter = Limiter()
    limiter.take(10**12, sleeper.wait)
    assert sleeper.slept == 0.0


def test_an_idle_time_is_not_saved_up(monkeypatch: pytest.MonkeyPatch) -> None:
    sleeper = Sleeper(monkeypatch)
    limiter = Limiter(1000.0)
    limiter.take(100, sleeper.wait)
    sleeper.now += 3600.0
    before = sleeper.slept
    for _ in range(10):
        limiter.take(100, sleeper.wait)
    assert sleeper.slept - before == pytest.approx(1.0, abs=0.2)


def test_a_wait_ends_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    sleeper = Sleeper(monkeypatch)
    limiter = Limiter(1.0)

    def wait(seconds: float) -> bool:
        limiter.set(None)
        return sleeper.wait(seconds)

    limiter.take(3600, wait)
    assert sleeper.slept <= 0.25


def test_a_wait_ends_with_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    Sleeper(monkeypatch)

    def stopped(seconds: float) -> bool:
        waits.append(seconds)
        return True

    Limiter(1.0).take(3600, stopped)
    assert len(waits) == 1


def test_several_share_a_limit() -> None:
    limiter, event = Limiter(1e6), threading.Event()
    began = time.monotonic()

    def work() -> None:
        for _ in range(10):
            limiter.take(10_000, event.wait)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    # 400,000 bytes, of which a tenth of a second's worth is free.
    assert time.monotonic() - began >= 0.29


class Clock:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def test_a_steady_speed() -> None:
    clock = Clock()
    speed = Speed(clock)
    assert speed.per_second() is None
    for number in range(200):
        speed.add(5_000_000 + number * 1000)
        clock.now += 0.05
    assert speed.per_second() == pytest.approx(20_000, rel=0.02)


def test_what_was_there_before_is_not_speed() -> None:
    clock = Clock()
    speed = Speed(clock)
    speed.add(10**10)
    clock.now += 1.0
    speed.add(10**10 + 500)
    assert speed.per_second() == pytest.approx(500)


def test_it_follows_a_change_within_seconds() -> None:
    clock = Clock()
    speed = Speed(clock)
    done = 0
    for rate in (1_000_000, 1000):
        for _ in range(100):
            clock.now += 0.1
            done += rate // 10
            speed.add(done)
    assert speed.per_second() == pytest.approx(1000, rel=0.05)


def test_it_falls_to_nothing_where_nothing_comes() -> None:
    clock = Clock()
    speed = Speed(clock)
    for number in range(100):
        speed.add(number * 1000)
        clock.now += 0.1
    at_once = speed.per_second()
    clock.now += 4.0
    later = speed.per_second()
    assert at_once is not None
    assert later is not None
    assert 0 < later < at_once / 2
    clock.now += 10.0
    assert speed.per_second() == pytest.approx(0.0)


def test_starting_anew() -> None:
    clock = Clock()
    speed = Speed(clock)
    speed.add(1000)
    clock.now += 1
    speed.add(2000)
    speed.add(0)
    clock.now += 1
    assert speed.per_second() is None

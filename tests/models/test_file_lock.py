"""One holder at a time, whoever ends however."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from forespeak.models.file_lock import FileLock

_HOLD = """
import sys, time
from pathlib import Path
from forespeak.models.file_lock import FileLock
assert FileLock(Path(sys.argv[1])).acquire()
print("held", flush=True)
time.sleep(60)
"""


def test_one_holder(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    first, second = FileLock(path), FileLock(path)
    assert first.acquire()
    assert first.held
    assert not second.acquire()
    assert not second.held
    assert second.holder() == os.getpid()
    first.release()
    assert not path.exists()
    assert second.acquire()
    second.release()
    second.release()
    assert second.holder() is None


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    holder = subprocess.Popen([sys.executable, "-c", _HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        lock = FileLock(path)
        assert not lock.acquire()
        assert lock.holder() == holder.pid
    finally:
        holder.kill()
        holder.communicate()
    with lock:
        assert lock.acquire()
    assert not path.exists()


def test_taking_and_giving_back_never_gives_two_holders(tmp_path: Path) -> None:
    """The file is removed by each holder: who locks a removed one must not believe it."""
    path = tmp_path / "x.lock"
    inside, most, taken = [0], [0], [0]
    until = time.monotonic() + 0.5

    def work() -> None:
        while time.monotonic() < until:
            lock = FileLock(path)
            if lock.acquire():
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                taken[0] += 1
                time.sleep(0)
                inside[0] -= 1
                lock.release()

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert taken[0] > 10
    assert most[0] == 1

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from forespeak.engines.engine import CacheType
from forespeak.engines.llamacpp.bindings import NativeContext, NativeModel
from forespeak.engines.llamacpp.threads import ThreadGovernor, others_core_seconds


class Machine:
    def __init__(self) -> None:
        self.now = 100.0
        self.used = 5000.0

    def run(self, seconds: float, load: float) -> None:
        self.now += seconds
        self.used += seconds * load

    def governor(self, cores: int) -> ThreadGovernor:
        return ThreadGovernor(cores, lambda: self.now, lambda: self.used)


def test_an_idle_machine_gives_all_its_cores() -> None:
    machine = Machine()
    governor = machine.governor(8)
    for _ in range(5):
        machine.run(0.6, 0.4)
        assert governor.count() == 8


def test_each_busy_core_costs_a_thread_and_one_always_stays() -> None:
    machine = Machine()
    governor = machine.governor(4)
    for load, threads in ((0.8, 3), (1.0, 3), (1.8, 2), (2.2, 2), (3.9, 1), (9.0, 1), (0.0, 4)):
        machine.run(0.6, load)
        assert governor.count() == threads


def test_no_more_threads_than_cores_whatever_was_counted() -> None:
    machine = Machine()
    governor = machine.governor(2)
    machine.run(0.6, -1.9)
    assert governor.count() == 2


def test_it_samples_at_most_twice_a_second() -> None:
    machine = Machine()
    governor = machine.governor(2)
    machine.run(0.3, 1.0)
    assert governor.count() == 2
    machine.run(0.3, 1.0)
    assert governor.count() == 1


def test_a_long_pause_says_nothing_about_now() -> None:
    machine = Machine()
    governor = machine.governor(2)
    machine.run(60.0, 2.0)
    assert governor.count() == 2
    machine.run(0.6, 0.0)
    assert governor.count() == 2


def busy_core_seconds() -> float:
    niced = hasattr(os, "nice") and os.nice(0) > 0
    return sum(cpu.user + cpu.system + (cpu.nice if niced else 0.0) for cpu in psutil.cpu_times(percpu=True))


@pytest.mark.skipif(sys.platform != "linux", reason="niced time is counted apart on Linux")
def test_our_own_work_at_low_priority_is_not_that_of_others() -> None:
    code = """
        import os, time, psutil
        from forespeak.engines.llamacpp.threads import others_core_seconds
        os.nice(5)
        def look():
            cpus = psutil.cpu_times(percpu=True)
            used = sum(cpus[cpu].user + cpus[cpu].system + cpus[cpu].nice for cpu in os.sched_getaffinity(0))
            return used, others_core_seconds(), sum(os.times()[:2])
        before, end = look(), time.monotonic() + 20.0
        while look()[2] - before[2] < 0.4 and time.monotonic() < end:
            pass
        print(*(now - then for now, then in zip(look(), before)))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True, text=True)
    used, others, own = map(float, done.stdout.split())
    # Clocks tick a hundred times a second.
    assert used - others == pytest.approx(own, abs=0.1)


def test_another_process_is_seen_and_our_own_work_is_not() -> None:
    before, own_before, started = others_core_seconds(), time.process_time(), time.monotonic()
    busy_before = busy_core_seconds()
    while time.monotonic() - started < 0.5:
        pass
    busy, own = busy_core_seconds() - busy_before, time.process_time() - own_before
    others = others_core_seconds() - before
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as spinner:
        before, end = others_core_seconds(), time.monotonic() + 20.0
        while (with_spinner := others_core_seconds() - before) <= 0.2 and time.monotonic() < end:
            time.sleep(0.02)
        spinner.kill()
    # The machine may be busy with other things too, never with less.
    assert with_spinner > 0.2
    assert busy - others > 0.5 * own, "our own work counts as that of others"


def test_scores_do_not_depend_on_the_number_of_threads(q4_1: Path) -> None:
    native = NativeModel(q4_1, lambda _: True)
    context = NativeContext(
        native, length=256, batch=64, outputs=9, threads=1, cache_type=CacheType.F32, flash_attention=False
    )
    tokens = native.vocabulary.tokenize("Threads share the work, not the answer.")
    one = context.decode(tokens, 0, 1).copy()
    context.clear()
    context.use_threads(2)
    two = context.decode(tokens, 0, 1).copy()
    context.close()
    native.close()
    assert np.array_equal(one, two)

"""What survives when processes are killed in the middle of a reply; the real window, engine and database.

python tests/benchmarks/bench_kills.py engine    the engine child, 20 times
python tests/benchmarks/bench_kills.py app       the whole app, 10 times
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

STORY = "Write a very long story about a lighthouse keeper, with many chapters."


def engine(times: int = 20) -> None:
    from forespeak.chats.records import MessageState
    from live_window import LiveWindow

    live = LiveWindow()
    live.use_starter()
    generator = random.Random(7)
    for turn in range(times):
        live.session.chats.new_chat()
        live.say(STORY)
        wanted = generator.randrange(20, 400)
        live.until(lambda: len(live.reply) >= wanted or not live.session.chats.busy, "the reply grows")  # noqa: B023
        pid = live.session.pair.client.pid  # type: ignore[attr-defined]
        os.kill(pid, signal.SIGKILL)
        live.until_idle()
        live.until(lambda: not live.session.saver.pending, "the reply is saved")
        shown = live.reply
        last = live.session.chats.last_reply()
        assert last is not None
        stored = live.session._store.message(last)
        assert stored.text == shown, (stored.text, shown)
        assert stored.state is MessageState.INTERRUPTED, stored.state
        print(f"{turn + 1:2}: killed after {len(shown)} characters; kept and marked: {stored.note}", flush=True)
    live.session.chats.new_chat()
    live.say("Say hello.")
    live.until_idle()
    print(f"the next message is answered: {live.reply!r}")
    live.close()


def child() -> None:
    """The app that is killed: prints what its window shows, with the time, until it is."""
    from live_window import LiveWindow

    live = LiveWindow()
    live.use_starter()
    live.session.chats.new_chat()
    live.say(STORY)
    shown = -1
    while True:
        live.application.processEvents()
        if len(live.reply) != shown:
            shown = len(live.reply)
            print(f"{time.time():.3f} {shown}", flush=True)
        time.sleep(0.005)


def app(times: int = 10) -> None:
    generator = random.Random(11)
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"FORESPEAK_HOME": home}
        for turn in range(times):
            with subprocess.Popen(
                [sys.executable, __file__, "child"], env=environment, stdout=subprocess.PIPE, text=True
            ) as process:
                assert process.stdout is not None
                seen = [process.stdout.readline()]
                killed_at = time.time() + generator.uniform(0.3, 5.0)
                while time.time() < killed_at:
                    seen.append(process.stdout.readline())
                process.send_signal(signal.SIGKILL)
                killed_at = time.time()
                seen += process.stdout.readlines()
            history = [(float(a), int(b)) for a, b in (line.split() for line in seen if line.count(" ") == 1)]
            database = sqlite3.connect(Path(home) / "data" / "chats.db")
            check = database.execute("PRAGMA integrity_check").fetchone()[0]
            database.close()
            from forespeak.chats.store import ChatStore

            with ChatStore(Path(home) / "data" / "chats.db") as store:
                reply = store.branch(store.chats()[0].id)[-1]
            # The newest text that the window had shown and the store does not have.
            lost = [at for at, length in history if length > len(reply.text)]
            seconds = killed_at - lost[0] if lost else 0.0
            print(
                f"{turn + 1:2}: integrity {check}; {len(reply.text)} of {history[-1][1]} characters kept, "
                f"{seconds:.2f} s lost; {reply.state.value}",
                flush=True,
            )
            assert check == "ok"
            assert seconds <= 1.2, seconds


if __name__ == "__main__":
    what = sys.argv[1]
    if what == "engine":
        with tempfile.TemporaryDirectory() as folder:
            os.environ["FORESPEAK_HOME"] = folder
            engine()
    elif what == "app":
        app()
    else:
        child()

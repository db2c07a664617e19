"""The program as it starts and ends, in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

BEFORE_WINDOW = ("llama_cpp", "huggingface_hub", "pyqtgraph", "psutil", "sqlite3", "multiprocessing")


def run(code: str, home: Path, **more: str) -> subprocess.Popen[str]:
    environment = os.environ | {"FORESPEAK_HOME": str(home), "QT_QPA_PLATFORM": "offscreen"} | more
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_the_window_opens_offers_the_starter_and_closes(tmp_path: Path) -> None:
    code = """
from PySide6.QtCore import QTimer
from forespeak.ui import app, session
start = session.Session.start
def started(self):
    start(self)
    QTimer.singleShot(400, self.window.close)
session.Session.start = started
assert app.ui_problem() is None
raise SystemExit(app.run_window(["forespeak"]))
"""
    process = run(code, tmp_path)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, ""), err
    assert (tmp_path / "config" / "preferences.json").is_file()
    assert (tmp_path / "data" / "chats.db").is_file()


def test_a_file_that_was_opened_becomes_the_target(tmp_path: Path) -> None:
    model = tmp_path / "broken.gguf"
    model.write_bytes(b"GGUF")
    code = f"""
from pathlib import Path
from PySide6.QtCore import QCoreApplication, QTimer
from PySide6.QtGui import QFileOpenEvent
from forespeak.ui import app, pair_controller
told = []
def picked(self, path):
    told.append(path.name)
    if len(told) == 1:
        QCoreApplication.postEvent(QCoreApplication.instance(), QFileOpenEvent("/models/another.gguf"))
    else:
        QTimer.singleShot(0, QCoreApplication.instance().closeAllWindows)
pair_controller.PairController.pick_target = picked
code = app.run_window(["forespeak"], Path({str(model)!r}))
print(code, told)
"""
    process = run(code, tmp_path)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "0 ['broken.gguf', 'another.gguf']\n"), err


def test_nothing_heavy_is_imported_before_the_window_is_up(tmp_path: Path) -> None:
    code = f"""
import sys
from forespeak.ui import app
from forespeak.ui.preferences import Preferences
assert app.ui_problem() is None
application = app.make_application(["forespeak"])
window, keeper = app.make_window(application, Preferences())
window.show()
application.processEvents()
print([name for name in {BEFORE_WINDOW!r} if name in sys.modules])
window.close()
"""
    process = run(code, tmp_path)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.strip() == "[]"


def test_a_file_that_is_not_ours_ends_the_program_with_words(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "chats.db").write_bytes(b"this is no database" * 100)
    code = """
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QLabel
from forespeak.ui import app
from forespeak.ui.dialogs import ErrorDialog
def look():
    for widget in QApplication.topLevelWidgets():
        if isinstance(widget, ErrorDialog) and widget.isVisible():
            print(" ".join(label.text() for label in widget.findChildren(QLabel)))
            widget.accept()
            return
    QTimer.singleShot(50, look)
make = app.make_application
def made(argv):
    application = make(argv)
    QTimer.singleShot(50, look)
    return application
app.make_application = made
raise SystemExit(app.run_window(["forespeak"]))
"""
    process = run(code, tmp_path)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2, err
    assert "chats.db" in out
    assert (tmp_path / "data" / "chats.db").read_bytes().startswith(b"this is no database")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_request_to_end_closes_the_window(tmp_path: Path, number: signal.Signals) -> None:
    code = """
from forespeak.ui import app, session
start = session.Session.start
def started(self):
    start(self)
    print("up", flush=True)
session.Session.start = started
raise SystemExit(app.run_window(["forespeak"]))
"""
    with run(code, tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        began = time.monotonic()
        process.send_signal(number)
        try:
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 0, err
    assert time.monotonic() - began < 5
    assert (tmp_path / "config" / "preferences.json").is_file()


def test_a_second_window_on_the_same_chats_is_refused(tmp_path: Path) -> None:
    code = """
from forespeak.errors import UserFacingError
from forespeak.models.folders import folders
from forespeak.ui import app
from forespeak.ui.preferences import Preferences, PreferencesFile
application = app.make_application(["forespeak"])
file = PreferencesFile(folders().config / "preferences.json")
def begin():
    window, appearance = app.make_window(application, Preferences())
    app.make_session(window, appearance, file, folders())
    return window
first = begin()
try:
    begin()
except UserFacingError as error:
    print(error.what)
first.close()
second = begin()
second.close()
"""
    process = run(code, tmp_path)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out == "Forespeak is already open.\n"

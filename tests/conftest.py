"""What every test stands on: no display, no network, and an app home that is gone afterwards."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import pytest

# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile("forespeak", deadline=None)
hypothesis.settings.load_profile("forespeak")

# Before anything imports Qt or our own folders; child processes inherit both.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
_HOME = tempfile.mkdtemp(prefix="forespeak-tests-")
os.environ["FORESPEAK_HOME"] = _HOME

# A spawned child imports its parent's program first: here that is pytest, which no child needs.
_program = sys.modules["__main__"]
_program.__spec__ = None
vars(_program).pop("__file__", None)

_BYTE_CODE = tempfile.mkdtemp(prefix="forespeak-tests-")
_compiling: subprocess.Popen[bytes] | None = None
if sys.dont_write_bytecode:
    # Where Python is told to keep no byte code, each of some hundred children would compile all that it imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = _BYTE_CODE
    imports = "import forespeak.cli, forespeak.doctor, forespeak.engines.host, forespeak.engines.llamacpp.engine"
    _compiling = subprocess.Popen([sys.executable, "-c", f"{imports}, forespeak.ui.app"], stderr=subprocess.DEVNULL)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _compiling is not None:
        _compiling.kill()
        _compiling.wait()
    for folder in (_HOME, _BYTE_CODE):
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True, scope="session")
def _no_network() -> Iterator[None]:
    """Sockets reach this machine only. (A child process is not held back by this.)"""

    def is_here(address: Any) -> bool:
        host = str(address[0]) if isinstance(address, tuple) else ""
        return host in {"", "localhost", "::1"} or host.startswith("127.")

    def guarded(connect: Callable[[socket.socket, Any], Any]) -> Callable[[socket.socket, Any], Any]:
        def guard(sock: socket.socket, address: Any) -> Any:
            if sock.family in {socket.AF_INET, socket.AF_INET6} and not is_here(address):
                raise RuntimeError(f"a test reached for the network: {address!r}")
            return connect(sock, address)

        return guard

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded(socket.socket.connect))
        patch.setattr(socket.socket, "connect_ex", guarded(socket.socket.connect_ex))
        yield

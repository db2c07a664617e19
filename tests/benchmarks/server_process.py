"""A llama-server process for benchmarks, which computes only while it is asked."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.pair_runs import Run


def environment_of_its_own() -> dict[str, str]:
    """Without what our engine sets for its own threads. From outside, that may so be tried for the engine alone."""
    return {name: value for name, value in os.environ.items() if name != "GOMP_SPINCOUNT"}


@dataclass(slots=True)
class Server:
    """One llama-server process, stopped between its turns."""

    binary: Path
    arguments: list[str]
    _process: subprocess.Popen[bytes] | None = None
    _port: int = 0

    def start(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        command = [str(self.binary), "--host", "127.0.0.1", "--port", str(self._port), *self.arguments]
        environment = {**environment_of_its_own(), "LD_LIBRARY_PATH": str(self.binary.parent)}
        with tempfile.TemporaryFile() as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
            deadline = time.monotonic() + 120
            while not self._is_healthy():
                if self._process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    self.stop()
                    raise SystemExit(f"{' '.join(command)}\ndid not come up:\n{log.read().decode()[-2000:]}")
                time.sleep(0.1)
        self._process.send_signal(signal.SIGSTOP)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def complete(self, request: dict[str, object]) -> Run:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)
        started = time.perf_counter()
        answer = self._request("POST", "/completion", request)
        seconds = time.perf_counter() - started
        self._process.send_signal(signal.SIGSTOP)
        timings = answer["timings"]
        assert isinstance(timings, dict)
        # Drafting counts from the first proposal on; without one the fields are missing.
        return Run(
            float(timings["predicted_per_second"]),
            int(timings["predicted_n"]) / seconds,
            int(timings["predicted_n"]),
            int(timings.get("draft_n", 0)),
            int(timings.get("draft_n_accepted", 0)),
        )

    def _is_healthy(self) -> bool:
        try:
            return self._request("GET", "/health", None).get("status") == "ok"
        except OSError:
            return False

    def _request(self, method: str, path: str, body: dict[str, object] | None) -> dict[str, object]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=300)
        try:
            headers = {"Content-Type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            answer: dict[str, object] = json.loads(response.read())
            # While it loads, its health is an error.
            if response.status != http.client.OK and method == "POST":
                raise SystemExit(f"The server answered {response.status}: {answer}")
            return answer
        finally:
            connection.close()

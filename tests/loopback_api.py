"""What the tests' own Hub does not do: a server that answers by script, for mirrors that answer nonsense, and proxies.

with ScriptedServer(Script(body=b"<html>Sign in</html>", kind="text/html")) as server:
    ...  # server.address
    server.requests
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from forespeak.models.hub import Hub
from forespeak.models.hub_client import HubClient
from forespeak.models.hub_settings import HubSettings
from forespeak.models.hub_token import Token, TokenSource
from models.gguf_writer import gguf


@dataclass(frozen=True)
class Script:
    """An answer. `pieces` are sent one after the other instead of `body`, each when `ScriptedServer.go` is released."""

    status: int = 200
    body: bytes = b""
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: Iterable[bytes] | None = None
    length: int | None = None


@dataclass(frozen=True)
class Seen:
    """A request; `path` is as it was sent, a whole address if it came to a proxy."""

    method: str
    path: str
    headers: Mapping[str, str]


class ScriptedServer:
    """Gives its scripts in turn, the last one again and again. `go` lets pieces through, one per release."""

    def __init__(self, *scripts: Script) -> None:
        self.scripts = list(scripts)
        self.requests: list[Seen] = []
        self.go = threading.Semaphore(0)
        self.ended = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def next(self) -> Script:
        return self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    owner: ScriptedServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *_: Any) -> None:
        """Kept in requests instead."""

    def do_GET(self) -> None:
        self._go()

    def do_HEAD(self) -> None:
        self._go()

    def do_CONNECT(self) -> None:
        self._go()

    def _go(self) -> None:
        owner = self.server.owner
        headers = {name.lower(): value for name, value in self.headers.items()}
        owner.requests.append(Seen(self.command, self.path, headers))
        script = owner.next()
        self.send_response(script.status)
        self.send_header("Content-Type", script.kind)
        for name, value in script.headers.items():
            self.send_header(name, value)
        if script.pieces is None:
            self.send_header("Content-Length", str(len(script.body) if script.length is None else script.length))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(script.body)
                self.close_connection = script.length is not None
            return
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for piece in script.pieces:
            while not owner.go.acquire(timeout=0.05):
                if owner.ended.is_set():
                    return
            self.wfile.write(piece)


def hub_at(endpoint: str, token: str | None = None, **settings: Any) -> Hub:
    """A Hub by these settings and token, without a keyring or a file."""
    given = None if token is None else Token(token, TokenSource.SESSION)
    return Hub(HubClient(HubSettings(endpoint, **settings), lambda: given))


@contextmanager
def hubs() -> Iterator[Callable[..., Hub]]:
    """Gives what makes Hubs as `hub_at` does, and closes them at the end."""
    made: list[Hub] = []

    def make(endpoint: str, token: str | None = None, **settings: Any) -> Hub:
        made.append(hub_at(endpoint, token, **settings))
        return made[-1]

    yield make
    for hub in made:
        hub.client.close()


def packed(content: bytes) -> bytes:
    """As a server sends it with Content-Encoding: gzip."""
    packer = zlib.compressobj(wbits=31)
    return packer.compress(content) + packer.flush()


def big_vocabulary(size: int, merges: int | None = None, *, seed: str = "t") -> bytes:
    """A GGUF file with a byte-level vocabulary of `size` tokens and some data behind its header."""
    tokens = [f"{seed}{number:06d}xy" for number in range(size)]
    rules = [f"{seed}{number:06d} xy" for number in range(size if merges is None else merges)]
    head = gguf(
        {
            "general.architecture": "llama",
            "general.name": "Remote",
            "llama.context_length": 32768,
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "qwen2",
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": [1] * size,
            "tokenizer.ggml.merges": rules,
            "tokenizer.ggml.eos_token_id": size - 1,
            "tokenizer.chat_template": "{{ messages }}",
        },
        [("token_embd.weight", (64, 4096))],
    )
    return head + struct.pack("<Q", 0) * 1024

"""The tests' own Hub: real HTTP on loopback, the stored files on a second port, and faults on demand.

    with LoopbackHub() as hub:
        repo = hub.add(Repo("org/name", {"model-Q4_0.gguf": content}))
        hub.cdn_faults.append(Fault(after=1000, then=Then.RST))
        ...  # HF_ENDPOINT, or the endpoint argument, is hub.endpoint
        hub.requests  # what was asked, with the headers seen and the bytes sent

Files under LFS are answered as the Hub does it: 302 to another origin, X-Linked-Etag, X-Linked-Size, X-Repo-Commit.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

LFS_ENDINGS = (".gguf", ".safetensors", ".bin", ".npz")
_BLOCK = 1 << 16


class Then(Enum):
    """How a body ends that breaks off early."""

    FIN = "fin"
    RST = "rst"
    STALL = "stall"


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request; requests take the faults of their server in the order in which they lie there.

    `status` answers with that code instead. `after` sends that many bytes of the body, `then` ends it; the declared
    length stays true. `body` is sent instead of the file, with its own length. `corrupt` flips the bytes at these
    offsets of the file. `ignore_range` answers 200 and the whole file. `wrong_range` answers 206 with bytes from
    the start, whatever was asked. `location` redirects there.
    """

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    error_code: str = ""
    message: str = "made by the test"
    after: int | None = None
    then: Then = Then.FIN
    body: bytes | None = None
    corrupt: tuple[int, ...] = ()
    ignore_range: bool = False
    wrong_range: bool = False
    location: str | None = None
    stall: bool = False
    path: str = ""
    """Only for requests whose path holds this."""


@dataclass(frozen=True)
class Request:
    """A request as it was seen; `sent` counts bytes of file contents."""

    server: str
    method: str
    path: str
    headers: Mapping[str, str]
    status: int
    sent: int

    @property
    def token(self) -> str | None:
        return self.headers.get("authorization")


class Stored:
    """A file of a repository: bytes, or a path for big ones."""

    def __init__(self, content: bytes | Path, *, lfs: bool) -> None:
        self.content, self.lfs = content, lfs
        if isinstance(content, bytes):
            self.size = len(content)
            self.sha256 = hashlib.sha256(content).hexdigest()
            self.oid = hashlib.sha1(b"blob %d\0" % self.size + content, usedforsecurity=False).hexdigest()
        else:
            self.size = content.stat().st_size
            with content.open("rb") as file:
                self.sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            self.oid = "c" * 40
        self.linked_size = self.size
        """What X-Linked-Size says."""

    @property
    def etag(self) -> str:
        return self.sha256 if self.lfs else self.oid

    def entry(self, path: str) -> dict[str, Any]:
        """As the tree lists it."""
        entry: dict[str, Any] = {"type": "file", "oid": self.oid, "size": self.size, "path": path}
        if self.lfs:
            entry["lfs"] = {"oid": self.sha256, "size": self.size, "pointerSize": 134}
        return entry

    def sibling(self, path: str, *, blobs: bool) -> dict[str, Any]:
        """As a repository's information lists it."""
        if not blobs:
            return {"rfilename": path}
        sibling: dict[str, Any] = {"rfilename": path, "size": self.size, "blobId": self.oid}
        if self.lfs:
            sibling["lfs"] = {"sha256": self.sha256, "size": self.size, "pointerSize": 134}
        return sibling

    def part(self, start: int, length: int) -> bytes:
        if isinstance(self.content, bytes):
            return self.content[start : start + length]
        with self.content.open("rb") as file:
            file.seek(start)
            return file.read(length)


class Repo:
    """A model repository. `needs` is the token that opens a gated or private one."""

    def __init__(
        self,
        name: str,
        files: Mapping[str, bytes | Path],
        *,
        tags: tuple[str, ...] = ("gguf", "license:apache-2.0"),
        gated: str | bool = False,
        private: bool = False,
        needs: str = "",
        downloads: int = 12,
        likes: int = 3,
        modified: str = "2025-02-07T10:00:00.000Z",
        gguf: Mapping[str, Any] | None = None,
        commit: str = "",
        **more: Any,
    ) -> None:
        self.name, self.tags, self.gated, self.private, self.needs = name, tags, gated, private, needs
        self.downloads, self.likes, self.modified, self.more = downloads, likes, modified, more
        self.gguf = gguf
        self.files = {path: Stored(content, lfs=path.endswith(LFS_ENDINGS)) for path, content in files.items()}
        self.commit = commit or hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()

    def replace(self, path: str, content: bytes) -> None:
        """A new commit with other bytes in one file. (Earlier commits are forgotten.)"""
        self.files[path] = Stored(content, lfs=path.endswith(LFS_ENDINGS))

    def info(self, query: Mapping[str, list[str]], *, one: bool) -> dict[str, Any]:
        """As /api/models lists it (`one` is False), or as /api/models/NAME tells it."""
        expand = [value for key in ("expand", "expand[]") for value in query.get(key, [])]
        everything: dict[str, Any] = {
            "author": self.name.split("/", maxsplit=1)[0],
            "sha": self.commit,
            "private": self.private,
            "gated": self.gated,
            "disabled": False,
            "downloads": self.downloads,
            "likes": self.likes,
            "tags": list(self.tags),
            "lastModified": self.modified,
            "createdAt": self.modified,
            "library_name": "mlx" if "mlx" in self.tags else "gguf",
            "pipeline_tag": "text-generation",
            "cardData": {"license": next((tag[8:] for tag in self.tags if tag.startswith("license:")), None)},
            "siblings": [stored.sibling(path, blobs="blobs" in query) for path, stored in self.files.items()],
            **self.more,
        }
        if self.gguf is not None:
            everything["gguf"] = dict(self.gguf)
        if expand:
            everything = {key: value for key, value in everything.items() if key in expand}
        elif not one and query.get("full", ["false"])[0].lower() != "true":
            for key in ("siblings", "cardData", "gguf", "sha"):
                everything.pop(key, None)
        return {"_id": self.commit[:24], "id": self.name, "modelId": self.name, **everything}


class LoopbackHub:
    """The Hub and its CDN. Use as a context manager; every attribute may be changed while it serves."""

    def __init__(self, *, rate: float | None = None) -> None:
        self.repos: dict[str, Repo] = {}
        self.tokens: set[str] = set()
        """Known tokens; another one is answered with 401. Empty: any token will do."""
        self.hub_faults: deque[Fault] = deque()
        self.cdn_faults: deque[Fault] = deque()
        self.rate = rate
        """Bytes per second of each connection to the CDN."""
        self.page_size = 20
        self.requests: list[Request] = []
        self.sending: list[tuple[str, list[int]]] = []
        self.expired_before = 0
        self.released = threading.Event()
        """Ends the stalls."""
        self._signatures = 0
        self.lock = threading.Lock()
        self._hub = _Server(self, "hub")
        self._cdn = _Server(self, "cdn")

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._hub.server_address[1]}"

    @property
    def cdn(self) -> str:
        return f"http://127.0.0.1:{self._cdn.server_address[1]}"

    def add(self, repo: Repo) -> Repo:
        self.repos[repo.name] = repo
        return repo

    def expire_locations(self) -> None:
        """Every signed location handed out so far is refused from now on."""
        with self.lock:
            self.expired_before = self._signatures

    def sent(self, path: str = "") -> int:
        """Bytes of file contents that left both servers, for requests whose path holds `path`."""
        with self.lock:
            over = sum(request.sent for request in self.requests if path in request.path)
            return over + sum(count[0] for asked, count in self.sending if path in asked)

    def seen(self, server: str = "", method: str = "") -> list[Request]:
        with self.lock:
            return [
                request
                for request in self.requests
                if server in request.server and (not method or request.method == method)
            ]

    def sign(self) -> int:
        with self.lock:
            self._signatures += 1
            return self._signatures

    def note(self, request: Request) -> None:
        with self.lock:
            self.requests.append(request)

    def take_fault(self, server: str, path: str) -> Fault:
        faults = self.cdn_faults if server == "cdn" else self.hub_faults
        with self.lock:
            for index, fault in enumerate(faults):
                if fault.path in path:
                    del faults[index]
                    return fault
        return Fault()

    def stored(self, etag: str) -> Stored | None:
        return next(
            (stored for repo in self.repos.values() for stored in repo.files.values() if stored.etag == etag), None
        )

    def __enter__(self) -> Self:
        for server in (self._hub, self._cdn):
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        for server in (self._hub, self._cdn):
            server.shutdown()
            server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, hub: LoopbackHub, kind: str) -> None:
        self.hub, self.kind = hub, kind
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.hub, self.kind = self.server.hub, self.server.kind

    def log_message(self, *_: Any) -> None:
        """Kept in hub.requests instead."""

    # The two servers

    def do_HEAD(self) -> None:
        self._go()

    def do_GET(self) -> None:
        self._go()

    def do_POST(self) -> None:
        self._body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._go()

    def _go(self) -> None:
        parts = urlsplit(self.path)
        path, query = unquote(parts.path), parse_qs(parts.query, keep_blank_values=True)
        fault = self.hub.take_fault(self.kind, path)
        if fault.stall:
            self._note(0, 0)
            self.hub.released.wait(60)
            self.close_connection = True
            return
        if fault.location is not None:
            self._answer(302, headers={**fault.headers, "Location": fault.location})
            return
        if fault.status is not None:
            self._error(fault.status, fault.error_code, fault.message, fault.headers)
            return
        if self.kind == "cdn":
            self._serve_cdn(path, query, fault)
        elif path == "/api/models":
            self._serve_search(query)
        elif path == "/api/whoami-v2":
            self._serve_whoami()
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?", path):
            if repo := self._open(match[1], match[2]):
                self._answer(200, repo.info(query, one=True))
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/(tree|paths-info)/([^/]+)(?:/(.*))?", path):
            if repo := self._open(match[1], match[3]):
                self._serve_tree(repo, match[2], match[4] or "", query)
        elif match := re.fullmatch(r"/api/resolve-cache/models/([^/]+/[^/]+)/([^/]+)/(.+)", path):
            if repo := self._open(match[1], match[2]):
                self._serve_small(repo, match[3], fault)
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            if repo := self._open(match[1], match[2]):
                self._serve_resolve(repo, match[3])
        else:
            self._error(404, "", "no such page")

    def _open(self, name: str, revision: str | None) -> Repo | None:
        """The repository, if who asks may see it; else the Hub's error has been sent."""
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        repo = self.hub.repos.get(name)
        if token and self.hub.tokens and token not in self.hub.tokens:
            self._error(401, "", "Invalid credentials in Authorization header")
        elif repo is None or (repo.private and token != repo.needs):
            if token:
                self._error(404, "RepoNotFound", "Repository not found")
            else:
                self._error(401, "RepoNotFound", "Invalid username or password.")
        elif repo.gated and token != repo.needs and "/resolve" in self.path:
            why = "you are not in the authorized list." if token else "you must be authenticated to access it."
            self._error(403 if token else 401, "GatedRepo", f"Access to model {name} is restricted and {why}")
        elif revision is not None and revision not in {"main", repo.commit}:
            self._error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        else:
            return repo
        return None

    # The Hub's pages

    def _serve_search(self, query: dict[str, list[str]]) -> None:
        found = list(self.hub.repos.values())
        for text in query.get("search", []):
            found = [repo for repo in found if all(word in repo.name.lower() for word in text.lower().split())]
        for author in query.get("author", []):
            found = [repo for repo in found if repo.name.startswith(f"{author}/")]
        for tags in (value for key in ("filter", "filter[]") for value in query.get(key, [])):
            found = [repo for repo in found if all(tag in repo.tags for tag in tags.split(","))]
        found = [repo for repo in found if not repo.private]
        orders = {
            "downloads": lambda repo: repo.downloads,
            "likes": lambda repo: repo.likes,
            "lastModified": lambda repo: repo.modified,
            "createdAt": lambda repo: repo.modified,
        }
        order = query.get("sort", [""])[0]
        if order in orders:
            found.sort(key=orders[order], reverse=query.get("direction", ["-1"])[0] == "-1")
        size = min(int(query.get("limit", ["1000"])[0]), self.hub.page_size)
        start = int(query.get("cursor", ["0"])[0])
        headers = {}
        if start + size < len(found):
            later = urlencode({**query, "cursor": [str(start + size)]}, doseq=True)
            headers["Link"] = f'<{self.hub.endpoint}/api/models?{later}>; rel="next"'
        self._answer(200, [repo.info(query, one=False) for repo in found[start : start + size]], headers)

    def _serve_whoami(self) -> None:
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if not token or (self.hub.tokens and token not in self.hub.tokens):
            self._error(401, "", "Invalid credentials in Authorization header")
        else:
            access = {"accessToken": {"displayName": "test", "role": "read"}}
            self._answer(200, {"type": "user", "name": "someone", "auth": access})

    def _serve_tree(self, repo: Repo, what: str, under: str, query: dict[str, list[str]]) -> None:
        if what == "paths-info":
            sent = json.loads(self._body) if self._body[:1] == b"{" else parse_qs(self._body.decode())
            wanted = [path for path in sent.get("paths", []) if path in repo.files]
            self._answer(200, [repo.files[path].entry(path) for path in wanted])
            return
        entries: list[dict[str, Any]] = []
        folders: set[str] = set()
        recursive = query.get("recursive", ["false"])[0].lower() in {"true", "1"}
        prefix = f"{under.rstrip('/')}/" if under else ""
        for path, stored in repo.files.items():
            if not path.startswith(prefix):
                continue
            rest = path[len(prefix) :].split("/")
            for depth in range(1, len(rest)):
                folders.add(prefix + "/".join(rest[:depth]))
            if recursive or len(rest) == 1:
                entries.append(stored.entry(path))
        folders = {folder for folder in folders if recursive or "/" not in folder[len(prefix) :]}
        entries += [{"type": "directory", "oid": "d" * 40, "size": 0, "path": folder} for folder in sorted(folders)]
        size, start = self.hub.page_size, int(query.get("cursor", ["0"])[0])
        headers = {}
        if start + size < len(entries):
            later = urlencode({**query, "cursor": [str(start + size)]}, doseq=True)
            headers["Link"] = f'<{self.hub.endpoint}{urlsplit(self.path).path}?{later}>; rel="next"'
        self._answer(200, entries[start : start + size], headers)

    def _serve_resolve(self, repo: Repo, path: str) -> None:
        stored = repo.files.get(path)
        commit = {"X-Repo-Commit": repo.commit}
        if stored is None:
            self._error(404, "EntryNotFound", "Entry not found", commit)
        elif stored.lfs:
            location = f"{self.hub.cdn}/blobs/{stored.etag}?signature={self.hub.sign()}"
            linked = {"X-Linked-Etag": f'"{stored.etag}"', "X-Linked-Size": str(stored.linked_size)}
            self._answer(302, headers={**commit, **linked, "Accept-Ranges": "bytes", "Location": location})
        else:
            location = f"/api/resolve-cache/models/{repo.name}/{repo.commit}/{quote(path)}"
            linked = {"X-Linked-Etag": f'"{stored.etag}"', "X-Linked-Size": str(stored.linked_size)}
            self._answer(307, headers={**commit, **linked, "Location": location})

    def _serve_small(self, repo: Repo, path: str, fault: Fault) -> None:
        stored = repo.files.get(path)
        if stored is None:
            self._error(404, "EntryNotFound", "Entry not found", {"X-Repo-Commit": repo.commit})
        else:
            self._send_file(stored, fault, {"X-Repo-Commit": repo.commit})

    # The CDN

    def _serve_cdn(self, path: str, query: dict[str, list[str]], fault: Fault) -> None:
        signature = int(query.get("signature", ["0"])[0])
        stored = self.hub.stored(path.removeprefix("/blobs/"))
        if signature <= self.hub.expired_before:
            self._answer(403, {"error": "Request has expired"})
        elif stored is None:
            self._answer(404, {"error": "no such blob"})
        else:
            self._send_file(stored, fault, {})

    def _send_file(self, stored: Stored, fault: Fault, headers: Mapping[str, str]) -> None:
        size = stored.size if fault.body is None else len(fault.body)
        start, end, status = 0, size, 200
        if (asked := self.headers.get("Range")) and not fault.ignore_range:
            match = re.fullmatch(r"bytes=(\d*)-(\d*)", asked.strip())
            assert match is not None, asked
            if match[1]:
                start, end = int(match[1]), min(int(match[2]) + 1 if match[2] else size, size)
            else:
                start = max(0, size - int(match[2]))
            if start >= end:
                self._error(416, "", "range not satisfiable", {"Content-Range": f"bytes */{size}"})
                return
            status = 206
            if fault.wrong_range:
                start, end = 0, end - start
        self.send_response(status)
        self.send_header("Content-Length", str(end - start))
        self.send_header("ETag", f'"{stored.etag}"')
        self.send_header("Accept-Ranges", "none" if fault.ignore_range else "bytes")
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        for name, value in {**headers, **fault.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        sent = 0
        if self.command != "HEAD":
            stop = end if fault.after is None else min(end, start + fault.after)
            # Written down also if the client goes away in the middle.
            with self._noting(status, stop - start) as count:
                if isinstance(stored.content, Path) and fault == Fault() and self.hub.rate is None:
                    # As quick as a server can be: what is measured then is the client.
                    with stored.content.open("rb") as file:
                        count(self.connection.sendfile(file, start, stop - start))
                    return
                for block in self._blocks(stored, fault, start, stop):
                    count(len(block))
                    self.connection.sendall(block)
            sent = stop - start
            if sent < end - start:
                self._break_off(fault.then)
        else:
            self._note(status, 0)

    @contextlib.contextmanager
    def _noting(self, status: int, size: int) -> Iterator[Callable[[int], None]]:
        """To be told of each block before it is sent: whoever has all `size` bytes finds the request noted."""
        sent = [0]
        entry = (self.path, sent)
        with self.hub.lock:
            self.hub.sending.append(entry)

        def note() -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.kind, self.command, self.path, headers, status, sent[0])
            with self.hub.lock:
                others = [each for each in self.hub.sending if each is not entry]
                if len(others) < len(self.hub.sending):
                    self.hub.sending = others
                    self.hub.requests.append(request)

        def count(length: int) -> None:
            sent[0] += length
            if sent[0] >= size:
                note()

        try:
            yield count
        except OSError:
            self.close_connection = True
        finally:
            note()

    def _blocks(self, stored: Stored, fault: Fault, start: int, stop: int) -> Iterator[bytes]:
        began, place = time.perf_counter(), start
        while place < stop:
            length = min(_BLOCK, stop - place)
            block = stored.part(place, length) if fault.body is None else fault.body[place : place + length]
            if wrong := [offset - place for offset in fault.corrupt if place <= offset < place + length]:
                changed = bytearray(block)
                for offset in wrong:
                    changed[offset] ^= 0xFF
                block = bytes(changed)
            yield block
            place += length
            if (rate := self.hub.rate) is not None:
                ahead = (place - start) / rate - (time.perf_counter() - began)
                if ahead > 0:
                    time.sleep(ahead)

    def _break_off(self, then: Then) -> None:
        self.close_connection = True
        if then is Then.STALL:
            self.hub.released.wait(60)
        elif then is Then.RST:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            # Not close(): the handler's files hold the socket open.
            os.close(self.connection.detach())
            return
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    # Answers

    def _error(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        more = {"X-Error-Message": message, **(headers or {})}
        if code:
            more["X-Error-Code"] = code
        self._answer(status, {"error": message}, more)

    def _answer(self, status: int, content: Any = b"", headers: Mapping[str, str] | None = None) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json" if not isinstance(content, bytes) else "text/plain")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        # Before the client can have seen the answer.
        self._note(status, 0)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _note(self, status: int, sent: int) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.hub.note(Request(self.kind, self.command, self.path, headers, status, sent))


def content(size: int, seed: int = 0) -> bytes:
    """Bytes that differ everywhere, the same for the same seed."""
    words = [hashlib.sha256(b"%d %d" % (seed, number)).digest() for number in range(min(size, 1 << 16) // 32 + 1)]
    block = b"".join(words)
    out = bytearray()
    number = 0
    while len(out) < size:
        out += number.to_bytes(8, "little") + block
        number += 1
    return bytes(out[:size])


def serve_until_closed(files: Mapping[str, Path]) -> None:  # pragma: no cover - in a process of its own
    """Serve `org/repo` with these files until standard input closes; the endpoint is the first line of the output."""
    with LoopbackHub() as hub:
        hub.add(Repo("org/repo", files))
        os.write(1, f"{hub.endpoint}\n".encode())
        os.read(0, 1)

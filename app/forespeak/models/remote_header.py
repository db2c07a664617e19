"""The header of a GGUF file on the Hub, vocabulary included, without the file: a few requests for parts of it.

What was read stays in a folder of the cache, as the beginning of the file, so that the header's long arrays can be
read from there at any time later.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from forespeak.models.folders import create_folder
from forespeak.models.gguf import GgufError, GgufHeader, parse_header
from forespeak.models.gguf_walker import FIRST_PIECE
from forespeak.models.hub_client import Cancelled, HubClient, Location
from forespeak.models.hub_errors import Asked, HubError, HubProblem, nonsense
from forespeak.models.hub_files import HubFile
from forespeak.models.hub_settings import origin
from forespeak.whole_file import write_whole

if TYPE_CHECKING:
    import httpx2

MOST_KEPT = 200
"""Headers that stay in the cache: a header with its vocabulary has 2 to 16 MB."""
ABOUT = "about.json"
"""In the folder of each header. It is written last, and its time is that of the last use."""
_REST = 32 << 20
# Names that Windows keeps for devices, and an empty one.
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|)(?:\.|$)", re.IGNORECASE)
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")


def _never() -> bool:
    return False


def read_remote_header(
    client: HubClient,
    repo: str,
    revision: str,
    file: HubFile,
    cache: Path,
    cancelled: Callable[[], bool] = _never,
) -> GgufHeader | None:
    """The header of a file at a commit; None if it was cancelled. Of a split model, take the first part.

    `cache` is a folder for what was read; what is there already needs no network. `path` of the result lies in it and
    holds the header alone, `size_bytes` is the whole file's. Raises HubError, GgufError for what is no model, and
    UserFacingError where the cache cannot be written.
    """
    folder = folder_of(cache, client, repo, revision, file.path)
    kept = folder / safe_name(file.name)
    header = _kept_header(kept)
    if header is not None:
        return header
    remote = RemoteFile(client, repo, revision, file, cancelled)
    try:
        # In small steps, so that hardly more is read than is needed.
        header = parse_header(kept, remote.size, remote.fetch, FIRST_PIECE)
    except Cancelled:
        return None
    finally:
        remote.close()
    keep(folder, {kept: bytes(remote.data[: header.data_offset])}, remote.size)
    prune(cache, folder)
    return header


class RemoteFile:
    """The beginning of a file, which grows as it is asked for.

    First 1 MiB is fetched, which is enough for many headers, then 2 MiB. Who needs more has a large vocabulary: then
    the rest is asked for at once, read as far as it is needed, and hung up on, so that there is no fourth piece.
    """

    def __init__(
        self, client: HubClient, repo: str, revision: str, file: HubFile, cancelled: Callable[[], bool]
    ) -> None:
        self._client = client
        self._file = file
        self._repo, self._revision = repo, revision
        self._cancelled = cancelled
        self._asked: Asked = client.asked(repo, file.path)
        self._pieces = iter((FIRST_PIECE, 2 * FIRST_PIECE))
        self._located: Location | None = None
        self._answer: Iterator[bytes] | None = None
        self._asked_at = 0
        self._knows_ranges = True
        self._open = ExitStack()
        self.size = file.size_bytes
        self.data = bytearray()

    def close(self) -> None:
        """Hang up, if the server is still sending."""
        self._answer = None
        self._open.close()

    def fetch(self, offset: int, length: int) -> bytes:
        end = offset + length
        while len(self.data) < min(end, self.size):
            if self._cancelled():
                raise Cancelled
            before = len(self.data)
            try:
                self._more(end)
            except HubError as error:
                # What came before the connection broke is good, if we can ask for what comes behind it.
                broken = error.problem is HubProblem.CONNECTION_LOST and self._knows_ranges
                if not broken or len(self.data) == self._asked_at:
                    raise
                self.close()
                continue
            # An answer that ended early is followed by another question, unless it brought nothing at all.
            if len(self.data) == before and (before == self._asked_at or not self._knows_ranges):
                raise self._short()
        return bytes(self.data[offset:end])

    def _more(self, end: int) -> None:
        """Fetch at least one byte more, at best up to `end`."""
        if self._answer is None:
            self._ask(end)
        if self._answer is not None:
            before = len(self.data)
            self._take(self._answer, end)
            if len(self.data) == before:
                self.close()

    def _ask(self, end: int) -> None:
        """Ask for the next piece; a short one is then here, from a long one `_answer` reads."""
        self._asked_at = start = len(self.data)
        piece = next(self._pieces, None)
        stop = min(self.size, max(end, start + (piece or _REST)))
        for fresh in (False, True):
            if self._located is None or fresh:
                self._located = self._client.locate(self._repo, self._revision, self._file.path)
            try:
                self._range(self._located.url, start, stop, at_once=piece is not None)
                return
            except _RefusedError as error:
                # A signed address expires; a fresh one may do.
                if fresh:
                    raise self._refused() from error

    def _range(self, url: str, start: int, stop: int, *, at_once: bool) -> None:
        headers = {"Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"}
        with ExitStack() as answer:
            try:
                response = answer.enter_context(self._client.stream("GET", url, self._asked, headers=headers))
            except HubError as error:
                if error.problem in _REFUSED and origin(url) != origin(self._client.endpoint):
                    raise _RefusedError from error
                raise
            if response.headers.get("Content-Encoding", "identity").lower() not in {"", "identity"}:
                raise nonsense(self._asked, "It sends the file packed, although it was asked not to.")
            if response.status_code == 206:
                self._check_range(response, start)
                if at_once:
                    # To the end of the answer, after which the connection serves the next request.
                    self._take(response.iter_bytes(), stop + 1)
                    return
            else:
                # A server that knows no ranges sends everything from the start.
                self.data.clear()
                self._knows_ranges = False
            self._open = answer.pop_all()
            self._answer = response.iter_bytes()

    def _check_range(self, response: httpx2.Response, start: int) -> None:
        match = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if match is None or int(match[1]) != start:
            raise nonsense(self._asked, "It sends another part of the file than it was asked for.")
        if match[3] not in {"*", str(self.size)}:
            raise self._short()

    def _take(self, pieces: Iterator[bytes], end: int) -> None:
        """Read on until the data reach to `end`, or a little beyond."""
        with self._client.library(self._asked):
            for piece in pieces:
                if self._cancelled():
                    raise Cancelled
                self.data += piece
                if len(self.data) >= end:
                    return

    def _short(self) -> HubError:
        return HubError(
            HubProblem.NONSENSE,
            f"The Hub's copy of “{self._file.name}” is not as long as the Hub says.",
            "It was replaced in the meantime, or it is damaged.",
            "Open the repo anew.",
            page=self._asked.page,
        )

    def _refused(self) -> HubError:
        return HubError(
            HubProblem.FORBIDDEN,
            "The server that stores the Hub's files refuses this one.",
            "It did so also when the Hub was asked anew where the file lies.",
            "Try again later.",
            page=self._asked.page,
        )


class _RefusedError(Exception):
    """The server of the files does not accept an address that the Hub gave."""


_REFUSED = frozenset(
    {HubProblem.FORBIDDEN, HubProblem.NO_SUCH_REPO, HubProblem.PRIVATE_OR_MISSING, HubProblem.NONSENSE}
    | {HubProblem.TOKEN_WRONG, HubProblem.TOKEN_EXPIRED}
)


def _kept_header(kept: Path) -> GgufHeader | None:
    """The header of an earlier time, if it is all there."""
    try:
        about = json.loads((kept.parent / ABOUT).read_text(encoding="utf-8"))
        size = about["size"]
        data = kept.read_bytes()
        header = parse_header(kept, size, lambda offset, length: data[offset : offset + length])
    except (OSError, ValueError, TypeError, KeyError, GgufError):
        return None
    (kept.parent / ABOUT).touch()
    return header


def folder_of(cache: Path, client: HubClient, repo: str, revision: str, path: str) -> Path:
    """Where in the cache is kept what was read of a file at a commit."""
    names = "\n".join((client.endpoint, repo, revision, path))
    return cache / blake2b(names.encode(), digest_size=16).hexdigest()


def keep(folder: Path, contents: Mapping[Path, bytes], size: int) -> None:
    """Write files into a folder of the cache, and `size` into its note at the end. Raises UserFacingError."""
    note = json.dumps({"size": size}).encode()
    try:
        for path, content in (*contents.items(), (folder / ABOUT, note)):
            create_folder(path.parent, "temporary files")
            write_whole(path, content)
    except OSError as error:
        raise HubError(
            HubProblem.BAD_SETTING,
            "What was read of the model could not be kept.",
            f"{folder}: {error.strerror or error}.",
            "Make room on that disk.",
        ) from error


def prune(cache: Path, newest: Path) -> None:
    """Forget the headers that were not asked for for the longest time."""
    folders: list[tuple[float, Path]] = []
    for about in cache.glob(f"*/{ABOUT}"):
        try:
            folders.append((about.stat().st_mtime, about.parent))
        except OSError:
            continue
    for _, folder in sorted(folders, reverse=True)[MOST_KEPT:]:
        if folder != newest:
            shutil.rmtree(folder, ignore_errors=True)


def safe_name(name: str) -> str:
    """A name for a file or a folder of ours that still tells which model it is of. It lies in a folder of its own."""
    plain = re.sub(r"[^\w.-]", "_", name, flags=re.ASCII)[-100:].strip(".")
    return f"_{plain}" if plain == ABOUT or _RESERVED.match(plain) else plain

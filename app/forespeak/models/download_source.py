"""Where a file's bytes come from: the Hub says where they lie, and they are read there from any place on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from forespeak.models.hub_client import Location
from forespeak.models.hub_errors import HubError, HubProblem, answer_error, nonsense
from forespeak.models.hub_settings import origin

if TYPE_CHECKING:
    import httpx2

    from forespeak.models.hub_client import HubClient

_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_MOST_ERROR_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Answer:
    """A body that begins at byte `start` of a file of `total` bytes (None: not said)."""

    response: httpx2.Response
    start: int
    total: int | None


class Source:
    """One file at a commit. `silence` is the longest pause in the middle of it, in seconds."""

    def __init__(self, client: HubClient, repo: str, revision: str, path: str, silence: float) -> None:
        self._client, self._repo, self._revision, self._path = client, repo, revision, path
        self._silence = silence

    def locate(self) -> Location:
        """Ask the Hub. Raises HubError."""
        return self._client.locate(self._repo, self._revision, self._path)

    @contextmanager
    def open(self, location: Location, start: int) -> Iterator[Answer]:
        """Read the file from byte `start` on, or from an earlier one where the server will not skip.

        Raises HubError, RangeRefusedError where there is nothing at `start`, and RefusedError where a signed address
        no longer holds.
        """
        import httpx2
        from huggingface_hub import get_session

        asked = self._client.asked(self._repo, self._path)
        url = urljoin(self._client.endpoint, location.url)
        headers = self._client.headers(
            {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        )
        timeout = httpx2.Timeout(self._silence)
        with (
            self._client.library(asked),
            get_session().stream("GET", url, headers=headers, timeout=timeout) as response,
        ):
            status = response.status_code
            if status == 416:
                raise RangeRefusedError
            if status in {401, 403, 404, 410} and origin(str(response.url)) != origin(self._client.endpoint):
                raise RefusedError(_refused(status))
            if status == 408:
                raise httpx2.ReadTimeout("the server waited for us")
            if status >= 400:
                raise answer_error(status, response.headers, _beginning(response), asked)
            if response.headers.get("Content-Encoding", "").lower() not in {"", "identity"}:
                raise nonsense(asked, "It sends the file packed, although it was asked not to.")
            if status == 200:
                length = response.headers.get("Content-Length", "")
                yield Answer(response, 0, int(length) if length.isdecimal() else None)
                return
            match = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if status != 206 or match is None:
                raise nonsense(asked, "It does not say which piece of the file it sends.")
            yield Answer(response, int(match[1]), None if match[3] == "*" else int(match[3]))


class RangeRefusedError(Exception):
    """The server has nothing at that place of the file."""


class RefusedError(Exception):
    """The address no longer holds; a fresh one may. `error` is what it means if it does not."""

    def __init__(self, error: HubError) -> None:
        super().__init__(error)
        self.error = error


def _refused(status: int) -> HubError:
    gone = status in {404, 410}
    return HubError(
        HubProblem.NO_SUCH_FILE if gone else HubProblem.FORBIDDEN,
        "The server that stores the Hub's files "
        + ("does not have this one." if gone else "refuses to give this one out."),
        f"It answered with error {status}, also at a fresh address.",
        "Try again later.",
    )


def _beginning(response: httpx2.Response) -> bytes:
    body = b""
    for piece in response.iter_raw():
        body += piece
        if len(body) > _MOST_ERROR_BYTES:
            break
    return body

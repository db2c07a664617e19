"""One way to the Hub for everything that we ask of it: time limits, proxy, working offline, and who gets the token.

huggingface_hub sends its requests through the transport below, whichever of its functions makes them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from forespeak import __version__
from forespeak.models.hub_errors import Asked, answer_error, offline_error, transport_error
from forespeak.models.hub_settings import (
    HubSettings,
    HubSettingsFile,
    forced_offline,
    is_loopback,
    may_carry_token,
    origin,
)
from forespeak.models.hub_token import Token, TokenStore

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS, SILENCE_SECONDS, WHOLE_SECONDS = 10.0, 20.0, 60.0
"""To connect; between two pieces of an answer; and for a whole answer that is not a file."""
MOST_ERROR_BYTES = 64 << 10


def _never() -> bool:
    return False


class Cancelled(Exception):  # noqa: N818 - not an error
    """The caller wanted no answer any more. Stays within the models' room."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful answer. `complete` is False if it was longer than wanted. `headers` are in lower case."""

    body: bytes
    complete: bool
    headers: Mapping[str, str]
    next_page: str | None


@dataclass(frozen=True, slots=True)
class Location:
    """Where a file's bytes are now. `url` is signed: it expires, and gets no token if it is of another server.

    `etag` identifies the bytes; it is their sha256 for large files.
    """

    url: str
    commit: str | None
    etag: str | None
    size_bytes: int | None


class HubClient:
    """Asks one Hub by one set of settings. May be used from several threads at once.

    `token` is called when the first request is made; it may be slow. Every method raises HubError.
    """

    def __init__(self, settings: HubSettings, token: Callable[[], Token | None] = lambda: None) -> None:
        self.settings = settings
        self._find_token = token
        self._lock = threading.Lock()
        self._token: tuple[str | None] | None = None
        self._transports: dict[str | None, httpx2.HTTPTransport] = {}

    @property
    def endpoint(self) -> str:
        return self.settings.endpoint

    @property
    def has_token(self) -> bool:
        return self.token() is not None

    def token(self) -> str | None:
        """The token for this Hub's own server, None also where it could be read on the way."""
        if self._token is None:
            found = self._find_token() if may_carry_token(self.endpoint) else None
            self._token = (found.value if found is not None else None,)
        return self._token[0]

    def asked(self, repo: str | None = None, file: str | None = None) -> Asked:
        return Asked(self.endpoint, repo, file, self.has_token, self._proxy(self.endpoint))

    def get(
        self,
        url: str,
        asked: Asked,
        *,
        most: int,
        params: Mapping[str, Any] | None = None,
        cancelled: Callable[[], bool] = _never,
    ) -> Answer:
        """The first `most` bytes of a page of the Hub. Raises HubError, and Cancelled."""
        ends = time.monotonic() + WHOLE_SECONDS
        with self.stream("GET", url, asked, params=params) as response:
            body = bytearray()
            for piece in response.iter_bytes():
                if cancelled():
                    raise Cancelled
                body += piece
                if len(body) > most:
                    break
                if time.monotonic() > ends:
                    raise transport_error(_too_slow(), asked)
            following = response.links.get("next", {}).get("url")
            headers = {name.lower(): value for name, value in response.headers.items()}
        return Answer(bytes(body[:most]), len(body) <= most, headers, following)

    @contextmanager
    def stream(
        self,
        method: str,
        url: str,
        asked: Asked,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[httpx2.Response]:
        """An answer whose body is still to be read, within the block. Anything of 400 and above is raised as HubError.

        The token is sent if the address is the Hub's own.
        """
        from huggingface_hub import get_session

        with (
            self.library(asked),
            get_session().stream(method, url, params=params, headers=self.headers(headers)) as response,
        ):
            if response.status_code >= 400:
                raise answer_error(response.status_code, response.headers, _beginning(response), asked)
            yield response

    def locate(self, repo: str, revision: str, path: str) -> Location:
        """Where the bytes of a file are, by one request. Raises HubError: gated, no such file, …"""
        from huggingface_hub import get_hf_file_metadata, hf_hub_url

        asked = self.asked(repo, path)
        with self.library(asked):
            url = hf_hub_url(repo, path, revision=revision, endpoint=self.endpoint)
            found = get_hf_file_metadata(
                url, self.token() or False, SILENCE_SECONDS, "forespeak", __version__, endpoint=self.endpoint
            )
        return Location(found.location, found.commit_hash, found.etag, found.size)

    def headers(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """What every request carries: who asks, and the token."""
        from huggingface_hub.utils._headers import build_hf_headers

        return build_hf_headers(
            token=self.token() or False,
            library_name="forespeak",
            library_version=__version__,
            headers=dict(more) if more else None,
        )

    @contextmanager
    def library(self, asked: Asked) -> Iterator[None]:
        """Within the block, what huggingface_hub does in this thread goes by these settings, and raises HubError."""
        _install()
        import httpx2
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError

        before = _CURRENT.set(self)
        try:
            yield
        except HfHubHTTPError as error:
            response = error.response
            raise answer_error(response.status_code, response.headers, _beginning(response), asked) from error
        except HFValidationError as error:
            raise answer_error(404, {"X-Error-Code": "RepoNotFound"}, b"", asked) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise transport_error(error, asked) from error
        finally:
            _CURRENT.reset(before)

    def close(self) -> None:
        """Close the connections; those in use break off."""
        with self._lock:
            transports, self._transports = list(self._transports.values()), {}
        for transport in transports:
            transport.close()

    def send(self, request: httpx2.Request) -> httpx2.Response:
        """The last gate before the network: the token goes no further than to the Hub's own server."""
        url = str(request.url)
        if origin(url) != origin(self.endpoint) or not may_carry_token(url):
            request.headers.pop("authorization", None)
        return self.carry(request)

    def carry(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, within our limits of time."""
        import httpx2

        if self.settings.offline or forced_offline():
            raise offline_error(forced_offline())
        limits = {
            "connect": CONNECT_SECONDS,
            "read": SILENCE_SECONDS,
            "write": SILENCE_SECONDS,
            "pool": SILENCE_SECONDS,
        }
        given = request.extensions.get("timeout") or {}
        request.extensions = {
            **request.extensions,
            "timeout": limits | {name: limit for name, limit in given.items() if limit is not None},
        }
        transport = self._transport(self._proxy(str(request.url)))
        try:
            return transport.handle_request(request)
        except (httpx2.RemoteProtocolError, httpx2.ReadError):
            # No answer at all: the server has closed a connection that we kept from the request before.
            if request.method not in {"GET", "HEAD"}:
                raise
            return transport.handle_request(request)

    def _proxy(self, url: str) -> str | None:
        if self.settings.proxy is not None:
            return self.settings.proxy
        from urllib.request import getproxies, proxy_bypass

        parts = urlsplit(url)
        host = parts.hostname or ""
        if is_loopback(host) or proxy_bypass(host):
            return None
        proxies = getproxies()
        proxy = proxies.get(parts.scheme) or proxies.get("all")
        return f"http://{proxy}" if proxy and "://" not in proxy else proxy or None

    def _transport(self, proxy: str | None) -> httpx2.HTTPTransport:
        import httpx2

        with self._lock:
            if proxy not in self._transports:
                try:
                    self._transports[proxy] = httpx2.HTTPTransport(proxy=proxy)
                except (ValueError, ImportError, httpx2.InvalidURL) as error:
                    # Without the address, which may hold a password.
                    kind = (proxy or "").partition("://")[0]
                    raise httpx2.ProxyError(f"Proxies of the kind “{kind}” cannot be used") from error
            return self._transports[proxy]


_CURRENT: ContextVar[HubClient | None] = ContextVar("hub client", default=None)
_INSTALLING = threading.Lock()
_installed = False


def users_client(config: Path) -> HubClient:
    """A client by the user's settings, kept in the folder `config`, and the token of the keyring."""
    settings = HubSettingsFile(config).read()
    return HubClient(settings, partial(TokenStore().token, settings.endpoint))


def _install() -> None:
    """Make huggingface_hub send everything through us. It reports nothing about its users from then on."""
    global _installed  # noqa: PLW0603 - as the library's own session
    with _INSTALLING:
        if _installed:
            return
        os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
        import httpx2
        from huggingface_hub import constants, set_client_factory

        others = HubClient(HubSettings())

        class Gate(httpx2.BaseTransport):
            def handle_request(self, request: httpx2.Request) -> httpx2.Response:
                client = _CURRENT.get()
                return others.carry(request) if client is None else client.send(request)

            def close(self) -> None:
                others.close()

        # Where something has imported it before us, the environment came too late.
        constants.HF_HUB_DISABLE_TELEMETRY = True
        # The limits of time are `carry`'s.
        set_client_factory(
            lambda: httpx2.Client(transport=Gate(), timeout=None, follow_redirects=True, trust_env=False)
        )
        _installed = True


def _beginning(response: httpx2.Response) -> bytes:
    """What an error's body begins with; the rest of it is of no interest."""
    import httpx2

    try:
        return response.content[:MOST_ERROR_BYTES]
    except httpx2.ResponseNotRead:
        pass
    body = bytearray()
    try:
        for piece in response.iter_bytes():
            body += piece
            if len(body) >= MOST_ERROR_BYTES:
                break
    except httpx2.HTTPError:
        pass
    return bytes(body[:MOST_ERROR_BYTES])


def _too_slow() -> Exception:
    import httpx2

    return httpx2.ReadTimeout("the answer took too long")

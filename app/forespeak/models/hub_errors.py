"""What can go wrong with the Hub, told apart, with what to do about it."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from forespeak.errors import UserFacingError

if TYPE_CHECKING:
    import ssl


class HubProblem(Enum):
    """Why the Hub did not give what was asked for."""

    NO_SUCH_REPO = "no such repo"
    PRIVATE_OR_MISSING = "private, or no such repo"
    NO_SUCH_REVISION = "no such version"
    NO_SUCH_FILE = "no such file"
    GATED = "gated"
    DISABLED = "disabled"
    TOKEN_MISSING = "token missing"
    TOKEN_WRONG = "token wrong"
    TOKEN_EXPIRED = "token expired"
    FORBIDDEN = "forbidden"
    RATE_LIMITED = "rate limited"
    SERVER = "server error"
    NONSENSE = "not a Hub"
    OFFLINE = "offline"
    NO_NETWORK = "no network"
    DNS = "name not found"
    REFUSED = "connection refused"
    PROXY = "proxy"
    CERTIFICATE = "certificate"
    TIMEOUT = "timeout"
    CONNECTION_LOST = "connection lost"
    BAD_SETTING = "setting not valid"
    KEYRING = "keyring"

    @property
    def passes(self) -> bool:
        """Whether trying again later may help without anything being changed."""
        return self in _PASSING


_PASSING = frozenset(
    {
        *(HubProblem.RATE_LIMITED, HubProblem.SERVER, HubProblem.NO_NETWORK, HubProblem.DNS, HubProblem.REFUSED),
        *(HubProblem.TIMEOUT, HubProblem.CONNECTION_LOST),
    }
)


class HubError(UserFacingError):
    """The Hub did not give what was asked for. `retry_after` is in seconds; `page` is where to act in the browser."""

    def __init__(
        self,
        problem: HubProblem,
        what: str,
        why: str = "",
        remedy: str = "",
        retry_after: float | None = None,
        page: str | None = None,
    ) -> None:
        super().__init__(what, why, remedy)
        self.problem = problem
        self.retry_after = retry_after
        self.page = page

    def __reduce__(self) -> tuple[type[HubError], tuple[Any, ...]]:
        return HubError, (self.problem, self.what, self.why, self.remedy, self.retry_after, self.page)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request was about, for the words of an error. `proxy` is the one that was used, if any."""

    endpoint: str
    repo: str | None = None
    file: str | None = None
    has_token: bool = False
    proxy: str | None = None

    @property
    def host(self) -> str:
        return self.endpoint.partition("://")[2] or self.endpoint

    @property
    def page(self) -> str | None:
        return f"{self.endpoint}/{self.repo}" if self.repo else None


def answer_error(status: int, headers: Mapping[str, str], body: bytes, asked: Asked) -> HubError:
    """The error that an answer of 400 or above means. `headers` are looked up in lower case."""
    lowered = {name.lower(): value for name, value in headers.items()}
    code, message = lowered.get("x-error-code", ""), lowered.get("x-error-message") or _message(body)
    repo = f"“{asked.repo}”" if asked.repo else "this"
    if status == 407:
        return _proxy_error("It wants a name and a password.")
    if status == 429:
        return _rate_limited(lowered, asked)
    if status >= 500:
        return HubError(
            HubProblem.SERVER,
            "The Hub has trouble of its own.",
            f"{asked.host} answered with error {status}.",
            "Try again in a few minutes.",
            _retry_after(lowered),
        )
    if code == "GatedRepo":
        return _gated(repo, message, asked)
    if code == "RevisionNotFound":
        return HubError(
            HubProblem.NO_SUCH_REVISION,
            f"This version of {repo} is not on the Hub any more.",
            "Its owner has changed the repo.",
            "Open the repo anew.",
            page=asked.page,
        )
    if code == "EntryNotFound":
        return HubError(
            HubProblem.NO_SUCH_FILE,
            f"The file “{asked.file}” is not in {repo}." if asked.file else f"This file is not in {repo}.",
            "Its owner may have renamed or removed it.",
            "Open the repo anew.",
            page=asked.page,
        )
    if message == "Access to this resource is disabled.":
        return HubError(
            HubProblem.DISABLED,
            f"The repo {repo} is closed.",
            "The Hub has disabled access to it.",
            "Look for another copy of the model.",
            page=asked.page,
        )
    if status in {401, 403} and (wrong := _token_error(status, code, message, asked)) is not None:
        return wrong
    if _is_web_page(lowered, body) and code == "":
        return nonsense(asked, f"It answered with a web page and error {status}.")
    if code == "RepoNotFound" or (status in {401, 404} and asked.repo):
        return _no_repo(repo, asked)
    if status == 403:
        return HubError(
            HubProblem.FORBIDDEN,
            f"The Hub does not allow access to {repo}.",
            _said(message),
            "Check what your token may do, or ask the owner of the repo.",
            page=asked.page,
        )
    return nonsense(asked, f"It answered with error {status}{f': {message}' if message else ''}.")


def nonsense(asked: Asked, why: str) -> HubError:
    """The address answers, but not as a Hub does."""
    return HubError(
        HubProblem.NONSENSE,
        f"{asked.host} does not answer as a model Hub.",
        why,
        "Check the Hub's address in the settings. Some networks want you to sign in on a web page first.",
    )


def offline_error(forced: bool = False) -> HubError:
    """`forced`: by HF_HUB_OFFLINE in the environment, which the settings cannot change."""
    if forced:
        return HubError(
            HubProblem.OFFLINE,
            "Forespeak works offline.",
            "HF_HUB_OFFLINE is set in its environment, which keeps all programs from the Hub.",
            "Start it without that variable to search and download.",
        )
    return HubError(
        HubProblem.OFFLINE,
        "Forespeak is set to work offline.",
        "So nothing was asked of the Hub.",
        "Switch off “Work offline” in the settings to search and download.",
    )


def transport_error(error: Exception, asked: Asked) -> HubError:
    """The error that a failure before or during an answer means; `error` is one of httpx2's."""
    import socket
    import ssl

    import httpx2

    causes = list(_chain(error))
    if isinstance(error, httpx2.ProxyError):
        return _proxy_error(_sentence(str(error)))
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout) and asked.proxy:
        return _proxy_error("It does not answer.")
    if isinstance(error, httpx2.TimeoutException):
        return HubError(
            HubProblem.TIMEOUT,
            "The Hub did not answer in time.",
            f"{asked.host} was silent for too long.",
            "Check your connection, and try again.",
        )
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return _certificate_error(next(cause for cause in causes if isinstance(cause, ssl.SSLError)), asked)
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return HubError(
            HubProblem.DNS,
            f"The address {asked.host} could not be found.",
            "Either there is no network, or the name is not known to it.",
            "Check your connection, and the Hub's address in the settings.",
        )
    number = next((cause.errno for cause in causes if isinstance(cause, OSError) and cause.errno), None)
    if number in {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL}:
        return HubError(
            HubProblem.NO_NETWORK,
            "There is no network.",
            f"No way leads to {asked.host}.",
            "Check your connection, and try again.",
        )
    if isinstance(error, httpx2.ConnectError):
        return HubError(
            HubProblem.REFUSED,
            f"{asked.host} does not accept connections.",
            "The server is down, or something on the way blocks it.",
            "Try again later, or check the Hub's address in the settings.",
        )
    if isinstance(error, httpx2.TooManyRedirects | httpx2.InvalidURL | httpx2.UnsupportedProtocol):
        return nonsense(asked, "It points on to other addresses without end, or to none.")
    if isinstance(error, httpx2.DecodingError):
        return nonsense(asked, "Its answer is garbled.")
    return HubError(
        HubProblem.CONNECTION_LOST,
        "The connection to the Hub broke off.",
        _sentence(str(error)) if str(error) else f"{asked.host} hung up.",
        "Try again.",
    )


def wait_words(seconds: float) -> str:
    """A time to wait, rounded up: `in 20 seconds`, `in 5 minutes`."""
    if seconds <= 1:
        return "in a second"
    if seconds <= 90:
        return f"in {-(-seconds // 1):.0f} seconds"
    if seconds <= 90 * 60:
        return f"in {-(-seconds // 60):.0f} minutes"
    return f"in {-(-seconds // 3600):.0f} hours"


def _token_error(status: int, code: str, message: str, asked: Asked) -> HubError | None:
    """What an answer says about the token, if it does."""
    said = message.lower()
    if not asked.has_token:
        if code == "" and not asked.repo and status == 401:
            return HubError(
                HubProblem.TOKEN_MISSING,
                "This needs a token of the Hub.",
                "None is stored.",
                "Make one on the Hub's page, and put it into the settings.",
                page=f"{asked.endpoint}/settings/tokens",
            )
        return None
    if "expired" in said:
        problem, what = HubProblem.TOKEN_EXPIRED, "Your token for the Hub has expired."
    elif code == "" and status == 401:
        problem, what = HubProblem.TOKEN_WRONG, "The Hub does not accept your token."
    elif status == 403 and "token" in said:
        return HubError(
            HubProblem.FORBIDDEN,
            "Your token may not do this.",
            _said(message),
            "Give it the right to read this repo, on the Hub's page.",
            page=f"{asked.endpoint}/settings/tokens",
        )
    else:
        return None
    return HubError(
        problem,
        what,
        _said(message),
        "Make a new one on the Hub's page, and put it into the settings.",
        page=f"{asked.endpoint}/settings/tokens",
    )


def _gated(repo: str, message: str, asked: Asked) -> HubError:
    if asked.has_token:
        return HubError(
            HubProblem.GATED,
            f"Your account has no access to {repo} yet.",
            _said(message) or "Its owner wants you to accept the licence first, or has not yet let you in.",
            f"Accept the licence at {asked.page}, and try again.",
            page=asked.page,
        )
    return HubError(
        HubProblem.GATED,
        f"The files of {repo} are only for those who accept its licence.",
        "That needs an account on the Hub, and its token in the settings.",
        f"Accept the licence at {asked.page}, make a token at {asked.endpoint}/settings/tokens, and store it here.",
        page=asked.page,
    )


def _no_repo(repo: str, asked: Asked) -> HubError:
    if asked.has_token:
        return HubError(
            HubProblem.NO_SUCH_REPO,
            f"There is no repo {repo} on the Hub.",
            "It was renamed or removed, it is misspelt, or it is private and your token may not see it.",
            "Check the name.",
        )
    return HubError(
        HubProblem.PRIVATE_OR_MISSING,
        f"There is no public repo {repo} on the Hub.",
        "It does not exist, or it is private: without a token the Hub does not tell which.",
        "Check the name. If the repo is private, store a token that may read it in the settings.",
        page=f"{asked.endpoint}/settings/tokens",
    )


def _rate_limited(headers: Mapping[str, str], asked: Asked) -> HubError:
    wait = _retry_after(headers)
    anonymous = "" if asked.has_token else " With a token in the settings, more is allowed."
    return HubError(
        HubProblem.RATE_LIMITED,
        "The Hub has been asked too often.",
        f"{asked.host} limits how many questions come from one place.",
        (f"Try again {wait_words(wait)}." if wait is not None else "Try again in a few minutes.") + anonymous,
        wait,
    )


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from `Retry-After` (a number or a date) or the Hub's `RateLimit: "api";r=0;t=55`."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    if value:
        from email.utils import parsedate_to_datetime

        try:
            when = parsedate_to_datetime(value)
        except ValueError:
            return None
        return max(0.0, (when - datetime.now(UTC)).total_seconds()) if when.tzinfo else None
    match = re.search(r";\s*r\s*=\s*0\s*;\s*t\s*=\s*(\d{1,9})", headers.get("ratelimit", ""))
    return float(match[1]) if match else None


def _proxy_error(why: str) -> HubError:
    return HubError(
        HubProblem.PROXY,
        "The proxy does not let us through to the Hub.",
        why,
        "Check the proxy in the settings, or in the system's.",
    )


def _certificate_error(error: ssl.SSLError, asked: Asked) -> HubError:
    import ssl

    if isinstance(error, ssl.SSLCertVerificationError):
        why = f"Its certificate is not trusted: {error.verify_message or error.reason}."
    else:
        why = f"Encryption could not be agreed on: {error.reason or error}."
    return HubError(
        HubProblem.CERTIFICATE,
        f"There is no secure connection to {asked.host}.",
        why,
        "Check the date of your computer, and whether a proxy or a virus scanner looks into connections.",
    )


def _is_web_page(headers: Mapping[str, str], body: bytes) -> bool:
    return "html" in headers.get("content-type", "").lower() or body[:200].lstrip()[:1] == b"<"


def _message(body: bytes) -> str:
    try:
        content = json.loads(body[:65536])
    except (ValueError, RecursionError):
        return ""
    said = content.get("error") if isinstance(content, dict) else None
    return said if isinstance(said, str) else ""


def _said(message: str) -> str:
    return f"It says: {_sentence(message)}" if message else ""


def _sentence(text: str) -> str:
    """One line from outside, no longer than fits a message, with a full stop."""
    line = " ".join(text.split())
    line = line if len(line) <= 200 else line[:199] + "…"
    return line if not line or line[-1] in ".!?…" else f"{line}."


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__

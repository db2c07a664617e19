"""How the Hub is reached: which one, through what proxy, or not at all. Kept in one file; the token is elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from forespeak.models.folders import create_folder
from forespeak.models.hub_errors import HubError, HubProblem
from forespeak.whole_file import write_whole

PUBLIC_HUB = "https://huggingface.co"
_FILE = "hub.json"


@dataclass(frozen=True, slots=True)
class HubSettings:
    """`endpoint`: the Hub's address or a mirror's, without a slash at the end. `proxy` None: what the system says.

    `offline`: nothing is asked of the network.
    """

    endpoint: str = PUBLIC_HUB
    proxy: str | None = None
    offline: bool = False

    @property
    def is_public_hub(self) -> bool:
        return origin(self.endpoint) == origin(PUBLIC_HUB)


def hub_settings(endpoint: str = "", proxy: str = "", offline: bool = False) -> HubSettings:
    """Settings of what somebody typed; an empty text means the default. Raises HubError (BAD_SETTING)."""
    return HubSettings(
        checked_endpoint(endpoint) if endpoint.strip() else default_endpoint(),
        checked_proxy(proxy) if proxy.strip() else None,
        offline,
    )


def default_endpoint() -> str:
    """HF_ENDPOINT where it makes sense, as other programs for the Hub have it, else the public Hub."""
    try:
        return checked_endpoint(os.environ.get("HF_ENDPOINT", ""))
    except HubError:
        return PUBLIC_HUB


def forced_offline() -> bool:
    """Whether HF_HUB_OFFLINE in the environment keeps all programs from the Hub."""
    return os.environ.get("HF_HUB_OFFLINE", "").strip().upper() in {"1", "ON", "YES", "TRUE"}


def checked_endpoint(text: str) -> str:
    """An address such as `https://huggingface.co`, `mirror.example/hub` or `http://localhost:8080`, tidied up.

    `https://` is added where nothing stands. Raises HubError (BAD_SETTING).
    """
    parts = _address(text, "https", "Hub's address", "https://huggingface.co")
    if parts.username is not None or parts.password is not None:
        raise _bad("The Hub's address holds a name or a password.", "Put a token into its own field instead.")
    if parts.query or parts.fragment:
        raise _bad("The Hub's address has something behind its path.", "Leave out what follows “?” or “#”.")
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def checked_proxy(text: str) -> str:
    """An address such as `http://proxy.example:3128`, with name and password or without.

    `http://` is added where nothing stands. Raises HubError (BAD_SETTING).
    """
    parts = _address(text, "http", "proxy's address", "http://proxy.example:3128")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise _bad("The proxy's address has something behind host and port.", "Leave it out.")
    return f"{parts.scheme}://{parts.netloc}"


def origin(address: str) -> tuple[str, str, int]:
    """Who answers at an address: scheme, host and port. A token of one is for no other."""
    parts = urlsplit(address)
    try:
        port = parts.port
    except ValueError:
        port = -1
    return parts.scheme.lower(), (parts.hostname or "").lower(), port or {"https": 443, "http": 80}.get(parts.scheme, 0)


def may_carry_token(address: str) -> bool:
    """Whether a token sent there cannot be read on the way: encrypted, or within this machine."""
    scheme, host, _ = origin(address)
    return scheme == "https" or is_loopback(host)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _address(text: str, scheme: str, what: str, example: str) -> SplitResult:
    text = text.strip()
    try:
        parts = urlsplit(text if "://" in text else f"{scheme}://{text}")
        valid = bool(parts.hostname) and parts.port != 0 and text.isprintable() and " " not in text
    except ValueError:
        valid = False
    if not valid:
        raise _bad(f"The {what} is not valid.", f"Write it like {example}.")
    if parts.scheme not in {"http", "https"}:
        raise _bad(f"The {what} begins with “{parts.scheme}://”.", "Only http and https can be used.")
    return parts


def _bad(what: str, remedy: str) -> HubError:
    return HubError(HubProblem.BAD_SETTING, what, "", remedy)


class HubSettingsFile:
    """Reads and writes HubSettings in a folder of settings. What is damaged or not valid there counts as not set."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE

    def read(self) -> HubSettings:
        """The settings, with what the environment forces: HF_HUB_OFFLINE."""
        try:
            stored = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            stored = {}
        if not isinstance(stored, dict):
            stored = {}
        endpoint = _valid(stored, "endpoint", checked_endpoint) or default_endpoint()
        return HubSettings(endpoint, _valid(stored, "proxy", checked_proxy), stored.get("offline") is True)

    def write(self, settings: HubSettings) -> None:
        """Replace the file as a whole. Raises UserFacingError."""
        create_folder(self._path.parent, "settings")
        plain = asdict(settings)
        if settings.endpoint == default_endpoint():
            # So that the default may change with the environment.
            del plain["endpoint"]
        try:
            write_whole(self._path, json.dumps(plain, indent=2, ensure_ascii=False))
        except OSError as error:
            raise _bad(
                f"The settings could not be saved: {error.strerror or error}.",
                f"Check that you may write {self._path}.",
            ) from error


def _valid(stored: dict[str, Any], key: str, check: Callable[[str], str]) -> str | None:
    value = stored.get(key)
    try:
        return check(value) if isinstance(value, str) else None
    except HubError:
        return None

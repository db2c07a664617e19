"""The user's token for the Hub: in the system's keyring, or only until the app closes. Never in a file of ours.

A token belongs to the server that it was stored for, and is given out for no other.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from forespeak.models.hub_errors import HubError, HubProblem
from forespeak.models.hub_settings import default_endpoint, origin

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

_SERVICE = "Forespeak Hub token"
_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


class TokenSource(Enum):
    """Where a token is from."""

    ENVIRONMENT = "environment"
    KEYRING = "keyring"
    SESSION = "until the app closes"


@dataclass(frozen=True, slots=True)
class Token:
    """A token, which shows itself in no message and no log."""

    value: str = field(repr=False)
    source: TokenSource

    @property
    def hint(self) -> str:
        """Enough to tell two tokens apart."""
        return f"…{self.value[-4:]}" if len(self.value) >= 12 else "…"


class TokenStore:
    """Tokens by server. May be used from several threads; a keyring can be slow, and may ask the user for a password.

    `backend` replaces the system's keyring.
    """

    def __init__(self, backend: KeyringBackend | None = None) -> None:
        self._backend = backend
        self._lock = threading.Lock()
        self._known: dict[str, Token | None] = {}

    def token(self, endpoint: str) -> Token | None:
        """The token for a server: HF_TOKEN of the environment first, which is for the default server alone.

        A keyring that does not answer counts as empty: `keyring_problem` says why.
        """
        if (given := _from_environment(endpoint)) is not None:
            return given
        name = _name(endpoint)
        with self._lock:
            if name in self._known:
                return self._known[name]
        try:
            stored = self._keyring().get_password(_SERVICE, name)
        except Exception:  # noqa: BLE001 - whatever a keyring raises, there is no token
            stored = None
        with self._lock:
            return self._known.setdefault(
                name, Token(stored, TokenSource.KEYRING) if stored and _is_token(stored) else None
            )

    def store(self, endpoint: str, value: str) -> TokenSource:
        """Keep a token for a server. SESSION: the keyring would not take it, and it is forgotten when the app closes.

        Raises HubError (BAD_SETTING) for what cannot be a token.
        """
        value = value.strip()
        if not _is_token(value):
            raise HubError(
                HubProblem.BAD_SETTING,
                "This is not a token.",
                "A token is one word of letters, digits and underscores, such as hf_….",
                "Copy it again from the Hub's page.",
            )
        name = _name(endpoint)
        try:
            keyring = self._keyring()
            keyring.set_password(_SERVICE, name, value)
            kept = keyring.get_password(_SERVICE, name) == value
        except Exception:  # noqa: BLE001 - see keyring_problem
            kept = False
        source = TokenSource.KEYRING if kept else TokenSource.SESSION
        with self._lock:
            self._known[name] = Token(value, source)
        return source

    def forget(self, endpoint: str) -> None:
        """Remove a server's token. Raises HubError (KEYRING) if the keyring keeps it."""
        name = _name(endpoint)
        with self._lock:
            self._known[name] = None
        try:
            keyring = self._keyring()
            if keyring.get_password(_SERVICE, name) is not None:
                keyring.delete_password(_SERVICE, name)
        except Exception as error:
            if self.keyring_problem() is None:
                raise HubError(
                    HubProblem.KEYRING,
                    "The token could not be removed from the keyring.",
                    _reason(error),
                    f"Remove the entry “{_SERVICE}” in your system's password manager.",
                ) from error

    def keyring_problem(self) -> str | None:
        """Why tokens cannot be kept beyond this session, in a sentence; None if they can."""
        try:
            self._keyring().get_password(_SERVICE, "check")
        except _NoKeyringError:
            return "This system has no keyring that we can use."
        except Exception as error:  # noqa: BLE001 - said in words
            return f"The system's keyring does not answer: {_reason(error)}"
        return None

    def _keyring(self) -> KeyringBackend:
        """Raises _NoKeyringError, and whatever a keyring raises."""
        if self._backend is None:
            import keyring

            self._backend = keyring.get_keyring()
        # A chain of keyrings stores in its first one. Below 1 are those that write plain files, or nothing at all.
        chained = getattr(self._backend, "backends", None)
        first = chained[0] if chained else self._backend
        if first.priority < 1:
            raise _NoKeyringError
        return self._backend


class _NoKeyringError(Exception):
    pass


def _from_environment(endpoint: str) -> Token | None:
    for variable in _VARIABLES:
        value = os.environ.get(variable, "").strip()
        if _is_token(value) and origin(endpoint) == origin(default_endpoint()):
            return Token(value, TokenSource.ENVIRONMENT)
    return None


def _is_token(text: str) -> bool:
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def _name(endpoint: str) -> str:
    scheme, host, port = origin(endpoint)
    return f"{scheme}://{host}:{port}"


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if text[-1] in ".!?" else f"{text}."

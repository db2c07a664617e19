"""Tokens in the keyring, or only in memory, and never in a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring
from keyring.backends.null import Keyring as NullKeyring
from keyring.errors import KeyringLocked, PasswordDeleteError

from forespeak.models.hub_errors import HubError, HubProblem
from forespeak.models.hub_settings import PUBLIC_HUB
from forespeak.models.hub_token import Token, TokenSource, TokenStore

MIRROR = "https://mirror.example"


class MemoryKeyring:
    """A keyring as a system has it; `locked` refuses everything, `stuck` only to forget.

    Not derived from KeyringBackend, whose heirs are all taken for keyrings of this system.
    """

    priority = 5.0

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = self.stuck = False
        self.asked = 0

    def get_password(self, service: str, username: str) -> str | None:
        self.asked += 1
        if self.locked:
            raise KeyringLocked("The collection is locked")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.locked:
            raise KeyringLocked("The collection is locked")
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.locked or self.stuck:
            raise PasswordDeleteError("not allowed")
        del self.kept[service, username]


class PlainFileKeyring(MemoryKeyring):
    """As those that write passwords into a plain file."""

    priority = 0.5


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def keyring() -> MemoryKeyring:
    return MemoryKeyring()


def store_in(keyring: MemoryKeyring | KeyringBackend) -> TokenStore:
    return TokenStore(cast("KeyringBackend", keyring))


def value(token: Token | None) -> str | None:
    return None if token is None else token.value


def test_a_token_is_kept_in_the_keyring(keyring: MemoryKeyring) -> None:
    store = store_in(keyring)
    assert store.token(PUBLIC_HUB) is None
    assert store.store(PUBLIC_HUB, " hf_abcdefgh1234 ") is TokenSource.KEYRING
    later = store_in(keyring)
    token = later.token(PUBLIC_HUB)
    assert token == Token("hf_abcdefgh1234", TokenSource.KEYRING)
    assert store.keyring_problem() is None
    later.forget(PUBLIC_HUB)
    assert later.token(PUBLIC_HUB) is None
    assert keyring.kept == {}


def test_a_token_is_for_its_own_server(keyring: MemoryKeyring) -> None:
    store = store_in(keyring)
    store.store(PUBLIC_HUB, "hf_one")
    store.store(MIRROR, "hf_two")
    assert value(store.token(f"{PUBLIC_HUB}:443/path")) == "hf_one"
    assert value(store.token(MIRROR)) == "hf_two"
    for other in ("http://mirror.example", "https://mirror.example:444", "https://other.example"):
        assert store.token(other) is None
    store.forget(MIRROR)
    assert value(store.token(PUBLIC_HUB)) == "hf_one"


def test_the_keyring_is_asked_once(keyring: MemoryKeyring) -> None:
    store = store_in(keyring)
    for _ in range(3):
        assert store.token(PUBLIC_HUB) is None
    assert keyring.asked == 1


@pytest.mark.parametrize("backend", [NoKeyring, NullKeyring, PlainFileKeyring])
def test_without_a_keyring_a_token_lasts_until_the_app_closes(backend: Callable[[], KeyringBackend]) -> None:
    keyring = backend()
    store = store_in(keyring)
    assert store.token(PUBLIC_HUB) is None
    assert store.store(PUBLIC_HUB, "hf_secret") is TokenSource.SESSION
    assert store.token(PUBLIC_HUB) == Token("hf_secret", TokenSource.SESSION)
    assert store.keyring_problem() == "This system has no keyring that we can use."
    assert getattr(keyring, "kept", {}) == {}
    assert store_in(backend()).token(PUBLIC_HUB) is None
    store.forget(PUBLIC_HUB)
    assert store.token(PUBLIC_HUB) is None


def test_a_locked_keyring_is_told_and_got_around(keyring: MemoryKeyring) -> None:
    keyring.locked = True
    store = store_in(keyring)
    assert store.token(PUBLIC_HUB) is None
    assert store.keyring_problem() == "The system's keyring does not answer: The collection is locked."
    assert store.store(PUBLIC_HUB, "hf_secret") is TokenSource.SESSION
    assert value(store.token(PUBLIC_HUB)) == "hf_secret"
    store.forget(PUBLIC_HUB)
    assert store.token(PUBLIC_HUB) is None


def test_a_token_that_stays_in_the_keyring_is_told(keyring: MemoryKeyring) -> None:
    store = store_in(keyring)
    store.store(PUBLIC_HUB, "hf_secret")
    keyring.stuck = True
    with pytest.raises(HubError) as error:
        store.forget(PUBLIC_HUB)
    assert error.value.problem is HubProblem.KEYRING
    assert store.token(PUBLIC_HUB) is None


def test_the_environment_goes_first_and_for_the_default_server_alone(
    keyring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_in(keyring)
    store.store(PUBLIC_HUB, "hf_stored")
    monkeypatch.setenv("HF_TOKEN", " hf_given\n")
    assert store.token(PUBLIC_HUB) == Token("hf_given", TokenSource.ENVIRONMENT)
    assert store.token(MIRROR) is None
    monkeypatch.setenv("HF_ENDPOINT", MIRROR)
    assert store.token(MIRROR) == Token("hf_given", TokenSource.ENVIRONMENT)
    assert value(store.token(PUBLIC_HUB)) == "hf_stored"
    store.forget(MIRROR)
    assert value(store.token(MIRROR)) == "hf_given"


@pytest.mark.parametrize("text", ["", "   ", "two words", "hf_ü", "hf_\x00", "hf_a\nhf_b"])
def test_what_is_no_token_is_refused(keyring: MemoryKeyring, text: str) -> None:
    with pytest.raises(HubError) as error:
        store_in(keyring).store(PUBLIC_HUB, text)
    assert error.value.problem is HubProblem.BAD_SETTING
    assert keyring.kept == {}


def test_a_token_does_not_show_itself() -> None:
    token = Token("hf_abcdefgh1234", TokenSource.KEYRING)
    assert "hf_" not in repr(token)
    assert "hf_" not in f"{token}"
    assert token.hint == "…1234"
    assert Token("short", TokenSource.SESSION).hint == "…"


def test_no_file_is_written(keyring: MemoryKeyring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for backend in (lambda: keyring, NoKeyring):
        store_in(backend()).store(PUBLIC_HUB, "hf_secret")
    assert list(tmp_path.rglob("*")) == []

"""How the Hub is reached, and whose token is used: kept at once, tested, and in the keyring alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from forespeak.models.hub_errors import Asked, HubError, HubProblem, answer_error
from forespeak.models.hub_settings import HubSettings, HubSettingsFile
from forespeak.models.hub_token import TokenSource
from forespeak.ui.hub_account import HubAccount, TokenStatus
from ui.hub_desk import Keyring, NoKeyring, token_store
from ui.hub_doubles import FakeHub


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def keyring() -> Keyring:
    return Keyring()


@pytest.fixture
def hub() -> FakeHub:
    return FakeHub()


@pytest.fixture
def account(qtbot: QtBot, tmp_path: Path, keyring: Keyring, hub: FakeHub) -> Iterator[HubAccount]:
    made = HubAccount(HubSettingsFile(tmp_path), token_store(keyring), lambda _: hub)
    yield made
    made.close()
    made.deleteLater()


def test_settings_count_at_once_and_are_kept(qtbot: QtBot, tmp_path: Path, account: HubAccount) -> None:
    before = account.hub()
    client = account.client()
    told: list[HubSettings] = []
    account.settingsChanged.connect(told.append)
    chosen = replace(account.settings, endpoint="https://mirror.example", offline=True)
    account.set_settings(chosen)
    assert told == [chosen]
    assert account.offline
    assert account.client() is not client
    assert account.client().endpoint == "https://mirror.example"
    assert account.hub() is before, "this double is always the same"
    qtbot.waitUntil(lambda: HubSettingsFile(tmp_path).read() == chosen)


def test_a_token_is_stored_and_tried(qtbot: QtBot, account: HubAccount, keyring: Keyring, hub: FakeHub) -> None:
    statuses: list[TokenStatus] = []
    account.tokenChanged.connect(statuses.append)
    with qtbot.waitSignal(account.settingsChanged):
        account.store_token("hf_abcdefghijkl")
    assert statuses[0].busy
    assert account.status == TokenStatus(known=True, source=TokenSource.KEYRING, hint="…ijkl", user="ada")
    assert list(keyring.kept.values()) == ["hf_abcdefghijkl"]
    assert hub.asked == [("account", "")]


def test_a_wrong_token_is_said_so(qtbot: QtBot, account: HubAccount, hub: FakeHub) -> None:
    hub.errors["account"] = answer_error(401, {}, b"", Asked("https://hub.example", has_token=True))
    account.store_token("hf_abcdefghijkl")
    qtbot.waitUntil(lambda: account.status.error is not None)
    error = account.status.error
    assert isinstance(error, HubError)
    assert error.problem is HubProblem.TOKEN_WRONG
    assert account.status.user is None


def test_what_is_no_token_is_not_stored(qtbot: QtBot, account: HubAccount, keyring: Keyring) -> None:
    account.store_token("two words")
    qtbot.waitUntil(lambda: account.status.error is not None)
    assert not account.status.busy
    assert keyring.kept == {}


def test_a_token_is_forgotten(qtbot: QtBot, account: HubAccount, keyring: Keyring) -> None:
    account.store_token("hf_abcdefghijkl")
    qtbot.waitUntil(lambda: account.status.user == "ada")
    account.forget_token()
    qtbot.waitUntil(lambda: account.status == TokenStatus(known=True))
    assert keyring.kept == {}


def test_without_a_keyring_a_token_lasts_as_long_as_the_window(qtbot: QtBot, tmp_path: Path) -> None:
    account = HubAccount(HubSettingsFile(tmp_path), token_store(NoKeyring()), lambda _: FakeHub())
    account.store_token("hf_abcdefghijkl")
    qtbot.waitUntil(lambda: account.status.user == "ada")
    assert account.status.source is TokenSource.SESSION
    assert account.status.keyring_problem == "This system has no keyring that we can use."
    account.close()


def test_another_hub_has_another_token(qtbot: QtBot, account: HubAccount) -> None:
    account.store_token("hf_abcdefghijkl")
    qtbot.waitUntil(lambda: account.status.user == "ada")
    account.set_settings(replace(account.settings, endpoint="https://mirror.example"))
    qtbot.waitUntil(lambda: account.status == TokenStatus(known=True))


def test_settings_that_cannot_be_saved_are_said_so(qtbot: QtBot, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    account = HubAccount(HubSettingsFile(blocked / "folder"), token_store(), lambda _: FakeHub())
    with qtbot.waitSignal(account.problemFound):
        account.set_settings(replace(account.settings, offline=True))
    assert account.offline
    account.close()

"""The settings about the Hub: each counts at once; what cannot be an address is said so and not taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot

from forespeak.models.hub_settings import PUBLIC_HUB, HubSettingsFile
from forespeak.ui.hub_account import HubAccount
from forespeak.ui.hub_page import HubPage
from ui.hub_desk import token_store
from ui.hub_doubles import FakeHub


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def account(qtbot: QtBot, tmp_path: Path) -> Iterator[HubAccount]:
    made = HubAccount(HubSettingsFile(tmp_path), token_store(), lambda _: FakeHub())
    yield made
    made.close()
    made.deleteLater()


@pytest.fixture
def page(qtbot: QtBot, account: HubAccount) -> HubPage:
    made = HubPage(account, limit=20_000_000)
    qtbot.addWidget(made)
    made.show()
    return made


def enter(field: QLineEdit, text: str) -> None:
    field.setText(text)
    QTest.keyClick(field, Qt.Key.Key_Return)


def test_a_mirror_is_taken_and_tidied_up(account: HubAccount, page: HubPage) -> None:
    assert page.endpoint.field.text() == ""
    assert page.endpoint.field.placeholderText() == PUBLIC_HUB
    enter(page.endpoint.field, " mirror.example/hub/ ")
    assert account.settings.endpoint == "https://mirror.example/hub"
    assert page.endpoint.field.text() == "https://mirror.example/hub"
    enter(page.endpoint.field, "")
    assert account.settings.endpoint == PUBLIC_HUB


def test_what_is_no_address_is_not_taken(account: HubAccount, page: HubPage) -> None:
    for field, text in ((page.endpoint, "ftp://mirror.example"), (page.proxy, "http://proxy.example/path")):
        before = account.settings
        enter(field.field, text)
        assert account.settings == before
        assert field.problem.isVisible()
        assert field.problem.property("danger") is True
        assert field.field.text() == text, "what was typed stays, to be put right"
        assert field.field.accessibleDescription() == field.problem.text()
        enter(field.field, "")
        assert not field.problem.isVisible()


def test_a_proxy_is_taken(account: HubAccount, page: HubPage) -> None:
    enter(page.proxy.field, "proxy.example:3128")
    assert account.settings.proxy == "http://proxy.example:3128"
    enter(page.proxy.field, "")
    assert account.settings.proxy is None


def test_offline(account: HubAccount, page: HubPage) -> None:
    page.offline.click()
    assert account.settings.offline
    account.set_settings(replace(account.settings, offline=False))
    assert not page.offline.isChecked()


def test_the_environment_can_keep_us_offline(
    account: HubAccount, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    page = HubPage(account)
    qtbot.addWidget(page)
    assert page.offline.isChecked()
    assert not page.offline.isEnabled()
    assert "HF_HUB_OFFLINE" in page.offline_note.text()
    assert not account.settings.offline, "it is not ours to keep"


def test_an_open_connection_is_warned_of(page: HubPage) -> None:
    enter(page.endpoint.field, "http://mirror.example")
    assert page.endpoint.problem.text() == "The connection is not encrypted, so no token is sent there."
    assert page.endpoint.problem.property("danger") is False


def test_the_token_goes_to_the_account(qtbot: QtBot, account: HubAccount, page: HubPage) -> None:
    page.token.field.setText("hf_abcdefghijkl")
    page.token.store_button.click()
    qtbot.waitUntil(lambda: page.token.outcome.text() == "Signed in as ada.")
    page.token.forget_button.click()
    qtbot.waitUntil(lambda: account.status.source is None)


def test_the_limit_is_in_megabytes(qtbot: QtBot, page: HubPage) -> None:
    assert page.limit.value() == 20
    with qtbot.waitSignal(page.limitChanged) as changed:
        page.limit.setValue(3)
    assert changed.args == [3_000_000]
    with qtbot.waitSignal(page.limitChanged) as changed:
        page.limit.setValue(0)
    assert changed.args == [None]
    with qtbot.assertNotEmitted(page.limitChanged):
        page.set_limit(300)
    assert page.limit.value() == 1

"""A token is typed unseen, kept in the keyring, tested, and said in words where it is."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot

from forespeak.errors import UserFacingError
from forespeak.models.hub_token import TokenSource
from forespeak.ui.hub_account import TokenStatus
from forespeak.ui.token_entry import TokenEntry

STORED = TokenStatus(known=True, source=TokenSource.KEYRING, hint="…ijkl")


@pytest.fixture
def entry(qtbot: QtBot) -> TokenEntry:
    made = TokenEntry()
    qtbot.addWidget(made)
    made.show()
    return made


def shown(entry: TokenEntry) -> set[str]:
    buttons = {"store": entry.store_button, "test": entry.test_button, "forget": entry.forget_button}
    return {name for name, button in buttons.items() if button.isVisible()}


def test_it_is_typed_unseen_and_stored(qtbot: QtBot, entry: TokenEntry) -> None:
    entry.show_status(TokenStatus(known=True))
    assert entry.field.echoMode() is QLineEdit.EchoMode.Password
    assert not entry.store_button.isEnabled()
    QTest.keyClicks(entry.field, " hf_secret ")
    with qtbot.waitSignal(entry.storeRequested) as stored:
        QTest.keyClick(entry.field, Qt.Key.Key_Return)
    assert stored.args == ["hf_secret"]


def test_a_stored_one_is_never_shown(qtbot: QtBot, entry: TokenEntry) -> None:
    entry.field.setText("hf_abcdefghijkl")
    entry.show_status(TokenStatus(known=True, source=TokenSource.KEYRING, hint="…ijkl", user="ada"))
    assert entry.field.text() == ""
    assert entry.field.placeholderText() == "Stored: …ijkl"
    assert entry.outcome.text() == "Signed in as ada."
    assert "keyring" in entry.place.text()
    assert entry.outcome.property("success") is True
    assert shown(entry) == {"test", "forget"}
    for button, signal in ((entry.test_button, entry.testRequested), (entry.forget_button, entry.forgetRequested)):
        with qtbot.waitSignal(signal):
            button.click()


def test_a_refusal_is_said_with_its_remedy(entry: TokenEntry) -> None:
    entry.show_status(
        TokenStatus(known=True, error=UserFacingError("Not accepted.", "It says: no.", "Make a new one."))
    )
    assert entry.outcome.text() == "Not accepted. It says: no. Make a new one."
    assert entry.outcome.property("danger") is True


def test_while_the_hub_is_asked_nothing_can_be_pressed(qtbot: QtBot, entry: TokenEntry) -> None:
    entry.field.setText("hf_x")
    entry.show_status(TokenStatus(known=True, busy=True))
    assert entry.outcome.text() == "Asking the Hub…"
    assert not entry.field.isEnabled()
    with qtbot.assertNotEmitted(entry.storeRequested):
        entry.field.returnPressed.emit()


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (TokenStatus(known=True), "will be kept in your system's keyring"),
        (STORED, "kept in your system's keyring, in no file"),
        (TokenStatus(known=True, source=TokenSource.ENVIRONMENT, hint="…"), "HF_TOKEN"),
        (
            TokenStatus(known=True, source=TokenSource.SESSION, hint="…", keyring_problem="There is no keyring."),
            "until Forespeak closes. There is no keyring.",
        ),
        (TokenStatus(known=True, keyring_problem="There is no keyring."), "There is no keyring. A token would be kept"),
    ],
)
def test_where_it_is_kept(entry: TokenEntry, status: TokenStatus, words: str) -> None:
    entry.show_status(status)
    assert words in entry.place.text()


def test_the_environments_own_cannot_be_removed(entry: TokenEntry) -> None:
    entry.show_status(TokenStatus(known=True, source=TokenSource.ENVIRONMENT, hint="…"))
    assert shown(entry) == {"test"}


def test_another_one_can_be_typed_over(entry: TokenEntry) -> None:
    entry.show_status(STORED)
    entry.field.setText("hf_new")
    assert shown(entry) == {"store"}

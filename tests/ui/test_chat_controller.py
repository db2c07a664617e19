"""Chatting, as a person does it: type, press Enter, watch, stop, ask again, come back."""

from __future__ import annotations

import threading
from functools import partial

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QLineEdit
from pytestqt.qtbot import QtBot

from forespeak.chats.records import MessageState
from forespeak.engines.engine import Died, Failed, Role
from forespeak.errors import UserFacingError
from forespeak.speculation.trace import Source
from forespeak.ui.chat_records import history_of, title_of
from forespeak.ui.dialogs import ErrorDialog
from forespeak.ui.message_body import MessageBody
from ui.conftest import TEXT, App, AppMaker
from ui.scripted_engine import Script, scripted_steps

LONG = " ".join(f"word{n}" for n in range(400))


def write(qtbot: QtBot, app: App, text: str) -> None:
    edit = app.window.composer.edit
    edit.setFocus()
    QTest.keyClicks(edit, text)
    QTest.keyClick(edit, Qt.Key.Key_Return)


def idle(app: App) -> bool:
    return not app.session.chats.busy and app.session.chat_worker.idle and not app.session.saver.pending


def send(qtbot: QtBot, app: App, text: str) -> None:
    """Write a message and wait until its reply is over and saved."""
    before = len(app.engine.generations)
    write(qtbot, app, text)
    qtbot.waitUntil(lambda: len(app.engine.generations) > before and idle(app))


def dismiss_error(qtbot: QtBot, app: App, words: str) -> None:
    qtbot.waitUntil(lambda: app.window.findChild(ErrorDialog) is not None)
    dialog = app.window.findChild(ErrorDialog)
    assert isinstance(dialog, ErrorDialog)
    assert any(words in label.text() for label in dialog.findChildren(QLabel))
    dialog.close()
    qtbot.waitUntil(lambda: app.window.findChild(ErrorDialog) is None)


def tick(app: App, source: Source) -> None:
    """Click a source's box in the menu of the switch, which stays open."""
    speculation = app.window.top.speculation
    if not speculation.menu.isVisible():
        QTest.mouseClick(speculation.source_button, Qt.MouseButton.LeftButton)
    QTest.mouseClick(speculation.menu.boxes[source], Qt.MouseButton.LeftButton, pos=QPoint(10, 10))
    assert speculation.menu.isVisible()
    speculation.menu.close()


def rename(app: App, words: str) -> None:
    """Give the open chat another name in the list."""
    app.commands["rename"].trigger()
    editor = app.window.chats.view.findChild(QLineEdit)
    assert isinstance(editor, QLineEdit)
    editor.setText(words)
    QTest.keyClick(editor, Qt.Key.Key_Return)


def texts(app: App) -> list[str]:
    return [item.text for item in app.session.chats.items]


def test_enter_sends_and_the_reply_is_shown_and_saved(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    send(qtbot, app, "Explain the theorem of Pythagoras to me please")
    assert texts(app) == ["Explain the theorem of Pythagoras to me please", TEXT]
    assert not app.window.composer.text()
    (chat,) = app.store.chats()
    assert chat.title == "Explain the theorem of Pythagoras to…"
    question, reply = app.store.branch(chat.id)
    assert (question.role, reply.text, reply.state) == (Role.USER, TEXT, MessageState.COMPLETE)
    assert reply.stats is not None
    assert reply.stats.generated_tokens == len(scripted_tokens())
    assert app.store.steps(reply.id) == tuple(scripted_steps(TEXT))
    assert app.window.chats.model.index_of(chat.id).isValid()


def scripted_tokens() -> list[object]:
    return [token for step in scripted_steps(TEXT) for token in step.emitted]


def test_the_model_reads_the_branch_and_the_system_prompt(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app(system_prompt="Be brief.")
    send(qtbot, app, "One")
    send(qtbot, app, "Two")
    asked = app.engine.generations[-1]
    assert [(message.role, message.content) for message in asked.messages] == [
        (Role.SYSTEM, "Be brief."),
        (Role.USER, "One"),
        (Role.ASSISTANT, TEXT),
        (Role.USER, "Two"),
    ]
    assert asked.alternatives == 3
    assert asked.sources == (Source.PROMPT_LOOKUP, Source.DRAFT_MODEL)


def test_the_switch_counts_for_the_next_message_and_reloads_nothing(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app(sources=(Source.DRAFT_MODEL,))
    send(qtbot, app, "With")
    QTest.mouseClick(app.window.top.speculation.switch, Qt.MouseButton.LeftButton)
    send(qtbot, app, "Without")
    tick(app, Source.PROMPT_LOOKUP)
    send(qtbot, app, "Lookup")
    tick(app, Source.DRAFT_MODEL)
    send(qtbot, app, "Chain")
    tick(app, Source.PROMPT_LOOKUP)
    tick(app, Source.DRAFT_MODEL)
    send(qtbot, app, "Off again")
    sources = [request.sources for request in app.engine.generations]
    chain = (Source.PROMPT_LOOKUP, Source.DRAFT_MODEL)
    assert sources == [(Source.DRAFT_MODEL,), (), (Source.PROMPT_LOOKUP,), chain, ()]
    assert len(app.engine.loads) == 1


def test_without_a_draft_model_the_text_is_looked_up(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app(draft=None)
    send(qtbot, app, "Draft with what there is")
    assert app.engine.generations[-1].sources == (Source.PROMPT_LOOKUP,)
    (chat,) = app.store.chats()
    assert app.store.branch(chat.id)[1].settings["sources"] == ["prompt-lookup"]


def test_a_random_seed_is_drawn_for_each_reply_and_kept_with_it(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    send(qtbot, app, "One")
    send(qtbot, app, "Two")
    first, second = (request.sampling.seed for request in app.engine.generations)
    assert first != second
    (chat,) = app.store.chats()
    sampling = app.store.branch(chat.id)[1].settings["sampling"]
    assert isinstance(sampling, dict)
    assert sampling["seed"] == first


def test_a_speed_without_speculation_is_what_later_replies_are_compared_with(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app(speculate=False, scripts=[Script(scripted_steps(TEXT, None), rate=2000)])
    send(qtbot, app, "Plain")
    QTest.mouseClick(app.window.top.speculation.switch, Qt.MouseButton.LeftButton)
    send(qtbot, app, "Fast")
    plain, fast = app.session.chats.items[1], app.session.chats.items[3]
    assert plain.plain_tokens_per_second is None
    assert plain.stats is not None
    assert fast.plain_tokens_per_second == plain.stats.tokens_per_second


def test_escape_stops_and_what_was_written_stays(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app(scripts=[Script(scripted_steps(LONG), rate=100)])
    write(qtbot, app, "Go on for long")
    qtbot.waitUntil(lambda: len(app.session.chats.text_of(app.session.chats.last_reply() or 0)) > 20)
    assert app.window.composer.button.text() == "Stop"
    QTest.keyClick(app.window.composer.edit, Qt.Key.Key_Escape)
    qtbot.waitUntil(partial(idle, app))
    item = app.session.chats.items[-1]
    assert item.state == "stopped"
    assert 20 < len(item.text) < len(LONG)
    assert LONG.startswith(item.text)
    assert app.store.message(item.id).state is MessageState.STOPPED
    assert app.store.message(item.id).text == item.text
    assert app.window.composer.button.text() == "Send"


def test_regenerating_adds_a_version_and_the_arrows_go_between_them(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app(scripts=[Script(scripted_steps("First answer.")), Script(scripted_steps("Second answer."))])
    send(qtbot, app, "Ask")
    app.commands["regenerate"].trigger()
    qtbot.waitUntil(lambda: texts(app) == ["Ask", "Second answer."] and idle(app))
    item = app.session.chats.items[-1]
    assert (item.version, item.versions) == (2, 2)
    app.window.conversation.versionRequested.emit(item.id, 1)
    qtbot.waitUntil(lambda: texts(app) == ["Ask", "First answer."])
    assert app.session.chats.items[-1].version == 1


def test_editing_a_message_branches_and_keeps_the_old_one(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    send(qtbot, app, "Old wording")
    edit = app.window.composer.edit
    QTest.keyClick(edit, Qt.Key.Key_Up)
    assert edit.toPlainText() == "Old wording"
    assert app.window.composer.editing_note.isVisible()
    edit.clear()
    send(qtbot, app, "New wording")
    assert texts(app)[0] == "New wording"
    assert not app.window.composer.editing_note.isVisible()
    question = app.session.chats.items[0]
    assert (question.version, question.versions) == (2, 2)
    assert [message.text for message in app.store.siblings(question.id)] == ["Old wording", "New wording"]
    assert [message.content for message in app.engine.generations[-1].messages] == ["New wording"]


def test_cancelling_an_edit_sends_the_next_text_as_a_message_of_its_own(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    send(qtbot, app, "One")
    QTest.keyClick(app.window.composer.edit, Qt.Key.Key_Up)
    QTest.mouseClick(app.window.composer.cancel_edit, Qt.MouseButton.LeftButton)
    send(qtbot, app, "Two")
    assert texts(app) == ["One", TEXT, "Two", TEXT]


def test_a_death_keeps_the_partial_reply_and_the_next_message_works(qtbot: QtBot, make_app: AppMaker) -> None:
    death = Died("The engine stopped unexpectedly.", "Memory ran out.", "The next message starts it again.", "ggml log")
    app = make_app(scripts=[Script(scripted_steps(TEXT), ending=death, after=3), Script(scripted_steps(TEXT))])
    send(qtbot, app, "One")
    item = app.session.chats.items[-1]
    assert item.state == "interrupted"
    assert 0 < len(item.text) < len(TEXT)
    assert TEXT.startswith(item.text)
    assert "Memory ran out." in item.note
    assert app.store.message(item.id).text == item.text
    assert app.session.chats.details_of(item.id) == "ggml log"
    assert "stopped unexpectedly" in app.window.banner.text()
    QTest.mouseClick(app.window.banner.action, Qt.MouseButton.LeftButton)
    dismiss_error(qtbot, app, "stopped unexpectedly")
    send(qtbot, app, "Two")
    assert texts(app)[-1] == TEXT


def test_a_failure_says_what_why_and_what_to_do(qtbot: QtBot, make_app: AppMaker) -> None:
    failed = Failed("The chat does not fit.", "It has 9,000 tokens.", "Start a new chat.")
    app = make_app(scripts=[Script([], ending=failed)])
    send(qtbot, app, "Hello")
    item = app.session.chats.items[-1]
    assert item.state == "failed"
    assert item.note == "The chat does not fit. It has 9,000 tokens. Start a new chat."
    assert app.store.message(item.id).state is MessageState.FAILED


def test_a_reply_goes_on_in_another_chat_and_is_live_on_return(qtbot: QtBot, make_app: AppMaker) -> None:
    gate = threading.Event()
    app = make_app(scripts=[Script(scripted_steps(LONG), rate=400), Script(scripted_steps(TEXT))])
    write(qtbot, app, "Long one")
    qtbot.waitUntil(lambda: app.session.chats.chat is not None and len(app.session.chats.text_of(2)) > 10)
    chat = app.session.chats.chat
    assert chat is not None
    QTest.keyClick(app.window, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: app.session.chats.chat is None)
    assert app.window.composer.button.text() == "Send"
    before = len(app.session.chats.text_of(2))
    qtbot.waitUntil(lambda: len(app.session.chats.text_of(2)) > before + 50)
    app.window.chats.chatSelected.emit(chat.id)
    qtbot.waitUntil(lambda: app.session.chats.chat is not None)
    assert app.window.composer.button.text() == "Stop"
    assert len(app.session.chats.items[-1].text) > before
    qtbot.waitUntil(partial(idle, app), timeout=10_000)
    assert app.session.chats.items[-1].text == LONG
    assert app.store.message(2).text == LONG
    gate.set()


def test_replies_in_two_chats_come_one_after_the_other(qtbot: QtBot, make_app: AppMaker) -> None:
    hold = threading.Event()
    app = make_app(scripts=[Script(scripted_steps("First."), hold=hold), Script(scripted_steps("Second."))])
    write(qtbot, app, "One")
    qtbot.waitUntil(lambda: len(app.engine.generations) == 1)
    app.commands["new"].trigger()
    write(qtbot, app, "Two")
    qtbot.waitUntil(lambda: len(app.engine.generations) == 2)
    assert app.session.replies.busy_chats == {1, 2}
    hold.set()
    qtbot.waitUntil(lambda: idle(app) and not app.session.replies.busy_chats)
    assert texts(app) == ["Two", "Second."]
    assert [message.text for message in app.store.branch(1)] == ["One", "First."]


def test_a_growing_reply_is_on_disk_within_a_second(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app(scripts=[Script(scripted_steps(LONG), rate=60)])
    write(qtbot, app, "Go")
    qtbot.waitUntil(lambda: len(app.session.chats.text_of(2)) > 0)
    qtbot.waitUntil(lambda: len(app.store.message(2).text) > 0, timeout=1500)
    assert app.store.message(2).state is MessageState.GENERATING
    assert LONG.startswith(app.store.message(2).text)


def test_closing_the_window_saves_what_was_written(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app(scripts=[Script(scripted_steps(LONG), rate=100)])
    write(qtbot, app, "Go")
    qtbot.waitUntil(lambda: len(app.session.chats.text_of(2)) > 40)
    shown = app.session.chats.text_of(2)
    app.window.close()
    from forespeak.chats.store import ChatStore

    with ChatStore(app.folder / "chats.db") as store:
        message = store.message(2)
    assert message.state is MessageState.STOPPED
    assert message.text.startswith(shown)


class FullDisk:
    """A store whose disk is full for a while."""

    def __init__(self, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        self.refused = 0
        for name in ("append_steps", "add_message"):
            monkeypatch.setattr(app.store, name, self._guarded(getattr(app.store, name)))

    def _guarded(self, method: object) -> object:
        def call(*args: object, **named: object) -> object:
            if self.full:
                self.refused += 1
                raise UserFacingError("The chat could not be saved.", "No space is left.", "Free some disk space.")
            return method(*args, **named)  # type: ignore[operator]

        return call


def test_a_full_disk_is_told_and_the_text_saved_once_there_is_room(
    qtbot: QtBot, make_app: AppMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app()
    disk = FullDisk(app, monkeypatch)
    disk.full = True
    write(qtbot, app, "Hello")
    qtbot.waitUntil(lambda: disk.refused == 1)
    dismiss_error(qtbot, app, "could not be saved")
    assert app.window.composer.text() == "Hello"
    disk.full = False
    app.engine.scripts[:] = [Script(scripted_steps(TEXT), rate=100)]
    app.window.composer.edit.setFocus()
    QTest.keyClick(app.window.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: len(app.session.chats.text_of(app.session.chats.last_reply() or 0)) > 5)
    disk.full = True
    qtbot.waitUntil(lambda: not app.session.chats.busy)
    qtbot.waitUntil(lambda: "could not be saved" in app.window.banner.text())
    assert texts(app) == ["Hello", TEXT]
    disk.full = False
    QTest.mouseClick(app.window.banner.action, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(partial(idle, app))
    assert app.window.banner.text() == ""
    reply = app.session.chats.last_reply()
    assert reply is not None
    assert app.store.message(reply).text == TEXT
    assert app.store.steps(reply) == tuple(scripted_steps(TEXT))


def test_deleting_can_be_undone(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    send(qtbot, app, "Keep me")
    app.window.chats.view.setFocus()
    QTest.keyClick(app.window.chats.view, Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: app.store.chats() == () and app.window.toast.isVisible())
    assert app.session.chats.chat is None
    assert "Keep me" in app.window.toast.label.text()
    app.commands["undo"].trigger()
    qtbot.waitUntil(lambda: len(app.store.chats()) == 1 and texts(app) == ["Keep me", TEXT])
    assert not app.window.toast.isVisible()


def test_undo_in_the_composer_is_for_its_own_text_first(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    send(qtbot, app, "Keep me")
    app.commands["delete"].trigger()
    qtbot.waitUntil(lambda: app.store.chats() == () and app.window.toast.isVisible())
    edit = app.window.composer.edit
    edit.setFocus()
    QTest.keyClicks(edit, "abc")
    QTest.keyClick(edit, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert edit.toPlainText() == ""
    assert app.store.chats() == ()
    QTest.keyClick(edit, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: len(app.store.chats()) == 1)


def test_a_renamed_chat_keeps_its_name(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    send(qtbot, app, "First words")
    rename(app, "旅行計畫:京都 🍁")
    qtbot.waitUntil(lambda: app.store.chats()[0].title == "旅行計畫:京都 🍁")
    send(qtbot, app, "Second message")
    assert app.store.chats()[0].title == "旅行計畫:京都 🍁"


def test_searching_finds_words_inside_messages(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    send(qtbot, app, "Apples")
    app.commands["new"].trigger()
    send(qtbot, app, "Bananas are yellow")
    QTest.keyClick(app.window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert app.window.chats.search.hasFocus()
    QTest.keyClicks(app.window.chats.search, "yellow")
    qtbot.waitUntil(lambda: app.window.chats.model.rowCount() == 1)
    QTest.keyClicks(app.window.chats.search, " submarine")
    qtbot.waitUntil(app.window.chats.empty.isVisible)
    QTest.keyClick(app.window.chats.search, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: app.window.chats.model.rowCount() == 3)


def test_a_text_begun_in_one_chat_waits_there(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    send(qtbot, app, "One")
    chat = app.session.chats.chat
    assert chat is not None
    QTest.keyClicks(app.window.composer.edit, "half a thought")
    app.commands["new"].trigger()
    assert app.window.composer.text() == ""
    app.window.chats.chatSelected.emit(chat.id)
    qtbot.waitUntil(lambda: app.window.composer.text() == "half a thought")


def composer_text(app: App) -> str:
    return app.window.composer.text()


def test_a_text_that_was_begun_stays_whatever_is_done_in_its_chat(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app(scripts=[Script(scripted_steps("First answer.")), Script(scripted_steps("Second answer."))])
    send(qtbot, app, "Ask")
    QTest.keyClicks(app.window.composer.edit, "half a thought")
    app.commands["regenerate"].trigger()
    qtbot.waitUntil(lambda: texts(app) == ["Ask", "Second answer."] and idle(app))
    assert composer_text(app) == "half a thought"
    app.window.conversation.versionRequested.emit(app.session.chats.items[-1].id, 1)
    qtbot.waitUntil(lambda: texts(app) == ["Ask", "First answer."])
    assert composer_text(app) == "half a thought"
    # Not even its undoing is lost.
    QTest.keyClick(app.window.composer.edit, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert composer_text(app) == ""


def test_a_text_waits_while_an_earlier_message_is_edited(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    send(qtbot, app, "One")
    QTest.keyClicks(app.window.composer.edit, "half a thought")
    app.window.conversation.editRequested.emit(app.session.chats.items[0].id)
    assert composer_text(app) == "One"
    QTest.keyClick(app.window.composer.edit, Qt.Key.Key_Escape)
    assert composer_text(app) == "half a thought"
    app.window.conversation.editRequested.emit(app.session.chats.items[0].id)
    QTest.keyClicks(app.window.composer.edit, " more")
    QTest.keyClick(app.window.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: texts(app) == ["One more", TEXT] and idle(app))
    assert composer_text(app) == "half a thought"
    assert not app.window.composer.editing_note.isVisible()


def test_an_edit_goes_on_after_another_chat_was_looked_at(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    send(qtbot, app, "One")
    chat = app.session.chats.chat
    assert chat is not None
    QTest.keyClicks(app.window.composer.edit, "waiting")
    app.window.conversation.editRequested.emit(app.session.chats.items[0].id)
    QTest.keyClicks(app.window.composer.edit, " more")
    app.commands["new"].trigger()
    assert composer_text(app) == ""
    assert not app.window.composer.editing_note.isVisible()
    app.window.chats.chatSelected.emit(chat.id)
    qtbot.waitUntil(lambda: composer_text(app) == "One more")
    assert app.window.composer.editing_note.isVisible()
    QTest.keyClick(app.window.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: texts(app) == ["One more", TEXT] and idle(app))
    assert composer_text(app) == "waiting"


def test_an_edit_whose_message_goes_out_of_sight_becomes_a_message(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    send(qtbot, app, "Old wording")
    QTest.keyClick(app.window.composer.edit, Qt.Key.Key_Up)
    app.window.composer.edit.clear()
    send(qtbot, app, "New wording")
    QTest.keyClick(app.window.composer.edit, Qt.Key.Key_Up)
    QTest.keyClicks(app.window.composer.edit, " and more")
    app.window.conversation.versionRequested.emit(app.session.chats.items[0].id, 1)
    qtbot.waitUntil(lambda: texts(app)[0] == "Old wording")
    assert composer_text(app) == "New wording and more"
    assert not app.window.composer.editing_note.isVisible()


def test_what_was_unsent_in_a_deleted_chat_comes_back_with_it(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    send(qtbot, app, "Keep me")
    QTest.keyClicks(app.window.composer.edit, "unsent")
    app.commands["delete"].trigger()
    qtbot.waitUntil(lambda: app.store.chats() == () and app.window.toast.isVisible())
    assert composer_text(app) == ""
    QTest.keyClicks(app.window.composer.edit, "of a new chat")
    app.commands["undo"].trigger()
    qtbot.waitUntil(lambda: composer_text(app) == "unsent")
    app.commands["new"].trigger()
    assert composer_text(app) == "of a new chat"


def test_a_new_chat_right_after_sending_is_free(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app(scripts=[Script(scripted_steps(LONG), rate=100)])
    gate = threading.Event()
    app.session.chat_worker.run(lambda: gate.wait(20))
    write(qtbot, app, "Sent into a slow store")
    app.commands["new"].trigger()
    QTest.keyClicks(app.window.composer.edit, " of a new chat")
    gate.set()
    qtbot.waitUntil(lambda: len(app.session.replies.busy_chats) == 1)
    qtbot.waitUntil(lambda: app.window.composer.button.text() == "Send")
    # What was sent has gone, what was typed since is there.
    assert composer_text(app) == " of a new chat"
    (chat,) = app.session.replies.busy_chats
    app.window.chats.chatSelected.emit(chat)
    qtbot.waitUntil(lambda: app.window.composer.button.text() == "Stop")
    assert composer_text(app) == ""


def test_speculation_that_is_off_is_said_in_every_chat(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    send(qtbot, app, "One")
    chat = app.session.chats.chat
    assert chat is not None
    QTest.mouseClick(app.window.top.speculation.switch, Qt.MouseButton.LeftButton)

    def is_said() -> bool:
        return any("switched off" in label.text() for label in app.window.panel.findChildren(QLabel))

    assert is_said()
    app.commands["new"].trigger()
    assert is_said()
    app.window.chats.chatSelected.emit(chat.id)
    qtbot.waitUntil(lambda: texts(app) == ["One", TEXT])
    assert is_said()


def test_the_window_is_named_after_a_renamed_chat(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    send(qtbot, app, "First words")
    rename(app, "Another name")
    qtbot.waitUntil(lambda: app.window.windowTitle().startswith("Another name"))


def test_escape_gives_up_a_chosen_token_before_it_stops_a_reply(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app(scripts=[Script(scripted_steps(LONG), rate=50)])
    write(qtbot, app, "Go on for long")
    qtbot.waitUntil(lambda: len(app.session.chats.text_of(app.session.chats.last_reply() or 0)) > 20)
    body = next(body for body in app.window.conversation.findChildren(MessageBody) if len(body.document.provenance))
    body.setFocus()
    QTest.keyClick(body, Qt.Key.Key_Right)
    qtbot.waitUntil(lambda: body.has_choice)
    QTest.keyClick(body, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not body.has_choice)
    assert app.session.chats.busy
    QTest.keyClick(body, Qt.Key.Key_Escape)
    qtbot.waitUntil(partial(idle, app))
    assert app.session.chats.items[-1].state == "stopped"


def test_the_last_chat_is_open_again_after_a_restart(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    send(qtbot, app, "Remember")
    chat = app.session.chats.chat
    assert chat is not None
    app.window.close()
    again = make_app(last_chat=chat.id)
    qtbot.waitUntil(lambda: texts(again) == ["Remember", TEXT])
    assert again.session.chats.items[-1].steps == tuple(scripted_steps(TEXT))


def test_copying_the_last_reply(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    send(qtbot, app, "One")
    app.commands["copy"].trigger()
    assert QGuiApplication.clipboard().text() == TEXT


def test_the_context_meter_follows_the_reply(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    send(qtbot, app, "One")
    used = scripted_steps(TEXT)[-1].cache_length
    assert app.window.composer.context.text() == f"Context: {used} of 2,048 tokens used"


def test_titles_are_the_first_words_on_one_line() -> None:
    assert title_of("Hello\nthere") == "Hello there"
    assert title_of("one two three four five six seven") == "one two three four five six…"
    assert title_of("x" * 100) == "x" * 60 + "…"


def test_the_history_alternates_and_leaves_out_what_is_empty() -> None:
    history = history_of("", [(Role.USER, "One"), (Role.ASSISTANT, ""), (Role.USER, "Two")])
    assert [(message.role, message.content) for message in history] == [(Role.USER, "One\n\nTwo")]
    assert [message.role for message in history_of("Rule", [(Role.USER, "x")])] == [Role.SYSTEM, Role.USER]

"""The chats on the window: the list, the composer and what is asked of single messages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QGuiApplication

from forespeak.chats.records import Chat
from forespeak.ui.chat_controller import ChatController
from forespeak.ui.chat_list import ChatEntry
from forespeak.ui.main_window import MainWindow
from forespeak.ui.reply_controller import ReplyController


@dataclass(frozen=True, slots=True)
class _Unsent:
    """What waits in a chat's composer: a message, and the new wording of an earlier one while that is edited."""

    text: str = ""
    edited: int | None = None
    wording: str = ""

    def as_message(self) -> str:
        """All of it, where there is nothing left to edit."""
        return "\n".join(text for text in (self.text, self.wording) if text)


class ChatView(QObject):
    def __init__(
        self, window: MainWindow, chats: ChatController, replies: ReplyController, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._chats = chats
        self._replies = replies
        self._unsent: dict[int | None, _Unsent] = {}
        """Of the chats that are not shown, by chat; None: of the new one."""
        self._shown: int | None = None
        """The chat that the composer's text belongs to."""
        self._waiting = ""
        """What was in the composer before a message was edited there."""
        self._edited: int | None = None
        """The message whose new wording is in the composer."""
        sidebar, composer, view = window.chats, window.composer, window.conversation
        window.newChatRequested.connect(self.new_chat)
        sidebar.chatSelected.connect(self._select_chat)
        sidebar.renameRequested.connect(chats.rename)
        sidebar.deleteRequested.connect(chats.delete)
        sidebar.searchChanged.connect(chats.search)
        composer.sendRequested.connect(chats.send)
        composer.stopRequested.connect(chats.stop)
        composer.editLastRequested.connect(self.edit_last)
        composer.editCancelled.connect(self._cancel_edit)
        view.regenerateRequested.connect(chats.regenerate)
        view.editRequested.connect(self._edit)
        view.copyRequested.connect(self._copy)
        view.versionRequested.connect(chats.show_version)
        chats.chatsChanged.connect(self._show_chats)
        chats.chatOpened.connect(self._chat_opened)
        chats.chatRenamed.connect(self._show_title)
        chats.busyChanged.connect(self._show_busy)
        chats.messageTaken.connect(self._message_taken)
        chats.chatDeleted.connect(self._chat_deleted)

    @Slot()
    def new_chat(self) -> None:
        self._chats.new_chat()
        self._window.composer.setFocus()

    @Slot(int)
    def _select_chat(self, chat: int) -> None:
        self._chats.open_chat(chat)

    @Slot(object)
    def _show_chats(self, chats: tuple[Chat, ...]) -> None:
        busy = self._replies.busy_chats
        open_chat = self._chats.chat
        entries = [
            ChatEntry(
                chat.id,
                chat.title or self.tr("Untitled"),
                datetime.fromtimestamp(chat.updated_at).astimezone(),
                chat.id in busy,
            )
            for chat in chats
        ]
        now = datetime.now().astimezone()
        self._window.chats.set_entries(entries, None if open_chat is None else open_chat.id, now)

    @Slot(object)
    def _chat_opened(self, chat: Chat | None) -> None:
        key = None if chat is None else chat.id
        self._window.chats.set_current(key)
        self._show_title(chat)
        if key != self._shown:
            self._keep_text()
            self._shown = key
            self._fill_composer(self._unsent.pop(key, _Unsent()))
        elif self._edited is not None and self._chats.editing != self._edited:
            # The message being edited is not on this branch: its new wording becomes a message of its own.
            self._fill_composer(_Unsent(self._waiting, None, self._window.composer.text()))

    def _keep_text(self) -> None:
        text = self._window.composer.text()
        unsent = _Unsent(text) if self._edited is None else _Unsent(self._waiting, self._edited, text)
        if unsent != _Unsent():
            self._unsent[self._shown] = unsent

    def _fill_composer(self, unsent: _Unsent) -> None:
        editing = unsent.edited is not None and self._chats.go_on_editing(unsent.edited)
        self._edited = unsent.edited if editing else None
        self._waiting = unsent.text if editing else ""
        text = unsent.wording if editing else unsent.as_message()
        composer = self._window.composer
        composer.set_editing(editing)
        if text != composer.text():
            composer.set_text(text)

    @Slot(object)
    def _show_title(self, chat: Chat | None) -> None:
        self._window.setWindowTitle("Forespeak" if chat is None else f"{chat.title} – Forespeak")

    @Slot()
    def _show_busy(self) -> None:
        self._window.composer.set_generating(self._chats.busy)

    @Slot(object, str)
    def _message_taken(self, sent_from: int | None, text: str) -> None:
        if sent_from != self._shown:
            # Another chat was opened meanwhile, and what was sent went to those that wait.
            waiting = self._unsent.pop(sent_from, _Unsent())
            if waiting.edited is not None and waiting.text:
                self._unsent[sent_from] = _Unsent(waiting.text)
        elif self._edited is not None:
            self._fill_composer(_Unsent(self._waiting))
        else:
            self._fill_composer(_Unsent(self._window.composer.text().removeprefix(text)))

    @Slot(object)
    def _chat_deleted(self, chat: Chat) -> None:
        title = chat.title if len(chat.title) <= 40 else f"{chat.title[:39]}…"
        words = self.tr("Deleted “{title}”").format(title=title)
        self._window.toast.offer(words, self.tr("Undo"), lambda: self._chats.restore(chat.id))

    @Slot()
    def edit_last(self) -> None:
        self._begin_edit(self._chats.edit())

    @Slot(int)
    def _edit(self, message: int) -> None:
        self._begin_edit(self._chats.edit(message))

    def _begin_edit(self, text: str | None) -> None:
        if text is not None:
            composer = self._window.composer
            waiting = composer.text() if self._edited is None else self._waiting
            self._fill_composer(_Unsent(waiting, self._chats.editing, text))
            composer.setFocus()

    @Slot()
    def _cancel_edit(self) -> None:
        self._chats.cancel_edit()
        self._fill_composer(_Unsent(self._waiting))

    @Slot(int)
    def _copy(self, message: int) -> None:
        QGuiApplication.clipboard().setText(self._chats.text_of(message))

    @Slot()
    def copy_last_reply(self) -> None:
        last = self._chats.last_reply()
        if last is not None:
            self._copy(last)

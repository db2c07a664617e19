"""The chats on the window: the list, the composer and what is asked of single messages."""

from __future__ import annotations

from datetime import datetime

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QGuiApplication

from forespeak.chats.records import Chat
from forespeak.ui.chat_controller import ChatController
from forespeak.ui.chat_list import ChatEntry
from forespeak.ui.main_window import MainWindow
from forespeak.ui.reply_controller import ReplyController


class ChatView(QObject):
    def __init__(
        self, window: MainWindow, chats: ChatController, replies: ReplyController, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._chats = chats
        self._replies = replies
        self._unsent: dict[int | None, str] = {}
        """Texts begun in other chats, by chat; None: in the new one."""
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
        chats.busyChanged.connect(self._show_busy)
        chats.messageTaken.connect(self._message_taken)
        chats.chatDeleted.connect(self._chat_deleted)

    @Slot()
    def new_chat(self) -> None:
        self._keep_text()
        self._chats.new_chat()
        self._window.composer.setFocus()

    @Slot(int)
    def _select_chat(self, chat: int) -> None:
        self._keep_text()
        self._chats.open_chat(chat)

    def _keep_text(self) -> None:
        if self._chats.editing is None:
            chat = self._chats.chat
            self._unsent[None if chat is None else chat.id] = self._window.composer.text()

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
        self._window.chats.set_current(None if chat is None else chat.id)
        self._window.setWindowTitle("Forespeak" if chat is None else f"{chat.title} – Forespeak")
        self._window.composer.set_editing(False)
        text = self._unsent.pop(None if chat is None else chat.id, "")
        if text != self._window.composer.text():
            self._window.composer.set_text(text)

    @Slot()
    def _show_busy(self) -> None:
        self._window.composer.set_generating(self._chats.busy)

    @Slot()
    def _message_taken(self) -> None:
        chat = self._chats.chat
        self._unsent.pop(None if chat is None else chat.id, None)
        self._window.composer.set_text("")
        self._window.composer.set_editing(False)

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
            composer.set_text(text)
            composer.set_editing(True)
            composer.setFocus()

    @Slot()
    def _cancel_edit(self) -> None:
        self._chats.cancel_edit()
        self._window.composer.set_text("")

    @Slot(int)
    def _copy(self, message: int) -> None:
        QGuiApplication.clipboard().setText(self._chats.text_of(message))

    @Slot()
    def copy_last_reply(self) -> None:
        last = self._chats.last_reply()
        if last is not None:
            self._copy(last)

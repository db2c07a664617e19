"""The chats: what the user asks for, done with the store and shown in the conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from PySide6.QtCore import QObject, Signal, Slot

from forespeak.chats.records import Chat
from forespeak.chats.store import ChatStore
from forespeak.engines.engine import Role
from forespeak.errors import UserFacingError
from forespeak.speculation.trace import SpeculationState, Step
from forespeak.ui.background import Worker
from forespeak.ui.chat_reader import BegunReply, ChatReader, OpenedChat
from forespeak.ui.chat_records import ReplySettings, context_tokens, title_of, with_live
from forespeak.ui.conversation import ConversationView, MessageItem
from forespeak.ui.live_reply import LiveReply
from forespeak.ui.pair_controller import PairController
from forespeak.ui.panel_feed import PanelFeed
from forespeak.ui.preferences import Preferences
from forespeak.ui.reply_controller import ReplyController
from forespeak.ui.speculation_panel import SpeculationPanel


class ChatController(QObject):
    """One chat is open, or a new one that has no message yet. The store works on the worker's thread only."""

    chatsChanged = Signal(object)
    """tuple of Chats, newest first, those that the search finds"""
    chatOpened = Signal(object)
    """Chat, or None for a new one"""
    busyChanged = Signal()
    """Whether the open chat has a reply on its way"""
    chatRenamed = Signal(object)
    """Chat, the open one"""
    messageTaken = Signal(object, str)
    """The chat that was open when it was sent, None for a new one, and the text: the composer may forget it"""
    contextChanged = Signal(object)
    """Tokens that the open chat takes in the target's context, or None"""
    chatDeleted = Signal(object)
    """Chat, which `restore` brings back"""
    problemFound = Signal(object)
    """UserFacingError of the store"""

    def __init__(
        self,
        store: ChatStore,
        worker: Worker,
        pair: PairController,
        replies: ReplyController,
        view: ConversationView,
        panel: SpeculationPanel,
        preferences: Preferences,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._reader = ChatReader(store, self._steps_unreadable)
        self._worker = worker
        self._pair = pair
        self._replies = replies
        self._view = view
        self._panel = panel
        self._feed = PanelFeed(panel, self)
        self._feed.contextGrew.connect(self.contextChanged)
        self._preferences = preferences
        self._chat: Chat | None = None
        self._items: tuple[MessageItem, ...] = ()
        self._editing: int | None = None
        self._opening = 0
        self._beginning = False
        self._query = ""
        self._details: dict[int, str] = {}
        replies.grew.connect(self._grew)
        replies.progressed.connect(self._progressed)
        replies.ended.connect(self._ended)
        replies.stored.connect(self.refresh)

    # -- what others ask

    @property
    def chat(self) -> Chat | None:
        return self._chat

    @property
    def items(self) -> tuple[MessageItem, ...]:
        """The messages on show; of a growing reply as it was when the chat was opened."""
        return self._items

    @property
    def busy(self) -> bool:
        return self._beginning or self._writing() is not None

    @property
    def editing(self) -> int | None:
        return self._editing

    def details_of(self, message: int) -> str:
        """The engine's own words about a reply that came to grief, in this session."""
        return self._details.get(message, "")

    def text_of(self, message: int) -> str:
        reply = self._replies.of_message(message)
        if reply is not None:
            return reply.text
        return next((item.text for item in self._items if item.id == message), "")

    def last_reply(self) -> int | None:
        return next((item.id for item in reversed(self._items) if item.role is Role.ASSISTANT), None)

    def last_speculation(self) -> SpeculationState | None:
        """What drafting did at the end of the last reply."""
        stats = self._items[-1].stats if self._items else None
        return None if stats is None else stats.speculation

    def set_preferences(self, preferences: Preferences) -> None:
        self._preferences = preferences

    # -- chats

    @Slot()
    def refresh(self, *_: object) -> None:
        query = self._query
        self._worker.run(lambda: self._store.search(query), self.chatsChanged.emit, self._refused)

    def search(self, query: str) -> None:
        self._query = query
        self.refresh()

    def new_chat(self) -> None:
        self._opening += 1
        self._show(None, ())

    def open_chat(self, chat: int, otherwise: Callable[[], None] | None = None) -> None:
        """`otherwise` is called if there is no such chat any more."""
        self._opening += 1
        opening = self._opening

        def opened(found: OpenedChat) -> None:
            # Somebody who clicks through the list sees the last one only.
            if opening == self._opening:
                self._show(found.chat, found.items)

        def failed(error: Exception) -> None:
            if isinstance(error, LookupError) and otherwise is not None:
                otherwise()
            else:
                self._refused(error)

        self._worker.run(lambda: self._reader.read(chat), opened, failed)

    def rename(self, chat: int, title: str) -> None:
        if self._chat is not None and self._chat.id == chat:
            self._chat = replace(self._chat, title=title)
            self.chatRenamed.emit(self._chat)
        self._worker.run(lambda: self._store.rename(chat, title), self.refresh, self._refused)

    def set_system_prompt(self, text: str) -> None:
        """Of the open chat."""
        if self._chat is not None:
            chat = self._chat.id
            self._chat = replace(self._chat, system_prompt=text)
            self._worker.run(lambda: self._store.set_system_prompt(chat, text), None, self._refused)

    def delete(self, chat: int) -> None:
        reply = self._replies.writing_in(chat)
        if reply is not None:
            self._replies.stop(reply)

        def job() -> Chat:
            found = self._store.chat(chat)
            self._store.delete(chat)
            return found

        def deleted(found: Chat) -> None:
            if self._chat is not None and self._chat.id == chat:
                self.new_chat()
            self.chatDeleted.emit(found)
            self.refresh()

        self._worker.run(job, deleted, self._refused)

    def restore(self, chat: int) -> None:
        def restored(_: None) -> None:
            self.refresh()
            self.open_chat(chat)

        self._worker.run(lambda: self._store.restore(chat), restored, self._refused)

    # -- messages

    def send(self, text: str) -> None:
        """Add the message, or the new wording of the one being edited, and have it answered."""
        if self.busy or not self._pair.status.can_send:
            return
        chat, editing, settings = (
            self._chat,
            self._editing,
            ReplySettings.of(self._preferences, has_draft=self._pair.has_draft),
        )
        parent = self._items[-1].id if self._items else None
        prompt, plain_rate = self._preferences.system_prompt, self._replies.plain_rate(settings.plain_key)

        def job() -> BegunReply:
            place = parent if editing is None else self._store.message(editing).parent_id
            here = self._store.create_chat(title_of(text), prompt).id if chat is None else chat.id
            message = self._store.add_message(here, place, Role.USER, text)
            return self._reader.begin_below(here, message.id, settings, plain_rate)

        def begun(found: BegunReply) -> None:
            if opening == self._opening:
                self._editing = None
            self.messageTaken.emit(None if chat is None else chat.id, text)
            self._begun(found, settings, opening)

        opening = self._begin(job, begun)

    @Slot()
    def regenerate(self, message: int | None = None) -> None:
        """Another version of a reply; of the last one if none is named."""
        wanted = self.last_reply() if message is None else message
        if self.busy or wanted is None or self._chat is None or not self._pair.status.can_send:
            return
        chat, settings = self._chat.id, ReplySettings.of(self._preferences, has_draft=self._pair.has_draft)
        plain_rate = self._replies.plain_rate(settings.plain_key)

        def job() -> BegunReply:
            parent = self._store.message(wanted).parent_id
            assert parent is not None
            return self._reader.begin_below(chat, parent, settings, plain_rate)

        opening = self._begin(job, lambda found: self._begun(found, settings, opening))

    def edit(self, message: int | None = None) -> str | None:
        """The next text sent replaces this message, the user's last if none is named. Returns its wording."""
        if self.busy:
            return None
        for item in reversed(self._items):
            if item.role is Role.USER and message in {None, item.id}:
                self._editing = item.id
                return item.text
        return None

    def go_on_editing(self, message: int) -> bool:
        """Take up an edit again that another chat had interrupted; False if the message is not shown any more."""
        shown = self._shows(message)
        if shown:
            self._editing = message
        return shown

    def cancel_edit(self) -> None:
        self._editing = None

    def show_version(self, message: int, version: int) -> None:
        """The version with that number, counted from 1, and what follows it."""
        if self._chat is None or self.busy:
            return
        chat = self._chat.id
        self._opening += 1
        opening = self._opening

        def job() -> OpenedChat:
            versions = self._store.siblings(message)
            self._store.set_active(versions[min(max(version, 1), len(versions)) - 1].id)
            return self._reader.read(chat)

        def shown(found: OpenedChat) -> None:
            if opening == self._opening:
                self._show(found.chat, found.items)

        self._worker.run(job, shown, self._refused)

    @Slot()
    def stop(self) -> None:
        reply = self._writing()
        if reply is not None:
            self._replies.stop(reply)

    # -- inside

    def _steps_unreadable(self, error: UserFacingError) -> None:
        self.problemFound.emit(error)

    def _writing(self) -> LiveReply | None:
        return None if self._chat is None else self._replies.writing_in(self._chat.id)

    def _shows(self, message: int | None) -> bool:
        return any(item.id == message for item in self._items)

    def _is_shown(self, reply: LiveReply) -> bool:
        return self._chat is not None and reply.chat == self._chat.id

    def _begin(self, job: Callable[[], BegunReply], begun: Callable[[BegunReply], None]) -> int:
        """Returns the number by which an opening in between is noticed."""
        self._beginning = True
        self._opening += 1
        self.busyChanged.emit()

        def succeeded(found: BegunReply) -> None:
            self._beginning = False
            begun(found)

        def failed(error: Exception) -> None:
            self._beginning = False
            self.busyChanged.emit()
            self._refused(error)

        self._worker.run(job, succeeded, failed)
        return self._opening

    def _begun(self, found: BegunReply, settings: ReplySettings, opening: int) -> None:
        reply = LiveReply(
            chat=found.opened.chat.id,
            message=found.reply,
            request=settings.request(found.history),
            plain_key=settings.plain_key,
        )
        self._replies.start(reply)
        if opening == self._opening:
            self._show(found.opened.chat, found.opened.items)
        else:
            self.busyChanged.emit()
        self.refresh()

    def _show(self, chat: Chat | None, items: Sequence[MessageItem]) -> None:
        """Replace what the conversation shows; what was written since the store was read comes from memory."""
        self._chat = chat
        shown = []
        last: LiveReply | None = None
        for item in items:
            reply = self._replies.of_message(item.id)
            shown.append(item if reply is None else with_live(item, reply))
            last = reply
        self._items = tuple(shown)
        if not self._shows(self._editing):
            self._editing = None
        self._view.set_messages(list(self._items))
        self._feed.drop()
        self._panel.reset()
        if last is not None:
            self._show_in_panel(last)
        elif self._items:
            self._show_stored_in_panel(self._items[-1])
        self.chatOpened.emit(chat)
        self.contextChanged.emit(context_tokens(self._items))
        self.busyChanged.emit()

    def _show_stored_in_panel(self, item: MessageItem) -> None:
        self._panel.set_plain_baseline(item.plain_tokens_per_second)
        if item.stats is not None and item.stats.speculation is not None:
            self._panel.set_state(item.stats.speculation)
        if isinstance(item.steps, tuple) and item.steps:
            self._panel.add_steps(item.steps, 0.0 if item.stats is None else item.stats.decode_seconds)
        if item.stats is not None:
            self._panel.set_stats(item.stats)

    def _show_in_panel(self, reply: LiveReply) -> None:
        self._panel.set_plain_baseline(self._replies.plain_rate(reply.plain_key))
        if reply.speculation is not None:
            self._panel.set_state(reply.speculation)
        if reply.steps:
            self._panel.add_steps(tuple(reply.steps), reply.seconds)
            self._show_first_token(reply)

    def _show_first_token(self, reply: LiveReply) -> None:
        seconds = reply.seconds_to_first_token
        if seconds is not None:
            self._panel.set_first_token(seconds)

    @Slot(object, object)
    def _grew(self, reply: LiveReply, steps: Sequence[Step]) -> None:
        if not self._is_shown(reply):
            return
        self._view.append_steps(reply.message, steps)
        if len(reply.steps) == len(steps):
            self._show_first_token(reply)
        self._feed.add(reply, steps)

    @Slot(object)
    def _progressed(self, reply: LiveReply) -> None:
        if not self._is_shown(reply):
            return
        if reply.prompt is not None and not reply.steps:
            self._view.set_prompt_progress(reply.message, *reply.prompt)
        if reply.speculation is not None:
            self._panel.set_state(reply.speculation)

    @Slot(object)
    def _ended(self, reply: LiveReply) -> None:
        ending = reply.ending
        assert ending is not None
        if ending.details:
            self._details[reply.message] = ending.details
        if self._is_shown(reply):
            self._items = tuple(with_live(item, reply) if item.id == reply.message else item for item in self._items)
            for item in self._items:
                if item.id == reply.message:
                    self._view.finish_message(reply.message, item)
                    break
            self._feed.flush()
            if ending.stats is not None:
                self._panel.set_stats(ending.stats)
            self.busyChanged.emit()
        self.refresh()

    def _refused(self, error: Exception) -> None:
        if not isinstance(error, UserFacingError):
            raise error
        self.problemFound.emit(error)

"""A chat as the window shows it, read from the store. Called on the chats' worker thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from forespeak.chats.records import Chat
from forespeak.chats.store import ChatStore
from forespeak.engines.engine import ChatMessage, Role
from forespeak.errors import UserFacingError
from forespeak.speculation.trace import Step
from forespeak.ui.chat_records import ReplySettings, Steps, history_of, item_of
from forespeak.ui.conversation import MessageItem


@dataclass(frozen=True, slots=True)
class OpenedChat:
    chat: Chat
    items: tuple[MessageItem, ...]


@dataclass(frozen=True, slots=True)
class BegunReply:
    """A reply has its place in the store; `history` is what the model will read."""

    opened: OpenedChat
    reply: int
    history: tuple[ChatMessage, ...]


class ChatReader:
    """`unreadable` is told, on the UI thread, when the tokens of a reply cannot be read."""

    def __init__(self, store: ChatStore, unreadable: Callable[[UserFacingError], None]) -> None:
        self._store = store
        self._unreadable = unreadable

    def read(self, chat: int) -> OpenedChat:
        """The branch on show. Raises UserFacingError, LookupError."""
        items = []
        branch = self._store.branch(chat)
        last = max((message.id for message in branch if message.role is Role.ASSISTANT), default=None)
        for message in branch:
            versions = [version.id for version in self._store.siblings(message.id)]
            steps: Steps = ()
            if message.id == last:
                steps = self._store.steps(message.id)
            elif message.role is Role.ASSISTANT:
                # Long chats open at their end; what stands above is read when somebody scrolls there.
                steps = partial(self._steps_when_seen, message.id)
            items.append(item_of(message, steps, versions.index(message.id) + 1, len(versions)))
        return OpenedChat(self._store.chat(chat), tuple(items))

    def begin_below(self, chat: int, message: int, settings: ReplySettings, plain_rate: float | None) -> BegunReply:
        """Begin a reply to that message. Raises UserFacingError, LookupError."""
        reply = self._store.begin_reply(message, settings.record(plain_rate))
        opened = self.read(chat)
        before = [(item.role, item.text) for item in opened.items if item.id != reply.id]
        return BegunReply(opened, reply.id, history_of(opened.chat.system_prompt, before))

    def _steps_when_seen(self, message: int) -> tuple[Step, ...]:
        """Without their record the tokens show as plain text."""
        try:
            return self._store.steps(message)
        except UserFacingError as error:
            self._unreadable(error)
            return ()

"""What the chat store gives out: chats, messages, and the JSON form of what they carry."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum

from forespeak.engines.engine import Role
from forespeak.speculation.json_values import stats_from
from forespeak.speculation.trace import FinishReason, GenerationStats

JsonValue = None | bool | int | float | str | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
Settings = Mapping[str, JsonValue]
"""Named values that JSON can hold. Tuples come back as lists."""


class MessageState(Enum):
    COMPLETE = "complete"
    GENERATING = "generating"
    """The reply is growing, or a crash was so recent that nobody has looked yet."""
    STOPPED = "stopped"
    """The user ended it."""
    INTERRUPTED = "interrupted"
    """The engine or the app ended before the reply did. The text is what had been saved."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation. Times are seconds since 1970, UTC; `updated_at` is the last message's or reply's."""

    id: int
    title: str
    created_at: float
    updated_at: float
    system_prompt: str
    settings: Settings


@dataclass(frozen=True, slots=True)
class Message:
    """A node of a chat's tree; `parent_id` None: one of the chat's first messages.

    `note` says in words what happened to a reply that is not complete. `settings` are those the reply was made with.
    The tokens of a reply are not here: ChatStore.steps loads them when they are wanted.
    """

    id: int
    chat_id: int
    parent_id: int | None
    role: Role
    text: str
    created_at: float
    state: MessageState
    note: str
    stats: GenerationStats | None
    settings: Settings
    finish_reason: FinishReason | None


def storable(text: str) -> str:
    """The text without lone surrogates (U+FFFD in their place), which neither UTF-8 nor SQLite can hold."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def settings_from_json(text: str) -> Settings:
    values: dict[str, JsonValue] = json.loads(text)
    return values


def stats_to_json(stats: GenerationStats | None) -> str | None:
    return None if stats is None else json.dumps(asdict(stats))


def stats_from_json(text: str | None) -> GenerationStats | None:
    """Counts that this version does not know are left out; those that were not yet counted have their defaults."""
    if text is None:
        return None
    return stats_from(json.loads(text))

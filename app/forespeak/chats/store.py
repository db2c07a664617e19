"""The chats: a tree of messages each, saved as they grow."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from forespeak.chats.database import Database
from forespeak.chats.provenance import ProvenanceError, decode_steps, encode_steps
from forespeak.chats.records import (
    Chat,
    Message,
    MessageState,
    Settings,
    settings_from_json,
    stats_from_json,
    stats_to_json,
    storable,
)
from forespeak.engines.engine import Role
from forespeak.errors import UserFacingError
from forespeak.speculation.trace import FinishReason, GenerationStats, Step, text_of

INTERRUPTED_NOTE = "Forespeak ended before this reply was finished."
STEPS_PER_PART = 2048
"""Steps of one row. It bounds what a blob holds, and makes rows long enough to compress well."""
MAX_QUERY_LENGTH = 1000
"""Longer ones are cut: SQLite limits patterns."""

_CHAT = "id, title, created_at, updated_at, system_prompt, settings"
_MESSAGE = "id, chat_id, parent_id, role, text, created_at, state, note, stats, settings, finish_reason"


class ChatStore:
    """All chats of a file. Any thread may call any method; readers do not wait for writers.

    Every method raises UserFacingError when the file cannot be read or written, and then has changed nothing. An id
    that is not there raises LookupError.

    A deleted chat can be restored until the store is closed; then it is gone.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the file. Replies that were being generated when the app ended become INTERRUPTED."""
        self._database = Database(path)
        try:
            self._tidy()
        except BaseException:
            self._database.close()
            raise

    def close(self) -> None:
        """Purge the deleted chats and close the file."""
        # Where the purge fails, the next start makes up for it.
        with suppress(UserFacingError):
            self._tidy()
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # Chats

    def create_chat(self, title: str = "", system_prompt: str = "", settings: Settings | None = None) -> Chat:
        now = time.time()
        values = (storable(title), now, now, storable(system_prompt), json.dumps(settings or {}))
        with self._database.writing() as connection:
            row = connection.execute(
                "INSERT INTO chats (title, created_at, updated_at, system_prompt, settings)"
                f" VALUES (?, ?, ?, ?, ?) RETURNING {_CHAT}",
                values,
            ).fetchone()
        return _chat(row)

    def chat(self, chat_id: int) -> Chat:
        return _chat(self._row(f"SELECT {_CHAT} FROM chats WHERE id = ?", chat_id, "chat"))

    def chats(self) -> tuple[Chat, ...]:
        """All that are not deleted, the one with the newest message first."""
        return self.search("")

    def search(self, query: str) -> tuple[Chat, ...]:
        """Chats whose title or any message, on any branch, contains the query; ASCII letters match in either case."""
        pattern = storable(query.strip()[:MAX_QUERY_LENGTH])
        for special in "\\%_":
            pattern = pattern.replace(special, f"\\{special}")
        condition = "TRUE"
        if pattern:
            condition = (
                "(title LIKE :pattern ESCAPE '\\' OR EXISTS (SELECT 1 FROM messages"
                " WHERE chat_id = chats.id AND text LIKE :pattern ESCAPE '\\'))"
            )
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT {_CHAT} FROM chats WHERE deleted_at IS NULL AND {condition} ORDER BY updated_at DESC, id DESC",
                {"pattern": f"%{pattern}%"},
            ).fetchall()
        return tuple(map(_chat, rows))

    def rename(self, chat_id: int, title: str) -> None:
        self._update_chat(chat_id, "title", storable(title))

    def set_system_prompt(self, chat_id: int, text: str) -> None:
        self._update_chat(chat_id, "system_prompt", storable(text))

    def set_settings(self, chat_id: int, settings: Settings) -> None:
        self._update_chat(chat_id, "settings", json.dumps(settings))

    def delete(self, chat_id: int) -> None:
        """Take the chat out of every list. `restore` undoes it until the store is closed."""
        self._update_chat(chat_id, "deleted_at", time.time())

    def restore(self, chat_id: int) -> None:
        self._update_chat(chat_id, "deleted_at", None)

    # Messages

    def add_message(self, chat_id: int, parent_id: int | None, role: Role, text: str) -> Message:
        """A new message below `parent_id` (None: a first message), which becomes the end of the branch on show.

        To edit a message, add the new wording below the same parent.
        """
        return self._insert_message(chat_id, parent_id, role, text, MessageState.COMPLETE, {})

    def begin_reply(self, parent_id: int, settings: Settings) -> Message:
        """An empty reply below `parent_id`, GENERATING. To regenerate, begin another below the same parent."""
        chat_id = self.message(parent_id).chat_id
        return self._insert_message(chat_id, parent_id, Role.ASSISTANT, "", MessageState.GENERATING, settings)

    def append_steps(self, message_id: int, steps: Sequence[Step]) -> None:
        """Add the next steps and their text to a reply. Costs the same however long the reply is."""
        blobs = _encoded(steps)
        with self._database.writing() as connection:
            cursor = connection.execute(
                "UPDATE messages SET text = text || ? WHERE id = ?", (storable(text_of(steps)), message_id)
            )
            _expect_one(cursor, "message", message_id)
            _insert_parts(connection, message_id, blobs)

    def finish_reply(
        self,
        message_id: int,
        state: MessageState,
        *,
        note: str = "",
        stats: GenerationStats | None = None,
        finish_reason: FinishReason | None = None,
    ) -> Message:
        """The reply is over, for better or worse; it stands as it was appended.

        Raises ValueError for GENERATING.
        """
        if state is MessageState.GENERATING:
            raise ValueError("a finished reply is not being generated")
        reason = None if finish_reason is None else finish_reason.value
        with self._database.writing() as connection:
            row = connection.execute(
                "UPDATE messages SET state = ?, note = ?, stats = ?, finish_reason = ? WHERE id = ?"
                f" RETURNING {_MESSAGE}",
                (state.value, storable(note), stats_to_json(stats), reason, message_id),
            ).fetchone()
            _expect(row, "message", message_id)
            _touch(connection, row[1])
        # Nothing is lost without it.
        with suppress(UserFacingError, ProvenanceError):
            self._compact(message_id)
        return _message(row)

    def message(self, message_id: int) -> Message:
        return _message(self._row(f"SELECT {_MESSAGE} FROM messages WHERE id = ?", message_id, "message"))

    def branch(self, chat_id: int) -> tuple[Message, ...]:
        """The messages on show, from the first one to the active leaf."""
        columns = ", ".join(f"messages.{name}" for name in _MESSAGE.split(", "))
        with self._database.reading() as connection:
            rows = connection.execute(
                f"""
                WITH RECURSIVE line (id, depth) AS (
                    SELECT active_root, 0 FROM chats WHERE id = ?
                    UNION ALL
                    SELECT active_child, depth + 1 FROM line JOIN messages USING (id)
                )
                SELECT {columns} FROM line JOIN messages USING (id) ORDER BY depth
                """,
                (chat_id,),
            ).fetchall()
        return tuple(map(_message, rows))

    def siblings(self, message_id: int) -> tuple[Message, ...]:
        """The versions of a message, itself among them, oldest first."""
        message = self.message(message_id)
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT {_MESSAGE} FROM messages WHERE chat_id = ? AND parent_id IS ? ORDER BY id",
                (message.chat_id, message.parent_id),
            ).fetchall()
        return tuple(map(_message, rows))

    def set_active(self, message_id: int) -> None:
        """Show the branch through this message. Below it follows what was on show there the last time."""
        chat_id = self.message(message_id).chat_id
        with self._database.writing() as connection:
            _activate(connection, chat_id, message_id)

    def steps(self, message_id: int) -> tuple[Step, ...]:
        """What is known about a reply's tokens, in order; empty for a message that was not generated."""
        try:
            return tuple(step for blob in self._parts(message_id) for step in decode_steps(blob))
        except ProvenanceError as error:
            raise UserFacingError(
                "The tokens of this reply cannot be shown.",
                f"Their record in {self._database.path} is damaged. The text is not affected.",
                "Restore a backup of that file if you need them.",
            ) from error

    # Inside

    def _tidy(self) -> None:
        with self._database.writing() as connection:
            connection.execute("DELETE FROM chats WHERE deleted_at IS NOT NULL")
            connection.execute(
                "UPDATE messages SET state = ?, note = ? WHERE state = 'generating'",
                (MessageState.INTERRUPTED.value, INTERRUPTED_NOTE),
            )

    def _row(self, query: str, row_id: int, kind: str) -> tuple[Any, ...]:
        with self._database.reading() as connection:
            return _expect(connection.execute(query, (row_id,)).fetchone(), kind, row_id)

    def _update_chat(self, chat_id: int, column: str, value: str | float | None) -> None:
        with self._database.writing() as connection:
            cursor = connection.execute(f"UPDATE chats SET {column} = ? WHERE id = ?", (value, chat_id))
            _expect_one(cursor, "chat", chat_id)

    def _insert_message(
        self, chat_id: int, parent_id: int | None, role: Role, text: str, state: MessageState, settings: Settings
    ) -> Message:
        now = time.time()
        values = (chat_id, parent_id, role.value, storable(text), now, state.value, json.dumps(settings))
        with self._database.writing() as connection:
            _touch(connection, chat_id)
            if parent_id is not None:
                parent = connection.execute(
                    "SELECT 1 FROM messages WHERE id = ? AND chat_id = ?", (parent_id, chat_id)
                ).fetchone()
                _expect(parent, f"message of chat {chat_id}", parent_id)
            row = connection.execute(
                "INSERT INTO messages (chat_id, parent_id, role, text, created_at, state, note, settings)"
                f" VALUES (?, ?, ?, ?, ?, ?, '', ?) RETURNING {_MESSAGE}",
                values,
            ).fetchone()
            _activate(connection, chat_id, row[0])
        return _message(row)

    def _parts(self, message_id: int) -> list[bytes]:
        with self._database.reading() as connection:
            rows = connection.execute("SELECT steps FROM provenance WHERE message_id = ? ORDER BY id", (message_id,))
            return [blob for (blob,) in rows]

    def _compact(self, message_id: int) -> None:
        """Join a reply's parts: fewer are quicker to read and compress better."""
        parts = self._parts(message_id)
        if len(parts) < 2:
            return
        steps = [step for blob in parts for step in decode_steps(blob)]
        blobs = _encoded(steps)
        with self._database.writing() as connection:
            deleted = connection.execute("DELETE FROM provenance WHERE message_id = ?", (message_id,)).rowcount
            if deleted != len(parts):
                raise RuntimeError(f"message {message_id} grew after its end")
            _insert_parts(connection, message_id, blobs)


def _encoded(steps: Sequence[Step]) -> list[bytes]:
    return [encode_steps(steps[at : at + STEPS_PER_PART]) for at in range(0, len(steps), STEPS_PER_PART)]


def _insert_parts(connection: sqlite3.Connection, message_id: int, blobs: Sequence[bytes]) -> None:
    rows = [(message_id, blob) for blob in blobs]
    connection.executemany("INSERT INTO provenance (message_id, steps) VALUES (?, ?)", rows)


def _touch(connection: sqlite3.Connection, chat_id: int) -> None:
    cursor = connection.execute("UPDATE chats SET updated_at = ? WHERE id = ?", (time.time(), chat_id))
    _expect_one(cursor, "chat", chat_id)


def _activate(connection: sqlite3.Connection, chat_id: int, message_id: int) -> None:
    ancestors = connection.execute(
        """
        WITH RECURSIVE up (id, depth) AS (
            SELECT parent_id, 0 FROM messages WHERE id = ?
            UNION ALL
            SELECT parent_id, depth + 1 FROM up JOIN messages USING (id)
        )
        SELECT id, active_child FROM up JOIN messages USING (id) ORDER BY depth
        """,
        (message_id,),
    ).fetchall()
    child = message_id
    for ancestor, active_child in ancestors:
        if active_child != child:
            connection.execute("UPDATE messages SET active_child = ? WHERE id = ?", (child, ancestor))
        child = ancestor
    connection.execute("UPDATE chats SET active_root = ? WHERE id = ?", (child, chat_id))


def _expect(row: tuple[Any, ...] | None, kind: str, row_id: int) -> tuple[Any, ...]:
    if row is None:
        raise LookupError(f"no {kind} {row_id}")
    return row


def _expect_one(cursor: sqlite3.Cursor, kind: str, row_id: int) -> None:
    if cursor.rowcount != 1:
        raise LookupError(f"no {kind} {row_id}")


def _chat(row: tuple[Any, ...]) -> Chat:
    number, title, created_at, updated_at, system_prompt, settings = row
    return Chat(number, title, created_at, updated_at, system_prompt, settings_from_json(settings))


def _message(row: tuple[Any, ...]) -> Message:
    number, chat, parent, role, text, created_at, state, note, stats, settings, finish_reason = row
    return Message(
        id=number,
        chat_id=chat,
        parent_id=parent,
        role=Role(role),
        text=text,
        created_at=created_at,
        state=MessageState(state),
        note=note,
        stats=stats_from_json(stats),
        settings=settings_from_json(settings),
        finish_reason=None if finish_reason is None else FinishReason(finish_reason),
    )

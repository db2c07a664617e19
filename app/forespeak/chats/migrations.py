"""The database's versions, oldest first. Append only: a released migration never changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

Migration = Callable[[sqlite3.Connection], None]
"""Takes the database from one version to the next. Runs inside a transaction, with foreign keys not enforced."""


def _first_schema(connection: sqlite3.Connection) -> None:
    connection.execute(
        """
        CREATE TABLE chats (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            title TEXT NOT NULL,
            created_at REAL NOT NULL,
            updated_at REAL NOT NULL,
            deleted_at REAL,
            active_root INTEGER,
            system_prompt TEXT NOT NULL,
            settings TEXT NOT NULL
        ) STRICT
        """
    )
    # The branch on show is chats.active_root, then active_child from message to message: so a version that is left
    # and visited again still shows what followed it. Neither is a foreign key, because messages go only with their
    # whole chat, and each key would cost a scan for every one of them. For the same reason parent_id does not
    # cascade: SQLite stops after 1,000 levels of that.
    # `text` comes late: what lies behind a long text in a row is slow to reach.
    connection.execute(
        """
        CREATE TABLE messages (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            chat_id INTEGER NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
            parent_id INTEGER,
            active_child INTEGER,
            role TEXT NOT NULL,
            created_at REAL NOT NULL,
            state TEXT NOT NULL,
            finish_reason TEXT,
            note TEXT NOT NULL,
            stats TEXT,
            settings TEXT NOT NULL,
            text TEXT NOT NULL,
            UNIQUE (chat_id, id),
            FOREIGN KEY (chat_id, parent_id) REFERENCES messages (chat_id, id)
        ) STRICT
        """
    )
    connection.execute("CREATE INDEX messages_by_parent ON messages (chat_id, parent_id)")
    connection.execute("CREATE INDEX messages_generating ON messages (state) WHERE state = 'generating'")
    connection.execute(
        """
        CREATE TABLE provenance (
            id INTEGER PRIMARY KEY,
            message_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
            steps BLOB NOT NULL
        ) STRICT
        """
    )
    connection.execute("CREATE INDEX provenance_by_message ON provenance (message_id)")


MIGRATIONS: tuple[Migration, ...] = (_first_schema,)

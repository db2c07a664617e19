"""A SQLite file: opening it safely, bringing it to this version, transactions, and what its errors mean to people."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from forespeak.chats.migrations import MIGRATIONS, Migration
from forespeak.errors import UserFacingError

APPLICATION_ID = 0x46535043
"""Marks a database as ours (PRAGMA application_id)."""
BUSY_SECONDS = 5.0


class Database:
    """One file, for any number of threads.

    Two connections, each behind a lock: one writes, one reads. Connections per thread would need an owner for each;
    a single one would make the window wait for the disk whenever a growing reply is saved. In WAL mode a reader never
    waits for a writer.
    """

    def __init__(self, path: Path, migrations: Sequence[Migration] = MIGRATIONS) -> None:
        """Open or create `path`. Raises UserFacingError, and then has not changed an existing file."""
        self.path = path
        self._migrations = tuple(migrations)
        self._write_lock = threading.Lock()
        self._read_lock = threading.Lock()
        with self._explained(), ExitStack() as undo:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._refuse_strangers()
            self._writer = undo.enter_context(closing(self._connect()))
            mode = self._writer.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            # In WAL mode a commit is in the operating system's hands before it returns, so a killed app loses nothing;
            # a power cut may cost the last moments, never the file. Without WAL (network drives) NORMAL is not enough.
            self._writer.execute(f"PRAGMA synchronous = {'NORMAL' if mode == 'wal' else 'FULL'}")
            # What people delete should not stay readable in the file's free pages.
            self._writer.execute("PRAGMA secure_delete = ON")
            self._migrate()
            self._writer.execute("PRAGMA foreign_keys = ON")
            self._reader = undo.enter_context(closing(self._connect()))
            self._reader.execute("PRAGMA query_only = ON")
            undo.pop_all()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The reading connection; what is wanted must be fetched inside. Raises UserFacingError."""
        with self._read_lock, self._explained():
            yield self._reader

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it or, after any exception, nothing. Raises UserFacingError."""
        with self._write_lock, self._explained(), _transaction(self._writer) as connection:
            yield connection

    def close(self) -> None:
        with self._write_lock, self._read_lock:
            self._reader.close()
            self._writer.close()

    def _connect(self) -> sqlite3.Connection:
        # Autocommit, so that every transaction begins where this file says so. The locks make sharing safe.
        return sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)

    def _refuse_strangers(self) -> None:
        """Look at an existing file without being able to write to it."""
        if not self.path.exists():
            return
        if not self.path.is_file():
            raise _unreachable(self.path, "it is not a file")
        if self.path.stat().st_size == 0:
            return
        # Even a reader leaves files beside a database in WAL mode, unless told that nobody writes to it.
        unused = not self.path.with_name(f"{self.path.name}-wal").exists()
        read_only = f"{self.path.absolute().as_uri()}?mode=ro{'&immutable=1' if unused else ''}"
        with closing(sqlite3.connect(read_only, uri=True, timeout=BUSY_SECONDS)) as connection:
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            version = _version(connection)
            tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if tables and application != APPLICATION_ID:
            raise UserFacingError(
                "Your chats could not be opened.",
                f"{self.path} belongs to another program.",
                "Move that file somewhere else; a new one is made at the next start.",
            )
        if version > len(self._migrations):
            raise UserFacingError(
                "Your chats could not be opened.",
                f"{self.path} was saved by a newer version of Forespeak. It was left as it is.",
                "Update Forespeak to open it.",
            )

    def _migrate(self) -> None:
        version = _version(self._writer)
        if 0 < version < len(self._migrations):
            self._back_up(version)
        while version < len(self._migrations):
            with _transaction(self._writer) as connection:
                # Another process may have been faster.
                version = _version(connection)
                if version < len(self._migrations):
                    self._migrations[version](connection)
                    broken = connection.execute("PRAGMA foreign_key_check").fetchone()
                    if broken is not None:
                        raise RuntimeError(f"migration {version + 1} breaks a foreign key: {broken}")
                    version += 1
                    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    connection.execute(f"PRAGMA user_version = {version}")

    def _back_up(self, version: int) -> None:
        backup = self.path.with_name(f"{self.path.name}.version-{version}.backup")
        unfinished = backup.with_name(f"{backup.name}.part")
        unfinished.unlink(missing_ok=True)
        with closing(sqlite3.connect(unfinished)) as copy:
            self._writer.backup(copy)
        unfinished.replace(backup)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            problem = _problem(error, self.path)
            if problem is None:
                raise
            raise problem from error
        except OSError as error:
            raise _unreachable(self.path, str(error)) from error


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has rolled back by itself after some errors, a full disk among them.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _problem(error: sqlite3.Error, path: Path) -> UserFacingError | None:
    """What an error of SQLite means to the user; None: it is a bug of ours."""
    # Errors of the module itself, such as using a closed connection, have no code. The low byte is the general kind.
    code = getattr(error, "sqlite_errorcode", None)
    match None if code is None else code & 0xFF:
        case sqlite3.SQLITE_FULL:
            return UserFacingError(
                "The chat could not be saved.",
                f"There is no space left for {path}.",
                "Free some disk space and try again. What was saved before is safe.",
            )
        case sqlite3.SQLITE_IOERR:
            return UserFacingError(
                "The chat could not be saved or read.",
                f"The disk reported an error for {path} ({error}). It may be full, failing or disconnected.",
                "Check the disk and its free space, then try again. What was saved before was not changed.",
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return UserFacingError(
                "The chat could not be saved.",
                f"{path} may not be written to ({error}).",
                "Allow writing to this file and its folder, then try again.",
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return UserFacingError(
                "The chat could not be saved.",
                f"Another program is using {path}.",
                "Close the other program, or a second Forespeak, and try again.",
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return UserFacingError(
                "Your chats could not be read.",
                f"{path} is damaged ({error}). It was left as it is.",
                "Put a backup in its place, or move the file somewhere else: a new one is made at the next start.",
            )
        case sqlite3.SQLITE_CANTOPEN:
            return _unreachable(path, str(error))
    return None


def _unreachable(path: Path, why: str) -> UserFacingError:
    return UserFacingError(
        "Your chats could not be opened.",
        f"{path} cannot be reached ({why}).",
        "Check that its folder exists and that you may read and write there.",
    )

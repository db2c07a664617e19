import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from forespeak.chats.database import APPLICATION_ID, Database
from forespeak.chats.migrations import MIGRATIONS
from forespeak.errors import UserFacingError


def add_stars(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE chats ADD COLUMN starred INTEGER NOT NULL DEFAULT 0")


def half_way_then_fail(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM chats")
    connection.execute("SELECT no_such_column FROM chats")


def orphan(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO provenance (message_id, steps) VALUES (99, x'00')")


def insert_chat(database: Database, title: str) -> None:
    with database.writing() as connection:
        connection.execute(
            "INSERT INTO chats (title, created_at, updated_at, system_prompt, settings) VALUES (?, 0, 0, '', '{}')",
            (title,),
        )


def delete_and_give_up(database: Database) -> None:
    with database.writing() as connection:
        connection.execute("DELETE FROM chats")
        raise KeyboardInterrupt


def titles(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [title for (title,) in connection.execute("SELECT title FROM chats ORDER BY id")]


def made(path: Path) -> None:
    with closing(Database(path)) as database:
        insert_chat(database, "first")


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def test_a_new_file_is_ours_and_at_this_version(path: Path) -> None:
    nested = path.parent / "not" / "there" / path.name
    made(nested)
    with closing(sqlite3.connect(nested)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert titles(nested) == ["first"]


def test_an_empty_file_is_a_new_one(path: Path) -> None:
    path.touch()
    made(path)
    assert titles(path) == ["first"]


def test_a_migration_keeps_the_data_and_leaves_a_backup(path: Path) -> None:
    made(path)
    with closing(Database(path, (*MIGRATIONS, add_stars))) as database, database.reading() as connection:
        assert connection.execute("SELECT title, starred FROM chats").fetchall() == [("first", 0)]
        assert database._writer.execute("PRAGMA foreign_keys").fetchone() == (1,)
    backup = path.with_name(f"{path.name}.version-{len(MIGRATIONS)}.backup")
    assert titles(backup) == ["first"]
    made(backup)
    assert sorted(file.name for file in path.parent.iterdir()) == [path.name, backup.name]


def test_without_a_migration_there_is_no_backup(path: Path) -> None:
    made(path)
    made(path)
    assert list(contents(path.parent)) == [path.name]


@pytest.mark.parametrize(("broken", "error"), [(half_way_then_fail, sqlite3.OperationalError), (orphan, RuntimeError)])
def test_a_failed_migration_changes_nothing(path: Path, broken: object, error: type[Exception]) -> None:
    assert callable(broken)
    made(path)
    with pytest.raises(error):
        Database(path, (*MIGRATIONS, broken))
    made(path)
    assert titles(path) == ["first", "first"]


def test_migrations_go_on_from_the_one_that_worked(path: Path) -> None:
    made(path)
    with pytest.raises(sqlite3.OperationalError):
        Database(path, (*MIGRATIONS, add_stars, half_way_then_fail))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS) + 1,)


def test_a_file_of_a_newer_version_is_left_alone(path: Path) -> None:
    with closing(Database(path, (*MIGRATIONS, add_stars))):
        pass
    before = contents(path.parent)
    with pytest.raises(UserFacingError, match="newer version of Forespeak") as caught:
        Database(path)
    assert "Update" in caught.value.remedy
    assert contents(path.parent) == before


def test_another_programs_database_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    before = contents(path.parent)
    with pytest.raises(UserFacingError, match="another program"):
        Database(path)
    assert contents(path.parent) == before


@pytest.mark.parametrize("damage", [b"this was never a database " * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database_is_left_alone(path: Path, damage: bytes) -> None:
    path.write_bytes(damage)
    with pytest.raises(UserFacingError, match="is damaged") as caught:
        Database(path)
    assert caught.value.remedy
    assert contents(path.parent) == {path.name: damage}


def test_damage_met_later_is_explained(path: Path) -> None:
    made(path)
    pages = bytearray(path.read_bytes())
    pages[4096:] = b"\xff" * (len(pages) - 4096)
    path.write_bytes(pages)
    with (
        closing(Database(path)) as database,
        pytest.raises(UserFacingError, match="is damaged"),
        database.reading() as connection,
    ):
        connection.execute("SELECT * FROM chats").fetchall()
    assert path.read_bytes()[4096:] == pages[4096:]


def test_a_path_that_cannot_be_a_file_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for impossible in (tmp_path, tmp_path / "file" / "chats.sqlite3"):
        with pytest.raises(UserFacingError, match="cannot be reached"):
            Database(impossible)


def test_a_locked_file_is_explained(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forespeak.chats.database.BUSY_SECONDS", 0.01)
    with closing(Database(path)) as database, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UserFacingError, match="Another program is using"):
            insert_chat(database, "second")
        other.execute("ROLLBACK")
        insert_chat(database, "second")
    assert titles(path) == ["second"]


def test_a_file_that_became_read_only_is_explained(path: Path) -> None:
    with closing(Database(path)) as database:
        database._writer.execute("PRAGMA query_only = ON")
        with pytest.raises(UserFacingError, match="may not be written to"):
            insert_chat(database, "second")


def test_our_own_mistakes_are_not_explained_away(path: Path) -> None:
    with (
        closing(Database(path)) as database,
        pytest.raises(sqlite3.OperationalError),
        database.writing() as connection,
    ):
        connection.execute("SELECT nonsense")


def test_an_exception_undoes_the_whole_transaction(path: Path) -> None:
    made(path)
    with closing(Database(path)) as database:
        with pytest.raises(KeyboardInterrupt):
            delete_and_give_up(database)
        insert_chat(database, "second")
    assert titles(path) == ["first", "second"]


def test_a_reader_does_not_wait_for_a_writer(path: Path) -> None:
    made(path)
    seen: list[list[tuple[str]]] = []

    def read() -> None:
        with database.reading() as connection:
            seen.append(connection.execute("SELECT title FROM chats").fetchall())

    with closing(Database(path)) as database:
        with database.writing() as connection:
            connection.execute("UPDATE chats SET title = 'changed'")
            thread = threading.Thread(target=read)
            thread.start()
            thread.join(timeout=10)
            assert seen == [[("first",)]]
        read()
    assert seen[1:] == [[("changed",)]]


def test_a_file_left_behind_with_its_log_is_read_whole(path: Path) -> None:
    copy = path.with_name("copy.sqlite3")
    with closing(Database(path)) as database:
        insert_chat(database, "only in the log")
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    made(copy)
    assert titles(copy) == ["only in the log", "first"]

import itertools
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from forespeak.chats import store as store_module
from forespeak.chats.records import Message, MessageState
from forespeak.chats.store import INTERRUPTED_NOTE, ChatStore
from forespeak.engines.engine import Role
from forespeak.errors import UserFacingError
from forespeak.speculation.trace import (
    DraftedToken,
    FinishReason,
    GenerationStats,
    Origin,
    Source,
    Step,
    Token,
    text_of,
)

DISK_FULL = "no space left"


def step(index: int, text: str = "word ") -> Step:
    return Step(
        index=index,
        emitted=(
            Token(index, text, Origin.ACCEPTED, Source.DRAFT_MODEL, 0.5, 0.25),
            Token(index + 1, "人", Origin.CORRECTED, None, 1 / (index + 1)),
        ),
        rejected=(DraftedToken(9, "no", 0.125, 0.5),),
        source=Source.DRAFT_MODEL,
        cache_length=index,
    )


def question(store: ChatStore, text: str = "Why?") -> Message:
    return store.add_message(store.create_chat().id, None, Role.USER, text)


def shown(store: ChatStore, chat_id: int) -> list[str]:
    return [message.text for message in store.branch(chat_id)]


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock in which no two moments are equal, as some systems' would be."""
    seconds = itertools.count(1000.0)
    monkeypatch.setattr("forespeak.chats.store.time.time", lambda: next(seconds))


# Chats


def test_a_chat_comes_back_as_it_was(store: ChatStore) -> None:
    settings = {"temperature": 0.8, "source": None, "stop": ["a", "b"], "sampling": {"top_k": 40}}
    chat = store.create_chat("標題 😀", "Be brief.", settings)
    assert store.chat(chat.id) == chat
    assert (chat.title, chat.system_prompt, chat.settings) == ("標題 😀", "Be brief.", settings)
    assert chat.created_at == chat.updated_at == pytest.approx(time.time(), abs=60)


def test_everything_survives_closing(path: Path) -> None:
    with ChatStore(path) as store:
        user = question(store)
        store.append_steps(store.begin_reply(user.id, {"rule": "coupled"}).id, [step(0)])
        store.rename(user.chat_id, "Renamed")
        store.set_system_prompt(user.chat_id, "Prompt")
        store.set_settings(user.chat_id, {"a": 1})
        before = store.chats()
    with ChatStore(path) as store:
        assert store.chats() == before
        assert (before[0].title, before[0].system_prompt, before[0].settings) == ("Renamed", "Prompt", {"a": 1})
        assert shown(store, user.chat_id) == ["Why?", "word 人"]


@pytest.mark.usefixtures("ticking")
def test_the_chat_with_the_newest_message_comes_first(store: ChatStore) -> None:
    first, second, third = (store.create_chat(title) for title in "123")
    assert [chat.title for chat in store.chats()] == ["3", "2", "1"]
    user = store.add_message(first.id, None, Role.USER, "hello")
    assert [chat.title for chat in store.chats()] == ["1", "3", "2"]
    store.add_message(second.id, None, Role.USER, "hello")
    reply = store.begin_reply(user.id, {})
    store.rename(third.id, "3")
    store.set_active(user.id)
    assert [chat.title for chat in store.chats()] == ["1", "2", "3"]
    store.add_message(second.id, None, Role.USER, "again")
    store.finish_reply(reply.id, MessageState.COMPLETE)
    assert [chat.title for chat in store.chats()] == ["1", "2", "3"]


def test_a_deleted_chat_can_be_restored_until_the_end(path: Path) -> None:
    with ChatStore(path) as store:
        kept, gone = question(store, "kept words"), question(store, "gone words")
        store.delete(kept.chat_id)
        store.delete(gone.chat_id)
        assert store.chats() == store.search("words") == ()
        store.restore(kept.chat_id)
        assert [chat.id for chat in store.search("words")] == [kept.chat_id]
        assert shown(store, kept.chat_id) == ["kept words"]
    with ChatStore(path) as store:
        assert [chat.id for chat in store.chats()] == [kept.chat_id]
        with pytest.raises(LookupError):
            store.restore(gone.chat_id)
    assert b"gone words" not in path.read_bytes()
    assert b"kept words" in path.read_bytes()


def test_a_crash_purges_at_the_next_start(path: Path) -> None:
    with ChatStore(path) as store:
        gone = question(store)
        store.append_steps(store.begin_reply(gone.id, {}).id, [step(0)])
        store.delete(gone.chat_id)
        with ChatStore(path) as after, pytest.raises(LookupError):
            after.chat(gone.chat_id)
        assert store._parts(gone.id + 1) == []


def test_a_chat_deeper_than_sqlites_recursion_is_purged(path: Path) -> None:
    with ChatStore(path) as store:
        chat = store.create_chat()
        with store._database.writing() as connection:
            connection.executemany(
                "INSERT INTO messages (id, chat_id, parent_id, role, created_at, state, note, settings, text)"
                " VALUES (?, ?, ?, 'user', 0, 'complete', '', '{}', 'x')",
                [(number, chat.id, number - 1 if number > 1 else None) for number in range(1, 3001)],
            )
        store.set_active(3000)
        assert len(store.branch(chat.id)) == 3000
        store.delete(chat.id)
    with ChatStore(path) as store, pytest.raises(LookupError):
        store.message(1)


def test_ids_are_not_used_again(path: Path) -> None:
    with ChatStore(path) as store:
        gone = question(store)
        store.delete(gone.chat_id)
    with ChatStore(path) as store:
        new = question(store)
    assert new.id > gone.id
    assert new.chat_id > gone.chat_id


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("100%", {"percent"}),
        ("%", {"percent"}),
        ("snake_case", {"snake"}),
        ("_", {"snake"}),
        ("\\", {"backslash"}),
        ("推測解碼", {"cjk"}),
        ("測解", {"cjk"}),
        ("UPPER case", {"upper"}),
        ("title only", {"title only"}),
        ("'; DROP TABLE chats; --", set()),
        ("absent", set()),
        ("x" * 100_000, set()),
        ("\ud800", set()),
    ],
)
def test_search(store: ChatStore, query: str, found: set[str]) -> None:
    for title, text in [
        ("percent", "Is it 100% sure?"),
        ("snake", "call snake_case(1)"),
        ("decoy", "100 snakes in a case"),
        ("backslash", "C:\\models"),
        ("cjk", "什麼是推測解碼?"),
        ("upper", "Upper CASE"),
        ("title only", "nothing"),
    ]:
        store.add_message(store.create_chat(title).id, None, Role.USER, text)
    assert {chat.title for chat in store.search(query)} == found


def test_search_finds_versions_that_are_not_on_show_and_each_chat_once(store: ChatStore) -> None:
    user = question(store, "needle one")
    store.add_message(user.chat_id, None, Role.USER, "needle two")
    store.add_message(user.chat_id, None, Role.USER, "other")
    assert [chat.id for chat in store.search(" needle ")] == [user.chat_id]


# The tree


def test_editing_and_regenerating_branch(store: ChatStore) -> None:
    first = question(store, "first")
    chat = first.chat_id
    reply = store.add_message(chat, first.id, Role.ASSISTANT, "reply")
    store.add_message(chat, reply.id, Role.USER, "second")
    assert shown(store, chat) == ["first", "reply", "second"]

    again = store.begin_reply(first.id, {})
    store.append_steps(again.id, [step(0, "again ")])
    assert shown(store, chat) == ["first", "again 人"]
    edited = store.add_message(chat, None, Role.USER, "first, edited")
    assert shown(store, chat) == ["first, edited"]

    assert [message.text for message in store.siblings(reply.id)] == ["reply", "again 人"]
    assert [message.id for message in store.siblings(edited.id)] == [first.id, edited.id]
    assert [message.text for message in store.siblings(store.branch(chat)[-1].id)] == ["first", "first, edited"]


def test_a_version_visited_again_shows_what_followed_it(store: ChatStore) -> None:
    root = question(store, "root")
    chat = root.chat_id
    one = store.add_message(chat, root.id, Role.ASSISTANT, "one")
    one_a = store.add_message(chat, one.id, Role.USER, "one a")
    store.add_message(chat, one.id, Role.USER, "one b")
    store.set_active(one_a.id)
    two = store.add_message(chat, root.id, Role.ASSISTANT, "two")
    store.set_active(one.id)
    assert shown(store, chat) == ["root", "one", "one a"]
    store.set_active(two.id)
    assert shown(store, chat) == ["root", "two"]
    store.set_active(one_a.id)
    assert shown(store, chat) == ["root", "one", "one a"]


def test_adding_below_a_hidden_message_shows_its_branch(store: ChatStore) -> None:
    root = question(store, "root")
    hidden = store.add_message(root.chat_id, root.id, Role.ASSISTANT, "hidden")
    store.add_message(root.chat_id, None, Role.USER, "other root")
    store.add_message(root.chat_id, hidden.id, Role.USER, "below")
    assert shown(store, root.chat_id) == ["root", "hidden", "below"]


def test_chats_do_not_mix(store: ChatStore) -> None:
    one, other = question(store, "one"), question(store, "other")
    assert store.siblings(one.id) == (one,)
    with pytest.raises(LookupError, match="of chat"):
        store.add_message(other.chat_id, one.id, Role.USER, "lost")
    assert shown(store, one.chat_id) == ["one"]
    assert shown(store, other.chat_id) == ["other"]


def test_an_empty_chat_shows_nothing(store: ChatStore) -> None:
    assert store.branch(store.create_chat().id) == ()


def test_unknown_ids_are_said(store: ChatStore) -> None:
    question(store)
    for call in (
        lambda: store.chat(99),
        lambda: store.rename(99, "x"),
        lambda: store.delete(99),
        lambda: store.message(99),
        lambda: store.siblings(99),
        lambda: store.set_active(99),
        lambda: store.begin_reply(99, {}),
        lambda: store.append_steps(99, [step(0)]),
        lambda: store.finish_reply(99, MessageState.COMPLETE),
        lambda: store.add_message(99, None, Role.USER, "x"),
        lambda: store.add_message(1, 99, Role.USER, "x"),
    ):
        with pytest.raises(LookupError):
            call()


@pytest.mark.parametrize("text", ["", "a\0b", "\r\n", "é人😀", "'; --", "x" * 1_000_000])
def test_any_text_is_kept(store: ChatStore, text: str) -> None:
    message = question(store, text)
    assert store.message(message.id) == message
    assert message.text == text


def test_half_a_character_does_not_stop_saving(store: ChatStore) -> None:
    assert question(store, "a\ud83d").text == "a\N{REPLACEMENT CHARACTER}"


# Replies


def test_a_reply_grows_and_ends(store: ChatStore) -> None:
    settings = {"target": "big.gguf", "draft": None, "sampling": {"temperature": 0.8}}
    reply = store.begin_reply(question(store).id, settings)
    assert (reply.state, reply.role, reply.text) == (MessageState.GENERATING, Role.ASSISTANT, "")
    steps = tuple(map(step, range(5)))
    store.append_steps(reply.id, steps[:2])
    assert store.message(reply.id).text == text_of(steps[:2])
    store.append_steps(reply.id, [])
    store.append_steps(reply.id, steps[2:])
    assert store.steps(reply.id) == steps
    stats = GenerationStats(generated_tokens=10, acceptance_rate_per_position=(0.5,))
    done = store.finish_reply(reply.id, MessageState.COMPLETE, stats=stats, finish_reason=FinishReason.STOP)
    assert done == store.message(reply.id) == store.branch(reply.chat_id)[-1]
    assert (done.state, done.stats, done.finish_reason) == (MessageState.COMPLETE, stats, FinishReason.STOP)
    assert (done.text, done.settings, done.note) == (text_of(steps), settings, "")
    assert store.steps(reply.id) == steps


@pytest.mark.parametrize("state", [MessageState.STOPPED, MessageState.INTERRUPTED, MessageState.FAILED])
def test_a_reply_that_ended_early_says_why(store: ChatStore, state: MessageState) -> None:
    reply = store.begin_reply(question(store).id, {})
    store.append_steps(reply.id, [step(0)])
    done = store.finish_reply(reply.id, state, note="The engine stopped.")
    assert (done.state, done.note, done.text) == (state, "The engine stopped.", "word 人")


def test_a_reply_cannot_end_as_growing(store: ChatStore) -> None:
    reply = store.begin_reply(question(store).id, {})
    with pytest.raises(ValueError, match="not being generated"):
        store.finish_reply(reply.id, MessageState.GENERATING)


def test_parts_are_joined_at_the_end(store: ChatStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "STEPS_PER_PART", 4)
    reply = store.begin_reply(question(store).id, {})
    other = store.begin_reply(question(store).id, {})
    steps = tuple(map(step, range(10)))
    for one in steps[:7]:
        store.append_steps(reply.id, [one])
        store.append_steps(other.id, [one])
    store.append_steps(reply.id, steps[7:])
    assert len(store._parts(reply.id)) == 8
    store.finish_reply(reply.id, MessageState.COMPLETE)
    assert len(store._parts(reply.id)) == 3
    assert store.steps(reply.id) == steps
    assert store.steps(other.id) == steps[:7]


def test_a_message_that_was_typed_has_no_steps(store: ChatStore) -> None:
    assert store.steps(question(store).id) == ()


def test_a_damaged_record_leaves_the_text(store: ChatStore) -> None:
    reply = store.begin_reply(question(store).id, {})
    store.append_steps(reply.id, [step(0)])
    store.append_steps(reply.id, [step(1)])
    with store._database.writing() as connection:
        connection.execute("UPDATE provenance SET steps = x'01ff'")
    assert store.finish_reply(reply.id, MessageState.COMPLETE).text == "word 人word 人"
    with pytest.raises(UserFacingError, match="text is not affected"):
        store.steps(reply.id)


def test_a_reply_that_the_app_left_is_interrupted(path: Path) -> None:
    with ChatStore(path) as store:
        reply = store.begin_reply(question(store).id, {})
        store.append_steps(reply.id, [step(0), step(1)])
        # A second opening sees what a start after a crash would see.
        with ChatStore(path) as after:
            found = after.message(reply.id)
            assert (found.state, found.note) == (MessageState.INTERRUPTED, INTERRUPTED_NOTE)
            assert found.text == "word 人word 人"
            assert after.steps(reply.id) == (step(0), step(1))


def test_closing_interrupts_what_still_grows(path: Path) -> None:
    with ChatStore(path) as store:
        reply = store.begin_reply(question(store).id, {})
    with ChatStore(path) as store:
        assert store.message(reply.id).state is MessageState.INTERRUPTED


def test_one_thread_appends_while_another_reads(store: ChatStore) -> None:
    reply = store.begin_reply(question(store).id, {})
    failures: list[BaseException] = []

    def append() -> None:
        try:
            for index in range(200):
                store.append_steps(reply.id, [step(index)])
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    thread = threading.Thread(target=append)
    thread.start()
    lengths = []
    while thread.is_alive():
        lengths.append(len(store.branch(reply.chat_id)[-1].text))
        store.rename(reply.chat_id, str(len(lengths)))
        indices = [one.index for one in store.steps(reply.id)]
        assert indices == list(range(len(indices)))
    thread.join()
    assert failures == []
    assert lengths == sorted(lengths)
    assert store.steps(reply.id) == tuple(map(step, range(200)))


# A full disk


def assert_refuses_writes_and_keeps_all(store: ChatStore, reply: Message) -> None:
    """Every write says that there is no space; what had been saved is as it was."""
    chats, branch, steps = store.chats(), store.branch(reply.chat_id), store.steps(reply.id)
    big = [step(index, os.urandom(5000).hex()) for index in range(40)]
    for write in (
        lambda: store.create_chat("x" * 2**20),
        lambda: store.rename(reply.chat_id, "x" * 2**20),
        lambda: store.add_message(reply.chat_id, reply.id, Role.USER, "x" * 2**20),
        lambda: store.append_steps(reply.id, big),
        lambda: store.finish_reply(reply.id, MessageState.FAILED, note="x" * 2**20),
    ):
        with pytest.raises(UserFacingError, match=DISK_FULL) as caught:
            write()
        assert "Free some disk space" in caught.value.remedy
        assert store.chats() == chats
        assert store.branch(reply.chat_id) == branch
        assert store.steps(reply.id) == steps


def assert_goes_on(store: ChatStore, reply: Message) -> None:
    store.append_steps(reply.id, [step(3)])
    assert store.finish_reply(reply.id, MessageState.COMPLETE).text == "word 人word 人"
    assert store.steps(reply.id) == (step(0), step(3))


def test_a_file_that_cannot_grow(store: ChatStore) -> None:
    reply = store.begin_reply(question(store).id, {})
    store.append_steps(reply.id, [step(0)])
    writer = store._database._writer
    (pages,) = writer.execute("PRAGMA page_count").fetchone()
    writer.execute(f"PRAGMA max_page_count = {pages + 2}")
    assert_refuses_writes_and_keeps_all(store, reply)
    writer.execute("PRAGMA max_page_count = 1000000")
    assert_goes_on(store, reply)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("only root on Linux may mount a small disk")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"mount is not allowed here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk(small_disk: Path) -> None:
    with ChatStore(small_disk / "chats.sqlite3") as store:
        reply = store.begin_reply(question(store).id, {})
        store.append_steps(reply.id, [step(0)])
        ballast = small_disk / "ballast"
        with ballast.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass
        assert_refuses_writes_and_keeps_all(store, reply)
        ballast.unlink()
        assert_goes_on(store, reply)
    with ChatStore(small_disk / "chats.sqlite3") as store:
        assert shown(store, reply.chat_id) == ["Why?", "word 人word 人"]


def test_a_disk_that_is_full_at_the_start(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(bytes(2**20))
    with pytest.raises(UserFacingError, match=r"no space left|may be full") as caught:
        ChatStore(small_disk / "chats.sqlite3")
    assert "free" in caught.value.remedy.lower()


# A killed app

ENDLESS_WRITER = """
import itertools, sys
from pathlib import Path
from forespeak.chats.store import ChatStore
from forespeak.speculation.trace import Origin, Step, Token
store = ChatStore(Path(sys.argv[1]))
reply = store.begin_reply(int(sys.argv[2]), {})
print(reply.id, flush=True)
for index in itertools.count():
    store.append_steps(reply.id, [Step(index, (Token(index, f"{index} ", Origin.TARGET),))])
    print(index + 1, flush=True)
"""


def test_a_killed_app_loses_at_most_the_last_append(path: Path) -> None:
    with ChatStore(path) as store:
        user = question(store)
    for _ in range(5):
        command = [sys.executable, "-c", ENDLESS_WRITER, str(path), str(user.id)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            reply_id = int(child.stdout.readline())
            watcher = threading.Timer(random.uniform(0.02, 0.3), child.kill)
            watcher.start()
            confirmed = len(child.stdout.read().splitlines())
            watcher.join()
        assert child.returncode not in {0, 1}
        assert confirmed > 0
        with ChatStore(path) as store:
            with store._database.reading() as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            steps, message = store.steps(reply_id), store.message(reply_id)
        assert len(steps) in {confirmed, confirmed + 1}
        assert [one.index for one in steps] == list(range(len(steps)))
        assert message.text == text_of(steps)
        assert message.state is MessageState.INTERRUPTED

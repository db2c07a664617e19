"""The command line as people run it: real processes, a real model, and what happens when something is wrong."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from forespeak import __version__, cli
from forespeak.models.folders import folders
from forespeak.models.library_settings import LibrarySettings, LibrarySettingsFile
from forespeak.models.starter import StarterState, StarterStatus, starter_draft_path
from forespeak.reply import STATS
from models.gguf_writer import ModelFile

_PROGRAM = (sys.executable, "-m", "forespeak")
_STATS_AND_STATE = {*STATS, "speculation", "accepted_by_source"}


@pytest.fixture(scope="module")
def small() -> str:
    """A real model that loads at once: the starter's draft."""
    path = starter_draft_path()
    assert path is not None, "the starter package is a dependency of the tests"
    return str(path)


def forespeak(*arguments: str, stdin: str | bytes = b"") -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*_PROGRAM, *arguments],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        check=False,
        timeout=120,
    )
    # Decoded here, strictly: whatever the locale says, what comes out is UTF-8.
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def reply_of(*arguments: str, stdin: str | bytes = b"") -> dict[str, Any]:
    done = forespeak("chat", "--json", *arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    reply: dict[str, Any] = json.loads(done.stdout)
    return reply


_RIVERS = ("-p", "Name five rivers. 五條河 🏞", "--max-tokens", "24", "--seed", "3", "--reproducible")


@pytest.fixture(scope="module")
def reply() -> dict[str, Any]:
    """One reply of the starter pair, which is unpacked for it."""
    return reply_of(*_RIVERS, "--draft-tokens", "4")


class TestStarterPair:
    def test_the_record_is_whole(self, reply: dict[str, Any]) -> None:
        assert set(reply) == {
            *("text", "finish_reason", "tokens", "steps", "stats", "notices"),
            *("placement", "draft_placement"),
        }
        assert (reply["placement"]["devices"], reply["placement"]["gpu_layers"]) == (["CPU"], 0)
        assert reply["placement"]["cache_type"] == "F32"
        assert set(reply["stats"]) == _STATS_AND_STATE
        assert set(reply["tokens"][0]) == {"id", "text", "origin", "source", "p", "q"}
        assert reply["finish_reason"] in {"stop", "length"}
        assert reply["notices"] == []

    def test_the_counts_are_those_of_the_tokens(self, reply: dict[str, Any]) -> None:
        stats, tokens, steps = reply["stats"], reply["tokens"], reply["steps"]
        accepted = [token for token in tokens if token["origin"] == "accepted"]
        rejected = [token for step in steps for token in step["rejected"]]
        ignored = [token for step in steps for token in step["ignored"]]
        assert "".join(token["text"] for token in tokens) == reply["text"]
        assert stats["generated_tokens"] == len(tokens) == sum(step["emitted"] for step in steps)
        assert stats["accepted_draft_tokens_count"] == len(accepted) > 0
        assert stats["rejected_draft_tokens_count"] == len(rejected)
        assert stats["ignored_draft_tokens_count"] == len(ignored)
        assert stats["total_draft_tokens_count"] == sum(step["drafted"] for step in steps)
        assert stats["acceptance_rate"] == pytest.approx(len(accepted) / (len(accepted) + len(rejected)))
        assert stats["verify_steps"] == len(steps)
        assert {token["source"] for token in accepted} == {"draft-model"}
        assert all(0 < token["p"] <= 1 and 0 < token["q"] <= 1 for token in accepted)
        assert set(stats["speculation"]) == {"active", "reason", "draft_length", "chosen_lengths", "costs"}
        assert sum(steps for _, steps in stats["speculation"]["chosen_lengths"]) == len(steps) - 1
        assert stats["accepted_by_source"] == {"draft-model": len(accepted)}
        assert stats["peak_memory_bytes"] > 500_000_000  # the unpacked weights alone are larger

    def test_auto_says_what_it_reckons_with(self, reply: dict[str, Any]) -> None:
        auto = reply_of(*_RIVERS)
        assert auto["text"] == reply["text"]
        assert "costs" in auto["stats"]["speculation"]["reason"]
        assert auto["stats"]["speculation"]["costs"]["plain_seconds"] > 0

    def test_the_words_are_the_same_without_speculation(self, reply: dict[str, Any]) -> None:
        plain = reply_of(*_RIVERS, "--no-speculation")
        assert plain["text"] == reply["text"]
        assert plain["stats"]["total_draft_tokens_count"] == 0
        assert {token["origin"] for token in plain["tokens"]} == {"target"}
        assert plain["stats"]["speculation"]["active"] is False


def test_text_is_alone_on_stdout(small: str) -> None:
    arguments = ("-p", "-", "--target", small, "--max-tokens", "12", "--temperature", "0")
    done = forespeak("chat", *arguments, stdin="Say hello. 你好\n")
    reply = reply_of(*arguments, stdin="Say hello. 你好\n")
    assert done.returncode == 0
    assert done.stdout == reply["text"] + "\n"
    assert "tokens/s" in done.stderr
    assert "12 tokens" in done.stderr
    assert "Stopped at the limit of tokens." in done.stderr


def test_settings_reach_the_engine(small: str) -> None:
    common = ("-p", "Count from one to ten.", "--target", small, "--temperature", "0", "--max-tokens", "24")
    plain = reply_of(*common, "--draft", "none")
    stopped = reply_of(*common, "--draft", "ngram", "--stop", plain["text"][10:14])
    assert plain["stats"]["speculation"]["active"] is False
    assert stopped["finish_reason"] == "stop"
    assert stopped["text"] == plain["text"][: plain["text"].index(plain["text"][10:14])]


def test_a_chain_names_the_source_of_each_token(small: str) -> None:
    # The model drafts for itself: whoever is asked, everything is accepted.
    arguments = ("--target", small, "--draft", small, "--draft", "ngram", "--temperature", "0", "--draft-tokens", "3")
    reply = reply_of(*arguments, "-p", "Say this three times: the cat sat on the mat.", "--max-tokens", "48")
    sources = {token["source"] for token in reply["tokens"] if token["origin"] == "accepted"}
    assert sources == {"draft-model", "prompt-lookup"}


def test_a_chat_reads_lines_where_there_is_no_terminal(small: str) -> None:
    lines = (
        "/speculation",
        "Say hello.",
        "/speculation off",
        "/regenerate",
        "/system Be brief.",
        "/new",
        "/what",
        "Hi",
    )
    done = forespeak("chat", "--target", small, "--max-tokens", "8", stdin="\n".join(lines))
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) >= 3
    assert done.stderr.count("tokens/s") == 3
    assert done.stderr.count("without speculation") == 2
    assert "There is no command /what." in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"Dear landlord, the heater is broken.\n" * 9, "not a GGUF model"),
        ("truncated", "incomplete"),
        ("vocabulary", "no weights"),
        (None, "There is no file"),
    ],
    ids=["empty", "text", "truncated", "vocabulary only", "missing"],
)
def test_a_target_that_cannot_serve(content: bytes | str | None, words: str, tmp_path: Path, small: str) -> None:
    path = tmp_path / "model.gguf"
    if content == "truncated":
        with Path(small).open("rb") as whole:
            path.write_bytes(whole.read(5_000_000))
    elif content == "vocabulary":
        ModelFile(["a", "b", "ab", "c"], tensors=()).write(path)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    done = forespeak("chat", "--target", str(path), "-p", "Hi")
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_the_target_goes_on_without_a_draft_that_cannot_serve(tmp_path: Path, small: str) -> None:
    other = ModelFile(["a", "b", "ab", "c"]).write(tmp_path / "other.gguf")
    reply = reply_of("--target", small, "--draft", str(other), "-p", "Hi", "--max-tokens", "4")
    assert reply["stats"]["generated_tokens"] == 4
    assert reply["stats"]["speculation"]["active"] is False
    assert reply["stats"]["speculation"]["reason"]
    assert "draft" in reply["notices"][0]


def test_a_prompt_longer_than_the_context(small: str) -> None:
    done = forespeak("chat", "--target", small, "--context", "256", "-p", "-", stdin="one two three four " * 200)
    assert done.returncode == 2
    assert "too long" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "invalid choice"),
        (["chat", "--nonsense"], "unrecognized arguments"),
        (["chat", "-p", "x", "--max-tokens", "0"], "whole number from 1 on"),
        (["chat", "-p", "x", "--draft-tokens", "-1"], "whole number from 0 on"),
        (["chat", "-p", "x", "--rule", "guess"], "invalid choice"),
        (["chat", "-p", "x", "--temperature", "-1"], "--temperature must lie between"),
        (["chat", "-p", "x", "--top-p", "1.5"], "--top-p must lie between"),
        (["chat", "-p", "x", "--min-p", "nan"], "--min-p must lie between"),
        (["chat", "-p", "x", "--seed", "-1"], "--seed must lie between"),
        (["chat", "-p", "x", "--stop", ""], "--stop"),
        (["chat", "-p", "  "], "The prompt is empty."),
        (["chat", "-p", "\udcff"], "not UTF-8"),
        (["chat", "--json"], "give the prompt with -p"),
    ],
)
def test_arguments_that_make_no_sense(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "_engine", lambda: pytest.fail("no engine is needed to see that"))
    assert cli.run(arguments) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.out == ""


def test_input_that_is_no_text(small: str) -> None:
    done = forespeak("chat", "--target", small, "-p", "-", stdin=b"\xff\xfe\x00")
    assert done.returncode == 2
    assert "not UTF-8" in done.stderr


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out == f"forespeak {__version__}\n"


def test_a_bug_is_told_shortly_and_logged_wholly(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setenv("FORESPEAK_HOME", str(tmp_path))
    monkeypatch.setattr(cli, "_engine", broken)
    assert cli.run(["chat", "-p", "x"]) == 1
    printed = capsys.readouterr().err
    log = tmp_path / "logs" / cli.LOG_NAME
    assert str(log) in printed
    assert "Traceback" not in printed
    assert "Traceback" in log.read_text(encoding="utf-8")
    assert "ZeroDivisionError: a bug" in log.read_text(encoding="utf-8")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break differently there")
def test_a_reader_who_leaves_is_no_error(small: str) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with subprocess.Popen(
        [*_PROGRAM, "chat", "--target", small, "-p", "Count to a hundred.", "--max-tokens", "40"],
        stdout=theirs,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(theirs)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"Broken" not in errors
    assert b"Traceback" not in errors


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
class TestTerminal:
    def read_until(self, terminal: int, wanted: bytes, seconds: float = 30) -> bytes:
        """What comes until the pattern `wanted` has matched."""
        seen = b""
        end = time.monotonic() + seconds
        while not re.search(wanted, seen, re.DOTALL) and time.monotonic() < end:
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    seen += os.read(terminal, 65536)
                except OSError:  # the other side is gone
                    break
        assert re.search(wanted, seen, re.DOTALL), seen.decode(errors="replace")
        return seen

    def test_colours_stop_and_leave(self, small: str) -> None:
        ours, theirs = os.openpty()
        environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
        # The model drafts for itself: every draft is accepted.
        arguments = ("chat", "--target", small, "--draft", small, "--temperature", "0", "--draft-tokens", "4")
        with subprocess.Popen(
            [*_PROGRAM, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
        ) as process:
            os.close(theirs)
            try:
                self.read_until(ours, rb"/help\..*> ")
                os.write(ours, b"Write a long story about a fox.\n")
                self.read_until(ours, rb"\x1b\[4m\x1b\[32m")
                process.send_signal(signal.SIGINT)
                stopped = self.read_until(ours, rb"tokens/s.*> ")
                assert b"Stopped." in stopped
                os.write(ours, b"\x04")
                assert process.wait(timeout=20) == 0
            finally:
                process.kill()
                os.close(ours)


def test_the_starter_lies_where_the_models_are_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORESPEAK_HOME", str(tmp_path))
    LibrarySettingsFile(folders().config).write(LibrarySettings(tmp_path / "disk"))

    def check(models: Path) -> StarterState:
        return StarterState(StarterStatus.READY, models / "draft.gguf", models / "target.gguf", 0, 0)

    monkeypatch.setattr(cli, "check_starter", check)
    monkeypatch.setattr(cli, "starter_draft_path", lambda: None)
    target = cli._target_path("starter", cli._engine(), lambda _: None, lambda: False)
    assert target == tmp_path / "disk" / "target.gguf"
    assert cli._draft_path("starter") == tmp_path / "disk" / "draft.gguf"

"""The terminal's colours and the chat's commands, over an engine that says what the test wants."""

from __future__ import annotations

import io
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator

import pytest

from forespeak.engines.engine import (
    ChatMessage,
    ConversionRequest,
    Converted,
    GenerationRequest,
    Loaded,
    LoadRequest,
    Notice,
    Progress,
    Role,
)
from forespeak.errors import UserFacingError
from forespeak.speculation.events import Event, Finished
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import FinishReason, GenerationStats, Origin, Source, Step, Token
from forespeak.terminal import Interrupt, Painter, TerminalChat

ESCAPE = re.compile(r"\x1b\[[0-9:;]*m")


class ParrotEngine:
    """Answers with the last message in capitals; `fails` raises instead."""

    def __init__(self) -> None:
        self.requests: list[GenerationRequest] = []
        self.fails = False

    def load(
        self, request: LoadRequest, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
    ) -> Loaded | None:
        raise NotImplementedError

    def convert(
        self, request: ConversionRequest, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
    ) -> Converted | None:
        raise NotImplementedError

    def generate(self, request: GenerationRequest, cancelled: Callable[[], bool]) -> Iterator[Notice | Event]:
        self.requests.append(request)
        if self.fails:
            raise UserFacingError("It is too long.", "There is no room.", "Write less.")
        yield Step(0, (Token(1, request.messages[-1].content.upper(), Origin.TARGET),))
        yield Finished(FinishReason.STOP, GenerationStats(generated_tokens=1))

    def close(self) -> None:
        pass


def chat(
    monkeypatch: pytest.MonkeyPatch, *lines: str, sources: tuple[Source, ...] = ()
) -> tuple[TerminalChat, ParrotEngine]:
    engine = ParrotEngine()
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(lines)))
    talk = TerminalChat(engine, GenerationRequest((), sources=sources))
    talk.run()
    return talk, engine


def user(text: str) -> ChatMessage:
    return ChatMessage(Role.USER, text)


def assistant(text: str) -> ChatMessage:
    return ChatMessage(Role.ASSISTANT, text)


def test_a_chat_remembers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    talk, engine = chat(monkeypatch, "hi", "  ", "you")
    assert engine.requests[1].messages == (user("hi"), assistant("HI"), user("you"))
    assert talk.messages == [user("hi"), assistant("HI"), user("you"), assistant("YOU")]
    assert capsys.readouterr().out == "HI\nYOU\n"


def test_new_forgets_and_system_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    _, engine = chat(monkeypatch, "/system Be kind.", "hi", "/new", "you", "/system -", "there")
    system = ChatMessage(Role.SYSTEM, "Be kind.")
    assert engine.requests[0].messages == (system, user("hi"))
    assert engine.requests[1].messages == (system, user("you"))
    assert engine.requests[2].messages == (user("you"), assistant("YOU"), user("there"))


def test_regenerate_asks_again_with_another_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    talk, engine = chat(monkeypatch, "/regenerate", "hi", "/regenerate")
    assert [request.messages for request in engine.requests] == [(user("hi"),), (user("hi"),)]
    assert engine.requests[0].sampling.seed != engine.requests[1].sampling.seed
    assert talk.messages == [user("hi"), assistant("HI")]


def test_the_last_seed_is_followed_by_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ParrotEngine()
    monkeypatch.setattr(sys, "stdin", io.StringIO("hi\n/regenerate"))
    TerminalChat(engine, GenerationRequest((), sampling=SamplingSettings(seed=2**64 - 1))).run()
    assert engine.requests[1].sampling.seed == 0


def test_speculation_goes_off_and_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ("a", "/speculation off", "/speculation", "b", "/speculation on", "c", "/speculation sideways")
    chain = (Source.PROMPT_LOOKUP, Source.DRAFT_MODEL)
    _, engine = chat(monkeypatch, *lines, sources=chain)
    assert [request.sources for request in engine.requests] == [chain, (), chain]
    printed = capsys.readouterr().err
    assert "Speculation is off. /speculation on brings it back." in printed
    assert "Speculation is on: prompt-lookup, then draft-model." in printed
    assert "Write /speculation on or /speculation off." in printed


def test_speculation_needs_something_to_draft_with(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chat(monkeypatch, "/speculation on", "/speculation", "/legend")
    printed = capsys.readouterr().err
    assert "nothing to draft with" in printed
    assert "the chat was started without a draft" in printed
    assert "corrected" not in printed


def test_quit_leaves_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    _, engine = chat(monkeypatch, "/quit", "hi")
    assert engine.requests == []


def test_a_failed_reply_leaves_the_chat_as_it_was(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    talk, engine = chat(monkeypatch, "hi")
    engine.fails = True
    monkeypatch.setattr(sys, "stdin", io.StringIO("again"))
    talk.run()
    assert talk.messages == [user("hi"), assistant("HI")]
    assert "forespeak: It is too long.\nThere is no room.\nWrite less.\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("token", "sequences"),
    [
        (Token(1, "x", Origin.TARGET), []),
        (Token(1, "x", Origin.UNKNOWN), []),
        (Token(1, "x", Origin.ACCEPTED, Source.DRAFT_MODEL), ["\x1b[4m", "\x1b[32m"]),
        (Token(1, "x", Origin.ACCEPTED, Source.PROMPT_LOOKUP), ["\x1b[4m", "\x1b[21m", "\x1b[36m"]),
        (Token(1, "x", Origin.ACCEPTED, Source.NGRAM_MOD), ["\x1b[4m", "\x1b[21m", "\x1b[38;5;103m"]),
        (Token(1, "x", Origin.ACCEPTED), []),
        (Token(1, "x", Origin.CORRECTED), ["\x1b[4m", "\x1b[4:4m", "\x1b[33m"]),
        (Token(1, "x", Origin.BONUS), ["\x1b[4m", "\x1b[4:5m", "\x1b[35m"]),
    ],
)
def test_each_origin_has_its_mark(token: Token, sequences: list[str]) -> None:
    painted = Painter(io.StringIO(), coloured=True, is_terminal=True).painted(token)
    assert ESCAPE.findall(painted) == (sequences and [*sequences, "\x1b[0m"])
    assert ESCAPE.sub("", painted) == "x"


def test_each_source_has_its_own_colour_and_its_line_in_the_legend() -> None:
    painter = Painter(io.StringIO(), coloured=True, is_terminal=True)
    marks = {tuple(ESCAPE.findall(painter.painted(Token(1, "x", Origin.ACCEPTED, source)))) for source in Source}
    assert len(marks) == len(Source)
    legend = painter.legend((Source.NGRAM_MAP_K4V, Source.DRAFT_MODEL))
    assert "\x1b[38;5;100mngram-map-k4v, accepted" in legend
    assert ESCAPE.sub("", legend).startswith(
        "ngram-map-k4v, accepted · draft model, accepted · corrected by the target"
    )
    assert "looked up" not in legend


def test_no_style_reaches_over_the_end_of_a_line() -> None:
    painter = Painter(io.StringIO(), coloured=True, is_terminal=True)
    painted = painter.painted(Token(1, "a\n\nb", Origin.BONUS))
    assert [ESCAPE.sub("", line) for line in painted.split("\n")] == ["a", "", "b"]
    assert all(line.endswith("\x1b[0m") for line in painted.split("\n") if line)


def test_a_reply_cannot_command_the_terminal() -> None:
    hostile = Token(1, "\x1b]0;title\x07\x9b31m\r\n\tend", Origin.TARGET)
    shown = Painter(io.StringIO(), coloured=True, is_terminal=True).painted(hostile)
    assert shown == "\ufffd]0;title\ufffd\ufffd31m\ufffd\n\tend"
    # A file gets the text as it is.
    assert Painter(io.StringIO(), coloured=False, is_terminal=False).painted(hostile) == hostile.text


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "coloured"),
    [
        (Screen(), {}, True),
        (Screen(), {"NO_COLOR": "1"}, False),
        (Screen(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colours_are_for_terminals(
    stream: io.StringIO, environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    legend = Painter.of(stream).legend((Source.DRAFT_MODEL,))
    assert bool(ESCAPE.search(legend)) is coloured
    assert "corrected" in legend


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends the process there")
def test_the_first_interrupt_asks_and_the_second_leaves() -> None:
    former = signal.getsignal(signal.SIGINT)
    with Interrupt() as interrupt:
        assert not interrupt.asked()
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupt.asked()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is former

"""The chat in the terminal: tokens in the colour of their origin, counts after each reply, a few commands."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType, TracebackType
from typing import Any, TextIO

from forespeak.engines.collect import Reply, collect
from forespeak.engines.engine import ChatMessage, Engine, GenerationRequest, Progress, Role
from forespeak.errors import UserFacingError
from forespeak.reply import counts, ending
from forespeak.speculation.trace import Origin, Source, Step, Token

FAULT, MENDABLE, INTERRUPTED = 1, 2, 130
"""Exit codes: a fault of ours, what the user can mend, and the shell's own for Ctrl+C."""

_AMBER, _VIOLET = "\x1b[33m", "\x1b[35m"
# Terminals that know one underline only show that one. Some then mistake the second sequence for a colour, so the
# colour itself comes last.
_SOLID, _DOTTED, _DASHED = "\x1b[4m", "\x1b[4m\x1b[4:4m", "\x1b[4m\x1b[4:5m"
_PLAIN = "\x1b[0m"
_DOUBLE = "\x1b[4m\x1b[21m"
"""Under what was looked up; where it is not known, one line remains."""
_COLOURS = {
    Source.DRAFT_MODEL: "\x1b[32m",
    Source.PROMPT_LOOKUP: "\x1b[36m",
    Source.NGRAM_SIMPLE: "\x1b[38;5;33m",
    Source.NGRAM_MAP_K: "\x1b[38;5;133m",
    Source.NGRAM_MAP_K4V: "\x1b[38;5;100m",
    Source.NGRAM_MOD: "\x1b[38;5;103m",
    Source.NGRAM_CACHE: "\x1b[38;5;95m",
}
"""Of middle lightness, so that they can be read on dark and on light."""

_CONTROL_CHARACTERS = {
    code: "\N{REPLACEMENT CHARACTER}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"
}
"""What a reply must not send to a terminal, which would obey it."""

HELP = """\
/new               start a new chat
/regenerate        another reply to your last message
/system TEXT       set the system prompt; without a text it is shown, with - removed
/speculation on    draft and check tokens, or off: the target alone; without a word: what drafts
/legend            what the colours mean
/quit              leave (so do Ctrl+D, and Ctrl+C while nothing is being written)
Ctrl+C stops a reply; what was written stays."""


class Painter:
    """Writes tokens to a stream, coloured and underlined by their origin if `coloured`.

    With `is_terminal`, control characters in the text are made harmless.
    """

    def __init__(self, stream: TextIO, *, coloured: bool, is_terminal: bool) -> None:
        self._stream = stream
        self._coloured = coloured
        self._is_terminal = is_terminal

    @classmethod
    def of(cls, stream: TextIO) -> Painter:
        """Colours on a terminal, unless the user asked for none (NO_COLOR) or it has none."""
        is_terminal = stream.isatty()
        coloured = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        if coloured and sys.platform == "win32":
            # Running any command makes the console obey colour sequences from then on.
            os.system("")
        return cls(stream, coloured=coloured, is_terminal=is_terminal)

    def step(self, step: Step) -> None:
        self.write("".join(map(self.painted, step.emitted)))

    def write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

    def painted(self, token: Token) -> str:
        return self._styled(token.text, _style(token.origin, token.source))

    def _styled(self, text: str, style: str) -> str:
        if self._is_terminal:
            text = text.translate(_CONTROL_CHARACTERS)
        if not self._coloured or not style:
            return text
        # No style reaches over a line's end: it would fill the rest of the line on some terminals.
        return "\n".join(f"{style}{line}{_PLAIN}" if line else "" for line in text.split("\n"))

    def legend(self, sources: Sequence[Source]) -> str:
        """What the marks mean, for a chat in which these sources draft."""
        entries = [
            (_style(Origin.ACCEPTED, source), f"{_NAMES.get(source, source.value)}, accepted") for source in sources
        ]
        if sources:
            entries += [
                (_style(Origin.CORRECTED, None), "corrected by the target"),
                (_style(Origin.BONUS, None), "bonus after a whole draft"),
            ]
        entries.append(("", "no mark: the target alone"))
        return " · ".join(self._styled(words, style) for style, words in entries)


_NAMES = {Source.DRAFT_MODEL: "draft model", Source.PROMPT_LOOKUP: "looked up in the text"}
"""The others are best known by what --draft calls them."""


def _style(origin: Origin, source: Source | None) -> str:
    match origin:
        case Origin.ACCEPTED if source is not None:
            return (_SOLID if source.uses_model else _DOUBLE) + _COLOURS[source]
        case Origin.CORRECTED:
            return _DOTTED + _AMBER
        case Origin.BONUS:
            return _DASHED + _VIOLET
        case _:
            return ""


class Interrupt:
    """While it is entered, Ctrl+C asks what runs to stop; a second Ctrl+C raises KeyboardInterrupt."""

    def __init__(self) -> None:
        self._asked = False

    def asked(self) -> bool:
        return self._asked

    def __enter__(self) -> Interrupt:
        self._former = signal.signal(signal.SIGINT, self._receive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._former)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True


class ProgressLine:
    """Progress on stderr while it is entered: one line that changes on a terminal, else a line per thing done."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._shown = ""

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._is_terminal and self._shown:
            self._replace("")

    def show(self, progress: Progress) -> None:
        if self._is_terminal:
            self._replace(f"{progress.doing} {progress.fraction:4.0%}".replace("%", " %"))
        elif progress.doing != self._shown:
            self._shown = progress.doing
            say(progress.doing)

    def _replace(self, line: str) -> None:
        if line != self._shown:
            self._shown = line
            # Back to the start of the line, and away with what stood there.
            sys.stderr.write(f"\r{line}\x1b[K")
            sys.stderr.flush()


def say(text: str) -> None:
    """A line beside the reply: on stderr, so that a reply can be piped away alone."""
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def print_json(content: dict[str, Any]) -> None:
    json.dump(content, sys.stdout, ensure_ascii=False, indent=1)
    sys.stdout.write("\n")


def print_table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
    """Print rows as columns; the first row holds their names. `right` are the columns of numbers."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            f"{cell:>{width}}" if column in right else f"{cell:<{width}}"
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def asker() -> Callable[[str], bool] | None:
    """Asks a question on the terminal, yes or no; None where nobody is there to answer."""
    return _ask if sys.stdin.isatty() and sys.stderr.isatty() else None


def _ask(question: str) -> bool:
    sys.stdout.flush()
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def say_error(error: UserFacingError) -> None:
    say("\n".join(part for part in (f"forespeak: {error.what}", error.why, error.remedy) if part))


def say_outcome(reply: Reply, *, speculating: bool) -> None:
    """The lines under a reply: notices, an early end, the counts."""
    for line in (*reply.notices, ending(reply.reason), counts(reply, speculating=speculating)):
        if line:
            say(line)


@dataclass(slots=True)
class TerminalChat:
    """A conversation of many turns. `request` holds the settings; its messages are replaced turn by turn."""

    engine: Engine
    request: GenerationRequest
    system: str | None = None
    messages: list[ChatMessage] = field(default_factory=list)
    _sources: tuple[Source, ...] = field(init=False)
    _painter: Painter = field(init=False)

    def __post_init__(self) -> None:
        # What /speculation on returns to.
        self._sources = self.request.sources
        self._painter = Painter.of(sys.stdout)

    def start_without_speculation(self) -> None:
        self.request = replace(self.request, sources=())

    def run(self) -> None:
        """Until the user leaves or the input ends. Raises KeyboardInterrupt for a second Ctrl+C within a reply."""
        interactive = sys.stdin.isatty()
        if interactive:
            _load_line_editing()
            say(self._painter.legend(self._sources))
            say("Write a message, or /help.")
        while True:
            try:
                line = _read_line(prompted=interactive)
            except KeyboardInterrupt:
                line = None
            if line is None:
                if interactive:
                    say("")
                return
            line = line.strip()
            if line.startswith("/"):
                if not self._obey(line):
                    return
            elif line:
                self._answer([*self.messages, ChatMessage(Role.USER, line)])

    def _answer(self, messages: list[ChatMessage]) -> None:
        """Write a reply to `messages` and keep both; if that fails, keep the chat as it was."""
        system = [ChatMessage(Role.SYSTEM, self.system)] if self.system else []
        request = replace(self.request, messages=(*system, *messages))
        try:
            with Interrupt() as interrupt:
                reply = collect(self.engine.generate(request, interrupt.asked), self._painter.step)
        except UserFacingError as error:
            self._painter.write("\n")
            say_error(error)
            return
        self._painter.write("\n")
        say_outcome(reply, speculating=bool(request.sources))
        self.messages = [*messages, ChatMessage(Role.ASSISTANT, reply.text)]

    def _obey(self, line: str) -> bool:
        """Carry a command out; False: leave."""
        command, _, argument = line.partition(" ")
        argument = argument.strip()
        match command, argument:
            case "/quit" | "/exit", _:
                return False
            case "/help", _:
                say(HELP)
            case "/legend", _:
                say(self._painter.legend(self._sources))
            case "/new", _:
                self.messages = []
                say("A new chat.")
            case "/regenerate", _:
                self._regenerate()
            case "/system", "":
                say(self.system or "There is no system prompt.")
            case "/system", "-":
                self.system = None
                say("The system prompt is removed.")
            case "/system", text:
                self.system = text
                say("The system prompt is set.")
            case "/speculation", "on" if not self._sources:
                say("There is nothing to draft with: the chat was started without a draft.")
            case "/speculation", "on":
                self.request = replace(self.request, sources=self._sources)
                say(self._speculation())
            case "/speculation", "off":
                self.request = replace(self.request, sources=())
                say("Speculation is off.")
            case "/speculation", "":
                say(self._speculation())
            case "/speculation", _:
                say("Write /speculation on or /speculation off.")
            case _:
                say(f"There is no command {command}. /help lists them.")
        return True

    def _speculation(self) -> str:
        """Whether anything drafts, and what."""
        if not self._sources:
            return "Speculation is off: the chat was started without a draft."
        if not self.request.sources:
            return "Speculation is off. /speculation on brings it back."
        return f"Speculation is on: {', then '.join(source.value for source in self.request.sources)}."

    def _regenerate(self) -> None:
        if not self.messages:
            say("There is no reply yet.")
            return
        sampling = self.request.sampling
        if sampling.temperature == 0.0:
            say("At temperature 0 the reply stays the same.")
        # Another seed, so that the words may differ.
        self.request = replace(self.request, sampling=replace(sampling, seed=(sampling.seed + 1) % 2**64))
        self._answer(self.messages[:-1])


def _load_line_editing() -> None:
    """Arrow keys and the history of this session, where Python has them. Nothing of it is written to disk."""
    try:
        import readline  # noqa: F401
    except ImportError:
        pass


def _read_line(*, prompted: bool) -> str | None:
    """The next line of input; None at its end."""
    if prompted and sys.stdout.isatty():
        try:
            return input("> ")
        except EOFError:
            return None
    if prompted:
        sys.stderr.write("> ")
        sys.stderr.flush()
    return sys.stdin.readline() or None

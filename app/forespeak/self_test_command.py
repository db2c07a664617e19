"""`forespeak self-test`: whether this installation works as a whole, from the window to the engine."""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from forespeak import __version__, terminal
from forespeak.bench_command import Models
from forespeak.draft_arguments import STARTER
from forespeak.engines.engine import Progress
from forespeak.errors import UserFacingError
from forespeak.models.folders import HOME_VARIABLE, folders

if TYPE_CHECKING:
    from forespeak.engines.parity_result import ParityResult

_PROMPTS, _TOKENS, _DRAFT_LENGTH = 3, 16, 4
_WINDOW_SECONDS = 900.0
"""A window that hangs must not hang whoever waits for the result."""

_EPILOG = """\
Meanwhile everything lies in a temporary folder, which takes 600 MB (TMPDIR can move it): your chats, models and
settings are not touched, and nothing goes out to the network. It takes a minute or so. Exit code: 0 if all of it works,
1 if something is wrong with Forespeak, 2 if something is in the way that you can mend."""


class BrokenError(Exception):
    """What does not work, in a sentence, where the installation itself is to blame."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser], models: Models) -> None:
    """Add the command to argparse's sub-commands."""
    parser = commands.add_parser(
        "self-test",
        help="see whether this installation works, from the window to the engine",
        description="Open the window out of sight, have the starter pair answer with speculation, and check parity.",
        epilog=_EPILOG,
    )
    parser.set_defaults(command=partial(_self_test, models))
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")


def _self_test(models: Models, options: argparse.Namespace) -> int:
    started = time.perf_counter()
    found: dict[str, Any] = {"version": __version__, "frozen": bool(getattr(sys, "frozen", False))}
    code, problem = 0, ""
    with _own_home(), terminal.Interrupt() as interrupt, terminal.ProgressLine() as line:
        try:
            found["window"] = _window(line, interrupt.asked)
            found["parity"] = _parity(models, line, interrupt.asked)
        except UserFacingError as error:
            code, problem = terminal.MENDABLE, str(error)
        except BrokenError as error:
            code, problem = terminal.FAULT, str(error)
    if interrupt.asked():
        return terminal.INTERRUPTED
    found |= {"passed": code == 0, "problem": problem or None, "seconds": time.perf_counter() - started}
    if options.json:
        terminal.print_json(found)
    else:
        sys.stdout.write(report(found) + "\n")
    return code


@contextlib.contextmanager
def _own_home() -> Iterator[None]:
    """An empty home, and a window out of sight, for this process and its children."""
    # What a child that just ended held open may stay for a moment on Windows.
    with tempfile.TemporaryDirectory(prefix="forespeak-self-test-", ignore_cleanup_errors=True) as home:
        wanted = {HOME_VARIABLE: home, "QT_QPA_PLATFORM": "offscreen"}
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def _window(line: terminal.ProgressLine, cancelled: Callable[[], bool]) -> dict[str, Any]:
    """Open the window in a child process, since Qt ends the process where it cannot go on."""
    line.show(Progress(0.0, "The window, with the starter pair"))
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    # Not a daemon: the window starts an engine process of its own.
    child = context.Process(target=_check_window, args=(theirs,))
    child.start()
    theirs.close()
    deadline = time.monotonic() + _WINDOW_SECONDS
    try:
        while not ours.poll(0.2):
            if cancelled() or time.monotonic() > deadline:
                raise BrokenError("The window did not answer.")
        answer = ours.recv()
    except EOFError:
        child.join(5.0)
        raise BrokenError(f"The window ended its process (exit code {child.exitcode}).") from None
    finally:
        ours.close()
        child.join(5.0)
        if child.is_alive():
            child.terminate()
            child.join()
    if isinstance(answer, Exception):
        raise answer
    checked: dict[str, Any] = answer
    return checked


def _check_window(answer: Connection) -> None:
    from dataclasses import asdict

    from forespeak.ui.window_check import check_window

    try:
        answer.send(asdict(check_window()))
    except UserFacingError as error:
        answer.send(error)
    except Exception as error:  # noqa: BLE001 - it is told by the process that asked
        answer.send(BrokenError("".join(traceback.format_exception(error)).rstrip()))


def _parity(models: Models, line: terminal.ProgressLine, cancelled: Callable[[], bool]) -> dict[str, Any]:
    """The pair that the window unpacked, in the reproducible setting, with and without speculation."""
    from forespeak.engines.engine import LoadRequest, LoadSettings
    from forespeak.engines.pair_knowledge import ReproducibleEngine
    from forespeak.engines.parity_result import ParityRequest
    from forespeak.pairing.pair_memory import PairFiles
    from forespeak.pairing.parity import context_needed
    from forespeak.pairing.self_test import SelfTest
    from forespeak.speculation.trace import Source

    sources = (Source.PROMPT_LOOKUP, Source.DRAFT_MODEL)
    request = ParityRequest(sources, tokens=_TOKENS, draft_length=_DRAFT_LENGTH, prompts=_PROMPTS)
    engine = models.engine()
    try:
        target, draft = models.target(STARTER, engine, line.show, cancelled), models.draft(STARTER)
        load = LoadRequest(target, draft, LoadSettings(context_needed(request), reproducible=True))
        loaded = engine.load(load, line.show, cancelled)
        if loaded is not None and loaded.draft is None:
            raise BrokenError(f"The starter's draft was not loaded: {loaded.draft_problem}")
        if not isinstance(engine, ReproducibleEngine):
            raise BrokenError("The engine's scores cannot be read.")
        result = SelfTest(PairFiles(folders().pairs))(engine, request, line.show, cancelled)
    finally:
        engine.close()
    return _judged(result)


def _judged(result: ParityResult) -> dict[str, Any]:
    """The parity check's counts. Raises BrokenError if it found a fault, or showed nothing."""
    if result.faults:
        raise BrokenError(f"Speculation changed the words of {result.faults} of {len(result.cases)} replies.")
    if not result.tested:
        raise BrokenError("No drafted token was tested, so that parity is not shown.")
    accepted = sum(case.accepted for case in result.cases)
    return {
        "replies": len(result.cases),
        "equal": result.equal,
        "ties": result.ties,
        "tested": result.tested,
        "accepted": accepted,
        "seconds": result.seconds,
        "engine": result.engine,
    }


def report(found: dict[str, Any]) -> str:
    """What was found, in lines for people."""
    lines = [f"Forespeak {found['version']}{', as a bundle' if found['frozen'] else ''}"]
    window, parity = found.get("window"), found.get("parity")
    if window is not None:
        lines += [
            f"  window   opened in {window['seconds_to_open']:.1f} s",
            f"  starter  unpacked and loaded in {window['seconds_to_load']:.1f} s",
            f"  reply    {window['tokens']} tokens in {window['seconds_of_reply']:.1f} s",
            f"  drafts   {window['accepted']} of {window['tested']} tested tokens accepted",
        ]
    if parity is not None:
        ties = f", {parity['ties']} with numeric ties" if parity["ties"] else ""
        lines.append(
            f"  parity   {parity['equal']} of {parity['replies']} replies the same{ties}; "
            f"{parity['tested']} drafted tokens tested, in {parity['seconds']:.1f} s"
        )
    if found["problem"]:
        lines.append(f"  problem  {found['problem']}")
    verdict = "All of it works" if found["passed"] else "It does not work"
    lines.append(f"{verdict}: {found['seconds']:.0f} s.")
    return "\n".join(lines)

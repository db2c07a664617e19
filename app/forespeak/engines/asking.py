"""A question to native code in a process of its own: a driver may abort or hang, and must not take us along."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection

_ANSWER_SECONDS = 60.0
"""Loading a GPU's driver can take a while."""


def ask_child(tell: Callable[[Connection], None], name: str) -> object:
    """What `tell` sends from a spawned process, or a sentence about `name` if nothing comes. Nothing is raised."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=tell, args=(theirs,), daemon=True)
    child.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(_ANSWER_SECONDS) else f"{name} did not answer in a minute."
    except (EOFError, OSError):
        child.join(1.0)
        return f"{name} ended its process (exit code {child.exitcode})."
    finally:
        ours.close()
        child.terminate()
        child.join()

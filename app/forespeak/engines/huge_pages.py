"""Memory in huge pages, for processes that compute with a model on Linux.

Each token reads all weights and the whole cache. In pages of 4 KB a processor spends a good part of its time on finding
them: in pages of 2 MB the starter's target, on two cores, writes 1.15 times as fast in F32, and 1.05 to 1.13 times in
smaller formats. Most systems give them only to those who ask, and llama.cpp does not. The C library does where
GLIBC_TUNABLES says so (glibc 2.35 and later), which it reads when a process begins.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping

_VARIABLE = "GLIBC_TUNABLES"
_TUNABLE = "glibc.malloc.hugetlb"


def tunables(environment: Mapping[str, str]) -> str | None:
    """The variable's value that asks for them; None where nobody would read it, or somebody has decided already."""
    chosen = environment.get(_VARIABLE, "")
    if sys.platform != "linux" or "CS_GNU_LIBC_VERSION" not in os.confstr_names or _TUNABLE in chosen:
        return None
    return f"{chosen}:{_TUNABLE}=1" if chosen else f"{_TUNABLE}=1"


@contextlib.contextmanager
def for_children() -> Iterator[None]:
    """Processes that are started meanwhile have them."""
    before, wanted = os.environ.get(_VARIABLE), tunables(os.environ)
    if wanted is None:
        yield
        return
    os.environ[_VARIABLE] = wanted
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before


def begin_again() -> None:
    """Start this very program anew with them; returns where it has them, or cannot. Call it before anything is done."""
    wanted = tunables(os.environ)
    arguments = sys.argv[1:]
    # Inside of another program, or where Python lies in one file with it, these are not the words that started it.
    is_ours = sys.orig_argv[len(sys.orig_argv) - len(arguments) :] == arguments
    if wanted is None or not is_ours or getattr(sys, "frozen", False):
        return
    with contextlib.suppress(OSError):
        os.execve(sys.executable, sys.orig_argv, {**os.environ, _VARIABLE: wanted})

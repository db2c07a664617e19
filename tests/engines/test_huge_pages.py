"""Huge pages: who gets them, and who is left alone."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from forespeak.engines import huge_pages

GLIBC = sys.platform == "linux" and "CS_GNU_LIBC_VERSION" in os.confstr_names
glibc_only = pytest.mark.skipif(not GLIBC, reason="only the GNU C library on Linux can be told")


@glibc_only
def test_what_somebody_has_decided_stays() -> None:
    assert huge_pages.tunables({}) == "glibc.malloc.hugetlb=1"
    beside = {"GLIBC_TUNABLES": "glibc.malloc.check=3"}
    assert huge_pages.tunables(beside) == "glibc.malloc.check=3:glibc.malloc.hugetlb=1"
    assert huge_pages.tunables({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=0"}) is None


def test_elsewhere_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert huge_pages.tunables({}) is None
    before = dict(os.environ)
    with huge_pages.for_children():
        assert dict(os.environ) == before


@glibc_only
@pytest.mark.parametrize("before", [None, "glibc.malloc.check=3"])
def test_only_the_children_have_them(monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    if before is None:
        monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    else:
        monkeypatch.setenv("GLIBC_TUNABLES", before)
    with contextlib.suppress(ZeroDivisionError), huge_pages.for_children():
        assert os.environ["GLIBC_TUNABLES"].endswith("glibc.malloc.hugetlb=1")
        raise ZeroDivisionError("no child could be started")
    assert os.environ.get("GLIBC_TUNABLES") == before


SCRIPT = """
import os, sys
from forespeak.engines import huge_pages
huge_pages.begin_again()
print(os.environ.get("GLIBC_TUNABLES"), sys.argv[1:])
"""


@glibc_only
def test_a_program_begins_again_once(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(SCRIPT, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "GLIBC_TUNABLES"}
    done = subprocess.run(
        [sys.executable, str(script), "a b", "ä"],
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        timeout=60,
    )
    assert done.stdout == "glibc.malloc.hugetlb=1 ['a b', 'ä']\n"


def test_another_program_s_words_are_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["forespeak", "chat"])
    monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("it was started anew"))
    huge_pages.begin_again()

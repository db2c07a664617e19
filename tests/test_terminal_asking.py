"""A question on the terminal, and nobody there to answer it."""

from __future__ import annotations

import io
import sys

import pytest

from forespeak.terminal import asker


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answer", "agreed"), [("y\n", True), ("Yes\n", True), ("n\n", False), ("\n", False), ("", False)]
)
def test_only_a_yes_is_a_yes(monkeypatch: pytest.MonkeyPatch, answer: str, *, agreed: bool) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", shown)
    ask = asker()
    assert ask is not None
    assert ask("Load it anyway?") is agreed
    assert shown.getvalue() == "Load it anyway? [y/N] "


def test_a_pipe_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert asker() is None
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert asker() is None

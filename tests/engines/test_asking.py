"""A child that dies or says nothing costs an answer and nothing else."""

from __future__ import annotations

import pytest

import dying_child
from forespeak.engines import asking


def test_a_child_that_aborts_is_told() -> None:
    answer = asking.ask_child(dying_child.abort, "The driver")
    assert isinstance(answer, str)
    assert answer.startswith("The driver ended its process (exit code ")


def test_a_child_that_is_late_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_ANSWER_SECONDS", 0.0)
    assert asking.ask_child(dying_child.abort, "The driver") == "The driver did not answer in a minute."

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forespeak import parity_command
from forespeak.bench_command import Models
from forespeak.engines.engine import Loaded, LoadRequest, ModelSummary, Progress
from forespeak.errors import UserFacingError
from forespeak.models.folders import folders
from forespeak.pairing.pair_memory import PairFiles
from parity_bench import Bench, accepted_changed, shaky_bench


class ToyEngine:
    """An engine whose every pair is the same toy."""

    def __init__(self, make: Callable[[], Bench]) -> None:
        self._make = make
        self.loads: list[LoadRequest] = []
        self.closed = False
        self.problem: str | None = None

    @property
    def loaded_request(self) -> LoadRequest | None:
        return self.loads[-1] if self.loads else None

    def load(self, request: LoadRequest, progress: Callable[[Progress], None], cancelled: Any) -> Loaded | None:
        self.loads.append(request)
        progress(Progress(0.5, "Loading"))
        summary = ModelSummary(request.target, request.target.stem, "", 1, 1, 20, 1000, 1000)
        draft = None if request.draft is None or self.problem else replace(summary, path=request.draft)
        return Loaded(summary, draft, self.problem)

    @contextmanager
    def bench(self, context_length: int) -> Iterator[Bench]:
        yield self._make()

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORESPEAK_HOME", str(tmp_path))


def run(engine: Any, *arguments: str) -> int:
    parser = argparse.ArgumentParser()
    models = Models(lambda: engine, lambda name, *_: Path(f"{name}.gguf"), lambda name: Path(f"{name}.gguf"))
    parity_command.add_to(parser.add_subparsers(required=True), models)
    options = parser.parse_args(["parity", *arguments])
    code: int = options.command(options)
    return code


QUICK = ("--quick", "--tokens", "12")


def test_an_honest_pair_passes(capsys: pytest.CaptureFixture[str]) -> None:
    engine = ToyEngine(Bench)
    assert run(engine, *QUICK) == 0
    out, err = capsys.readouterr()
    assert out.startswith("starter with starter, drafting by prompt lookup, then draft model\n")
    assert "greedy  sampled, T 0.8" in out
    assert out.count("same") == 8
    assert "Same words with and without speculation: 8 of 8." in out
    assert "drafted tokens were tested" in out
    assert "code, greedy" in err
    assert engine.closed
    assert engine.loads[0].settings.reproducible


def test_the_result_is_kept_with_the_pair() -> None:
    run(ToyEngine(Bench), *QUICK)
    kept = PairFiles(folders().pairs).parity(Path("starter.gguf"), Path("starter.gguf"))
    assert kept is not None
    assert kept.equal == 8


def test_a_fault_is_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(ToyEngine(lambda: Bench(change=accepted_changed)), *QUICK) == 1
    out = capsys.readouterr().out
    assert "difference at token" in out
    assert "8 replies differ, which is a fault." in out
    assert "code, greedy: At token" in out


def test_shown_ties_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(ToyEngine(lambda: shaky_bench(0.0002, 0.0003)), *QUICK) == 0
    out = capsys.readouterr().out
    assert "numeric tie at token" in out
    assert "by up to 0.0002." in out


def test_json_holds_every_pair(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(ToyEngine(Bench), *QUICK, "--draft", "a", "--draft", "b", "--draft", "none", "--json") == 0
    pairs = json.loads(capsys.readouterr().out)["pairs"]
    assert [pair["draft"] for pair in pairs] == ["a.gguf", "b.gguf", None]
    assert [pair["sources"] for pair in pairs][1:] == [["prompt-lookup", "draft-model"], ["prompt-lookup"]]
    assert all(pair["equal"] == pair["planned"] == len(pair["cases"]) == 8 for pair in pairs)


def test_ctrl_c_keeps_what_is_done(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    monkeypatch.setattr("forespeak.terminal.Interrupt.asked", lambda self: len(bench.asked) > 10)
    assert run(ToyEngine(lambda: bench), *QUICK, "--draft", "a", "--draft", "b") == 130
    out = capsys.readouterr().out
    assert "3 of 3, stopped before the other 5." in out
    assert "starter with b" not in out


def test_stopped_before_anything(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forespeak.terminal.Interrupt.asked", lambda self: True)
    assert run(ToyEngine(Bench), *QUICK) == 130
    assert "No reply was finished" in capsys.readouterr().out


def test_a_draft_that_does_not_suit_is_told() -> None:
    engine = ToyEngine(Bench)
    engine.problem = "The tokenizer is another."
    with pytest.raises(UserFacingError, match="cannot draft for") as caught:
        run(engine, *QUICK)
    assert caught.value.why == engine.problem
    assert engine.closed


def test_an_engine_without_scores_is_told() -> None:
    class Plain:
        load, close = ToyEngine.load, ToyEngine.close

        def __init__(self) -> None:
            self.loads: list[LoadRequest] = []
            self.problem = None

    with pytest.raises(UserFacingError, match="cannot be checked"):
        run(Plain(), *QUICK)


@pytest.mark.parametrize(
    "arguments",
    [("--source", "psychic"), ("--draft", "none", "--source", "draft-model"), ("--tokens", "1"), ("--length", "0")],
)
def test_arguments_that_make_no_sense(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        run(ToyEngine(Bench), *arguments)


def test_the_time_left_follows_the_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    now = [0.0]
    told: list[Progress] = []
    remaining = parity_command._Remaining(told.append, lambda: now[0])
    for fraction in (0.0, 0.25, 0.5):
        remaining(Progress(fraction, "code"))
        now[0] += 90.0
    assert [each.doing for each in told] == ["code", "code", "code, about 3 min left"]

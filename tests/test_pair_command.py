from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compare.timed_engine import TimedEngine
from forespeak import pair_command
from forespeak.bench_command import Models
from forespeak.errors import UserFacingError
from forespeak.pairing import quick_test
from forespeak.pairing.machine_speed import MachineSpeed
from forespeak.pairing.making import MADE_FORMATS
from models.gguf_writer import ModelFile, gguf
from tiny_llama import vocabulary, write_llama

SOME = ModelFile(["a", "b", "c", "d"], tensors=(("token_embd.weight", (512, 4)), ("output.weight", (512, 4096))))
SMALL = replace(SOME, tensors=(("token_embd.weight", (512, 4)), ("output.weight", (512, 256))))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with an empty models folder, on a machine whose memory was measured long ago."""
    monkeypatch.setenv("FORESPEAK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(pair_command, "_machine_speed", lambda *_: MachineSpeed(bandwidth=1e10))
    for name in ("HF_HUB_CACHE", "LLAMA_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setattr("forespeak.models.roots.starter_draft_path", lambda: None)
    monkeypatch.setattr("forespeak.models.roots.Path.home", lambda: tmp_path / "none")
    (tmp_path / "home" / "models").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> TimedEngine:
    """An engine on a clock of its own."""
    engine = TimedEngine()
    run = quick_test.run

    def on_its_clock(test: Any, made: Any, cancelled: Any, progress: Any) -> Any:
        return run(test, made, cancelled, progress, engine.clock)

    monkeypatch.setattr(quick_test, "run", on_its_clock)
    return engine


def call(engine: TimedEngine | None, *arguments: str | Path) -> int:
    def made() -> Any:
        assert engine is not None, "no engine is needed for this"
        return engine

    parser = argparse.ArgumentParser()
    models = Models(made, lambda name, *_: Path(f"{name}.gguf"), lambda name: Path(f"{name}.gguf"))
    pair_command.add_to(parser.add_subparsers(required=True), models)
    options = parser.parse_args(["pair", *map(str, arguments)])
    code: int = options.command(options)
    return code


def found(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    return content


Write = Callable[[str, ModelFile], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return lambda name, file: file.write(tmp_path / f"{name}.gguf")


def test_every_kind_of_verdict_in_json(capsys: pytest.CaptureFixture[str], write: Write, tmp_path: Path) -> None:
    target = write("target", SOME)
    clip = tmp_path / "mmproj.gguf"
    clip.write_bytes(gguf({"general.architecture": "clip"}, [("t", (4,))]))
    drafts = [
        write("same", SMALL),
        write("padded", replace(SMALL, tokens=[*SMALL.tokens, "[PAD4]"])),
        write("differs", replace(SMALL, tokens=["a", "b", "c", "x"])),
        write("other", replace(SMALL, tokens=["d", "c", "b", "a"])),
        write("bare", replace(SMALL, tensors=())),
        clip,
        tmp_path / "gone.gguf",
    ]
    assert call(None, target, *drafts, "ngram", "--json") == 0
    content = found(capsys)
    assert content["target"]["path"] == str(target)
    by_name = {each["name"]: each for each in content["candidates"]}
    assert {name: each["verdict"] for name, each in by_name.items()} == {
        "same.gguf": "same",
        "padded.gguf": "same_padded",
        "differs.gguf": "differs",
        "other.gguf": "other_tokenizer",
        "bare.gguf": "same",
        "mmproj.gguf": "cannot",
        "gone.gguf": "cannot",
        "Look words up in the text": "same",
    }
    for each in by_name.values():
        assert {"path", "verdict", "reason", "evidence", "memory", "prediction", "measurement"} <= set(each)
        assert each["reason"]
    assert by_name["same.gguf"]["usable"]
    assert by_name["same.gguf"]["path"] == str(drafts[0])
    assert by_name["same.gguf"]["memory"]["fit"] in {"fits", "tight"}
    assert by_name["same.gguf"]["prediction"]["speed_up"]["value"] > 0.0
    assert by_name["same.gguf"]["measurement"] is None
    assert by_name["differs.gguf"]["evidence"]["first"]["id"] == 3
    assert not by_name["bare.gguf"]["usable"]
    assert by_name["bare.gguf"]["obstacle"] == "vocabulary_only"
    usable = [each["usable"] for each in content["candidates"]]
    assert usable == sorted(usable, reverse=True), "the refused ones come last"


def test_a_table_and_the_reasons(capsys: pytest.CaptureFixture[str], write: Write) -> None:
    target, good = write("target", SOME), write("good", SMALL)
    bad = write("bad", replace(SMALL, tokens=["a", "b", "c", "x"]))
    assert call(None, target, good, bad, target) == 0
    out = capsys.readouterr().out
    assert out.startswith("What could draft for target.gguf:\ndraft")
    assert "good.gguf" in out.split("Out of the question:")[0]
    assert "bad.gguf: Token 3 is “d” in the target and “x” in the draft. The target can write it." in out
    assert "target.gguf: It is the target itself" in out
    assert "Look words up" not in out, "only what was named"


def test_without_names_the_library_and_the_text(capsys: pytest.CaptureFixture[str], write: Write, home: Path) -> None:
    target = write("target", SOME)
    SMALL.write(home / "models" / "mine.gguf")
    (home / "models" / "notes.gguf").write_text("these are notes")
    assert call(None, target, "--json") == 0
    names = [each["name"] for each in found(capsys)["candidates"]]
    assert "mine" in names
    assert "Look words up in the text" in names


def test_a_vocabulary_without_weights_as_the_target(capsys: pytest.CaptureFixture[str], write: Write) -> None:
    bare = write("bare", replace(SOME, tensors=()))
    assert call(None, bare, write("good", SMALL), "ngram") == 2
    out = capsys.readouterr().out
    assert "Nothing of what was looked at." in out
    assert "good.gguf: The target's file holds a vocabulary but no weights. Both have the same 4 tokens." in out
    assert "Look words up in the text: The file holds a vocabulary but no weights." in out


def test_a_target_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserFacingError, match="There is no model"):
        call(None, tmp_path / "gone.gguf")


def test_a_measured_test(capsys: pytest.CaptureFixture[str], write: Write, engine: TimedEngine) -> None:
    target, draft = write("target", SOME), write("draft", SMALL)
    assert call(engine, target, draft, "ngram", "--test", "--kind", "prose", "--json", "--load-anyway") == 0
    content = found(capsys)
    assert [test["draft"] for test in content["tests"]] in ([str(draft), None], [None, str(draft)])
    assert all(test["complete"] and test["kind"] == "prose" for test in content["tests"])
    for candidate in content["candidates"]:
        assert candidate["measurement"]["speed_up"]["value"] == pytest.approx(2.0)
        assert list(candidate["measurement"]["by_kind"]) == ["prose"]
    assert engine.closed


def test_a_test_silences_what_was_only_supposed(
    capsys: pytest.CaptureFixture[str], write: Write, engine: TimedEngine
) -> None:
    target, draft = write("target", SOME), write("draft", SMALL)
    assert call(None, target, draft) == 0
    assert "a test of 20 seconds tells" in capsys.readouterr().out
    assert call(engine, target, draft, "--test", "--load-anyway") == 0
    out = capsys.readouterr().out
    assert ", measured" in out
    assert "a test of 20 seconds tells" not in out


def test_without_names_only_the_best_one_is_tested(
    capsys: pytest.CaptureFixture[str], write: Write, home: Path, engine: TimedEngine
) -> None:
    target = write("target", SOME)
    SMALL.write(home / "models" / "mine.gguf")
    assert call(engine, target, "--test", "--load-anyway") == 0
    out, err = capsys.readouterr()
    assert len(engine.loads) == 1
    assert "2.00× (2.00 to 2.00), measured" in out
    assert "tokens/s plain, 20.0 with drafts, 2.00×, 50 % of drafts accepted" in out
    assert "median, with drafts" in err


def test_ctrl_c_keeps_what_is_measured(
    capsys: pytest.CaptureFixture[str], write: Write, engine: TimedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forespeak.terminal.Interrupt.asked", lambda _: engine.now > 1011.0)
    target, drafts = write("target", SOME), [write("one", SMALL), write("two", SMALL)]
    assert call(engine, target, *drafts, "--test", "--load-anyway") == 130
    out = capsys.readouterr().out
    assert "1 of 3 prompts: it was stopped." in out
    assert len(engine.loads) == 1


def test_an_unknown_kind_of_work(write: Write) -> None:
    with pytest.raises(SystemExit):
        call(None, write("target", SOME), "--kind", "poetry")


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """A model that llama.cpp writes anew."""
    return write_llama(vocabulary(), tmp_path / "Sprout-1B-F32.gguf")


def test_a_draft_is_made_from_the_target(capsys: pytest.CaptureFixture[str], real: Path, home: Path) -> None:
    made = home / "models" / "Sprout-1B-F32-draft-Q4_0.gguf"
    assert call(None, real, "--json") == 0
    listed = [each for each in found(capsys)["candidates"] if each["kind"] == "requantised"]
    assert {each["making"]["format"] for each in listed} == {"Q4_0", "Q2_K"}
    assert {each["path"] for each in listed} == {None}
    assert {each["verdict"] for each in listed} == {"same"}
    call(None, real)
    row = next(
        line for line in capsys.readouterr().out.splitlines() if line.startswith("Made from Sprout-1B-F32 · Q4_0")
    )
    assert re.search(r" about [\d.]+ \wB, --make Q4_0 +same ", row), row
    assert call(None, real, "--make", "Q4_0", "--json") in {0, 2}
    out, err = capsys.readouterr()
    assert f"Made {made}" in err
    (candidate,) = [each for each in json.loads(out)["candidates"] if each["kind"] != "lookup"]
    assert (candidate["path"], candidate["verdict"]) == (str(made), "same")
    assert [each.name for each in made.parent.iterdir()] == [made.name]
    before = made.stat().st_mtime_ns
    call(None, real, "--make", "Q4_0", "--json")
    assert "is there already" in capsys.readouterr().err
    assert made.stat().st_mtime_ns == before


def test_ctrl_c_while_a_draft_is_made_leaves_nothing(
    real: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("forespeak.terminal.Interrupt.asked", lambda _: True)
    assert call(None, real, "--make", "Q2_K") == 130
    assert list((home / "models").iterdir()) == []
    assert capsys.readouterr().out == ""


def test_why_no_draft_can_be_made(write: Write, tmp_path: Path) -> None:
    with pytest.raises(UserFacingError, match="holds no weights"):
        call(None, write("bare", replace(SOME, tensors=())), "--make", "Q4_0")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF")
    with pytest.raises(UserFacingError, match="broken"):
        call(None, broken, "--make", "Q4_0")


def test_the_formats_of_the_command_line_are_those_that_can_be_made() -> None:
    assert tuple(each.value for each in MADE_FORMATS) == pair_command.MADE

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from forespeak import models_command, terminal
from forespeak.errors import UserFacingError
from forespeak.models import moving
from forespeak.models.folders import folders
from forespeak.models.library import Library
from forespeak.models.library_settings import LibrarySettings, LibrarySettingsFile, with_chosen_models
from forespeak.pairing.named_pair import PairSettings
from forespeak.pairing.pairs import FOLDER, NamedPairs
from models import architectures
from models.library_folders import write_mlx, write_model, write_set

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The models folder; no other program's folder is found."""
    monkeypatch.setenv("FORESPEAK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("forespeak.models.roots.starter_draft_path", lambda: None)
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("LLAMA_CACHE", str(tmp_path / "llama"))
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "user")
    return tmp_path / "home" / "models"


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    models_command.add_to(parser.add_subparsers(required=True))
    options = parser.parse_args(["models", *arguments])
    code: int = options.command(options)
    return code


def printed(capsys: Captured) -> Any:
    return json.loads(capsys.readouterr().out)


def test_an_empty_list(models: Path, capsys: Captured) -> None:
    assert run("list") == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert str(models) in captured.err


def test_the_list(models: Path, tmp_path: Path, capsys: Captured) -> None:
    write_model(models / "owner" / "repo" / "One-F32.gguf")
    write_set(tmp_path / "llama", "big", 2, leave_out=[2])
    write_mlx(models / "o" / "Some-4bit")
    assert run("list") == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0].split() == ["model", "parameters", "quant", "size", "context", "in"]
    assert [line.split()[0] for line in lines[1:]] == ["One-F32"]
    assert "2 more" in captured.err
    assert run("list", "--all") == 0
    out = capsys.readouterr().out
    assert "Part 2 of 2 is missing." in out
    assert "4-bit" in out


def test_the_list_as_json(models: Path, tmp_path: Path, capsys: Captured) -> None:
    path = write_model(models / "owner" / "repo" / "One-F32.gguf", entries={"tokenizer.chat_template": "x"})
    write_model(tmp_path / "more" / "Two.gguf")
    assert run("list", "--json", "--folder", str(tmp_path / "more")) == 0
    found = printed(capsys)
    assert [folder["label"] for folder in found["folders"]] == ["Models folder", "more"]
    one, two = found["models"]
    assert (one["path"], one["repo"], one["usable"], one["has_template"]) == (str(path), "owner/repo", True, True)
    assert (one["parameters"], one["quantisation"], one["kind"], one["problem"]) == (40, "F32", "model", None)
    assert (two["name"], two["read_only"]) == ("Two", True)


@pytest.mark.parametrize("name", ["One-F32", "one-f32.gguf", "owner/repo", "path"])
def test_inspect(models: Path, capsys: Captured, name: str) -> None:
    path = write_model(models / "owner" / "repo" / "One-F32.gguf")
    assert run("inspect", str(path) if name == "path" else name, "--json") == 0
    assert printed(capsys)["path"] == str(path)


def test_inspect_in_words(tmp_path: Path, capsys: Captured) -> None:
    entries = {"qwen2.expert_count": 4, "qwen2.expert_used_count": 1, "qwen2.nextn_predict_layers": 1}
    tensors = (("blk.0.ffn_up_exps.weight", (8, 4, 4)),)
    path = write_model(tmp_path / "One.gguf", entries=entries, tensors=tensors)
    assert run("inspect", str(path)) == 0
    words = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert words["parameters"] == "128, of which 32 active"
    assert words["context"] == "4,096 tokens"
    assert words["MTP"] == "layers      1"
    assert words["files"] == str(path)
    assert run("inspect", str(write_mlx(tmp_path / "mlx"))) == 0
    parts = write_set(tmp_path / "set", "big", 2, leave_out=[1])
    assert run("inspect", str(parts[0])) == terminal.MENDABLE
    assert "Part 1 of 2 is missing." in capsys.readouterr().out


def test_inspect_says_what_memory_it_takes(tmp_path: Path, capsys: Captured) -> None:
    path = architectures.qwen3().write(tmp_path / "One.gguf")
    assert run("inspect", str(path)) == 0
    lines = capsys.readouterr().out.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("memory"))
    assert "The model needs " in lines[first]
    assert lines[first + 1].split()[:2] == ["Target", "weights"]
    assert run("inspect", str(path), "--json") == 0
    memory = printed(capsys)["memory"]
    assert memory["sentence"] in lines[first]
    assert {part["kind"] for part in memory["parts"]} == {"weights", "cache", "buffers", "engine"}
    assert memory["needed_bytes"] == sum(part["size_bytes"] for part in memory["parts"])
    assert [device["needed_bytes"] for device in memory["devices"]] == [memory["needed_bytes"]]


def test_inspect_says_what_memory_a_folder_takes_where_it_can_be_run(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_mlx(tmp_path / "mlx")
    for installed in (True, False):
        monkeypatch.setattr("forespeak.models.library_item.mlx_is_installed", lambda: installed)  # noqa: B023
        run("inspect", str(folder), "--json")
        assert (printed(capsys)["memory"] is not None) == installed


def test_inspect_plans_no_memory_for_what_cannot_be_loaded(tmp_path: Path, capsys: Captured) -> None:
    parts = write_set(tmp_path / "set", "big", 2, leave_out=[1])
    assert run("inspect", str(parts[0]), "--json") == terminal.MENDABLE
    assert printed(capsys)["memory"] is None


def test_inspect_what_is_none(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserFacingError, match="is no model"):
        run("inspect", str(tmp_path / "empty"))
    with pytest.raises(UserFacingError, match="no model called"):
        run("inspect", "nothing like it")


def test_a_name_that_two_have(models: Path, tmp_path: Path, capsys: Captured) -> None:
    write_model(models / "a" / "One.gguf")
    write_model(models / "b" / "One.gguf")
    with pytest.raises(UserFacingError, match="2 models called"):
        run("inspect", "One")


@pytest.mark.parametrize("way", [[], ["--move"], ["--link"]])
def test_import(models: Path, tmp_path: Path, capsys: Captured, way: list[str]) -> None:
    source = write_model(tmp_path / "from" / "One.gguf")
    assert run("import", str(source), *way, "--json") == 0
    assert [each["path"] for each in printed(capsys)["imported"]] == [str(models / "One.gguf")]
    assert source.exists() is (way != ["--move"])
    write_model(source)
    assert run("import", str(source), *way, "--json") == 0
    assert printed(capsys)["there"] == [str(models / "One.gguf")]
    assert run("import", str(source), *way) == 0
    assert capsys.readouterr().out == f"One was there already, in {models}\n"
    assert source.exists()


def test_import_interrupted(models: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (write_model(tmp_path / "from" / name, [name]) for name in ("One.gguf", "Two.gguf"))

    def asked(_: terminal.Interrupt) -> bool:
        return any(models.glob("One.gguf"))

    monkeypatch.setattr(terminal.Interrupt, "asked", asked)
    assert run("import", str(first), str(second)) == terminal.INTERRUPTED
    captured = capsys.readouterr()
    assert captured.out == f"One is in {models}\n", "what has come stays"
    assert "Stopped" in captured.err
    assert [path.name for path in models.iterdir()] == ["One.gguf"]


def test_import_of_what_is_none(models: Path, tmp_path: Path, capsys: Captured) -> None:
    good = write_model(tmp_path / "from" / "One.gguf")
    assert run("import", str(good), str(tmp_path / "gone.gguf")) == terminal.MENDABLE
    captured = capsys.readouterr()
    assert captured.out == f"One is in {models}\n"
    assert "gone.gguf" in captured.err


def test_remove(models: Path, capsys: Captured) -> None:
    path = write_model(models / "One.gguf")
    with pytest.raises(UserFacingError, match="was not removed"):
        run("remove", "One")
    assert path.exists()
    size = path.stat().st_size
    assert run("remove", "One", "--yes", "--json") == 0
    found = printed(capsys)
    assert (found["removed"]["name"], found["freed_bytes"]) == ("One", size)
    assert list(models.iterdir()) == []
    with pytest.raises(UserFacingError, match="no model called"):
        run("remove", "One", "--yes")
    with pytest.raises(SystemExit):
        run("remove", "One", "--json")


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", terminal.INTERRUPTED), ("", 130)])
def test_remove_asks(models: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch, answer: str, code: int) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return answer

    path = write_model(models / "One.gguf")
    monkeypatch.setattr("sys.stdin", Terminal())
    assert run("remove", str(path)) == code
    assert path.exists() is (code != 0)
    assert "Delete One" in capsys.readouterr().err


def test_other_programs_folders_are_not_changed(tmp_path: Path) -> None:
    path = write_model(tmp_path / "llama" / "One.gguf")
    with pytest.raises(UserFacingError, match="cannot be removed from here"):
        run("remove", "One", "--yes")
    assert path.exists()


def test_the_folders_of_the_settings(models: Path, tmp_path: Path, capsys: Captured) -> None:
    write_model(tmp_path / "own" / "One.gguf")
    write_model(tmp_path / "added" / "Two.gguf")
    settings = LibrarySettings(tmp_path / "own", (tmp_path / "added",))
    LibrarySettingsFile(folders().config).write(settings)
    assert run("list", "--json") == 0
    assert [(model["name"], model["read_only"]) for model in printed(capsys)["models"]] == [
        ("One", False),
        ("Two", True),
    ]


def test_a_move_that_was_interrupted_is_finished(
    models: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All had arrived: the old files go, and the settings follow."""
    write_model(models / "One.gguf")
    write_model(models / "Two.gguf")
    named = NamedPairs(folders().data / FOLDER)
    kept = named.keep("two", models / "Two.gguf", None, PairSettings(), as_default=True)
    some = Library(models, (), tmp_path / "cache")
    with monkeypatch.context() as patch:
        patch.setattr(moving, "_delete_sources", lambda *_: None)
        some.move_to(tmp_path / "new")
    assert run("remove", "One", "--yes") == 0
    found = named.default_for(tmp_path / "new" / "Two.gguf")
    assert (found is not None and found.id, found is not None and found.problem) == (kept.id, None)
    assert list(models.iterdir()) == []
    assert with_chosen_models(folders()).models == tmp_path / "new"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["Two.gguf"]

"""`forespeak models download` and `verify` against the tests' own Hub."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forespeak import cli
from forespeak.download_command import _rate, time_words
from loopback_hub import Fault, LoopbackHub, Repo, Then, content

SIZE = 1_200_000
Q4, Q8 = "m-Q4_0.gguf", "m-Q8_0.gguf"
MODELS = {Q4: content(SIZE, 1), Q8: content(SIZE, 2), "README.md": b"# A card\n"}
COMMIT = "a" * 40


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORESPEAK_HOME", str(tmp_path))
    # No other program's models.
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    return tmp_path


@pytest.fixture
def hub(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    with LoopbackHub() as hub:
        hub.add(Repo("org/two", MODELS, commit=COMMIT))
        hub.add(Repo("org/one", {Q4: MODELS[Q4]}, commit=COMMIT))
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        yield hub


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(["models", *arguments])
    seen = capsys.readouterr()
    return code, seen.out, seen.err


def test_the_only_model_needs_no_name(hub: LoopbackHub, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "download", "org/one")
    place = home / "models" / "org" / "one" / Q4
    assert (code, out) == (0, f"{place}\n"), err
    assert "1.2 MB, checked by SHA-256" in err
    assert place.read_bytes() == MODELS[Q4]
    assert not list(home.rglob("*.part*"))


@pytest.mark.parametrize("name", ["q4_0", Q4, "m-Q4_0"])
def test_a_model_by_quant_file_or_name(
    hub: LoopbackHub, home: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    code, out, _ = run(capsys, "download", f"{hub.endpoint}/org/two/tree/main", name)
    assert (code, Path(out.strip()).name) == (0, Q4)


def test_several_at_once_as_json(hub: LoopbackHub, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "download", "org/two", "Q4_0", "Q8_0", Q8, "--json", "--limit", "50M")
    assert code == 0
    downloads = json.loads(out)["downloads"]
    assert [(each["label"], each["state"], each["revision"]) for each in downloads] == [
        ("Q4_0", "done", COMMIT),
        ("Q8_0", "done", COMMIT),
    ]
    assert downloads[0]["files"] == [
        {"path": str(home / "models" / "org" / "two" / Q4), "size_bytes": SIZE, "verified_by": "sha256"}
    ]


def test_which_model_is_asked(hub: LoopbackHub, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "download", "org/two")
    assert (code, out) == (2, "")
    assert "Q4_0, Q8_0" in err
    code, _, err = run(capsys, "download", "org/two", "Q5_K_M")
    assert code == 2
    assert "no “Q5_K_M”" in err
    assert hub.sent() == 0


def test_a_repository_without_models(hub: LoopbackHub, capsys: pytest.CaptureFixture[str]) -> None:
    hub.add(Repo("org/none", {"README.md": b"x"}, commit=COMMIT))
    code, _, err = run(capsys, "download", "org/none")
    assert code == 2
    assert "holds no model" in err


def test_a_failure_says_what_to_do(hub: LoopbackHub, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hub.add(Repo("org/gated", {Q4: MODELS[Q4]}, gated="manual", needs="hf_right", commit=COMMIT))
    code, out, err = run(capsys, "download", "org/gated", "--json")
    assert code == 2
    (download,) = json.loads(out)["downloads"]
    assert download["state"] == "failed"
    assert "licence" in download["error"]["what"]
    assert "Accept the licence at" in err
    assert not list(home.rglob("*.gguf"))


def test_what_another_program_has_is_not_fetched(
    hub: LoopbackHub, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from forespeak.models.library import Library

    elsewhere = home / "elsewhere.gguf"
    elsewhere.write_bytes(MODELS[Q4])

    class Item:
        files = (elsewhere,)
        root = argparse.Namespace(read_only=True, label="LM Studio")

    monkeypatch.setattr(Library, "scan", lambda *_, **__: (Item(),))
    code, out, err = run(capsys, "download", "org/one")
    assert code == 0
    assert "already on this computer (LM Studio)" in err
    assert hub.seen("cdn") == []
    Path(out.strip()).unlink()
    assert run(capsys, "download", "org/one", "--fetch")[0] == 0
    assert hub.sent() == SIZE


def test_ctrl_c_leaves_what_is_there(hub: LoopbackHub, home: Path) -> None:
    hub.rate = 4e6
    hub.cdn_faults.append(Fault(after=800_000, then=Then.STALL))
    command = [sys.executable, "-m", "forespeak", "models", "download", "org/one"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    first = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    part = home / "models" / "org" / "one" / f"{Q4}.part"
    try:
        until = time.monotonic() + 30
        while not (part.exists() and part.stat().st_size >= 800_000) and time.monotonic() < until:
            time.sleep(0.01)
        first.send_signal(signal.SIGINT)
        _, err = first.communicate(timeout=20)
    finally:
        first.kill()
        first.wait()
    assert first.returncode == 130
    assert "the same command goes on" in err
    assert "Traceback" not in err
    assert part.stat().st_size == 800_000
    second = subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8", check=False)
    assert second.returncode == 0, second.stderr
    assert hub.sent() == SIZE


def verified(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[tuple[str, str]]]:
    code, out, _ = run(capsys, "verify", "--json", *arguments)
    files: list[dict[str, Any]] = json.loads(out)["files"]
    return code, [(Path(each["path"]).name, each["outcome"]) for each in files]


def test_verify(hub: LoopbackHub, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "verify")[2] == "Nothing here was downloaded from the Hub.\n"
    hub.add(Repo("org/mlx", {"config.json": b"{}", "model.safetensors": MODELS[Q8]}, tags=("mlx",), commit=COMMIT))
    for repo in ("org/one", "org/mlx"):
        assert run(capsys, "download", repo)[0] == 0
    code, files = verified(capsys)
    assert code == 0
    assert sorted(files) == [("config.json", "right"), (Q4, "right"), ("model.safetensors", "right")]
    code, out, err = run(capsys, "verify")
    assert code == 0
    assert "All 3 files are undamaged." in err
    assert f"(org/one/{Q4})" in out

    folder = home / "models" / "org"
    damaged = bytearray(MODELS[Q4])
    damaged[1000] ^= 1
    (folder / "one" / Q4).write_bytes(damaged)
    (folder / "mlx" / "config.json").write_bytes(b"[]")
    (folder / "own.gguf").write_bytes(b"mine")
    (folder / "mlx" / "model.safetensors").unlink()
    code, files = verified(capsys, str(folder))
    assert code == 2
    assert sorted(files) == [("config.json", "damaged"), (Q4, "damaged"), ("own.gguf", "unknown")]
    code, _, err = run(capsys, "verify", str(folder))
    assert "2 of 3 files are damaged" in err
    assert run(capsys, "verify", str(folder / "own.gguf"))[0] == 0
    code, _, err = run(capsys, "verify", str(folder / "none.gguf"))
    assert code == 2
    assert "There is no model called" in err


def test_verify_takes_the_names_of_the_list(
    hub: LoopbackHub, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    assert run(capsys, "download", "org/one")[0] == 0
    for name in (Q4.removesuffix(".gguf"), Q4, "org/one"):
        assert verified(capsys, name) == (0, [(Q4, "right")])
    (home / "models" / "org" / "one" / Q4).write_bytes(b"GGUF" + bytes(100))
    assert verified(capsys, "org/one") == (2, [(Q4, "damaged")])


@pytest.mark.parametrize(("text", "rate"), [("500k", 5e5), ("10M", 1e7), ("1.5g", 1.5e9), ("1000", 1000.0)])
def test_rates(text: str, rate: float) -> None:
    assert _rate(text) == rate


@pytest.mark.parametrize("text", ["", "x", "0", "-1M", "nan", "inf", "1T"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        _rate(text)


def test_times_left() -> None:
    assert [time_words(seconds) for seconds in (0.1, 42, 61, 3599, 5400)] == [
        "5 s left",
        "40 s left",
        "1 min left",
        "1 h 0 min left",
        "1 h 30 min left",
    ]

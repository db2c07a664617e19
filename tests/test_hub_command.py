from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forespeak import hub_command
from forespeak.engines.devices import Device
from forespeak.models.hub_errors import HubError, HubProblem
from loopback_hub import LoopbackHub, Repo


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    with LoopbackHub() as server:
        monkeypatch.setenv("FORESPEAK_HOME", str(tmp_path))
        monkeypatch.setenv("HF_ENDPOINT", server.endpoint)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        yield server


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    hub_command.add_to(parser.add_subparsers(required=True))
    options = parser.parse_args(arguments)
    code: int = options.command(options)
    return code


def json_of(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    return content


SMALL = {"total": 500_000_000, "architecture": "qwen2", "context_length": 32768}
HUGE = {"total": 500_000_000_000_000, "architecture": "llama"}


def test_a_search_is_a_table(hub: LoopbackHub, capsys: pytest.CaptureFixture[str]) -> None:
    hub.add(Repo("qwen/Small-GGUF", {}, gguf=SMALL, downloads=1234567))
    hub.add(Repo("meta/Huge-GGUF", {}, gguf=HUGE, gated="manual", likes=9))
    assert run("search", "gguf") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["repo", "parameters", "downloads", "likes", "updated", "licence"]
    assert lines[1].split()[:6] == ["qwen/Small-GGUF", "500M", "1,234,567", "3", "2025-02-07", "apache-2.0"]
    assert lines[2].endswith("gated, too large")


def test_a_search_in_json(hub: LoopbackHub, capsys: pytest.CaptureFixture[str]) -> None:
    hub.add(Repo("qwen/Small-GGUF", {}, gguf=SMALL))
    assert run("search", "small", "--json") == 0
    content = json_of(capsys)
    assert (content["more"], content["left_out"]) == (False, 0)
    (model,) = content["models"]
    assert model["fits"] in {"fits", "tight", "too large"}
    del model["fits"]
    assert model == {
        "repo": "qwen/Small-GGUF",
        "downloads": 12,
        "likes": 3,
        "updated": "2025-02-07T10:00:00+00:00",
        "licence": "apache-2.0",
        "access": "open",
        "private": False,
        "formats": ["GGUF"],
        "parameters": 500_000_000,
        "architecture": "qwen2",
        "context_length": 32768,
        "usual_bytes": 306_250_000,
    }


def test_filters_and_order_are_asked_for(hub: LoopbackHub, capsys: pytest.CaptureFixture[str]) -> None:
    hub.add(Repo("a/One", {}, tags=("mlx", "license:mit"), likes=1))
    hub.add(Repo("a/Two", {}, tags=("mlx", "license:mit"), likes=2))
    hub.add(Repo("b/Two", {}, tags=("mlx", "license:mit"), likes=3))
    hub.add(Repo("a/Two-GGUF", {}, tags=("gguf", "license:mit"), likes=4))
    arguments = ("--format", "mlx", "--licence", "mit", "--author", "a", "--sort", "likes")
    assert run("search", *arguments, "--json") == 0
    assert [model["repo"] for model in json_of(capsys)["models"]] == ["a/Two", "a/One"]


def test_a_limit_goes_over_pages(hub: LoopbackHub, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(50):
        hub.add(Repo(f"o/m{number:02d}", {}))
    assert run("search", "--limit", "45", "--json") == 0
    content = json_of(capsys)
    assert [model["repo"] for model in content["models"]] == [f"o/m{number:02d}" for number in range(45)]
    assert content["more"]
    assert len(hub.requests) == 3
    assert run("search", "--limit", "2") == 0
    assert "There are more" in capsys.readouterr().err


def test_only_what_fits(hub: LoopbackHub, capsys: pytest.CaptureFixture[str]) -> None:
    hub.add(Repo("meta/Huge-GGUF", {}, gguf=HUGE))
    assert run("search", "--fits") == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "All that was found is too large for this machine." in err


def test_a_graphics_processor_counts(
    hub: LoopbackHub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = Device("CUDA0", "Large", "GPU", 10**18, 10**18, "CUDA")
    monkeypatch.setattr("forespeak.engines.device_list.gpus", lambda: (gpu,))
    hub.add(Repo("meta/Huge-GGUF", {"huge.gguf": b"GGUF"}, gguf=HUGE))
    assert run("search", "--fits", "--json") == 0
    assert [model["fits"] for model in json_of(capsys)["models"]] == ["fits"]
    assert run("files", "meta/Huge-GGUF", "--json") == 0
    assert json_of(capsys)["fits"] == "fits"


def test_nothing_is_found(hub: LoopbackHub, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("search", "nothing") == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "Nothing was found." in err


FILES = {
    "README.md": b"Hello",
    "m-Q8_0.gguf": b"12345678",
    "big/m-BF16-00001-of-00002.gguf": b"1" * 10,
    "big/m-BF16-00002-of-00002.gguf": b"2" * 10,
    "cut/m-F32-00002-of-00002.gguf": b"2",
    "mmproj-m-F16.gguf": b"p",
}


def test_files_are_a_table_by_quant(hub: LoopbackHub, capsys: pytest.CaptureFixture[str]) -> None:
    hub.add(Repo("o/m-GGUF", FILES, gated="auto"))
    assert run("files", f"{hub.endpoint}/o/m-GGUF/tree/main") == 0
    out, err = capsys.readouterr()
    rows = [line.split("  ") for line in out.splitlines()]
    assert [row[0] for row in rows] == ["quant", "Q8_0", "BF16", "F32", "F16"]
    assert "Part 1 of 2 is missing." in out
    assert "m-BF16, 2 files" in out
    assert "projector" in out
    assert f"accept the licence at {hub.endpoint}/o/m-GGUF" in err


def test_files_in_json(hub: LoopbackHub, capsys: pytest.CaptureFixture[str]) -> None:
    repo = hub.add(Repo("o/m-GGUF", FILES))
    assert run("files", "o/m-GGUF", "--json") == 0
    content = json_of(capsys)
    assert (content["repo"], content["revision"], content["access"]) == ("o/m-GGUF", repo.commit, "open")
    group = next(group for group in content["groups"] if group["label"] == "BF16")
    assert group["fits"] in {"fits", "tight"}
    assert group["files"] == [
        {"path": path, "size_bytes": 10, "sha256": repo.files[path].sha256} for path in FILES if path.startswith("big/")
    ]
    assert (group["name"], group["kind"], group["format"], group["shards"]) == ("m-BF16", "model", "GGUF", 2)
    assert (group["size_bytes"], group["problem"]) == (20, None)


def test_a_repo_without_models(hub: LoopbackHub, capsys: pytest.CaptureFixture[str]) -> None:
    hub.add(Repo("o/m", {"pytorch_model.bin": b"x"}))
    assert run("files", "o/m") == 0
    assert "o/m holds no model that Forespeak can load." in capsys.readouterr().err


def test_the_token_of_the_environment_is_used(
    hub: LoopbackHub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(Repo("o/m", {"m-Q4_0.gguf": b"x"}, private=True, needs="hf_right"))
    with pytest.raises(HubError) as error:
        run("files", "o/m")
    assert error.value.problem is HubProblem.PRIVATE_OR_MISSING
    monkeypatch.setenv("HF_TOKEN", "hf_right")
    assert run("files", "o/m", "--json") == 0
    assert json_of(capsys)["private"] is True


def test_what_is_no_repo_is_an_error(hub: LoopbackHub) -> None:
    with pytest.raises(HubError) as error:
        run("files", "just words")
    assert error.value.problem is HubProblem.NO_SUCH_REPO

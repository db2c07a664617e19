"""What an MLX repo on the Hub says of its tokens, read without its weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forespeak.models import remote_folder
from forespeak.models.formats import ModelFormat
from forespeak.models.gguf import GgufError
from forespeak.models.hub_client import HubClient
from forespeak.models.hub_errors import HubError
from forespeak.models.hub_files import HubFile, HubFileGroup, group_files
from forespeak.models.mlx_vocabulary import read_mlx_vocabulary
from forespeak.models.remote_folder import read_remote_folder
from loopback_hub import Fault, LoopbackHub, Repo
from models.mlx_writer import mlx_folder

NAME = "maker/Small-0.5B-4bit"
SMALL = ("config.json", "tokenizer.json", "tokenizer_config.json")


def group(loopback: LoopbackHub, folder: Path, **more: bytes) -> HubFileGroup:
    """A repo with a few tokens and weights that nobody should fetch."""
    mlx_folder(folder / "written", {"a": 0, "b": 1, "c": 2})
    files = {name: (folder / "written" / name).read_bytes() for name in SMALL}
    return add(loopback, files | {"model.safetensors": bytes(300_000), "merges.txt": b"#"} | more)


def add(loopback: LoopbackHub, files: dict[str, bytes]) -> HubFileGroup:
    repo = loopback.add(Repo(NAME, files, tags=("mlx",)))
    listed = [HubFile(path, stored.size, stored.sha256) for path, stored in repo.files.items()]
    (found,) = group_files(NAME, repo.commit, listed, mlx=True)
    assert found.format is ModelFormat.MLX
    return found


def asked(loopback: LoopbackHub) -> set[str]:
    return {request.path.rpartition("/")[2] for request in loopback.requests}


def test_its_tokens_are_read_without_its_weights(loopback: LoopbackHub, client: HubClient, tmp_path: Path) -> None:
    folder = read_remote_folder(client, group(loopback, tmp_path), tmp_path / "cache")
    assert folder is not None
    assert folder.name == "Small-0.5B-4bit"
    assert read_mlx_vocabulary(folder).tokens == (b"a", b"b", b"c")
    assert asked(loopback) == set(SMALL)


def test_what_was_read_needs_no_network(loopback: LoopbackHub, client: HubClient, tmp_path: Path) -> None:
    found = group(loopback, tmp_path)
    folder = read_remote_folder(client, found, tmp_path / "cache")
    assert folder is not None
    # What a write that was ended in the middle has left.
    (folder / "config.json.1-2.part").touch()
    loopback.requests.clear()
    assert read_remote_folder(client, found, tmp_path / "cache") == folder
    assert not loopback.requests
    (folder / "tokenizer.json").write_bytes(b"{}")
    assert read_remote_folder(client, found, tmp_path / "cache") == folder
    assert read_mlx_vocabulary(folder).size == 3


def test_a_hostile_or_foreign_repo_is_told(
    loopback: LoopbackHub, client: HubClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(GgufError, match=r"no config\.json"):
        read_remote_folder(client, add(loopback, {"model.safetensors": bytes(9)}), tmp_path)
    monkeypatch.setattr(remote_folder, "MOST_BYTES", 50)
    with pytest.raises(GgufError, match="far too long"):
        read_remote_folder(client, group(loopback, tmp_path), tmp_path)
    assert not loopback.requests


def test_an_error_of_the_hub_keeps_nothing(loopback: LoopbackHub, client: HubClient, tmp_path: Path) -> None:
    found = group(loopback, tmp_path)
    loopback.hub_faults.append(Fault(status=403, error_code="GatedRepo", path="tokenizer.json"))
    with pytest.raises(HubError):
        read_remote_folder(client, found, tmp_path / "cache")
    folder = read_remote_folder(client, found, tmp_path / "cache")
    assert folder is not None
    assert json.loads((folder / "tokenizer.json").read_bytes())["model"]["vocab"] == {"a": 0, "b": 1, "c": 2}


def test_it_can_be_stopped(loopback: LoopbackHub, client: HubClient, tmp_path: Path) -> None:
    found = group(loopback, tmp_path)
    assert read_remote_folder(client, found, tmp_path / "cache", lambda: bool(loopback.requests)) is None
    assert not (tmp_path / "cache").exists()

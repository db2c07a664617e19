from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from forespeak.models.formats import ModelFormat
from forespeak.models.gguf import GgufKind, read_header
from forespeak.models.library import Library
from forespeak.models.roots import Root, RootKind, added_root, known_roots
from forespeak.models.starter import starter_draft_path
from models.gguf_writer import gguf
from models.library_folders import MLX_PARAMETERS, library, only, write_cached, write_mlx, write_model, write_set

needs_links = pytest.mark.skipif(os.name == "nt", reason="symbolic links need a privilege here")


def test_an_empty_and_a_missing_folder(tmp_path: Path) -> None:
    assert library(tmp_path).scan() == ()
    (tmp_path / "models").mkdir()
    assert library(tmp_path).scan() == ()


def test_what_is_known_of_a_model(tmp_path: Path) -> None:
    path = write_model(
        tmp_path / "models" / "owner" / "repo" / "Some-Model-Q8_0.gguf",
        ["a", "b", "c"],
        entries={"tokenizer.chat_template": "{{ x }}", "qwen2.nextn_predict_layers": 2},
    )
    item = only(library(tmp_path).scan())
    assert (item.path, item.files, item.format, item.kind) == (path, (path,), ModelFormat.GGUF, GgufKind.MODEL)
    assert (item.name, item.title, item.repo) == ("Some-Model-Q8_0", "Some-Model-Q8_0", "owner/repo")
    assert (item.architecture, item.parameters, item.active_parameters) == ("qwen2", 40, None)
    assert (item.quantisation, item.context_length, item.vocabulary_size) == ("F32", 4096, 3)
    assert (item.has_template, item.mtp_layers, item.size_bytes) == (True, 2, path.stat().st_size)
    assert item.modified == pytest.approx(path.stat().st_mtime)
    assert item.vocabulary_fingerprint is not None
    assert (item.problem, item.usable, item.unusable_because) == (None, True, None)
    assert (item.root.read_only, item.root.kind) == (False, RootKind.OWN)


def test_experts_that_take_part(tmp_path: Path) -> None:
    tensors = (("blk.0.ffn_up_exps.weight", (8, 4, 8)), ("blk.0.ffn_up_shexp.weight", (8, 4)), ("norm.weight", (8,)))
    entries = {"qwen2.expert_count": 8, "qwen2.expert_used_count": 2}
    path = write_model(tmp_path / "models" / "moe.gguf", tensors=tensors, entries=entries)
    item = only(library(tmp_path).scan())
    assert (item.parameters, item.active_parameters) == (256 + 32 + 8, 64 + 32 + 8)
    assert read_header(path).active_parameters == item.active_parameters


def test_a_split_model_is_one_item(tmp_path: Path) -> None:
    parts = write_set(tmp_path / "models", "big", 3)
    item = only(library(tmp_path).scan())
    assert (item.path, item.files, item.name) == (parts[0], tuple(parts), "big")
    assert item.parameters == 8 * (1 + 2 + 3)
    assert item.size_bytes == sum(path.stat().st_size for path in parts)
    assert item.usable


def test_missing_parts_are_named(tmp_path: Path) -> None:
    write_set(tmp_path / "models", "big", 5, leave_out=[1, 3, 4])
    item = only(library(tmp_path).scan())
    assert (item.problem, item.kind) == ("Parts 1 and 3 to 4 of 5 are missing.".replace("3 to 4", "3 and 4"), item.kind)
    assert item.kind is GgufKind.MODEL
    assert not item.usable


def test_parts_that_are_not_what_their_names_say(tmp_path: Path) -> None:
    parts = write_set(tmp_path / "models", "big", 2)
    shutil.copy(parts[0], parts[1])
    problem = only(library(tmp_path).scan()).problem
    assert problem is not None
    assert "holds part 1 of 2" in problem
    parts[1].unlink()
    parts[0].rename(tmp_path / "models" / "renamed.gguf")
    problem = only(library(tmp_path).scan()).problem
    assert problem is not None
    assert "-00001-of-00002.gguf" in problem


def test_files_that_are_no_models_say_why(tmp_path: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    weights = [("t", (4,))]
    for name, entries in {
        "mmproj-x": {"general.architecture": "clip"},
        "x.imatrix": {"general.type": "imatrix"},
        "lora": {"general.architecture": "llama", "general.type": "adapter"},
        "bert": {"general.architecture": "bert"},
        "eagle": {"general.architecture": "eagle3"},
        "other": {},
    }.items():
        (models / f"{name}.gguf").write_bytes(gguf(entries, weights))
    (models / "page.gguf").write_bytes(b"<!doctype html>")
    write_model(models / "cut.gguf")
    os.truncate(models / "cut.gguf", 700)
    items = {item.name: item for item in library(tmp_path).scan()}
    assert len(items) == 8
    assert not any(item.usable for item in items.values())
    assert all(item.unusable_because for item in items.values())
    assert items["mmproj-x"].kind is GgufKind.PROJECTOR
    assert items["x.imatrix"].kind is GgufKind.IMATRIX
    assert items["eagle"].kind is GgufKind.DRAFT_HEAD
    assert (items["cut"].problem or "").startswith("It is incomplete"), "its name stands beside it"
    assert "web page" in (items["page"].problem or "")


def test_an_mlx_folder_is_one_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forespeak.models.library_item.mlx_is_installed", lambda: False)
    folder = write_mlx(tmp_path / "models" / "mlx-community" / "Some-4bit")
    item = only(library(tmp_path).scan())
    assert (item.path, item.format, item.name, item.repo) == (
        folder,
        ModelFormat.MLX,
        "Some-4bit",
        "mlx-community/Some-4bit",
    )
    assert (item.files, item.parameters) == ((folder / "model.safetensors",), MLX_PARAMETERS)
    assert (item.quantisation, item.context_length, item.architecture) == ("4-bit", 32768, "qwen2")
    assert item.has_template
    assert (item.problem, item.usable) == (None, False)
    assert "need mlx-lm" in (item.unusable_because or "")
    monkeypatch.setattr("forespeak.models.library_item.mlx_is_installed", lambda: True)
    assert item.usable


def test_what_is_still_coming_is_not_listed(tmp_path: Path) -> None:
    models = tmp_path / "models"
    write_model(models / "there.gguf")
    for end in (".part", ".incomplete", ".aria2", ".downloadInProgress", ".crdownload"):
        write_model(models / f"coming{end}.gguf").rename(models / f"coming.gguf{end}")
    write_model(models / "beside.gguf")
    (models / "beside.gguf.aria2").touch()
    write_set(models / "set", "big", 3, leave_out=[3])
    (models / "set" / "big-00003-of-00003.gguf.part").touch()
    write_model(models / ".hidden" / "hidden.gguf")
    write_model(models / "._there.gguf")
    write_mlx(models / "mlx")
    (models / "mlx" / "model-2.safetensors.part").touch()
    assert [item.name for item in library(tmp_path).scan()] == ["there"]


def test_the_upper_case_ending_counts(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / "Loud.GGUF")
    assert only(library(tmp_path).scan()).name == "Loud"


@needs_links
class TestHuggingFaceCache:
    def root(self, tmp_path: Path) -> Root:
        return Root(tmp_path / "hub", "Hugging Face cache", read_only=True, kind=RootKind.HUGGING_FACE)

    def content(self, tmp_path: Path, *tokens: str) -> bytes:
        return write_model(tmp_path / "made.gguf", tokens or ("a", "b")).read_bytes()

    def test_a_blob_in_two_snapshots_is_one_item(self, tmp_path: Path) -> None:
        cache = tmp_path / "hub"
        write_cached(cache, "owner/re--po", "1" * 40, "model.gguf", "blob", self.content(tmp_path))
        newer = write_cached(cache, "owner/re--po", "2" * 40, "model.gguf", "blob")
        refs = cache / "models--owner--re--po" / "refs"
        refs.mkdir()
        (refs / "main").write_text("2" * 40)
        item = only(library(tmp_path, self.root(tmp_path)).scan())
        assert (item.path, item.repo) == (newer, "owner/re--po")
        assert item.root.read_only

    def test_only_models_are_looked_for(self, tmp_path: Path) -> None:
        write_model(tmp_path / "hub" / "datasets--o--r" / "snapshots" / "1" / "model.gguf")
        write_model(tmp_path / "hub" / "models--o--r" / "model.gguf")
        assert library(tmp_path, self.root(tmp_path)).scan() == ()

    def test_a_set_of_links_is_one_item(self, tmp_path: Path) -> None:
        parts = write_set(tmp_path / "made", "big", 2)
        for number, part in enumerate(parts):
            write_cached(tmp_path / "hub", "owner/repo", "1" * 40, f"Q4/{part.name}", f"b{number}", part.read_bytes())
        item = only(library(tmp_path, self.root(tmp_path)).scan())
        assert (item.usable, len(item.files), item.name) == (True, 2, "big")

    def test_without_links(self, tmp_path: Path) -> None:
        path = write_cached(
            tmp_path / "hub", "owner/repo", "1" * 40, "model.gguf", "blob", self.content(tmp_path), links=False
        )
        assert only(library(tmp_path, self.root(tmp_path)).scan()).path == path

    def test_a_link_whose_blob_is_gone(self, tmp_path: Path) -> None:
        write_cached(tmp_path / "hub", "owner/repo", "1" * 40, "model.gguf", "never there")
        assert library(tmp_path, self.root(tmp_path)).scan() == ()

    def test_our_own_name_of_a_file_comes_first(self, tmp_path: Path) -> None:
        path = write_cached(tmp_path / "hub", "o/r", "1" * 40, "model.gguf", "blob", self.content(tmp_path))
        (tmp_path / "models").mkdir()
        (tmp_path / "models" / "mine.gguf").symlink_to(path.resolve())
        item = only(library(tmp_path, self.root(tmp_path)).scan())
        assert (item.name, item.root.read_only) == ("mine", False)


@needs_links
def test_what_has_other_names_is_known_as_a_link(tmp_path: Path) -> None:
    source = write_model(tmp_path / "from" / "one.gguf")
    some = library(tmp_path)
    some.own.mkdir(parents=True)
    (some.own / "symbolic.gguf").symlink_to(source)
    assert only(some.scan()).linked
    (some.own / "symbolic.gguf").unlink()
    os.link(source, some.own / "hard.gguf")
    assert only(some.scan()).linked
    source.unlink()
    assert not only(some.scan()).linked, "the last name is the file itself"


def test_links_that_lead_in_a_circle_end(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / "a" / "model.gguf")
    (tmp_path / "models" / "a" / "again").symlink_to(tmp_path / "models")
    assert only(library(tmp_path).scan()).name == "model"


def test_the_same_folder_twice_lists_once(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / "model.gguf")
    assert not only(library(tmp_path, added_root(tmp_path), added_root(tmp_path / "models")).scan()).root.read_only


def test_headers_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_model(tmp_path / "models" / "one.gguf")
    write_set(tmp_path / "models", "big", 2)
    write_mlx(tmp_path / "models" / "mlx")
    first = library(tmp_path).scan()

    def fail(*_: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr("forespeak.models.library.read_facts", fail)
    monkeypatch.setattr("forespeak.models.library.read_mlx_facts", fail)
    assert library(tmp_path).scan() == first


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    path = write_model(tmp_path / "models" / "one.gguf")
    some = library(tmp_path)
    assert only(some.scan()).vocabulary_size == 2
    write_model(path, ["a", "b", "c"])
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 5))
    assert only(some.scan()).vocabulary_size == 3
    path.unlink()
    assert some.scan() == ()


def test_an_mlx_folder_whose_settings_changed_is_read_again(tmp_path: Path) -> None:
    folder = write_mlx(tmp_path / "models" / "mlx")
    some = library(tmp_path)
    assert only(some.scan()).context_length == 32768
    config = folder / "config.json"
    config.write_text(config.read_text().replace("32768", "16384"))
    os.utime(config, ns=(1, config.stat().st_mtime_ns + 5))
    assert only(some.scan()).context_length == 16384


def test_the_fingerprint_is_the_same_however_it_is_read(tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(3000)]
    for name in ("one", "two", "three"):
        write_model(tmp_path / "models" / f"{name}.gguf", words)
    write_model(tmp_path / "models" / "other.gguf", [*words[:-1], "w"])
    prints = {item.name: item.vocabulary_fingerprint for item in library(tmp_path).scan()}
    assert prints["one"] == prints["two"] == prints["three"] != prints["other"]


def test_progress_and_cancelling(tmp_path: Path) -> None:
    for number in range(5):
        write_model(tmp_path / "models" / f"{number}.gguf")
    told: list[tuple[int, int]] = []
    some = library(tmp_path)
    assert len(some.scan(lambda done, total: told.append((done, total)))) == 5
    assert (told[0], told[-1]) == ((0, 5), (5, 5))
    assert told == sorted(told)
    told.clear()
    some.scan(lambda done, total: told.append((done, total)))
    assert told == [(0, 0)]
    asked = threading.Event()
    asked.set()
    assert library(tmp_path / "elsewhere").scan(cancelled=asked.is_set) == ()
    assert some.scan(cancelled=asked.is_set) == ()


def test_added_folders_may_change(tmp_path: Path) -> None:
    write_model(tmp_path / "x" / "x.gguf")
    some = library(tmp_path, Root(tmp_path / "lm", "LM Studio", read_only=True, kind=RootKind.LM_STUDIO))
    some.set_added([tmp_path / "x", tmp_path / "lm", tmp_path / "models", tmp_path / "x"])
    assert [root.path.name for root in some.roots()] == ["models", "lm", "x"]
    assert only(some.scan()).root.kind is RootKind.ADDED
    some.set_added([])
    assert some.scan() == ()
    assert some.free_bytes() > 0


@pytest.mark.skipif(starter_draft_path() is None, reason="the starter's package is not installed")
def test_the_starters_draft_is_listed(tmp_path: Path) -> None:
    some = Library(tmp_path / "models", known_roots(environment={}, home=tmp_path), tmp_path / "cache")
    item = only(some.scan())
    assert (item.usable, item.quantisation, item.root.kind) == (True, "Q4_1", RootKind.STARTER)
    assert item.parameters == 134515008

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from forespeak.models.formats import ModelFormat
from forespeak.models.gguf import read_header
from forespeak.models.good_pairs import GoodPair, good_pairs
from forespeak.pairing.members import DIFFUSION, MLX_NO_ROLLBACK, NO_ROLLBACK, member_at, member_of
from forespeak.pairing.verdict import Obstacle
from models.gguf_writer import ModelFile, gguf
from models.mlx_writer import mlx_folder


def test_a_file_and_its_header_are_the_same_member(tmp_path: Path) -> None:
    path = ModelFile(["a", "b"]).write(tmp_path / "some.gguf")
    for member in (member_at(path), member_of(read_header(path))):
        assert (member.name, member.format, member.hindrance) == ("some.gguf", ModelFormat.GGUF, None)
        assert member.read().tokens == (b"a", b"b")
    assert member_at(path).fingerprint == member_of(read_header(path)).fingerprint is not None


def test_a_changed_file_has_another_fingerprint(tmp_path: Path) -> None:
    path = ModelFile(["a", "b"]).write(tmp_path / "some.gguf")
    before = member_at(path).fingerprint
    ModelFile(["a", "b", "c"]).write(path)
    assert member_at(path).fingerprint != before
    path.unlink()
    hindrance = member_at(path).hindrance
    assert hindrance is not None
    assert hindrance.obstacle is Obstacle.UNREADABLE


def test_a_folder_is_an_mlx_model(tmp_path: Path) -> None:
    member = member_at(mlx_folder(tmp_path / "folder", {"a": 0, "b": 1}))
    assert (member.name, member.format, member.header) == ("folder", ModelFormat.MLX, None)
    assert member.read().tokens == (b"a", b"b")
    assert not member.is_head
    assert member.can_roll_back


def test_a_folder_with_a_recurrent_network_cannot_roll_back(tmp_path: Path) -> None:
    folder = mlx_folder(tmp_path / "folder", {"a": 0, "b": 1}, config={"model_type": "lfm2"})
    assert (member_at(folder).architecture, member_at(folder).can_roll_back) == ("lfm2", False)
    # llama.cpp's names are its own.
    (folder / "config.json").write_text('{"model_type": ["lfm2"]}', encoding="utf-8")
    assert (member_at(folder).architecture, member_at(folder).can_roll_back) == (None, True)


@pytest.mark.skipif(find_spec("mlx_lm") is None, reason="mlx-lm is not installed (extra: mlx)")
def test_mlx_lm_gives_these_networks_a_cache_that_cannot_be_cut() -> None:
    found = find_spec("mlx_lm")
    assert found is not None
    assert found.origin is not None
    networks = Path(found.origin).parent / "models"
    # Two are written in another one's file.
    files = {"falcon_mamba": "mamba", "qwen3_5_moe": "qwen3_5"}
    for name in MLX_NO_ROLLBACK:
        assert "ArraysCache(size=" in (networks / f"{files.get(name, name)}.py").read_text(encoding="utf-8"), name


def test_several_missing_parts_are_named_at_once(tmp_path: Path) -> None:
    split = {"split.count": 5, "split.no": 0}
    first = ModelFile(["a", "b"], entries=split).write(tmp_path / "big-00001-of-00005.gguf")
    hindrance = member_at(first).hindrance
    assert hindrance is not None
    assert hindrance.reason == "“big-00001-of-00005.gguf” is incomplete. Parts 2 to 5 of 5 are missing."


def test_a_file_that_claims_any_number_of_parts_is_refused_at_once(tmp_path: Path) -> None:
    split = {"split.count": 1_000_000, "split.no": 0}
    hindrance = member_at(ModelFile(["a"], entries=split).write(tmp_path / "big-00001-of-1000000.gguf")).hindrance
    assert hindrance is not None
    assert hindrance.reason == (
        "“big-00001-of-1000000.gguf” is incomplete. It claims to be one of 1,000,000 parts, which no model has."
    )


def test_byte_level_tokens_without_merges_are_of_no_use(tmp_path: Path) -> None:
    """llama.cpp does not load such a file."""
    entries = {"general.architecture": "llama", "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": ["a", "b"]}
    path = tmp_path / "bare.gguf"
    path.write_bytes(gguf(entries, [("t", (4,))]))
    hindrance = member_at(path).hindrance
    assert hindrance is not None
    assert (hindrance.obstacle, "lacks the merges" in hindrance.reason) == (Obstacle.UNREADABLE, True)
    path.write_bytes(gguf(entries | {"tokenizer.ggml.pre": "kimi-k2"}, [("t", (4,))]))
    assert member_at(path).hindrance is None


def architectures(library: ctypes.CDLL) -> Iterator[tuple[str, bool, bool]]:
    """(name, cannot roll back, is a diffusion model) of every kind of model that llama.cpp knows."""
    try:
        name = library._Z13llm_arch_name8llm_arch
        asked = [
            getattr(library, symbol)
            for symbol in (
                "_Z21llm_arch_is_recurrentRK8llm_arch",
                "_Z18llm_arch_is_hybridRK8llm_arch",
                "_Z21llm_arch_is_diffusionRK8llm_arch",
            )
        ]
    except AttributeError:
        pytest.skip("this build of llama.cpp does not show what it knows of its kinds of models")
    name.argtypes, name.restype = [ctypes.c_int], ctypes.c_char_p
    for function in asked:
        function.argtypes, function.restype = [ctypes.POINTER(ctypes.c_int)], ctypes.c_bool
    number = 0
    while (text := name(number)) != b"unknown":
        recurrent, hybrid, diffusion = (function(ctypes.byref(ctypes.c_int(number))) for function in asked)
        yield text.decode(), recurrent or hybrid, diffusion
        number += 1


def test_what_cannot_roll_back_is_what_the_engine_says() -> None:
    llama_cpp = pytest.importorskip("llama_cpp")
    known = list(architectures(llama_cpp.llama_cpp._lib))
    assert len(known) > 50
    assert {name for name, stuck, _ in known if stuck} == NO_ROLLBACK
    assert {name for name, _, diffusion in known if diffusion} == DIFFUSION


REFUSED = {re.sub(r"[^a-z0-9]", "", name) for name in NO_ROLLBACK | DIFFUSION}


def refused_as(name: str) -> str | None:
    """The architecture of no use that a model's name begins with: `Qwen3.5 9B` is a qwen35, `Qwen3 4B` none."""
    begun = ""
    for word in re.split(r"[\s_-]+", name.lower()):
        begun += re.sub(r"[^a-z0-9]", "", word)
        if begun in REFUSED:
            return begun
    return None


@pytest.mark.parametrize("pair", good_pairs(), ids=lambda pair: pair.id)
def test_a_good_pair_is_not_refused_by_its_architecture(pair: GoodPair) -> None:
    for model in (pair.target, pair.draft):
        assert refused_as(model.name) is None
        assert refused_as(model.repo.partition("/")[2]) is None


@pytest.mark.parametrize("name", ["Qwen3.5 9B", "Qwen3-Next-80B-A3B", "LFM2 1.2B", "Falcon-H1-7B", "RWKV7 2.9B"])
def test_the_names_of_those_that_are_refused_are_known(name: str) -> None:
    assert refused_as(name) is not None


def test_a_number_of_parameters_is_no_version() -> None:
    assert refused_as("Qwen3 5B") is None

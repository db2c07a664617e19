from __future__ import annotations

from pathlib import Path

import pytest

from forespeak.models.roots import (
    RootKind,
    added_root,
    hugging_face_cache,
    known_roots,
    llama_cpp_cache,
    lm_studio_folders,
    own_root,
)
from forespeak.models.starter import starter_draft_path

HOME = Path("/home/ada")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "/home/ada/.cache/huggingface/hub"),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/huggingface/hub"),
        ({"HF_HOME": "/hf", "XDG_CACHE_HOME": "/xdg"}, "/hf/hub"),
        ({"HF_HUB_CACHE": "/here", "HF_HOME": "/hf"}, "/here"),
        ({"HUGGINGFACE_HUB_CACHE": "/old", "HF_HOME": "/hf"}, "/old"),
        ({"HF_HOME": "~/hf"}, "/home/ada/hf/hub"),
        ({"HF_HOME": "  "}, "/home/ada/.cache/huggingface/hub"),
    ],
)
def test_hugging_face_cache(environment: dict[str, str], expected: str) -> None:
    assert hugging_face_cache(environment, HOME) == Path(expected)


@pytest.mark.parametrize(
    ("environment", "platform", "expected"),
    [
        ({}, "linux", "/home/ada/.cache/llama.cpp"),
        ({"XDG_CACHE_HOME": "/xdg"}, "linux", "/xdg/llama.cpp"),
        ({}, "darwin", "/home/ada/Library/Caches/llama.cpp"),
        ({}, "win32", "/home/ada/AppData/Local/llama.cpp"),
        ({"LOCALAPPDATA": "/local"}, "win32", "/local/llama.cpp"),
        ({"LLAMA_CACHE": "/own", "XDG_CACHE_HOME": "/xdg"}, "linux", "/own"),
    ],
)
def test_llama_cpp_cache(environment: dict[str, str], platform: str, expected: str) -> None:
    assert llama_cpp_cache(environment, HOME, platform) == Path(expected)


def test_only_folders_that_exist_are_known(tmp_path: Path) -> None:
    def kinds() -> list[RootKind]:
        return [root.kind for root in known_roots(environment={}, home=tmp_path) if root.kind is not RootKind.STARTER]

    assert kinds() == []
    for folder in (*lm_studio_folders(tmp_path), hugging_face_cache({}, tmp_path)):
        folder.mkdir(parents=True)
    assert kinds() == [RootKind.HUGGING_FACE, RootKind.LM_STUDIO, RootKind.LM_STUDIO]


def test_added_folders_stay_and_count_once(tmp_path: Path) -> None:
    away = tmp_path / "disk that is away"
    roots = known_roots([away, tmp_path, away], environment={"LLAMA_CACHE": str(tmp_path)}, home=tmp_path / "home")
    assert [root.path for root in roots if root.kind is RootKind.ADDED] == [away]
    assert [root.path for root in roots if root.kind is RootKind.LLAMA_CPP] == [tmp_path]


def test_all_but_our_own_are_read_only(tmp_path: Path) -> None:
    assert not own_root(tmp_path).read_only
    assert added_root(tmp_path).read_only
    assert added_root(Path("/")).label == "/"
    assert all(root.read_only for root in known_roots([tmp_path], environment={}, home=tmp_path))


@pytest.mark.skipif(starter_draft_path() is None, reason="the starter's package is not installed")
def test_the_starter_is_known(tmp_path: Path) -> None:
    first = known_roots(environment={}, home=tmp_path)[0]
    assert (first.kind, first.read_only) == (RootKind.STARTER, True)

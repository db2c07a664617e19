"""Names from the network: out of the folder never, and the same on every system."""

from __future__ import annotations

from pathlib import Path

import pytest

from forespeak.errors import UserFacingError
from forespeak.models.download_names import LONGEST_NAME, targets
from forespeak.models.part_file import STATE

FOLDER = Path("/models")


def one(path: str, repo: str = "org/name", *, windows: bool = False) -> str:
    (target,) = targets(FOLDER, repo, [path], windows)
    return target.relative_to(FOLDER).as_posix()


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("model-Q4_0.gguf", "org/name/model-Q4_0.gguf"),
        ("Q4/model 00001-of-00002.gguf", "org/name/Q4/model 00001-of-00002.gguf"),
        ("模型.gguf", "org/name/模型.gguf"),
        (".gitattributes", "org/name/.gitattributes"),
        # Made safe.
        ("CON.gguf", "org/name/_CON.gguf"),
        ("nul", "org/name/_nul"),
        ("com1 .gguf", "org/name/_com1 .gguf"),
        ("aux/model.gguf", "org/name/_aux/model.gguf"),
        ("model.gguf.", "org/name/model.gguf_"),
        ("model. /x", "org/name/model__/x"),
        ('a<b>c:d"e|f?g*h.gguf', "org/name/a_b_c_d_e_f_g_h.gguf"),
        ("cafe\u0301.gguf", "org/name/caf\u00e9.gguf"),
        # Only alike.
        ("console.gguf", "org/name/console.gguf"),
        ("..model.gguf", "org/name/..model.gguf"),
    ],
)
def test_where_a_file_goes(path: str, place: str) -> None:
    assert one(path) == place


@pytest.mark.parametrize(
    "path",
    [
        "../model.gguf",
        "a/../../model.gguf",
        "a/./model.gguf",
        "a//model.gguf",
        "..",
        ".",
        "",
        "a/",
        "/etc/passwd",
        "\\\\server\\share\\model.gguf",
        "..\\model.gguf",
        "a\\b.gguf",
        "C:model.gguf",
        "c:/model.gguf",
        "model\0.gguf",
        "model\n.gguf",
        "model\u202egguf.exe",
        "model\u200b.gguf",
        "model\ud800.gguf",
        "x" * (LONGEST_NAME + 1),
        "模" * (LONGEST_NAME // 3 + 1),
    ],
)
def test_what_is_refused(path: str) -> None:
    with pytest.raises(UserFacingError) as caught:
        one(path)
    assert caught.value.why
    assert caught.value.what.isprintable()
    assert len(caught.value.what) < 150


@pytest.mark.parametrize("repo", ["../x", "a/..", "./a", "a/b/c", "/a", "a/", "", "a b/c", "C:/x", "a\\b", "é/x"])
def test_a_hostile_repository(repo: str) -> None:
    with pytest.raises(UserFacingError, match="repository"):
        one("model.gguf", repo)


def test_an_old_repository_has_no_owner() -> None:
    assert one("model.gguf", "gpt2") == "gpt2/model.gguf"


def test_a_repository_named_like_a_device() -> None:
    assert one("model.gguf", "nul/aux.x") == "_nul/_aux.x/model.gguf"


@pytest.mark.parametrize(
    "pair", [("Model.gguf", "model.GGUF"), ("a?.gguf", "a*.gguf"), ("caf\u00e9", "cafe\u0301"), ("con", "_con")]
)
def test_files_that_would_fall_together(pair: tuple[str, str]) -> None:
    with pytest.raises(UserFacingError, match="told from"):
        targets(FOLDER, "org/name", pair)


def test_long_paths_on_windows() -> None:
    path = "/".join(["folder" * 10] * 5) + "/model.gguf"
    assert one(path)
    with pytest.raises(UserFacingError, match="Windows"):
        one(path, windows=True)


def test_a_longest_name_leaves_room_for_what_lies_beside_it(tmp_path: Path) -> None:
    (target,) = targets(tmp_path, "org/name", ["x" * LONGEST_NAME])
    target.parent.mkdir(parents=True)
    target.with_name(target.name + STATE).touch()
    target.with_name(target.name + STATE + ".new").touch()

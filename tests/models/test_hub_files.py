"""Grouping a repo's files: labels, parts, projectors, MLX."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forespeak.models.formats import ModelFormat
from forespeak.models.gguf import GgufKind
from forespeak.models.hub_files import HubFile, group_files, quant_label

SHA = "a" * 40


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("Qwen2.5-0.5B-Instruct-Q4_K_M.gguf", "Q4_K_M"),
        ("qwen2.5-0.5b-instruct-q4_k_m.gguf", "Q4_K_M"),
        ("Model-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"),
        ("model.i1-IQ3_XXS.gguf", "IQ3_XXS"),
        ("model-Q6_K_L.gguf", "Q6_K_L"),
        ("model-Q6_K.gguf", "Q6_K"),
        ("model-TQ1_0.gguf", "TQ1_0"),
        ("gpt-oss-MXFP4_MOE.gguf", "MXFP4_MOE"),
        ("gpt-oss-mxfp4.gguf", "MXFP4"),
        ("model-BF16.gguf", "BF16"),
        ("model-FP16.gguf", "F16"),
        ("model_f16.gguf", "F16"),
        ("model-F32.gguf", "F32"),
        ("model-IQ4_NL.gguf", "IQ4_NL"),
        ("model-Q4_0_4_8.gguf", "Q4_0_4_8"),
        ("model-Q8_0.gguf", "Q8_0"),
        # The last match counts.
        ("from-BF16-to-Q5_K_S.gguf", "Q5_K_S"),
        # The folder's name where the file's says nothing.
        ("BF16/model-00001-of-00002.gguf", "BF16"),
        ("UD-IQ1_S/Q8_0/model.gguf", "Q8_0"),
        # What only looks like a quant.
        ("Qwen2-0.5B.gguf", None),
        ("Qwen2-0.5B-Instruct.gguf", None),
        ("model-XQ4_K_M.gguf", None),
        ("Phi-3-mini-4k.gguf", None),
    ],
)
def test_the_label_is_what_people_call_it(path: str, label: str | None) -> None:
    assert quant_label(path) == label


def files(*paths: str, size: int = 100) -> list[HubFile]:
    return [HubFile(path, size + number, "b" * 64) for number, path in enumerate(paths)]


def test_single_files_are_groups_by_size() -> None:
    groups = group_files("o/m", SHA, [HubFile("m-Q8_0.gguf", 900), HubFile("m-Q4_K_M.gguf", 500)])
    assert [(group.label, group.size_bytes, group.name) for group in groups] == [
        ("Q4_K_M", 500, "m-Q4_K_M"),
        ("Q8_0", 900, "m-Q8_0"),
    ]
    assert {(group.repo, group.revision, group.format, group.kind, group.shards) for group in groups} == {
        ("o/m", SHA, ModelFormat.GGUF, GgufKind.MODEL, 1)
    }


def test_parts_are_one_group_in_order() -> None:
    listed = files(*(f"Q4_K_M/m-Q4_K_M-{number:05d}-of-00003.gguf" for number in (3, 1, 2)))
    (group,) = group_files("o/m", SHA, listed)
    assert [file.name[-19:-14] for file in group.files] == ["00001", "00002", "00003"]
    assert (group.label, group.shards, group.missing, group.problem, group.downloadable) == (
        "Q4_K_M",
        3,
        (),
        None,
        True,
    )
    assert group.size_bytes == 303
    assert group.name == "m-Q4_K_M"


def test_a_set_with_a_part_missing_is_shown_and_cannot_be_downloaded() -> None:
    (group,) = group_files("o/m", SHA, files("m-Q4_0-00001-of-00003.gguf", "m-Q4_0-00003-of-00003.gguf"))
    assert group.missing == (2,)
    assert not group.downloadable
    assert group.problem == "Part 2 of 3 is missing."


def test_sets_of_the_same_name_in_other_folders_or_of_another_count_stay_apart() -> None:
    groups = group_files(
        "o/m",
        SHA,
        files(
            "a/m-00001-of-00001.gguf",
            "b/m-00001-of-00001.gguf",
            "b/m-00001-of-00002.gguf",
            "b/m-00002-of-00002.gguf",
        ),
    )
    assert sorted((group.files[0].path, group.shards) for group in groups) == [
        ("a/m-00001-of-00001.gguf", 1),
        ("b/m-00001-of-00001.gguf", 1),
        ("b/m-00001-of-00002.gguf", 2),
    ]


def test_a_name_that_claims_a_billion_parts_takes_no_memory() -> None:
    (group,) = group_files("o/m", SHA, files("m-000000001-of-999999999.gguf"))
    assert group.shards == 1
    assert group.missing == ()


def test_projectors_and_matrices_are_no_models() -> None:
    groups = group_files(
        "o/m",
        SHA,
        files("mmproj-m-F16.gguf", "m-imatrix.gguf", "m-Q4_0.gguf", "m-imatrix-Q4_0.gguf", "sub/m-mmproj-Q8_0.gguf"),
    )
    assert [(group.files[0].path, group.kind) for group in groups] == [
        ("m-Q4_0.gguf", GgufKind.MODEL),
        ("m-imatrix-Q4_0.gguf", GgufKind.MODEL),
        ("mmproj-m-F16.gguf", GgufKind.PROJECTOR),
        ("sub/m-mmproj-Q8_0.gguf", GgufKind.PROJECTOR),
        ("m-imatrix.gguf", GgufKind.IMATRIX),
    ]


def test_other_files_belong_to_no_group() -> None:
    assert group_files("o/m", SHA, files("README.md", "config.json", "model.safetensors", "imatrix.dat")) == ()


MLX = (
    "README.md",
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
)


def test_an_mlx_repo_is_one_group_of_what_is_loaded() -> None:
    listed = files(*MLX, "modeling_x.py", "original/model.safetensors", "pictures/a.json", ".gitattributes")
    (group,) = group_files("mlx-community/Qwen3-0.6B-4bit", SHA, listed, mlx=True)
    assert group.format is ModelFormat.MLX
    assert group.label == "4-bit"
    assert group.name == "Qwen3-0.6B-4bit"
    assert sorted(file.path for file in group.files) == sorted(MLX[1:])


def test_an_mlx_repo_lacks_a_part_too() -> None:
    listed = files("config.json", "model-00001-of-00002.safetensors", "model.safetensors.index.json")
    (group,) = group_files("o/m-bf16", SHA, listed, mlx=True)
    assert (group.label, group.shards, group.missing) == ("BF16", 2, (2,))
    assert not group.downloadable


@pytest.mark.parametrize(
    ("repo", "label"),
    [("o/m-8bit", "8-bit"), ("o/m-mxfp4", "MXFP4"), ("o/m-fp16", "F16"), ("o/m-4bit-DWQ", "4-bit"), ("o/m", None)],
)
def test_the_label_of_an_mlx_repo_is_in_its_name(repo: str, label: str | None) -> None:
    (group,) = group_files(repo, SHA, files("config.json", "model.safetensors"), mlx=True)
    assert group.label == label


def test_a_repo_of_both_kinds_has_groups_of_both() -> None:
    listed = files("m-Q4_0.gguf", "config.json", "model.safetensors")
    assert {group.format for group in group_files("o/m", SHA, listed, mlx=True)} == set(ModelFormat)


PARTS = st.sampled_from(
    ["", "/", "..", "mmproj", "imatrix", "Q4_K_M", "-00001-of-00002", "-00002-of-00002", ".gguf", "x"]
)


@given(st.lists(st.lists(PARTS, max_size=6).map("".join), max_size=8, unique=True))
def test_every_gguf_file_is_in_exactly_one_group(paths: list[str]) -> None:
    listed = files(*(path for path in paths if path))
    grouped = [file.path for group in group_files("o/m", SHA, listed, mlx=True) for file in group.files]
    assert sorted(grouped) == sorted(file.path for file in listed if file.path.lower().endswith(".gguf"))

from __future__ import annotations

import json
import os
import pickle
import time
from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.engines.engine import CacheType, Split
from forespeak.engines.pair_knowledge import PairConditions
from forespeak.engines.parity_result import (
    DifferenceKind,
    FirstDifference,
    ParityCase,
    ParityResult,
    TokenScores,
)
from forespeak.pairing.pair_memory import MOST_FILES, PairFiles, parity_from, parity_record
from forespeak.speculation.trace import Source
from models.library_folders import write_mlx

LEARNED = {"target_seconds": [[1, 0.03], [5, 0.05]], "models": {"coupled": {"tested": 12.0}}}


@pytest.fixture
def pair(tmp_path: Path) -> PairConditions:
    target, draft = tmp_path / "target.gguf", tmp_path / "draft.gguf"
    target.write_bytes(b"target")
    draft.write_bytes(b"draft")
    return PairConditions(target, draft, "toy 1", ("CPU",), 2, -1, False, 8192)


@pytest.fixture
def files(tmp_path: Path) -> PairFiles:
    return PairFiles(tmp_path / "pairs")


def only(files: PairFiles) -> Path:
    (found,) = files.folder.iterdir()
    return found


def test_what_is_kept_is_recalled_under_the_same_conditions(files: PairFiles, pair: PairConditions) -> None:
    assert files.recall(pair) is None
    files.keep(pair, LEARNED)
    assert files.recall(pair) == LEARNED
    assert PairFiles(files.folder).recall(pair) == LEARNED
    assert files.recall(replace(pair, context_length=4096)) == LEARNED


@pytest.mark.parametrize(
    "change",
    [
        {"threads": 4},
        {"devices": ("CPU", "GPU")},
        {"reproducible": True},
        {"context_length": 32768},
        {"engine": "toy 2"},
        {"gpu_layers": 0},
        {"draft": None},
        {"draft_devices": ("GPU",)},
        {"draft_gpu_layers": 3},
        {"split": Split.ROW},
        {"cache_type": CacheType.Q8_0},
        {"flash_attention": True},
    ],
    ids=str,
)
def test_other_conditions_are_another_matter(files: PairFiles, pair: PairConditions, change: dict[str, object]) -> None:
    files.keep(pair, LEARNED)
    other = replace(pair, **change)  # type: ignore[arg-type]
    assert files.recall(other) is None
    files.keep(other, {"other": 1})
    assert files.recall(pair) == LEARNED
    assert files.recall(other) == {"other": 1}


def test_a_changed_file_is_another_model(files: PairFiles, pair: PairConditions) -> None:
    files.keep(pair, LEARNED)
    os.utime(pair.target, ns=(1, 1))
    assert files.recall(pair) is None
    assert pair.draft is not None
    pair.draft.unlink()
    assert files.recall(pair) is None


def test_a_file_in_a_folder_that_is_written_anew_makes_another_model(files: PairFiles, pair: PairConditions) -> None:
    """The folder's own time stays the same then."""
    folder = write_mlx(files.folder.parent / "mlx")
    in_folder = replace(pair, target=folder)
    files.keep(in_folder, LEARNED)
    before = folder.stat().st_mtime_ns
    (folder / ".DS_Store").write_bytes(b"a note of the system's")
    assert files.recall(in_folder) == LEARNED
    weights = folder / "model.safetensors"
    os.utime(folder, ns=(before, before))
    with weights.open("r+b") as file:
        file.write(b"\0")
    newer = time.time_ns() + 5_000_000_000
    os.utime(weights, ns=(newer, newer))
    assert folder.stat().st_mtime_ns == before
    assert files.recall(in_folder) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe\x00",
        b'{"format": 2, "learned": []}',
        b'{"format": 1, "learned": 3}',
        b'{"format": 1, "learned": [7, {"conditions": 1}]}',
        b"[" * 100_000,
    ],
    ids=["empty", "cut", "list", "bytes", "newer", "number", "foreign", "deep"],
)
def test_what_cannot_be_read_is_replaced(files: PairFiles, pair: PairConditions, content: bytes) -> None:
    files.keep(pair, LEARNED)
    only(files).write_bytes(content)
    assert files.recall(pair) is None
    assert files.parity(pair.target, pair.draft) is None
    files.keep(pair, LEARNED)
    assert files.recall(pair) == LEARNED
    json.loads(only(files).read_bytes())


def test_writing_soon_waits_until_it_is_due(files: PairFiles, pair: PairConditions) -> None:
    now = [100.0]
    files.clock = lambda: now[0]
    files.keep(pair, {"n": 1}, soon=True)
    now[0] += 1.0
    files.keep(pair, {"n": 2}, soon=True)
    assert files.recall(pair) == {"n": 1}
    files.keep(pair, {"n": 3})
    assert files.recall(pair) == {"n": 3}
    now[0] += 5.0
    files.keep(pair, {"n": 4}, soon=True)
    assert files.recall(pair) == {"n": 4}


def test_the_conditions_used_last_are_kept(files: PairFiles, pair: PairConditions) -> None:
    for threads in range(1, 12):
        files.keep(replace(pair, threads=threads), {"threads": threads})
    assert files.recall(replace(pair, threads=11)) == {"threads": 11}
    assert files.recall(replace(pair, threads=4)) == {"threads": 4}
    assert files.recall(replace(pair, threads=3)) is None


def test_old_pairs_are_forgotten(files: PairFiles, pair: PairConditions) -> None:
    files.folder.mkdir()
    for number in range(MOST_FILES + 5):
        path = files.folder / f"{number:024d}.json"
        path.write_text("{}")
        os.utime(path, (number + 1, number + 1))
    stale = files.folder / "x.json.1.part"
    stale.write_text("")
    os.utime(stale, (1, 1))
    files.keep(pair, LEARNED)
    names = {path.name for path in files.folder.iterdir()}
    assert len(names) == MOST_FILES
    assert files.recall(pair) == LEARNED
    assert f"{5:024d}.json" not in names
    assert f"{6:024d}.json" in names


def test_a_disk_that_cannot_be_written_to_is_no_error(tmp_path: Path, pair: PairConditions) -> None:
    (tmp_path / "pairs").write_text("a file where the folder should be")
    files = PairFiles(tmp_path / "pairs")
    files.keep(pair, LEARNED)
    assert files.recall(pair) is None


def test_what_is_no_json_is_not_kept(files: PairFiles, pair: PairConditions) -> None:
    files.keep(pair, LEARNED)
    files.keep(pair, {"path": Path("x")})
    assert files.recall(pair) == LEARNED


def result() -> ParityResult:
    difference = FirstDifference(
        "auto", 3, " the", "🌧", TokenScores(-0.5, None), TokenScores(-0.25, -0.75), 2e-4, 1e-3, DifferenceKind.TIE
    )
    cases = (ParityCase("code", 0.0, 48, 30, 21), ParityCase("code", 0.8, 48, 28, 14, (difference,)))
    return ParityResult(
        cases,
        24,
        (Source.PROMPT_LOOKUP, Source.DRAFT_MODEL),
        3e-5,
        61.5,
        "2026-11-29T21:00:00+01:00",
        "toy 1",
        "0.1",
        ("auto", "4 tokens"),
    )


def test_a_parity_result_is_kept_with_the_pair(files: PairFiles, pair: PairConditions) -> None:
    files.keep(pair, LEARNED)
    files.keep_parity(pair.target, pair.draft, result())
    assert files.parity(pair.target, pair.draft) == result()
    assert files.recall(pair) == LEARNED
    files.keep(pair, {"n": 1})
    assert files.parity(pair.target, pair.draft) == result()
    assert files.parity(pair.target, None) is None


def test_a_record_holds_what_people_look_for() -> None:
    record = json.loads(json.dumps(parity_record(result())))
    assert record["equal"] == 1
    assert record["ties"] == 1
    assert record["cases"][1]["differences"][0]["kind"] == "numeric tie"
    assert parity_from(record) == result()


@pytest.mark.parametrize(
    "damage", [{"cases": 3}, {"sources": ["psychic"]}, {"checked_at": "yesterday"}, {"planned": None}], ids=str
)
def test_a_damaged_record_is_none(damage: dict[str, object]) -> None:
    assert parity_from(parity_record(result()) | damage) is None
    assert parity_from(None) is None
    assert parity_from("text") is None


def test_it_can_be_sent_to_the_engine_process(files: PairFiles, pair: PairConditions) -> None:
    files.keep(pair, LEARNED)
    assert pickle.loads(pickle.dumps(files)).recall(pair) == LEARNED


def test_everything_is_listed_but_what_belongs_to_other_files(files: PairFiles, pair: PairConditions) -> None:
    other = replace(pair, draft=None, threads=4)
    files.keep(pair, LEARNED)
    files.keep(replace(pair, threads=8), {"more": 1})
    files.keep(other, {"other": 1})
    (files.folder / "foreign.json").write_text("{}", encoding="utf-8")
    (files.folder / "damaged.json").write_text("{", encoding="utf-8")
    found = [(each.target, each.draft, each.conditions["threads"], each.values) for each in files.everything()]
    assert sorted(found, key=str) == sorted(
        [
            (pair.target, pair.draft, 2, LEARNED),
            (pair.target, pair.draft, 8, {"more": 1}),
            (pair.target, None, 4, {"other": 1}),
        ],
        key=str,
    )
    assert pair.draft is not None
    pair.draft.write_bytes(b"another draft")
    assert [each.draft for each in files.everything()] == [None]
    assert list(PairFiles(files.folder / "nowhere").everything()) == []


def test_what_is_known_follows_the_models_folder(files: PairFiles, pair: PairConditions, tmp_path: Path) -> None:
    old, new = tmp_path / "models", tmp_path / "disk" / "models"
    (old / "owner").mkdir(parents=True)
    new.parent.mkdir()
    target = pair.target.rename(old / "owner" / "t.gguf")
    both, half = replace(pair, target=target), replace(pair, target=target, draft=None)
    assert pair.draft is not None
    outside = replace(pair, target=pair.draft, draft=None)
    for each in (both, half, outside):
        files.keep(each, LEARNED)
    files.keep_parity(target, pair.draft, result())
    (files.folder / "newer.json").write_text(json.dumps({"format": 99, "pair": {"target": str(target)}}))
    for number, path in enumerate(sorted(files.folder.iterdir())):
        os.utime(path, ns=(number, number))
    order = [(each.target.name, each.draft) for each in files.everything()]
    old.rename(new)
    assert len(list(files.everything())) == 1
    files.moved(old, new)
    assert [(each.target.name, each.draft) for each in files.everything()] == order
    there = new / "owner" / "t.gguf"
    assert files.recall(replace(both, target=there)) == LEARNED
    assert files.recall(replace(half, target=there)) == LEARNED
    assert files.recall(outside) == LEARNED
    assert files.parity(there, pair.draft) == result()
    assert len(list(files.folder.iterdir())) == 4
    assert json.loads((files.folder / "newer.json").read_text())["pair"] == {"target": str(target)}


def test_what_was_learned_of_another_file_does_not_follow(
    files: PairFiles, pair: PairConditions, tmp_path: Path
) -> None:
    (tmp_path / "models").mkdir()
    target = pair.target.rename(tmp_path / "models" / "t.gguf")
    files.keep(replace(pair, target=target), LEARNED)
    (tmp_path / "models").rename(tmp_path / "new")
    now = replace(pair, target=tmp_path / "new" / "t.gguf")
    now.target.write_bytes(b"another model")
    files.moved(tmp_path / "models", tmp_path / "new")
    assert files.recall(now) is None
    # What was learned there meanwhile is newer.
    files.keep(now, {"newer": 1})
    files.moved(tmp_path / "models", tmp_path / "new")
    assert files.recall(now) == {"newer": 1}

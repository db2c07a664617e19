from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.models.vocabulary import Vocabulary
from forespeak.pairing import compatibility as judging
from forespeak.pairing.compatibility import Judge, compatibility
from forespeak.pairing.verdict import Obstacle, Verdict, VerdictKind, verdict_from, verdict_record
from forespeak.pairing.verdict_cache import VerdictCache
from models.gguf_writer import ModelFile

SOME = Verdict(VerdictKind.DIFFERS, False, "Token 3 is “a” in the target and “b” in the draft.", {"differences": 1})


@pytest.fixture
def cache(tmp_path: Path) -> VerdictCache:
    return VerdictCache(tmp_path / "verdicts")


def files_in(cache: VerdictCache) -> list[Path]:
    return sorted(cache.folder.iterdir()) if cache.folder.exists() else []


def test_what_is_kept_is_found(cache: VerdictCache) -> None:
    assert cache.find("a", "b") is None
    cache.keep("a", "b", SOME)
    assert cache.find("a", "b") == SOME
    assert cache.find("b", "a") is None, "who drafts for whom matters"
    (file,) = files_in(cache)
    assert file.suffix == ".json"


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"rules": "x"}', '"' + "x" * 200_000 + '"'])
def test_a_damaged_file_is_as_good_as_none(cache: VerdictCache, damage: str) -> None:
    cache.keep("a", "b", SOME)
    (file,) = files_in(cache)
    file.write_text(damage)
    assert cache.find("a", "b") is None
    cache.keep("a", "b", SOME)
    assert cache.find("a", "b") == SOME


@pytest.mark.parametrize("change", [{"rules": "0.0.0 0"}, {"target": "c"}, {"verdict": "perhaps"}, {"usable": "yes"}])
def test_what_other_rules_have_judged_is_judged_again(cache: VerdictCache, change: dict[str, object]) -> None:
    cache.keep("a", "b", SOME)
    (file,) = files_in(cache)
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert cache.find("a", "b") is None


def test_a_disk_that_cannot_be_written_to_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "verdicts").write_text("in the way")
    cache = VerdictCache(tmp_path / "verdicts")
    cache.keep("a", "b", SOME)
    assert cache.find("a", "b") is None


def test_an_interrupted_write_leaves_the_old_one(cache: VerdictCache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.keep("a", "b", SOME)

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    cache.keep("a", "b", replace(SOME, reason="Another."))
    assert cache.find("a", "b") == SOME
    assert len(files_in(cache)) == 1


def test_the_oldest_are_forgotten(cache: VerdictCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forespeak.pairing.verdict_cache.MOST_FILES", 3)
    cache.folder.mkdir()
    stale = cache.folder / "x.json.1.part"
    stale.write_text("half")
    os.utime(stale, (1, 1))
    for number in range(5):
        cache.keep(str(number), "b", SOME)
        for age, file in enumerate(sorted(files_in(cache), key=lambda path: path.stat().st_mtime_ns, reverse=True), 1):
            os.utime(file, (1e9 - 100 * age, 1e9 - 100 * age))
    assert [cache.find(str(number), "b") is not None for number in range(5)] == [False, False, True, True, True]
    assert not stale.exists()


def test_a_verdict_as_json_is_the_same_again() -> None:
    for verdict in (SOME, Verdict(VerdictKind.CANNOT, False, "No.", {}, Obstacle.PROJECTOR)):
        assert verdict_from(json.loads(json.dumps(verdict_record(verdict)))) == verdict
    assert verdict_from({"verdict": "same"}) is None
    assert verdict_from(None) is None


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Vocabulary, Vocabulary]]:
    """The pairs of vocabularies that were really compared."""
    seen: list[tuple[Vocabulary, Vocabulary]] = []
    compare = judging.compare

    def watched(target: Vocabulary, draft: Vocabulary) -> Verdict:
        seen.append((target, draft))
        return compare(target, draft)

    monkeypatch.setattr(judging, "compare", watched)
    return seen


def test_the_same_content_is_compared_once(
    tmp_path: Path, cache: VerdictCache, compared: list[tuple[Vocabulary, Vocabulary]]
) -> None:
    target = ModelFile(["a", "b", "c"]).write(tmp_path / "target.gguf")
    draft = ModelFile(["a", "b", "x"]).write(tmp_path / "draft.gguf")
    first = compatibility(target, draft, cache)
    assert len(compared) == 1
    copy = draft.rename(tmp_path / "copy.gguf")
    again = compatibility(target, copy, VerdictCache(cache.folder))
    assert len(compared) == 1
    assert again.reason == first.reason
    assert again.evidence == first.evidence | {"draft_file": "copy.gguf"}
    # In place of the file, one with other content.
    ModelFile(["a", "b", "c", "d"]).write(copy)
    assert compatibility(target, copy, cache).reason != first.reason
    assert len(compared) == 2


def test_a_judge_remembers_and_says_what_the_engine_is_told(
    tmp_path: Path, compared: list[tuple[Vocabulary, Vocabulary]]
) -> None:
    judge = Judge(tmp_path / "verdicts")
    target = ModelFile(["a", "b"]).write(tmp_path / "target.gguf")
    draft = ModelFile(["a", "x"]).write(tmp_path / "draft.gguf")
    assert judge.refusal(target, draft) == judge.verdict(target, draft).reason
    assert judge.refusal(target, target) is None
    assert len(compared) == 2


def test_what_a_file_is_comes_before_what_is_remembered(tmp_path: Path, cache: VerdictCache) -> None:
    file = ModelFile(["a", "b"])
    whole, bare = file.write(tmp_path / "whole.gguf"), replace(file, tensors=()).write(tmp_path / "bare.gguf")
    assert compatibility(whole, whole, cache).usable
    assert compatibility(whole, bare, cache).obstacle is Obstacle.VOCABULARY_ONLY
    assert compatibility(whole, whole, cache).usable
    assert len(files_in(cache)) == 1

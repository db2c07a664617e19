from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.engines.parity_result import ParityCase, ParityResult
from forespeak.errors import UserFacingError
from forespeak.models.folders import Folders
from forespeak.pairing.named_pair import NamedPair, PairSettings, measurement_from, measurement_record
from forespeak.pairing.pair_memory import PairFiles
from forespeak.pairing.pairs import FOLDER, NamedPairs, follow_models
from forespeak.pairing.ranking import Measurement, Range
from forespeak.speculation.settings import Rule
from forespeak.speculation.trace import Source
from models.gguf_writer import ModelFile
from models.library_folders import write_mlx

MEASURED = Measurement(
    20.0,
    30.0,
    Range(1.5, 1.4, 1.6),
    0.81,
    640,
    (("code", 1.7), ("prose", 1.3)),
    "2026-11-30T10:00:00+00:00",
    "llama.cpp 1",
    "0.1.0",
)
PARITY = ParityResult(
    (ParityCase("haiku", 0.0, 20, 12, 9, ()),),
    1,
    (Source.DRAFT_MODEL,),
    0.001,
    3.0,
    "2026-11-30T10:00:00+00:00",
    "llama.cpp 1",
    "0.1.0",
    ("auto",),
)
SETTINGS = PairSettings((Source.PROMPT_LOOKUP, Source.DRAFT_MODEL), 6, Rule.REJECTION, 4096)


def model(path: Path, *tokens: str) -> Path:
    return ModelFile(list(tokens or ("a", "b"))).write(path)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return model(tmp_path / "target.gguf")


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    return model(tmp_path / "draft.gguf")


@pytest.fixture
def pairs(tmp_path: Path) -> NamedPairs:
    return NamedPairs(tmp_path / "data" / "named-pairs")


def again(pairs: NamedPairs, pair: NamedPair) -> NamedPair:
    """As another session sees it."""
    found = pairs.get(pair.id)
    assert found is not None
    return found


def test_nothing_is_kept_before_anything_is_kept(pairs: NamedPairs, target: Path, tmp_path: Path) -> None:
    assert pairs.all() == ()
    assert pairs.default_for(target) is None
    assert not (tmp_path / "data").exists()


def test_a_pair_comes_back_as_it_was_kept(pairs: NamedPairs, target: Path, draft: Path) -> None:
    kept = pairs.keep("  My  pair\n", target, draft, SETTINGS, parity=PARITY, measurement=MEASURED, as_default=True)
    assert (kept.name, kept.settings, kept.parity, kept.measurement) == ("My pair", SETTINGS, PARITY, MEASURED)
    assert kept.is_default
    assert kept.is_usable
    assert kept.problem is None
    assert kept.current_measurement == MEASURED
    assert kept.target.fingerprint is not None
    assert pairs.all() == (kept,)
    assert pairs.default_for(target) == kept
    assert again(pairs, kept) == kept


def test_without_a_name_it_is_called_after_its_files(pairs: NamedPairs, target: Path, draft: Path) -> None:
    assert pairs.keep(" ", target, draft, PairSettings()).name == "target + draft"
    assert pairs.keep("", target, None, PairSettings((Source.NGRAM_MOD,))).name == "target + looked-up text"


def test_a_pair_of_a_file_that_is_not_there_cannot_be_kept(pairs: NamedPairs, target: Path, tmp_path: Path) -> None:
    with pytest.raises(UserFacingError, match="cannot be read"):
        pairs.keep("x", target, tmp_path / "gone.gguf", PairSettings())
    assert pairs.all() == ()


def test_pairs_are_listed_by_name_and_the_default_first_for_its_target(
    pairs: NamedPairs, target: Path, draft: Path
) -> None:
    b, a = (pairs.keep(name, target, draft, PairSettings()) for name in ("b", "A"))
    other = pairs.keep("c", draft, None, PairSettings((Source.NGRAM_MOD,)))
    assert [pair.name for pair in pairs.all()] == ["A", "b", "c"]
    pairs.set_default(b)
    assert [pair.name for pair in pairs.of_target(target)] == ["b", "A"]
    assert pairs.default_for(draft) is None
    pairs.set_default(other)
    pairs.set_default(a)
    assert [pair.name for pair in pairs.all() if pair.is_default] == ["A", "c"]
    pairs.clear_default(target)
    assert pairs.default_for(target) is None
    assert pairs.default_for(draft) == again(pairs, other)


def test_renaming(pairs: NamedPairs, target: Path, draft: Path) -> None:
    pair = pairs.keep("old", target, draft, SETTINGS, measurement=MEASURED)
    assert pairs.rename(pair, " new ").name == "new"
    assert again(pairs, pair).name == "new"
    assert again(pairs, pair).measurement == MEASURED
    assert pairs.rename(pair, "  ").name == "new"


def test_a_retest_marks_old_figures_until_there_are_new_ones(pairs: NamedPairs, target: Path, draft: Path) -> None:
    pair = pairs.keep("p", target, draft, SETTINGS, parity=PARITY, measurement=MEASURED)
    stale = pairs.mark_stale(pair)
    assert stale.is_stale
    assert stale.measurement == MEASURED
    assert stale.current_measurement is None
    newer = replace(MEASURED, plain=10.0)
    fresh = pairs.tested(pair, newer)
    assert (fresh.is_stale, fresh.measurement, fresh.parity) == (False, newer, PARITY)


def test_other_settings_make_figures_out_of_date(pairs: NamedPairs, target: Path, draft: Path) -> None:
    pair = pairs.keep("p", target, draft, SETTINGS, measurement=MEASURED)
    assert not pairs.set_settings(pair, SETTINGS).is_stale
    assert pairs.set_settings(pair, PairSettings()).is_stale
    assert again(pairs, pair).settings == PairSettings()


def test_removal_can_be_undone(pairs: NamedPairs, target: Path, draft: Path) -> None:
    pair = pairs.keep("p", target, draft, SETTINGS, measurement=MEASURED, as_default=True)
    removal = pairs.remove(pair)
    assert pairs.all() == ()
    assert pairs.default_for(target) is None
    removal.undo()
    assert pairs.all() == (pair,)
    assert pairs.default_for(target) == pair


def test_an_undone_removal_takes_no_other_pair_s_place(pairs: NamedPairs, target: Path, draft: Path) -> None:
    pair = pairs.keep("p", target, draft, SETTINGS, as_default=True)
    removal = pairs.remove(pair)
    other = pairs.keep("q", target, draft, SETTINGS, as_default=True)
    removal.undo()
    assert pairs.default_for(target) == other


def test_a_finished_removal_leaves_nothing(pairs: NamedPairs, target: Path, draft: Path, tmp_path: Path) -> None:
    removal = pairs.remove(pairs.keep("p", target, draft, SETTINGS))
    removal.finish()
    assert not list((tmp_path / "data" / "named-pairs").iterdir())
    with pytest.raises(UserFacingError, match="could not be put back"):
        removal.undo()


def test_what_was_removed_is_forgotten_after_a_day(
    pairs: NamedPairs, target: Path, draft: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "data" / "named-pairs"
    for name in ("p", "q"):
        pairs.remove(pairs.keep(name, target, draft, SETTINGS))
    old, _ = sorted(folder.iterdir())
    os.utime(old, (time.time() - 90_000, time.time() - 90_000))
    NamedPairs(folder)
    assert len(list(folder.iterdir())) == 1


def test_a_file_that_vanished_is_named(pairs: NamedPairs, target: Path, draft: Path) -> None:
    pair = pairs.keep("p", target, draft, SETTINGS, measurement=MEASURED, as_default=True)
    draft.unlink()
    found = again(pairs, pair)
    assert found.problem == f"The draft model “draft.gguf” is not in {draft.parent} any more."
    assert not found.is_usable
    assert found.current_measurement is None
    assert pairs.default_for(target) is None
    model(draft)
    assert pair.draft is not None
    os.utime(draft, ns=(pair.draft.modified_ns, pair.draft.modified_ns))
    assert again(pairs, pair).problem is None


def test_a_file_that_changed_is_named_with_what_it_means(pairs: NamedPairs, target: Path, draft: Path) -> None:
    pair = pairs.keep("p", target, draft, SETTINGS, parity=PARITY, measurement=MEASURED)
    os.utime(target, ns=(1, 1))
    found = again(pairs, pair)
    assert found.problem == "The target “target.gguf” has changed since; its figures are those of the former file."
    assert found.is_usable
    model(draft, "a", "c", "d")
    assert "vocabulary is another one now" in str(again(pairs, pair).problem)
    draft.write_bytes(b"broken")
    found = again(pairs, pair)
    assert "no vocabulary that can be read" in str(found.problem)
    assert not found.is_usable


def test_a_new_test_is_of_the_files_as_they_are(pairs: NamedPairs, target: Path, draft: Path) -> None:
    pair = pairs.keep("p", target, draft, SETTINGS, parity=PARITY, measurement=MEASURED)
    model(draft, "a", "b", "c")
    fresh = pairs.tested(again(pairs, pair), MEASURED)
    assert fresh.problem is None
    assert fresh.current_measurement == MEASURED
    # What was found of the former file says nothing of this one.
    assert fresh.parity is None
    draft.unlink()
    with pytest.raises(UserFacingError, match="draft"):
        pairs.tested(fresh, MEASURED)


def test_the_newest_measurement_that_holds_is_found(pairs: NamedPairs, target: Path, draft: Path) -> None:
    sources = SETTINGS.sources
    assert pairs.measurement(target, draft, sources) is None
    pairs.keep("a", target, draft, SETTINGS, measurement=MEASURED)
    newer = replace(MEASURED, measured_at="2026-12-01T10:00:00+00:00")
    pair = pairs.keep("b", target, draft, SETTINGS, measurement=newer)
    assert pairs.measurement(target, draft, tuple(reversed(sources))) == newer
    assert pairs.measurement(target, draft, (Source.NGRAM_MOD,)) is None
    assert pairs.measurement(target, None) is None
    assert pairs.measurement(target, draft) == newer
    pairs.mark_stale(pair)
    assert pairs.measurement(target, draft, sources) == MEASURED


def test_two_windows_change_different_things(pairs: NamedPairs, target: Path, draft: Path) -> None:
    pair = pairs.keep("p", target, draft, SETTINGS)
    pairs.rename(pair, "new")
    assert pairs.tested(pair, MEASURED).name == "new"


def test_a_pair_that_is_gone_cannot_be_changed(pairs: NamedPairs, target: Path, draft: Path) -> None:
    pair = pairs.keep("p", target, draft, SETTINGS)
    pairs.remove(pair).finish()
    with pytest.raises(UserFacingError, match="not there any more"):
        pairs.rename(pair, "x")
    with pytest.raises(UserFacingError, match="could not be removed"):
        pairs.remove(pair)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "nonsense",
        '{"format": 99}',
        '{"format": 1}',
        '{"format": 1, "name": "x", "target": 5, "draft": null, "settings": {}, "created_at": "?", "stale": 1}',
    ],
)
def test_files_that_are_not_ours_are_left_alone(pairs: NamedPairs, tmp_path: Path, text: str) -> None:
    folder = tmp_path / "data" / "named-pairs"
    folder.mkdir(parents=True)
    foreign = folder / "foreign.json"
    foreign.write_text(text, encoding="utf-8")
    assert pairs.all() == ()
    assert foreign.read_text("utf-8") == text


def test_a_damaged_list_of_defaults_counts_as_empty(
    pairs: NamedPairs, target: Path, draft: Path, tmp_path: Path
) -> None:
    pair = pairs.keep("p", target, draft, SETTINGS, as_default=True)
    (tmp_path / "data" / "named-pairs" / "defaults.json").write_text('{"defaults": [1]}', encoding="utf-8")
    assert pairs.default_for(target) is None
    pairs.set_default(pair)
    assert pairs.default_for(target) is not None


def test_a_disk_that_cannot_be_written_to_is_said_kindly(target: Path, draft: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UserFacingError, match="could not be saved"):
        NamedPairs(tmp_path / "file" / "pairs").keep("p", target, draft, SETTINGS)


def test_what_is_written_is_whole_or_not_there(pairs: NamedPairs, target: Path, draft: Path, tmp_path: Path) -> None:
    pair = pairs.keep("p", target, draft, SETTINGS, measurement=MEASURED)
    files = sorted(path.name for path in (tmp_path / "data" / "named-pairs").iterdir())
    assert files == [f"{pair.id}.json"]
    kept = json.loads((tmp_path / "data" / "named-pairs" / files[0]).read_text("utf-8"))
    assert kept["measurement"] == measurement_record(MEASURED)
    assert measurement_from(kept["measurement"]) == MEASURED
    assert measurement_from({**kept["measurement"], "plain": "x"}) is None
    assert measurement_from(None) is None


def test_a_folders_files_are_what_a_pair_was_kept_with(pairs: NamedPairs, tmp_path: Path) -> None:
    folder = write_mlx(tmp_path / "mlx")
    kept = pairs.keep("MLX", folder, None, SETTINGS)
    assert kept.target.fingerprint is not None
    assert again(pairs, kept).problem is None
    weights = folder / "model.safetensors"
    newer = time.time_ns() + 5_000_000_000
    os.utime(weights, ns=(newer, newer))
    assert "has changed since" in (again(pairs, kept).problem or "")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["c"] = 3
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert "its vocabulary is another one now" in (again(pairs, kept).problem or "")


def test_pairs_follow_the_models_folder(pairs: NamedPairs, tmp_path: Path) -> None:
    old, new = tmp_path / "models", tmp_path / "disk" / "models"
    (old / "owner").mkdir(parents=True)
    new.parent.mkdir()
    target, draft, outside = model(old / "owner" / "t.gguf"), model(old / "d.gguf"), model(tmp_path / "elsewhere.gguf")
    both = pairs.keep("both", target, draft, SETTINGS, measurement=MEASURED, parity=PARITY, as_default=True)
    half = pairs.keep("half", outside, draft, SETTINGS, as_default=True)
    other = pairs.keep("other", outside, None, SETTINGS)
    lookup = pairs.keep("lookup", target, None, SETTINGS)
    folder = tmp_path / "data" / "named-pairs"
    (folder / "damaged.json").write_text('{"format": 1, "target": {"path": "' + str(target) + '"}}')
    (folder / "newer.json").write_text((folder / f"{both.id}.json").read_text().replace('"format": 1', '"format": 9'))
    alone = [folder / name for name in ("damaged.json", "newer.json", f"{other.id}.json")]
    before = [path.read_bytes() for path in alone]
    old.rename(new)
    # A disk that keeps times to two seconds only.
    modified = (new / "d.gguf").stat().st_mtime_ns
    os.utime(new / "d.gguf", ns=(modified, modified - modified % 2_000_000_000))
    pairs.moved(old, new)
    assert [path.read_bytes() for path in alone] == before
    found = again(pairs, both)
    assert (found.target.path, found.draft and found.draft.path) == (new / "owner" / "t.gguf", new / "d.gguf")
    assert (found.problem, found.current_measurement, found.parity) == (None, MEASURED, PARITY)
    assert again(pairs, half).draft == found.draft
    assert again(pairs, half).is_default
    assert again(pairs, lookup).target == found.target
    assert pairs.default_for(new / "owner" / "t.gguf") == found
    assert pairs.default_for(target) is None


def test_a_removed_pair_follows_too(pairs: NamedPairs, tmp_path: Path) -> None:
    old, new = tmp_path / "models", tmp_path / "new"
    old.mkdir()
    kept = pairs.keep("both", model(old / "t.gguf"), None, SETTINGS, as_default=True)
    removed = pairs.remove(kept)
    old.rename(new)
    pairs.moved(old, new)
    removed.undo()
    assert again(pairs, kept).problem is None
    assert pairs.default_for(new / "t.gguf") == again(pairs, kept)
    assert pairs.default_for(old / "t.gguf") is None


def test_a_pair_that_cannot_be_written_keeps_none_of_the_others(
    pairs: NamedPairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = tmp_path / "models", tmp_path / "new"
    old.mkdir()
    first, second = (pairs.keep(name, model(old / f"{name}.gguf"), None, SETTINGS, as_default=True) for name in "ab")
    old.rename(new)
    real = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        if self.name.startswith(first.id):
            raise OSError(28, "No space left on device")
        return real(self, data)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(UserFacingError, match="could not be saved"):
            pairs.moved(old, new)
    assert again(pairs, second).is_default
    assert again(pairs, second).problem is None
    pairs.moved(old, new)
    assert again(pairs, first).is_default
    assert again(pairs, first).problem is None


def test_all_that_is_kept_of_pairs_follows(tmp_path: Path) -> None:
    where = Folders(*(tmp_path / name for name in ("data", "models", "config", "cache", "logs")))
    where.models.mkdir()
    target = model(where.models / "t.gguf")
    named, learned = NamedPairs(where.data / FOLDER), PairFiles(where.pairs)
    kept = named.keep("one", target, None, SETTINGS)
    learned.keep_parity(target, None, PARITY)
    where.models.rename(tmp_path / "new")
    follow_models(where, where.models, tmp_path / "new")
    assert again(named, kept).is_usable
    assert learned.parity(tmp_path / "new" / "t.gguf", None) == PARITY

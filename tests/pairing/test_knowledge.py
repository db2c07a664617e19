from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.engines.pair_knowledge import PairConditions
from forespeak.models.formats import NO_MLX, ModelFormat
from forespeak.models.hub_files import HubFile, HubFileGroup
from forespeak.models.machine_memory import Machine
from forespeak.models.memory import Fit, MemoryPlan, MemorySettings
from forespeak.models.sizes import size_words
from forespeak.pairing.candidates import Knowledge
from forespeak.pairing.compatibility import Judge, VerdictKind
from forespeak.pairing.knowledge import RemoteMember, local_knowledge
from forespeak.pairing.members import Member, member_at
from forespeak.pairing.model_names import parse_name
from forespeak.pairing.named_pair import PairSettings
from forespeak.pairing.offers import Offer, Place
from forespeak.pairing.pair_memory import PairFiles
from forespeak.pairing.pairs import NamedPairs
from forespeak.pairing.ranking import Measurement, Range
from forespeak.speculation.trace import Source
from models.gguf_writer import ModelFile
from models.library_folders import write_mlx, write_set
from models.mlx_writer import mlx_folder

MEASURED = Measurement(20.0, 30.0, Range(1.5, 1.4, 1.6), 0.8, 600, (), "2026-11-30T10:00:00+00:00", "toy", "1")
ROOMY = Machine(16_000_000_000, 12_000_000_000)


def model(path: Path, *tokens: str, architecture: str = "qwen2") -> Path:
    return ModelFile(list(tokens or ("a", "b")), architecture=architecture).write(path)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return model(tmp_path / "target.gguf")


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    return model(tmp_path / "draft.gguf")


def here(path: Path) -> Offer:
    return Offer(path.stem, Place.HERE, parse_name(path.stem), path.stat().st_size, path=path)


def elsewhere(size: int = 1000) -> Offer:
    group = HubFileGroup("a/b", "c", "Q8_0", ModelFormat.GGUF, (HubFile("b.gguf", size),))
    return Offer("b", Place.HUB, parse_name("b"), size, group=group)


def known(tmp_path: Path, target: Path, machine: Machine = ROOMY, remote: RemoteMember = lambda _: None) -> Knowledge:
    judge, named = Judge(tmp_path / "verdicts"), NamedPairs(tmp_path / "named")
    return local_knowledge(target, judge, named, PairFiles(tmp_path / "pairs"), MemorySettings(), machine, remote)


def test_verdicts_on_what_is_here(tmp_path: Path, target: Path, draft: Path) -> None:
    found = known(tmp_path, target)
    assert found.target_problem is None
    same = found.verdict(here(draft))
    assert same is not None
    assert same.usable
    other = found.verdict(here(model(tmp_path / "other.gguf", "a", "c")))
    assert other is not None
    assert not other.usable


def test_verdicts_on_what_is_on_the_hub_once_its_header_is_read(tmp_path: Path, target: Path, draft: Path) -> None:
    assert known(tmp_path, target).verdict(elsewhere()) is None
    member: Member = member_at(draft)
    found = known(tmp_path, target, remote=lambda _: member).verdict(elsewhere())
    assert found is not None
    assert found.kind is VerdictKind.SAME
    target.unlink()
    gone = known(tmp_path, target, remote=lambda _: member).verdict(elsewhere())
    assert gone is not None
    assert "There is no file “target.gguf” any more." in gone.reason


def test_a_target_that_takes_no_drafts_says_why(tmp_path: Path) -> None:
    recurrent = model(tmp_path / "recurrent.gguf", architecture="mamba")
    problem = known(tmp_path, recurrent).target_problem
    assert problem is not None
    assert "cannot be tested" in problem
    assert known(tmp_path, tmp_path / "gone.gguf").target_problem is not None


def test_memory_by_plan_and_by_size(tmp_path: Path, target: Path, draft: Path) -> None:
    found = known(tmp_path, target)
    for offer in (None, here(draft)):
        plan = found.memory(offer)
        assert isinstance(plan, MemoryPlan)
        assert plan.fit is Fit.FITS
    rough = found.memory(elsewhere(20_000_000_000))
    assert rough is not None
    assert rough.fit is Fit.TOO_LARGE
    draft_offer = here(draft)
    draft.unlink()
    assert found.memory(draft_offer) is None


def test_measurements_of_kept_pairs(tmp_path: Path, target: Path, draft: Path) -> None:
    NamedPairs(tmp_path / "named").keep("p", target, draft, PairSettings(), measurement=MEASURED)
    found = known(tmp_path, target)
    assert found.measurement(here(draft)) == MEASURED
    assert found.measurement(None) is None
    assert found.measurement(elsewhere()) is None
    slower = replace(MEASURED, plain=1.0)
    settings = PairSettings((Source.NGRAM_MOD,))
    NamedPairs(tmp_path / "named").keep("q", target, None, settings, measurement=slower)
    assert found.measurement(None) == slower


def learned(**judges: object) -> dict[str, object]:
    return {"drafting": {"models": judges}}


def test_what_replies_have_shown_is_added_up(tmp_path: Path, target: Path, draft: Path) -> None:
    files = PairFiles(tmp_path / "pairs")
    conditions = PairConditions(target, draft, "toy", ("CPU",), 2, -1, False, 4096)
    values = learned(
        greedy={"acceptance": {"accepted": 30.0, "tested": 40.0}},
        sampled={"acceptance": {"accepted": 10, "tested": 20}},
        broken={"acceptance": {"accepted": 10, "tested": 5}},
        strange=[],
    )
    files.keep(conditions, values)
    files.keep(replace(conditions, threads=4), learned(greedy={"acceptance": {"accepted": 1.0, "tested": 1.0}}))
    files.keep(replace(conditions, target=draft), learned(greedy={"acceptance": {"accepted": 5.0, "tested": 9.0}}))
    found = known(tmp_path, target)
    assert found.learned(here(draft)) == (41.0, 61.0)
    assert found.learned(here(target)) is None
    assert found.learned(elsewhere()) is None


@pytest.mark.parametrize("values", [{}, {"drafting": 5}, {"drafting": {"models": []}}, learned(a={"acceptance": 1})])
def test_what_is_not_counts_teaches_nothing(
    tmp_path: Path, target: Path, draft: Path, values: dict[str, object]
) -> None:
    PairFiles(tmp_path / "pairs").keep(PairConditions(target, draft, "toy", ("CPU",), 2, -1, False, 4096), values)
    assert json.dumps(values)
    assert known(tmp_path, target).learned(here(draft)) is None


def test_a_model_of_several_files_counts_whole(tmp_path: Path) -> None:
    parts = write_set(tmp_path / "set", "big", 3)
    folder = write_mlx(tmp_path / "folder")
    for target, files in ((parts[0], parts), (folder, list(folder.iterdir()))):
        size = sum(file.stat().st_size for file in files)
        rough = known(tmp_path, target, Machine(10**9, 10**9)).memory(elsewhere(20_000 - size))
        assert rough is not None
        assert f"have {size_words(20_000)} and" in rough.sentence


def test_without_mlx_lm_nothing_drafts_for_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forespeak.pairing.compatibility.mlx_is_installed", lambda: False)
    assert known(tmp_path, mlx_folder(tmp_path / "folder", {"a": 0, "b": 1})).target_problem == NO_MLX

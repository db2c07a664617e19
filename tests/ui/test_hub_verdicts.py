"""Whether a file on the Hub could draft for the target is found out on request, beside everything else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.exceptions import capture_exceptions
from pytestqt.qtbot import QtBot

from forespeak.errors import UserFacingError
from forespeak.models.formats import ModelFormat
from forespeak.models.gguf import GgufError, Problem
from forespeak.models.hub_files import HubFile, HubFileGroup
from forespeak.ui.file_groups import GroupRow
from forespeak.ui.hub_verdicts import GroupVerdict, RemoteJudge
from forespeak.ui.pair_controller import Fit
from loopback_api import big_vocabulary, hubs
from loopback_hub import LoopbackHub, Repo
from models.mlx_writer import mlx_folder
from ui.hub_desk import Desk
from ui.hub_doubles import groups, item_of

REPO = "someone/Small-7B-GGUF"
FOUND = groups(REPO)
TARGET = Path("models") / "Big-70B.gguf"
ASK, STOP = "Suits my target?", "Stop"


@pytest.fixture
def desk(qtbot: QtBot, tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    qtbot.waitUntil(lambda: made.ready)
    made.parts.controller.open_repo(REPO)
    qtbot.waitUntil(lambda: bool(made.discover.repo.groups.rows))
    made.parts.verdicts.set_target(TARGET)
    yield made
    made.close()


def row(desk: Desk, label: str = "Q4_K_M") -> GroupRow:
    return next(each for each in desk.discover.repo.groups.rows if each.view.group.label == label)


def told(desk: Desk, label: str = "Q4_K_M") -> str:
    return row(desk, label).verdict.text()


def test_a_file_is_asked_about_and_the_answer_stays(qtbot: QtBot, desk: Desk) -> None:
    desk.judging = threading.Event()
    assert "compares its vocabulary with Big-70B" in row(desk).other.toolTip()
    row(desk).other.click()
    assert (told(desk), row(desk).other.text()) == ("Reading its vocabulary…", STOP)
    assert row(desk, "Q2_K").other.text() == ASK
    desk.judging.set()
    words = "Could draft for Big-70B: same vocabulary. All 152,064 tokens are the same."
    qtbot.waitUntil(lambda: told(desk) == words)
    assert row(desk).other.isHidden()
    assert words in row(desk).accessibleName()
    assert told(desk, "Q2_K") == ""
    desk.parts.verdicts.set_target(Path("Other.gguf"))
    assert (told(desk), row(desk).other.text()) == ("", ASK)
    desk.parts.verdicts.set_target(TARGET)
    assert told(desk) == words


def test_what_does_not_suit_says_why(qtbot: QtBot, desk: Desk) -> None:
    desk.fit = Fit(False, "another vocabulary", "Token 7 is another one.")
    row(desk).other.click()
    qtbot.waitUntil(lambda: told(desk) == "Cannot draft for Big-70B: another vocabulary. Token 7 is another one.")


def test_asking_can_be_stopped(qtbot: QtBot, desk: Desk) -> None:
    desk.judging = threading.Event()
    row(desk).other.click()
    row(desk).other.click()
    assert (told(desk), row(desk).other.text()) == ("", ASK)
    desk.judging.set()
    qtbot.waitUntil(lambda: not [each for each in threading.enumerate() if "hub verdict" in each.name])
    assert told(desk) == "", "what was stopped comes to nothing"


@pytest.mark.parametrize(
    "leave", [lambda desk: desk.parts.verdicts.leave("other/repo"), lambda desk: desk.parts.verdicts.close()]
)
def test_what_nobody_looks_at_any_more_is_stopped(qtbot: QtBot, desk: Desk, leave: Callable[[Desk], None]) -> None:
    desk.judging = threading.Event()
    row(desk).other.click()
    verdicts = desk.parts.verdicts
    leave(desk)
    qtbot.waitUntil(lambda: not [each for each in threading.enumerate() if "hub verdict" in each.name])
    assert verdicts.of(FOUND[1]).fit is None


def test_the_hubs_errors_are_shown_and_it_can_be_asked_again(qtbot: QtBot, desk: Desk) -> None:
    desk.fit = UserFacingError("The Hub did not answer.", "It timed out.")
    with qtbot.waitSignal(desk.view.problemFound) as problem:
        row(desk).other.click()
    assert problem.args == [desk.fit]
    assert (told(desk), row(desk).other.text()) == ("", ASK)


def test_a_damaged_header_is_the_answer(qtbot: QtBot, desk: Desk) -> None:
    desk.fit = GgufError(Problem.NOT_GGUF, "This is no GGUF file")
    row(desk).other.click()
    qtbot.waitUntil(lambda: told(desk).startswith("Cannot draft for Big-70B: cannot be used. This is no GGUF file"))


def test_a_fault_of_ours_is_not_swallowed(qtbot: QtBot, desk: Desk) -> None:
    desk.fit = RuntimeError("a bug")
    with capture_exceptions() as caught:
        row(desk).other.click()
        qtbot.waitUntil(lambda: bool(caught))
    assert isinstance(caught[0][1], RuntimeError)


def test_only_models_are_asked_about_and_only_with_a_target(desk: Desk) -> None:
    verdicts = desk.parts.verdicts
    assert verdicts.of(FOUND[0]).target == "Big-70B"
    assert verdicts.of(replace(FOUND[0], format=ModelFormat.MLX)).target == "Big-70B"
    assert verdicts.of(FOUND[-1]) == GroupVerdict()
    verdicts.set_target(Path("models") / "Big-1.5B-4bit")
    assert verdicts.of(FOUND[0]).target == "Big-1.5B-4bit"
    verdicts.set_target(None)
    assert verdicts.of(FOUND[0]) == GroupVerdict()
    assert row(desk).other.isHidden()
    verdicts.ask(FOUND[0])
    assert not verdicts.of(FOUND[0]).judging


def test_a_copy_elsewhere_offers_its_download_first(desk: Desk) -> None:
    desk.items.append(item_of(FOUND[2], own=False, repo=None))
    desk.view.library_changed()
    assert row(desk, "Q6_K").other.text() not in {ASK, STOP, ""}
    row(desk, "Q6_K").other.click()
    assert told(desk, "Q6_K") == ""
    assert not desk.parts.verdicts.of(FOUND[2]).judging


def test_a_real_header_is_judged_like_a_file_here(tmp_path: Path) -> None:
    target = tmp_path / "Target.gguf"
    target.write_bytes(big_vocabulary(300))
    with LoopbackHub() as server, hubs() as make:
        repo = server.add(
            Repo("o/m", {"same.gguf": big_vocabulary(300), "other.gguf": big_vocabulary(300).replace(b"xy", b"zz")})
        )
        client = make(server.endpoint).client
        judge = RemoteJudge(lambda: client, tmp_path / "cache")

        def fit(name: str, *, stopped: bool = False) -> Fit | None:
            stored = repo.files[name]
            file = HubFile(name, stored.size, stored.sha256)
            group = HubFileGroup("o/m", repo.commit, None, ModelFormat.GGUF, (file,), 1)
            return judge(target, group, lambda: stopped)

        assert fit("same.gguf", stopped=True) is None
        same, other = fit("same.gguf"), fit("other.gguf")
        assert same is not None
        assert same.fits
        assert other is not None
        assert not other.fits
        assert other.full


def test_a_real_mlx_repo_is_judged_like_a_folder_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forespeak.pairing.compatibility.mlx_is_installed", lambda: True)
    target = mlx_folder(tmp_path / "Target-4bit", {"a": 0, "b": 1})
    contents = {path.name: path.read_bytes() for path in target.iterdir()} | {"model.safetensors": bytes(100)}
    other = tmp_path / "Target.gguf"
    other.write_bytes(big_vocabulary(300))
    with LoopbackHub() as server, hubs() as make:
        repo = server.add(Repo("o/m-4bit", contents, tags=("mlx",)))
        client = make(server.endpoint).client
        judge = RemoteJudge(lambda: client, tmp_path / "cache")
        files = tuple(HubFile(path, stored.size) for path, stored in repo.files.items())
        group = HubFileGroup("o/m-4bit", repo.commit, "4-bit", ModelFormat.MLX, files)
        foreign = judge(other, group, lambda: False)
        assert foreign is not None
        assert foreign.full.startswith("The target is in the GGUF format and the draft in MLX")
        assert not server.requests
        assert judge(target, group, lambda: True) is None
        fit = judge(target, group, lambda: False)
        assert fit is not None
        assert (fit.fits, fit.short) == (True, "same vocabulary")

"""What a lane can be: the chat's way, kept pairs, the library's models that suit the target, and files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from forespeak.errors import UserFacingError
from forespeak.models.library_item import LibraryItem
from forespeak.models.roots import own_root
from forespeak.ui.compare_choices import LaneChoices
from forespeak.ui.compare_lanes_edit import LaneOption
from forespeak.ui.pair_controller import Fit
from forespeak.ui.preferences import Appearance
from ui.conftest import App, AppMaker, FakeModels
from ui.fake_library import item


@dataclass
class Looked:
    """What came, in its order."""

    app: App
    choices: LaneChoices
    found: list[tuple[LaneOption, ...]] = field(default_factory=list)
    picked: list[LaneOption] = field(default_factory=list)
    failed: list[Exception] = field(default_factory=list)
    scans: int = 0

    def labels(self, group: str) -> list[str]:
        return [option.label for option in self.found[-1] if option.group == group]


Looker = Callable[..., Looked]


@pytest.fixture
def look(make_app: AppMaker, tmp_path: Path) -> Looker:
    def make(*items: LibraryItem, **keywords: object) -> Looked:
        def suits(_: Path, draft: Path) -> Fit:
            return Fit("stranger" not in draft.stem, "", "Its vocabulary is another one.")

        app = make_app(models=FakeModels(tmp_path, fits=suits), **keywords)
        for path in (each.path for each in items):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"GGUF")

        def scan(_: Callable[[], bool]) -> Sequence[LibraryItem]:
            looked.scans += 1
            return items

        choices = LaneChoices(app.session, app.models, tmp_path / "pairs", scan, app.session)
        app.session.closers.append(choices.close)
        looked = Looked(app, choices)
        choices.found.connect(lambda _, options: looked.found.append(options))
        choices.picked.connect(looked.picked.append)
        choices.failed.connect(looked.failed.append)
        return looked

    return make


def models(folder: Path, *names: str, **more: object) -> list[LibraryItem]:
    return [item(name, own_root(folder / "library"), size_bytes=1_000, **more) for name in names]


def test_the_librarys_models_that_suit_come_after_what_is_known(look: Looker, qtbot: QtBot, tmp_path: Path) -> None:
    broken = item("Broken", own_root(tmp_path / "library"), problem="Part 2 is missing.")
    looked = look(*models(tmp_path, "small-one", "a-stranger", "other-small"), broken)
    looked.choices.show_pair()
    qtbot.waitUntil(lambda: len(looked.found) == 2)
    # At once, without the library.
    assert all(option.group in {"chat", "sources"} for option in looked.found[0])
    assert looked.labels("drafts") == ["Small One", "Other Small"]
    assert not looked.failed


def test_what_is_as_large_as_the_target_is_no_draft(look: Looker, qtbot: QtBot, tmp_path: Path) -> None:
    own = own_root(tmp_path / "library")
    target = item("starter-f32", own_root(tmp_path), size_bytes=500)
    looked = look(*(item(name, own, size_bytes=size) for name, size in (("tiny", 10), ("huge", 10_000))), target)
    looked.choices.show_pair()
    qtbot.waitUntil(lambda: len(looked.found) == 2)
    assert looked.labels("drafts") == ["Tiny"]


def test_a_target_that_no_folder_of_the_library_holds(look: Looker, qtbot: QtBot, tmp_path: Path) -> None:
    own = own_root(tmp_path / "library")
    looked = look(*(item(name, own, size_bytes=size) for name, size in (("tiny", 10), ("huge", 10_000))))
    target = looked.app.session.preferences.target
    assert target is not None
    target.write_bytes(b"x" * 500)
    looked.choices.show_pair()
    qtbot.waitUntil(lambda: len(looked.found) == 2)
    assert looked.labels("drafts") == ["Tiny"]
    assert looked.labels("sources")


def test_files_of_one_name_are_told_apart(look: Looker, qtbot: QtBot, tmp_path: Path) -> None:
    items = models(tmp_path, "small-a", "small-b")
    looked = look(*items)
    looked.app.models.names.update({each.path.name: "Small · Q4_0" for each in items})
    looked.choices.show_pair()
    qtbot.waitUntil(lambda: len(looked.found) == 2)
    assert looked.labels("drafts") == ["Small · Q4_0 (small-a)", "Small · Q4_0 (small-b)"]


def test_nothing_is_looked_for_twice_unless_asked(look: Looker, qtbot: QtBot, tmp_path: Path) -> None:
    looked = look(*models(tmp_path, "small-one"))
    for _ in range(5):
        looked.choices.show_pair()
    qtbot.waitUntil(lambda: len(looked.found) == 2)
    assert looked.scans == 1
    looked.choices.look()
    # What was found before stays in the list meanwhile.
    qtbot.waitUntil(lambda: looked.scans == 2 and len(looked.found) == 3)
    preferences = looked.app.session.preferences
    looked.app.session.set_preferences(replace(preferences, appearance=Appearance.DARK))
    looked.choices.show_pair()
    looked.app.session.set_preferences(replace(preferences, draft_length=5))
    looked.choices.show_pair()
    qtbot.waitUntil(lambda: looked.scans == 3 and len(looked.found) == 4)
    assert looked.labels("drafts") == ["Small One"]


def test_a_file_is_looked_at_before_it_becomes_a_lane(look: Looker, qtbot: QtBot, tmp_path: Path) -> None:
    looked = look()
    looked.choices.pick(tmp_path / "elsewhere.gguf")
    qtbot.waitUntil(lambda: bool(looked.picked))
    assert (looked.picked[0].label, looked.picked[0].draft) == ("Elsewhere", tmp_path / "elsewhere.gguf")
    looked.choices.pick(tmp_path / "a-stranger.gguf")
    looked.choices.pick(tmp_path / "notes.txt")
    qtbot.waitUntil(lambda: len(looked.failed) == 2)
    assert all(isinstance(error, UserFacingError) for error in looked.failed)
    assert "Its vocabulary is another one." in str(looked.failed[0])
    assert len(looked.picked) == 1

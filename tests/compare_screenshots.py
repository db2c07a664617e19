"""Takes the pictures of the Compare page in resources/screenshots: the real window, a real comparison of the starter.

QT_QPA_PLATFORM=offscreen python tests/compare_screenshots.py [--to FOLDER] [--home FOLDER]

`--home`: a FORESPEAK_HOME that is kept, with the starter unpacked in it perhaps. Some minutes on two cores.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

PICTURES = Path(__file__).resolve().parents[1] / "resources" / "screenshots"
SIZE, NARROW = (1440, 900), (560, 900)
KINDS = {"coding": 1, "rewrite": 1, "json": 1, "writing": 1}


def take_all(folder: Path) -> list[Path]:
    """One comparison, seen from its setting up to the list of those that were made."""
    from PySide6.QtCore import Qt
    from PySide6.QtTest import QTest

    from forespeak.models.folders import folders
    from forespeak.speculation.settings import SamplingSettings
    from forespeak.speculation.trace import Source
    from forespeak.ui.compare_entry import COMPARE_PAGE, CompareEntry
    from forespeak.ui.compare_page import COMPARE_TAB, HISTORY_TAB, RESULT_TAB
    from forespeak.ui.compare_values import PromptKind
    from forespeak.ui.preferences import Appearance, Preferences
    from live_window import LiveWindow

    folders().create()
    preferences = replace(
        Preferences(),
        appearance=Appearance.LIGHT,
        marks="strong",
        sampling=SamplingSettings(temperature=0.0, seed=5),
        random_seed=False,
        # Not as many as pay: what the pictures show must not depend on how busy the machine is.
        draft_length=4,
        sources=(Source.PROMPT_LOOKUP, Source.DRAFT_MODEL),
        max_tokens=48,
    )
    live = LiveWindow(preferences, SIZE)
    live.use_starter()
    live.until(lambda: live.session.pair.status.loaded is not None, "the pair is loaded")
    live.session.set_preferences(replace(live.session.preferences, speculate=False))
    live.say("Why is snow quiet?")
    live.until_idle()
    live.session.set_preferences(replace(live.session.preferences, speculate=True))
    live.window.show_page(COMPARE_PAGE)
    view = live.session.findChildren(CompareEntry)[0].view()
    page = view.page
    assert page is not None
    setup, controller = page.setup, view.controller
    taken: list[Path] = []

    def until(condition: Callable[[], bool], what: str) -> None:
        for _ in range(4):
            try:
                live.until(condition, what)
            except TimeoutError:
                continue
            return
        raise TimeoutError(what)

    def shot(name: str) -> None:
        for _ in range(30):
            live.application.processEvents()
            QTest.qWait(10)
        taken.append(folder / f"compare-{name}.png")
        live.window.grab().save(str(taken[-1]))

    def wear(appearance: Appearance) -> None:
        live.session.set_preferences(replace(live.session.preferences, appearance=appearance))

    def compare(repeats: int) -> None:
        setup.repeats.setValue(repeats)
        setup.start_button.click()
        until(lambda: controller.busy, "it starts")

    # Set up
    setup.tokens.setValue(64)
    for suite in setup.prompts.suites:
        suite.box.setChecked(suite.category in KINDS)
        suite.count.setValue(KINDS.get(suite.category, 1))
    setup.repeats.setValue(2)
    until(lambda: "measured here" in setup.basis.text(), "the estimate")
    shot("setup")
    # A first one, on the chat's own message
    setup.choose_chat_prompt(setup.prompts._chat_messages)
    compare(1)
    until(lambda: not controller.busy and page.history.list.count() == 1, "the first comparison")
    page.history.renameRequested.emit(page.history.list.item(0).data(0x100).id, "My question about snow")
    until(lambda: page.history.list.item(0).text().startswith("My question"), "its name")
    # Running
    page.show_tab(COMPARE_TAB)
    setup.prompts.choose(PromptKind.SUITES)
    live.until(lambda: live.session.pair.status.loaded is not None, "the chat's model is back")
    compare(2)
    lanes = page.running.lanes
    until(lambda: controller.status.done >= 5 and all(len(lane.words) > 60 for lane in lanes), "both lanes have text")
    shot("running")
    wear(Appearance.DARK)
    shot("running-dark")
    wear(Appearance.LIGHT)
    until(lambda: not controller.busy and page.tabs.currentIndex() == RESULT_TAB, "the comparison")
    # Its result
    result = page.result
    until(lambda: result.charts is not None, "the charts")
    live.until(lambda: live.session.pair.status.loaded is not None, "the chat's model is back")
    result.replay.prompts.setCurrentIndex(
        max(result.replay.prompts.findText("rewrite", Qt.MatchFlag.MatchStartsWith), 0)
    )
    result.replay.prompts.activated.emit(result.replay.prompts.currentIndex())
    player, bar = result.replay.player, result._area.verticalScrollBar()
    player.seek(player.duration * 0.55)
    for appearance, name in ((Appearance.LIGHT, "light"), (Appearance.DARK, "dark")):
        wear(appearance)
        bar.setValue(0)
        shot(name)
        bar.setValue(result.verdict.y() - 10)
        shot(f"charts-{name}")
    wear(Appearance.LIGHT)
    bar.setValue(0)
    result.replay._mode_chosen(2)
    player.seek(0.0)
    for _ in range(40):
        player.next_moment()
        if "in place of" in result.replay.story.words.text():
            break
    result.replay.setFocus()
    shot("replay")
    live.window.resize(*NARROW)
    player.set_stepping(False)
    player.seek(player.duration * 0.55)
    shot("narrow")
    live.window.resize(*SIZE)
    page.show_tab(HISTORY_TAB)
    until(lambda: page.history.list.count() == 2, "the list")
    page.history.take_focus()
    shot("history")
    page.history.list.selectAll()
    page.history.two_button.click()
    until(page.two.isVisible, "two beside each other")
    shot("two")
    live.close()
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, default=PICTURES)
    parser.add_argument("--home", type=Path)
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    with tempfile.TemporaryDirectory(prefix="forespeak-pictures-") as home:
        os.environ["FORESPEAK_HOME"] = str(arguments.home or home)
        for picture in take_all(arguments.to.absolute()):
            sys.stdout.write(f"{picture.name} {picture.stat().st_size // 1024} KiB\n")


if __name__ == "__main__":
    main()

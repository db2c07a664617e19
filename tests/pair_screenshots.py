"""Takes the pictures of the Pair page in resources/screenshots, with a scripted library, Hub and engine behind it.

QT_QPA_PLATFORM=offscreen python tests/pair_screenshots.py [--to FOLDER] [NAME …]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from forespeak.engines.engine import Progress
from forespeak.models.download_record import DownloadState
from forespeak.models.library import LibraryItem
from forespeak.models.roots import own_root
from forespeak.pairing.named_pair import PairSettings
from forespeak.pairing.pairs import NamedPairs
from forespeak.pairing.quick_prompts import quick_prompts
from forespeak.pairing.quick_test import PromptResult, QuickResult, Writing
from forespeak.pairing.ranking import Measurement, Range
from forespeak.speculation.trace import Source
from forespeak.ui.app import make_application
from forespeak.ui.theme import DARK, LIGHT
from forespeak.ui.window_style import window_style_sheet
from forespeak.ui.wizard_state import WizardStep
from forespeak.ui.wizard_tester import CheckStatus, Room, RoomFound, TestPhase, TestStatus
from ui.fake_library import item
from ui.hub_doubles import no_network
from ui.models_doubles import pair as good_pair
from ui.wizard_doubles import FakeFinder, Wizard, hub_group, made_from, some_models, wizard

PICTURES = Path(__file__).resolve().parents[1] / "resources" / "screenshots"
SIZE, NARROW = (1180, 820), (480, 900)
LONG = "The-Extraordinarily-Long-Winded-Model-Name-32B-Instruct-2507-Reasoning-Distill-Uncensored-Q4_K_M"
WRITTEN = "def median(values: list[float]) -> float:\n    ordered = sorted(values)\n    middle = len(ordered) // 2\n"


def wait(condition: Callable[[], bool] = lambda: False, seconds: float = 0.3) -> None:
    """Until it is so, or for this long; at least until all is painted."""
    loop = QEventLoop()
    timer = QTimer()
    end = time.monotonic() + seconds
    timer.timeout.connect(lambda: loop.quit() if condition() or time.monotonic() > end else None)
    timer.start(10)
    loop.exec()


Scene = Callable[[Wizard], None]


def target(world: Wizard) -> None:
    wait(lambda: world.page.target.list.count() > 3, 10)


def draft(world: Wizard) -> None:
    world.page.find_draft(world.controller.targets[0].path)
    wait(lambda: world.controller.found is not None and not world.controller.finding, 10)
    wait(lambda: world.page.draft.complete, 10)


def more_drafts(world: Wizard) -> None:
    draft(world)
    world.controller.search_hub()
    wait(lambda: world.controller.hub.searched and not world.controller.finding, 10)
    world.page.draft.fold.setChecked(True)
    differing = next(row for row in world.page.draft.rows.values() if row.line.badge == "differs")
    differing.button.click()


def download(world: Wizard) -> None:
    draft(world)
    world.controller.search_hub()
    wait(lambda: world.controller.hub.searched and not world.controller.finding, 10)
    keys = [line.key for line in world.controller.lines if not line.is_here]
    for key in keys:
        world.controller.fetch(key)
    wait(lambda: len(world.queue.downloads()) == len(keys), 10)
    first, second = (each.id for each in world.queue.downloads())
    world.queue.change(first, done_bytes=870_000_000)
    world.queue.change(second, state=DownloadState.FAILED, done_bytes=310_000_000, error=no_network())
    wait(seconds=0.6)


def making(world: Wizard) -> None:
    draft(world)
    key = next(line.key for line in world.controller.lines if line.makes)
    world.controller.choose(key)
    world.controller.maker._stops[key] = threading.Event()
    world.controller.maker._on_progress(key, Progress(0.42, "Writing Q4_0"))
    wait(seconds=0.3)
    del world.controller.maker._stops[key]


def offline(world: Wizard) -> None:
    draft(world)
    world.controller.search_hub()
    wait(lambda: world.controller.hub.searched and not world.controller.finding, 10)


def trial(world: Wizard) -> None:
    draft(world)
    world.controller.go(WizardStep.TEST)


def _results(kind: str, gains: Sequence[float]) -> tuple[PromptResult, ...]:
    prompts = quick_prompts(kind)
    return tuple(
        PromptResult(prompt, 120, 50.2 - n, (50.2 - n) * gain, 160, round(160 * min(0.9, 0.45 * gain)), True)
        for n, (prompt, gain) in enumerate(zip(prompts, gains, strict=False))
    )


def running(world: Wizard) -> None:
    trial(world)
    test = world.controller.quick_test()
    prompt = quick_prompts("code")[1]
    writing = Writing(prompt, True, WRITTEN, 40, 71.4, 0.74, 0.55, 9.0)
    results = _results("code", [1.58])
    world.controller.tester._set(TestStatus(TestPhase.RUNNING, test, writing=writing, prompts=results))


def _done(world: Wizard, gains: Sequence[float]) -> None:
    test = world.controller.quick_test()
    assert test is not None
    results = _results("code", gains)
    result = QuickResult(test, results, 3, 19.4, False, "2026-11-30T09:30:00+00:00")
    world.controller.tester._set(TestStatus(TestPhase.DONE, test, prompts=results, result=result))
    world.controller._tested(result)


def worth_it(world: Wizard) -> None:
    trial(world)
    _done(world, (1.58, 1.44, 1.71))


def slower(world: Wizard) -> None:
    trial(world)
    _done(world, (0.82, 0.76, 0.8))


def asking(world: Wizard) -> None:
    trial(world)
    sentence = "It needs 10.4 GB of memory, and 6.2 GB are free beside what the chat has loaded."
    test = world.controller.quick_test()
    world.controller.tester._set(TestStatus(TestPhase.ASKING, test, RoomFound(Room.ALONE, sentence)))


def keep(world: Wizard) -> None:
    worth_it(world)
    world.controller.go(WizardStep.KEEP)


def checking(world: Wizard) -> None:
    keep(world)
    world.controller.tester._set_check(CheckStatus(True, progress=Progress(0.4, "Recipe, at temperature 0.8")))


def pairs(world: Wizard) -> None:
    wait(lambda: bool(world.page.pairs.lines), 10)
    for line in world.page.pairs.lines.values():
        # Where the pictures are taken is nobody's folder of models.
        line.problem.setText(line.problem.text().replace(str(world.folder), "~/Forespeak"))


def _measured(gain: float, day: int) -> Measurement:
    ups = Range(gain, gain - 0.1, gain + 0.12)
    when = f"2026-11-{day}T10:00:00+00:00"
    return Measurement(50.0, 50.0 * gain, ups, 0.72, 360, (("code", gain),), when, "llama-cpp-python 0.3", "1")


def some_pairs(named: NamedPairs, models: Sequence[LibraryItem]) -> None:
    big, one, three = (each.path for each in models[:3])
    models_only = PairSettings((Source.DRAFT_MODEL,))
    chain = PairSettings((Source.PROMPT_LOOKUP, Source.DRAFT_MODEL), 6)
    named.keep("8B for code", big, one, models_only, measurement=_measured(1.57, 28), as_default=True)
    named.keep("8B for long documents", big, three, chain, measurement=_measured(1.31, 29))
    named.keep("8B without a model", big, None, PairSettings((Source.PROMPT_LOOKUP,)))
    vanished = big.with_name("Gone-1B-Q4_0.gguf")
    vanished.touch()
    named.keep("One whose draft has gone", big, vanished, models_only, measurement=_measured(1.2, 20))
    vanished.unlink()


def long_models(own: Path) -> list[LibraryItem]:
    root = own_root(own)
    return [
        item(LONG, root, size_bytes=19_200_000_000 // 3),
        item(LONG.replace("32B", "0.5B"), root, parameters=500_000_000, size_bytes=380_000_000),
        item(LONG.replace("32B", "3B").replace("Q4", "Q6"), root, parameters=3 * 10**9, size_bytes=2_400_000_000),
        item(f"漢字モデル-{LONG}", root, parameters=10**9, size_bytes=800_000_000, vocabulary_fingerprint="other"),
    ]


def fifty_models(own: Path) -> list[LibraryItem]:
    root = own_root(own)
    return [
        some_models(own)[0],
        *(
            item(
                f"Draft-{number:02d}-{10 * (number + 4)}M-Instruct-Q4_K_M",
                root,
                parameters=10**7 * (number + 4),
                size_bytes=6_000_000 * (number + 4),
            )
            for number in range(50)
        ),
    ]


Models = Callable[[Path], list[LibraryItem]]


def picture(
    scene: Scene,
    *,
    dark: bool = False,
    size: tuple[int, int] = SIZE,
    models: Models = some_models,
    finder: Callable[[], FakeFinder] = lambda: FakeFinder(
        hub=(hub_group(), hub_group("maker/Llama-3.2-1B-GGUF", 10**9))
    ),
    kept: bool = False,
) -> Callable[[Path], None]:
    def take(to: Path) -> None:
        existing = QApplication.instance()
        application = existing if isinstance(existing, QApplication) else make_application(["forespeak"])
        theme = DARK if dark else LIGHT
        application.setPalette(theme.palette())
        application.setStyleSheet(window_style_sheet(theme))
        folder = Path(tempfile.mkdtemp(dir=os.environ["FORESPEAK_HOME"]))
        listed = models(folder / "models")
        goods = [replace(good_pair(name).target, name=name) for name in ("Qwen2.5 14B Instruct", "Gemma 3 12B it")]
        before = (lambda named: some_pairs(named, listed)) if kept else (lambda named: None)
        found = finder()
        found.made = lambda target: made_from(target, folder / "models")
        with wizard(folder, listed, finder=found, goods=goods, before=before) as world:
            world.page.set_theme(theme)
            world.page.resize(*size)
            world.page.show()
            wait(lambda: world.controller.library_read and world.controller.keeper.read, 20)
            world.page.take_focus()
            scene(world)
            wait()
            world.page.grab().save(str(to))

    return take


def _no_network() -> FakeFinder:
    return FakeFinder(problems=[str(no_network())])


SCENES: dict[str, Callable[[Path], None]] = {
    "pair-target": picture(target),
    "pair-target-dark": picture(target, dark=True),
    "pair-target-narrow": picture(target, size=NARROW),
    "pair-draft": picture(draft),
    "pair-draft-dark": picture(more_drafts, dark=True),
    "pair-draft-why": picture(more_drafts, size=(1180, 960)),
    "pair-draft-narrow": picture(draft, size=NARROW),
    "pair-draft-long-names": picture(more_drafts, models=long_models, size=(980, 760)),
    "pair-draft-none": picture(draft, models=lambda own: some_models(own)[:1]),
    "pair-draft-fifty": picture(draft, models=fifty_models),
    "pair-draft-download": picture(download, size=(1180, 900)),
    "pair-draft-making": picture(making),
    "pair-draft-offline": picture(offline, finder=_no_network),
    "pair-test": picture(trial),
    "pair-test-running": picture(running),
    "pair-test-running-dark": picture(running, dark=True),
    "pair-test-narrow": picture(running, size=NARROW),
    "pair-test-worth-it": picture(worth_it),
    "pair-test-slower": picture(slower),
    "pair-test-asking": picture(asking),
    "pair-keep": picture(keep),
    "pair-keep-dark": picture(checking, dark=True),
    "pair-keep-narrow": picture(keep, size=NARROW),
    "pair-keep-long-names": picture(keep, models=long_models, size=(820, 700)),
    "pair-list": picture(pairs, kept=True),
    "pair-list-dark": picture(pairs, kept=True, dark=True),
    "pair-list-narrow": picture(pairs, kept=True, size=NARROW),
    "pair-list-long-names": picture(pairs, kept=True, models=long_models, size=(980, 640)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--to", type=Path, default=PICTURES)
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    with tempfile.TemporaryDirectory(prefix="forespeak-pictures-") as home:
        os.environ["FORESPEAK_HOME"] = home
        for name in arguments.names or SCENES:
            to = arguments.to / f"{name}.png"
            SCENES[name](to)
            sys.stdout.write(f"{to.name} {to.stat().st_size // 1024} KiB\n")


if __name__ == "__main__":
    main()

"""Takes the pictures models-*.png in resources/screenshots: the Models page of the real window, on sample models.

QT_QPA_PLATFORM=offscreen python tests/models_screenshots.py          all of them
QT_QPA_PLATFORM=offscreen python tests/models_screenshots.py --one NAME
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

if TYPE_CHECKING:
    from forespeak.models.library import LibraryItem
    from forespeak.ui.models_page import ModelsPage

PICTURES = Path(__file__).resolve().parents[1] / "resources" / "screenshots"


@dataclass(frozen=True)
class Picture:
    items: str = "full"
    chosen: str = "Meta-Llama-3.1-8B-Instruct-Q8_0"
    dark: bool = False
    size: tuple[int, int] = (1440, 900)
    removed: str = ""


PICTURE = {
    "models-full": Picture(),
    "models-dark": Picture(dark=True, chosen="Llama-3.2-1B-Instruct-Q4_K_M"),
    "models-empty": Picture(items="empty", chosen=""),
    "models-errors": Picture(items="errors", chosen="DeepSeek-R1-Distill-Llama-70B-Q4_K_M"),
    "models-long-names": Picture(items="long", chosen="an-experimental-merge-of-several-finetunes-0", dark=True),
    "models-narrow": Picture(size=(620, 900), removed="gemma-3-12b-it-Q4_K_M"),
}


def samples(own: Path, kind: str) -> list[LibraryItem]:
    from forespeak.models.formats import ModelFormat
    from forespeak.models.gguf import GgufKind
    from forespeak.models.roots import Root, RootKind, own_root
    from ui.fake_library import item

    mine = own_root(own)
    studio = Root(Path.home() / ".lmstudio" / "models", "LM Studio", read_only=True, kind=RootKind.LM_STUDIO)
    cache = Root(
        Path.home() / ".cache" / "huggingface", "Hugging Face cache", read_only=True, kind=RootKind.HUGGING_FACE
    )
    if kind == "empty":
        return []
    full = [
        item(
            "Meta-Llama-3.1-8B-Instruct-Q8_0",
            mine,
            title="Meta Llama 3.1 8B Instruct",
            repo="bartowski/Meta-Llama-3.1-8B-Instruct-GGUF",
            quantisation="Q8_0",
            size_bytes=8_540_000_000,
        ),
        item(
            "Llama-3.2-1B-Instruct-Q4_K_M",
            mine,
            title="Llama 3.2 1B Instruct",
            repo="bartowski/Llama-3.2-1B-Instruct-GGUF",
            parameters=1_235_814_432,
            size_bytes=807_000_000,
        ),
        item(
            "Qwen2.5-Coder-32B-Instruct-Q4_K_M",
            studio,
            repo="lmstudio-community/Qwen2.5-Coder-32B-Instruct-GGUF",
            architecture="qwen2",
            parameters=32_763_876_352,
            context_length=32_768,
            size_bytes=19_850_000_000,
            vocabulary_fingerprint="qwen",
        ),
        item(
            "gemma-3-12b-it-Q4_K_M",
            mine,
            repo="ggml-org/gemma-3-12b-it-GGUF",
            architecture="gemma3",
            parameters=11_765_788_416,
            size_bytes=7_300_000_000,
            vocabulary_fingerprint="gemma",
        ),
        item(
            "Qwen3-30B-A3B-Q4_K_M",
            cache,
            repo="Qwen/Qwen3-30B-A3B-GGUF",
            architecture="qwen3moe",
            parameters=30_532_122_624,
            active_parameters=3_345_000_000,
            context_length=40_960,
            size_bytes=18_560_000_000,
            vocabulary_fingerprint="qwen3",
        ),
        replace(
            item(
                "Llama-3.2-3B-Instruct-4bit",
                cache,
                repo="mlx-community/Llama-3.2-3B-Instruct-4bit",
                quantisation="4-bit",
                parameters=3_212_749_824,
                size_bytes=1_810_000_000,
            ),
            format=ModelFormat.MLX,
        ),
    ]
    if kind == "errors":
        full[2:] = [
            item(
                "DeepSeek-R1-Distill-Llama-70B-Q4_K_M",
                mine,
                repo="bartowski/DeepSeek-R1-Distill-Llama-70B-GGUF",
                parameters=None,
                size_bytes=21_700_000_000,
                problem="Part 2 of 3 is missing: DeepSeek-R1-Distill-Llama-70B-Q4_K_M-00002-of-00003.gguf.",
            ),
            item(
                "mmproj-gemma-3-4b-it-f16",
                mine,
                kind=GgufKind.PROJECTOR,
                architecture="clip",
                parameters=None,
                context_length=None,
                quantisation="F16",
                size_bytes=851_000_000,
            ),
            item(
                "mistral-7b-old",
                mine,
                title=None,
                architecture=None,
                parameters=None,
                context_length=None,
                quantisation=None,
                size_bytes=1_200_000_000,
                problem="It is incomplete: it should be at least 4.37 GB long and has 1.2 GB.",
            ),
        ]
    if kind == "long":
        names = ("an-experimental-merge-of-several-finetunes", "京都の旅行計画と日本語の長い名前のモデル", "🍁-maple")
        full = [
            item(
                f"{names[number % 3]}-{number}",
                mine if number % 2 else studio,
                repo=f"somebody-with-a-long-name-{number}/{names[number % 3]}-of-every-kind-imatrix-GGUF",
                title="An experimental merge of several fine-tunes, abliterated, v2.1 final (really)",
                quantisation="IQ3_XXS" if number % 3 else "UD-Q4_K_XL",
                size_bytes=4_000_000_000 + 700_000_000 * number,
            )
            for number in range(24)
        ]
    return full


def take(name: str, target: Path) -> None:
    """Open the window and save what it shows. Runs in a process of its own, with a home of its own."""
    from PySide6.QtTest import QTest

    from forespeak.models.folders import folders
    from forespeak.models.machine_memory import Machine
    from forespeak.ui.app import make_application, make_session, make_window
    from forespeak.ui.disk_models import DiskModels
    from forespeak.ui.hub_parts import HubParts
    from forespeak.ui.models_entry import ModelsEntry
    from forespeak.ui.models_view import ModelsView
    from forespeak.ui.pair_controller import Fit
    from forespeak.ui.preferences import Appearance, Preferences, PreferencesFile
    from ui.fake_library import FakeLibrary

    picture = PICTURE[name]
    application = make_application(["forespeak"])
    where = folders()
    appearance = Appearance.DARK if picture.dark else Appearance.LIGHT
    window, keeper = make_window(application, replace(Preferences(), appearance=appearance))
    window.resize(*picture.size)
    window.show()
    session = make_session(window, keeper, PreferencesFile(where.config / "preferences.json"), where)
    own = Path.home() / "Forespeak" / "models"
    library = FakeLibrary(own, samples(own, picture.items))
    library.others = tuple({item.root.path: item.root for item in library.items if item.root.read_only}.values())
    machine = Machine(24_000_000_000, 22_000_000_000)

    def hub(view: ModelsView) -> HubParts:
        return HubParts(
            where.config, lambda: where.models, view.items, cache=where.cache, measure=lambda _: machine, parent=view
        )

    entry = session.findChild(ModelsEntry)
    assert isinstance(entry, ModelsEntry)
    entry._view = ModelsView(session, where, DiskModels(where.models), library, hub)
    session.start()

    def wait(condition: Callable[[], bool]) -> None:
        for _ in range(500):
            QTest.qWait(10)
            if condition():
                return
        raise TimeoutError(name)

    controller = entry.view().controller
    window.show_page("models")
    page: ModelsPage | None = entry.view().page
    assert page is not None
    mine = page.my_models
    # The sample models are no files; their vocabularies are told apart by what the samples say.
    vocabulary = {item.path: item.vocabulary_fingerprint for item in library.items}

    def judge(target: Path, model: Path) -> Fit:
        same = vocabulary[target] == vocabulary[model]
        return Fit(same, "same vocabulary" if same else "vocabulary differs", "")

    assert mine._verdicts is not None
    mine._verdicts._judge = judge
    wait(lambda: controller.state.read and controller.state.scan is None)
    if picture.items == "empty":
        wait(lambda: mine.good_pairs is not None and mine.good_pairs.complete)
    else:
        items = {item.name: item.path for item in mine.model.items}
        llama, draft = (items.get(use) for use in ("Meta-Llama-3.1-8B-Instruct-Q8_0", "Llama-3.2-1B-Instruct-Q4_K_M"))
        mine.set_uses(llama, draft)
        assert mine.table.choose(items[picture.chosen])
        mine.table.setFocus()
        if picture.removed:
            controller.remove(next(item for item in mine.model.items if item.name == picture.removed))
            wait(lambda: bool(controller.removals) and controller.state.scan is None)
    for _ in range(20):
        QTest.qWait(10)
    window.grab().save(str(target))
    window.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", choices=sorted(PICTURE))
    parser.add_argument("--take", nargs=2, metavar=("NAME", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.take:
        take(arguments.take[0], Path(arguments.take[1]))
        return
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in [arguments.one] if arguments.one else list(PICTURE):
        with tempfile.TemporaryDirectory() as home:
            environment = os.environ | {"FORESPEAK_HOME": home, "HOME": home, "USERPROFILE": home}
            target = PICTURES / f"{name}.png"
            subprocess.run([sys.executable, __file__, "--take", name, str(target)], env=environment, check=True)
        sys.stdout.write(f"{target.name} {target.stat().st_size // 1024} KiB\n")


if __name__ == "__main__":
    main()

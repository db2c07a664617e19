"""The scenes of hub_screenshots.py: the Discover and Downloads tabs with a scripted Hub behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QWidget

from forespeak.errors import UserFacingError
from forespeak.models.download_queue import Download
from forespeak.models.download_record import DownloadState
from forespeak.models.folders import folders
from forespeak.models.hub_client import HubClient
from forespeak.models.hub_files import HubFileGroup
from forespeak.models.hub_results import Gate
from forespeak.models.library import LibraryItem
from forespeak.models.part_file import Verification
from forespeak.ui.disk_models import DiskModels
from forespeak.ui.hub_parts import HubParts
from forespeak.ui.models_entry import MODELS_PAGE, ModelsEntry
from forespeak.ui.models_page import ModelsPage
from forespeak.ui.models_view import ModelsView
from forespeak.ui.pair_controller import Fit
from forespeak.ui.preferences import Appearance, Preferences
from live_window import LiveWindow
from ui.fake_library import FakeLibrary
from ui.hub_desk import Keyring, NoKeyring, token_store
from ui.hub_doubles import (
    CARD,
    GB,
    MACHINE,
    FakeHub,
    FakeQueue,
    download_of,
    gated,
    group,
    groups,
    item_of,
    missing,
    model,
    no_network,
    rate_limited,
    repo_of,
)

REPO = "riverbank/Heron-7B-Instruct-GGUF"
LONG = (
    "a-very-long-publisher-name-indeed/"
    "The-Extraordinarily-Long-Winded-Model-Name-32B-Instruct-2507-Reasoning-Distill-GGUF"
)
LONG_CARD = (
    "<div align='center'><h1>Heron 7B Instruct</h1><p>Quants of <a href='https://hub.example/heron'>Heron 7B</a>, "
    f"made with an importance matrix.</p></div>\n\n{CARD}\n\n## Which file\n\nTake the largest that fits, with room "
    "for the context.\n\n- `Q4_K_M` is what most people take.\n- `Q6_K` loses next to nothing.\n\n> Prompts follow the "
    "chat template in the file.\n\n" + "A paragraph about how the model was trained, evaluated and licensed. " * 12
)
NAMES = (
    (REPO, 7_600_000_000, "qwen2", Gate.OPEN, 1_250_000, 890),
    ("riverbank/Heron-0.5B-Instruct-GGUF", 494_000_000, "qwen2", Gate.OPEN, 431_000, 120),
    ("owner/Gated-Llama-8B-Instruct-GGUF", 8_000_000_000, "llama", Gate.AUTOMATIC, 912_000, 2310),
    ("quantsmith/Kestrel-3B-it-GGUF", 3_200_000_000, "gemma3", Gate.OPEN, 54_000, 77),
    ("quantsmith/Kestrel-27B-it-GGUF", 27_000_000_000, "gemma3", Gate.MANUAL, 23_500, 310),
    ("研究室/漢字モデル-4B-GGUF", 4_000_000_000, "qwen3", Gate.OPEN, 980, 12),
    ("tiny-lab/Wren-135M-GGUF", 135_000_000, "llama", Gate.OPEN, 8_400, 31),
    ("coders/Finch-Coder-14B-GGUF", 14_800_000_000, "qwen2", Gate.OPEN, 310_000, 654),
    ("coders/Finch-Coder-1.5B-GGUF", 1_540_000_000, "qwen2", Gate.OPEN, 120_000, 98),
)
SMALL, NARROW = (980, 640), (500, 860)
MODELS = [
    model(repo, parameters=count, architecture=kind, gate=gate, downloads=downloads, likes=likes)
    for repo, count, kind, gate, downloads, likes in NAMES
]


class Scene:
    """The real window on its Models page, with a scripted Hub, queue and library."""

    def __init__(
        self,
        hub: FakeHub,
        *,
        dark: bool = False,
        size: tuple[int, int] = (1280, 820),
        items: Sequence[LibraryItem] = (),
        keyring: Keyring | None = None,
    ) -> None:
        chosen = Preferences(appearance=Appearance.DARK if dark else Appearance.LIGHT)
        folders().create()
        self.live = LiveWindow(chosen, size)
        self.queues: list[FakeQueue] = []

        def make_queue(models: Path, _client: Callable[[], HubClient], listen: Callable[[Download], None]) -> FakeQueue:
            self.queues.append(FakeQueue(listen, models))
            return self.queues[-1]

        def make_hub(view: ModelsView) -> HubParts:
            return HubParts(
                folders().config,
                view.models_folder,
                view.items,
                cache=folders().cache,
                tokens=token_store(keyring or NoKeyring()),
                connect=lambda _: hub,
                make_queue=make_queue,
                measure=lambda _: MACHINE,
                parent=view,
            )

        session = self.live.session
        where = folders()
        library = FakeLibrary(where.models, list(items))
        view = ModelsView(session, where, DiskModels(where.models), library, make_hub)
        entry = session.findChild(ModelsEntry)
        assert isinstance(entry, ModelsEntry)
        entry._view = view
        self.hub = view.hub
        self.live.window.show_page(MODELS_PAGE)
        assert view.page is not None
        self.page: ModelsPage = view.page
        self.page.tabs.setCurrentIndex(1)
        self.live.until(lambda: bool(self.queues), "the queue is there")
        self.wait()

    @property
    def queue(self) -> FakeQueue:
        return self.queues[-1]

    def wait(self, seconds: float = 0.4) -> None:
        loop = QEventLoop()
        QTimer.singleShot(round(1000 * seconds), loop.quit)
        loop.exec()

    def search(self, words: str = "instruct gguf") -> None:
        assert self.hub.discover is not None
        self.hub.discover.search.setText(words)
        self.hub.controller.ask(self.hub.discover.query)
        self.wait()

    def open(self, name: str) -> None:
        self.hub.controller.open_repo(name)
        self.wait()

    def judge(self, asked: HubFileGroup) -> None:
        """A target is in use, and it is asked whether one of the files would draft for it."""
        verdicts = self.hub.verdicts
        verdicts._judge = lambda *_: Fit(True, "same vocabulary", "All 152,064 tokens are the same.")
        verdicts.set_target(Path("Heron-70B-Instruct-Q4_K_M.gguf"))
        verdicts.ask(asked)
        self.wait()

    def save(self, target: Path, widget: QWidget | None = None) -> None:
        self.wait()
        (widget or self.live.window).grab().save(str(target))
        self.live.close()


def hub(**more: object) -> FakeHub:
    return FakeHub(models=list(MODELS), card_text=LONG_CARD, **more)  # type: ignore[arg-type]


def full(target: Path, *, dark: bool = False, size: tuple[int, int] = (1280, 820)) -> None:
    found = groups(REPO)
    twin = item_of(replace(found[3], repo="other/Copy"), own=False)
    scene = Scene(hub(), dark=dark, size=size, items=[item_of(found[2]), twin])
    scene.search("")
    if size[0] >= 760:
        scene.open(REPO)
        scene.judge(found[1])
        scene.queue.put(download_of(found[0], done_bytes=GB, bytes_per_second=21_400_000.0, seconds_left=96.0))
    scene.save(target)


def long_names(target: Path) -> None:
    about = model(LONG, parameters=32_000_000_000)
    made = tuple(
        replace(each, files=tuple(replace(file, path=f"a/{LONG.split('/')[1]}-{file.path}") for file in each.files))
        for each in groups(LONG)
    )
    scene = Scene(FakeHub(models=[about, *MODELS], card_text=LONG_CARD, repos={LONG: repo_of(about, made)}))
    scene.search("")
    scene.open(LONG)
    scene.judge(made[0])
    scene.save(target)


def failed(error: UserFacingError) -> Callable[[Path], None]:
    def take(target: Path) -> None:
        scene = Scene(hub(errors={"search": error}), size=SMALL)
        scene.search()
        scene.save(target)

    return take


def offline(target: Path) -> None:
    scene = Scene(hub(), size=SMALL)
    online = scene.hub.account.settings
    scene.hub.account.set_settings(replace(online, offline=True))
    scene.search()
    scene.save(target)
    # The settings' file is the same for all scenes.
    (folders().config / "hub.json").unlink()


def first(target: Path) -> None:
    Scene(hub(), size=SMALL).save(target)


def nothing(target: Path) -> None:
    scene = Scene(hub(), size=SMALL)
    scene.search("no such model")
    scene.save(target)


def private(target: Path) -> None:
    scene = Scene(hub(errors={"repo": missing("someone/Secret")}))
    scene.search("")
    scene.open("someone/Secret")
    scene.save(target)


def gate(target: Path) -> None:
    scene = Scene(hub(), keyring=Keyring())
    scene.hub.account.look()
    scene.search("")
    scene.open("owner/Gated-Llama-8B-Instruct-GGUF")
    scene.save(target)


def narrow_repo(target: Path) -> None:
    scene = Scene(hub(), size=NARROW)
    scene.search("")
    scene.open(REPO)
    scene.judge(groups(REPO)[0])
    scene.save(target)


def downloads(target: Path, *, dark: bool = False, size: tuple[int, int] = (1280, 960)) -> None:
    scene = Scene(hub(), dark=dark, size=size)
    running: dict[str, object] = {"bytes_per_second": 21.4e6, "seconds_left": 126.0}
    plain: dict[str, object] = {}
    checked: dict[str, object] = {"verified": (Verification.SHA256,)}
    refused: dict[str, object] = {"error": gated("owner/Gated-Llama-8B-Instruct-GGUF")}
    for number, (repo, label, size_bytes, shards, state, done, more) in enumerate(
        (
            (REPO, "Q4_K_M", 4.7, 1, DownloadState.RUNNING, 0.43, running),
            (LONG, "Q5_K_M", 23.2, 3, DownloadState.VERIFYING, 1.0, plain),
            ("coders/Finch-Coder-1.5B-GGUF", "Q8_0", 1.9, 1, DownloadState.QUEUED, 0.0, plain),
            ("quantsmith/Kestrel-3B-it-GGUF", "Q6_K", 2.6, 1, DownloadState.PAUSED, 0.71, plain),
            ("owner/Gated-Llama-8B-Instruct-GGUF", "Q4_K_M", 4.9, 1, DownloadState.FAILED, 0.0, refused),
            ("riverbank/Heron-0.5B-Instruct-GGUF", "Q8_0", 0.53, 1, DownloadState.DONE, 1.0, checked),
        )
    ):
        total = round(size_bytes * GB)
        made = group(label, total, repo, shards=shards)
        download = download_of(made, f"d{number}", state, done_bytes=round(total * done))
        scene.queue.put(replace(download, **more))  # type: ignore[arg-type]
    scene.page.tabs.setCurrentIndex(2)
    scene.wait()
    scene.save(target)


def no_downloads(target: Path) -> None:
    scene = Scene(hub(), size=SMALL)
    scene.page.tabs.setCurrentIndex(2)
    scene.save(target)


def settings(target: Path, *, dark: bool = False) -> None:
    scene = Scene(hub(), dark=dark, keyring=Keyring())
    scene.hub.account.store_token("hf_abcdefghijkl")
    scene.wait()
    scene.live.session.open_hub_settings()
    dialog = scene.live.session._settings
    assert dialog is not None
    scene.save(target, dialog)


SCENES: dict[str, Callable[[Path], None]] = {
    "discover-full": full,
    "discover-dark": lambda target: full(target, dark=True),
    "discover-narrow": lambda target: full(target, size=NARROW),
    "discover-repo-narrow": narrow_repo,
    "discover-long-names": long_names,
    "discover-first": first,
    "discover-nothing": nothing,
    "discover-offline": offline,
    "discover-error": failed(no_network()),
    "discover-rate-limited": failed(rate_limited()),
    "discover-private": private,
    "discover-gated": gate,
    "downloads-full": downloads,
    "downloads-dark": lambda target: downloads(target, dark=True),
    "downloads-narrow": lambda target: downloads(target, size=(500, 1000)),
    "downloads-empty": no_downloads,
    "hub-settings": settings,
    "hub-settings-dark": lambda target: settings(target, dark=True),
}

"""The Models page's surroundings as doubles: items, a controller on a fake library, downloads that a test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from forespeak.errors import UserFacingError
from forespeak.models.download_queue import Download
from forespeak.models.download_record import DownloadState
from forespeak.models.formats import ModelFormat
from forespeak.models.good_pairs import GoodModel, GoodPair
from forespeak.models.hub_files import HubFile, HubFileGroup, group_files
from forespeak.models.hub_results import HubModel, HubRepo
from forespeak.models.library import LibraryItem
from forespeak.models.memory import Fit
from forespeak.models.roots import Root, RootKind, own_root
from forespeak.ui.background import Worker
from forespeak.ui.fit_words import fit_words
from forespeak.ui.good_pairs import GoodPairs
from forespeak.ui.library_controller import LibraryController
from forespeak.ui.my_models import MyModels
from forespeak.ui.pair_fetcher import PairFetcher
from ui.fake_library import FakeLibrary, item

COMMIT = "c" * 40


def some_items(own: Path) -> list[LibraryItem]:
    """A pair that shares a vocabulary, one of another, one that is damaged, and one of another program."""
    mine = own_root(own)
    other = Root(own.parent / "lm", "LM Studio", read_only=True, kind=RootKind.LM_STUDIO)
    return [
        item("Big-8B-Q8_0", mine, quantisation="Q8_0", size_bytes=8_500_000_000),
        item("Small-1B-Q4_0", mine, parameters=1_240_000_000, size_bytes=770_000_000, quantisation="Q4_0"),
        item("Coder-7B", other, vocabulary_fingerprint="qwen", architecture="qwen2", size_bytes=4_700_000_000),
        item("Broken-70B", mine, problem="Part 2 of 3 is missing.", parameters=None, size_bytes=20_000_000_000),
    ]


def by_size(entry: LibraryItem) -> Fit:
    return Fit.FITS if entry.size_bytes < 5_000_000_000 else Fit.TIGHT


@dataclass
class FakeDownloads:
    """As DownloadsController, as far as good pairs ask it."""

    added: list[HubFileGroup] = field(default_factory=list)
    states: dict[str, Download] = field(default_factory=dict)

    def add(self, group: HubFileGroup, instead: Iterable[Path] = ()) -> None:
        self.added.append(group)
        self.set(group, DownloadState.QUEUED, 0)

    def set(self, group: HubFileGroup, state: DownloadState, done: int, error: UserFacingError | None = None) -> None:
        self.states[group.repo] = Download(
            group.repo,
            group.repo,
            group.revision,
            group.label,
            group.name,
            group.files,
            (),
            state,
            done,
            group.size_bytes,
            error=error,
        )

    def find(self, group: HubFileGroup) -> Download | None:
        return self.states.get(group.repo)


@dataclass
class FakeHub:
    """Repos by name; `asked` tells what was looked for."""

    repos: dict[str, tuple[str, ...]]
    asked: list[str] = field(default_factory=list)
    error: UserFacingError | None = None

    def __call__(self, name: str, cancelled: Callable[[], bool]) -> HubRepo | None:
        self.asked.append(name)
        if self.error is not None:
            raise self.error
        files = tuple(HubFile(path, 1_000_000, "0" * 64) for path in self.repos[name])
        return HubRepo(HubModel(name), COMMIT, f"https://hub.test/{name}", files, group_files(name, COMMIT, files))


def pair(name: str = "small", memory: int = 8, size: int = 4_000_000_000) -> GoodPair:
    return GoodPair(
        name,
        f"Pair {name}",
        memory,
        ModelFormat.GGUF,
        "General chat",
        GoodModel(f"{name} target", f"maker/{name}-target-GGUF", f"{name}-target-Q4_K_M.gguf", "Q4_K_M", 8.0, size),
        GoodModel(f"{name} draft", f"maker/{name}-draft-GGUF", f"{name}-draft-Q8_0.gguf", "Q8_0", 0.5, 500_000_000),
    )


def hub_of(*pairs: GoodPair) -> FakeHub:
    models = [model for each in pairs for model in (each.target, each.draft)]
    return FakeHub({model.repo: (model.file or "", "README.md") for model in models})


@dataclass
class Surroundings:
    library: FakeLibrary
    controller: LibraryController
    worker: Worker
    page: MyModels
    fetcher: PairFetcher
    hub: FakeHub
    downloads: FakeDownloads
    problems: list[UserFacingError]
    pairs: Sequence[GoodPair]


@contextmanager
def my_models(
    folder: Path, items: Sequence[LibraryItem] | None = None, pairs: Sequence[GoodPair] = (), **library: object
) -> Iterator[Surroundings]:
    """The tab with everything behind it; not shown and not started yet."""
    own = folder / "models"
    fake = FakeLibrary(own, list(some_items(own) if items is None else items))
    fake = replace(fake, **library)  # type: ignore[arg-type]

    def suits(target: Path, draft: Path) -> bool:
        fake.judged.append((target.name, draft.name))
        return fake.suits

    controller = LibraryController(
        fake, lambda entry: fit_words(by_size(entry), entry.size_bytes), suits, fake.check, weigh=fake.weigh
    )
    worker = Worker("files")
    hub, downloads = hub_of(*pairs), FakeDownloads()
    fetcher = PairFetcher(hub, downloads)
    controller.changed.connect(lambda: fetcher.set_items(controller.state.items))

    def make() -> GoodPairs:
        return GoodPairs(pairs, fetcher, lambda size: Fit.FITS if size < 6e9 else Fit.TOO_LARGE, mlx=False)

    page = MyModels(controller, make, worker)
    problems: list[UserFacingError] = []
    controller.problemFound.connect(problems.append)
    try:
        yield Surroundings(fake, controller, worker, page, fetcher, hub, downloads, problems, pairs)
    finally:
        for gate in (fake.gate, fake.task_gate):
            if gate is not None:
                gate.set()
        fetcher.close()
        controller.close()
        worker.close()

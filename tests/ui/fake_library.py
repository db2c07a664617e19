"""A library that answers what a test gives it, at the pace that a test sets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from forespeak.errors import UserFacingError
from forespeak.models.formats import ModelFormat
from forespeak.models.gguf import GgufKind
from forespeak.models.library import ImportResult, ImportWay, LibraryItem
from forespeak.models.roots import Root, RootKind, added_root, own_root
from forespeak.ui.library_model import FitWords
from forespeak.ui.library_state import Cancelled, Progress


def item(name: str, root: Root, **facts: object) -> LibraryItem:
    path = root.path / f"{name}.gguf"
    plain = LibraryItem(
        path=path,
        files=(path,),
        root=root,
        format=ModelFormat.GGUF,
        kind=GgufKind.MODEL,
        name=name,
        size_bytes=4_900_000_000,
        modified=1_700_000_000.0,
        title=name.replace("-", " "),
        repo=None,
        architecture="llama",
        parameters=8_030_000_000,
        quantisation="Q4_K_M",
        context_length=131_072,
        vocabulary_size=128_256,
        vocabulary_fingerprint="llama3",
        has_template=True,
    )
    return replace(plain, **facts)  # type: ignore[arg-type]


@dataclass
class FakeRemoval:
    library: FakeLibrary
    item: LibraryItem
    finished: bool = False

    def undo(self) -> None:
        self.library.items.append(self.item)

    def finish(self) -> None:
        self.finished = True


@dataclass
class FakeLibrary:
    """`gate`, where there is one, holds scans and tasks until it is set."""

    own: Path
    items: list[LibraryItem] = field(default_factory=list)
    others: tuple[Root, ...] = ()
    gate: threading.Event | None = None
    task_gate: threading.Event | None = None
    error: UserFacingError | None = None
    task_error: UserFacingError | None = None
    scans: int = 0
    imports: list[tuple[tuple[Path, ...], ImportWay]] = field(default_factory=list)
    removals: list[FakeRemoval] = field(default_factory=list)
    moves: list[Path] = field(default_factory=list)
    threads: set[str] = field(default_factory=set)
    changed: Callable[[], None] | None = None
    unwatched: bool = False
    suits: bool = False
    judged: list[tuple[str, str]] = field(default_factory=list)
    weighed: dict[str, FitWords] = field(default_factory=dict)
    """What reading a header shows, by the model's name."""

    def weigh(self, entry: LibraryItem) -> FitWords | None:
        self.threads.add(threading.current_thread().name)
        return self.weighed.pop(entry.name, None)

    def roots(self) -> tuple[Root, ...]:
        return own_root(self.own), *self.others

    def scan(self, progress: Progress, cancelled: Cancelled) -> tuple[LibraryItem, ...]:
        self.threads.add(threading.current_thread().name)
        self.scans += 1
        progress(0, len(self.items))
        while self.gate is not None and not self.gate.wait(0.01) and not cancelled():
            pass
        if self.error is not None:
            raise self.error
        return tuple(self.items)

    def import_models(
        self, sources: Sequence[Path], way: ImportWay, progress: Progress, cancelled: Cancelled
    ) -> ImportResult:
        self._work(progress, cancelled)
        if cancelled():
            return ImportResult(cancelled=True)
        self.imports.append((tuple(sources), way))
        good = [path for path in sources if path.suffix == ".gguf"]
        refused = [
            UserFacingError(f"“{path.name}” is no model.", "It is a text file.") for path in sources if path not in good
        ]
        new = [item(path.stem, own_root(self.own)) for path in good]
        self.items += new
        return ImportResult(tuple(entry.path for entry in new), tuple(refused))

    def remove(self, entry: LibraryItem) -> FakeRemoval:
        if self.task_error is not None:
            raise self.task_error
        self.items.remove(entry)
        removal = FakeRemoval(self, entry)
        self.removals.append(removal)
        return removal

    def move_to(self, folder: Path, progress: Progress, cancelled: Cancelled) -> bool:
        self._work(progress, cancelled)
        if cancelled():
            return False
        self.moves.append(folder)
        self.own = folder
        return True

    def recover(self) -> bool:
        return False

    def check(self, item: LibraryItem, progress: Progress, cancelled: Cancelled) -> str:
        """Stands in for the check of a model's files."""
        self._work(progress, cancelled)
        return f"“{item.name}” is as it was published."

    def set_added(self, folders: Sequence[Path]) -> None:
        others = tuple(root for root in self.others if root.kind is not RootKind.ADDED)
        self.others = (*others, *(added_root(folder) for folder in folders))

    def free_bytes(self) -> int:
        return 210_000_000_000

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        self.changed = changed

        def unwatch() -> None:
            self.unwatched = True

        return unwatch

    def _work(self, progress: Progress, cancelled: Cancelled) -> None:
        self.threads.add(threading.current_thread().name)
        progress(1_000_000, 4_000_000)
        while self.task_gate is not None and not self.task_gate.wait(0.01) and not cancelled():
            pass
        if self.task_error is not None:
            raise self.task_error

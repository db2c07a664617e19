"""A Hub that answers what the test says, a queue of downloads that the test moves, and data to show."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from forespeak.errors import UserFacingError
from forespeak.models.download_queue import Download
from forespeak.models.download_record import DownloadState
from forespeak.models.formats import ModelFormat
from forespeak.models.gguf import GgufKind
from forespeak.models.hub_errors import Asked, HubError, HubProblem, answer_error
from forespeak.models.hub_files import HubFile, HubFileGroup
from forespeak.models.hub_results import Card, Gate, HubModel, HubRepo, SearchPage, SearchQuery
from forespeak.models.library import LibraryItem, Root
from forespeak.models.machine_memory import Machine
from forespeak.models.roots import RootKind

GB = 1_000_000_000
MACHINE = Machine(total_bytes=16 * GB, available_bytes=11 * GB)
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def model(repo: str = "someone/Small-7B-GGUF", **more: object) -> HubModel:
    known: dict[str, object] = {
        "downloads": 1_234_567,
        "likes": 890,
        "updated": datetime.now(UTC) - timedelta(days=3),
        "licence": "apache-2.0",
        "formats": frozenset({ModelFormat.GGUF}),
        "parameters": 7_600_000_000,
        "architecture": "qwen2",
        "context_length": 32768,
    }
    return HubModel(repo, **{**known, **more})  # type: ignore[arg-type]


def group(
    label: str | None = "Q4_K_M", size: int = 4_680_000_000, repo: str = "someone/Small-7B-GGUF", **more: object
) -> HubFileGroup:
    shards = int(str(more.pop("shards", 1)))
    stem = f"{repo.rpartition('/')[2].removesuffix('-GGUF').lower()}-{(label or 'x').lower()}"
    names = [f"{stem}.gguf"] if shards == 1 else [f"{stem}-{n:05d}-of-{shards:05d}.gguf" for n in range(1, shards + 1)]
    files = tuple(
        HubFile(name, size // shards, hashlib.sha256(f"{name} {size}".encode()).hexdigest()) for name in names
    )
    return HubFileGroup(repo, COMMIT, label, ModelFormat.GGUF, files, shards, **more)  # type: ignore[arg-type]


def groups(repo: str = "someone/Small-7B-GGUF") -> tuple[HubFileGroup, ...]:
    sizes = (("Q2_K", 3.0), ("Q4_K_M", 4.7), ("Q6_K", 6.3), ("Q8_0", 9.4), ("F16", 15.2))
    made = [group(label, round(size * GB), repo) for label, size in sizes]
    projector = HubFileGroup(
        repo, COMMIT, "F16", ModelFormat.GGUF, (HubFile("mmproj-f16.gguf", GB),), kind=GgufKind.PROJECTOR
    )
    return (*made[:-1], group("F16", round(15.2 * GB), repo, shards=4), projector)


def repo_of(about: HubModel, found: tuple[HubFileGroup, ...] | None = None) -> HubRepo:
    made = groups(about.repo) if found is None else found
    files = tuple(file for each in made for file in each.files)
    return HubRepo(about, COMMIT, f"https://hub.example/{about.repo}", files, made)


CARD = """# Small 7B

A model for tests, **bold** in its claims. See [the paper](https://papers.example/1234.5678) or [the licence](LICENSE).

![chart](https://tracker.example/pixel.png)

| quant | size |
|---|---|
| Q4_K_M | 4.7 GB |

```python
print("hello")
```
"""


@dataclass
class FakeHub:
    """`errors` by method; `wait` holds every answer until it is set. `asked` notes what was asked."""

    models: list[HubModel] = field(default_factory=lambda: [model()])
    repos: dict[str, HubRepo] = field(default_factory=dict)
    card_text: str = CARD
    errors: dict[str, UserFacingError] = field(default_factory=dict)
    page_size: int = 30
    user: str = "ada"
    wait: threading.Event | None = None
    asked: list[tuple[str, str]] = field(default_factory=list)
    queries: list[SearchQuery] = field(default_factory=list)

    def _answer(self, method: str, about: str, cancelled: Callable[[], bool]) -> bool:
        self.asked.append((method, about))
        if self.wait is not None:
            self.wait.wait(10)
        if cancelled():
            return False
        if method in self.errors:
            raise self.errors[method]
        return True

    def search(
        self, query: SearchQuery, cursor: str | None = None, cancelled: Callable[[], bool] = lambda: False
    ) -> SearchPage | None:
        self.queries.append(query)
        if not self._answer("more" if cursor else "search", query.text, cancelled):
            return None
        words = query.text.lower().split()
        found = [each for each in self.models if all(word in each.repo.lower() for word in words)]
        if query.licence:
            found = [each for each in found if each.licence == query.licence]
        start = int(cursor or 0)
        page = found[start : start + self.page_size]
        fitting = [each for each in page if query.fits is None or query.fits(each.least_bytes or 0)]
        following = start + self.page_size
        return SearchPage(tuple(fitting), str(following) if following < len(found) else None, len(page) - len(fitting))

    def repo(
        self, name: str, revision: str | None = None, cancelled: Callable[[], bool] = lambda: False
    ) -> HubRepo | None:
        if not self._answer("repo", name, cancelled):
            return None
        if name in self.repos:
            return self.repos[name]
        about = next((each for each in self.models if each.repo == name), None)
        if about is None:
            raise missing(name)
        return repo_of(about)

    def card(self, repo: HubRepo, cancelled: Callable[[], bool] = lambda: False) -> Card | None:
        return Card(self.card_text) if self._answer("card", repo.repo, cancelled) else None

    def account(self) -> str:
        self._answer("account", "", lambda: False)
        return self.user


def missing(name: str) -> HubError:
    return answer_error(401, {"x-error-code": "RepoNotFound"}, b"", Asked("https://hub.example", name))


def no_network() -> HubError:
    return HubError(
        HubProblem.NO_NETWORK,
        "There is no network.",
        "No way leads to hub.example.",
        "Check your connection, and try again.",
    )


def rate_limited() -> HubError:
    return answer_error(429, {"retry-after": "40"}, b"", Asked("https://hub.example"))


def gated(name: str, has_token: bool = False) -> HubError:
    return answer_error(
        403, {"x-error-code": "GatedRepo"}, b"", Asked("https://hub.example", name, has_token=has_token)
    )


def gated_model(repo: str = "owner/Gated-8B") -> HubModel:
    return model(repo, gate=Gate.AUTOMATIC)


class FakeQueue:
    """Does at once what it is asked; `put` and `tell` play what the network would do."""

    def __init__(self, listener: Callable[[Download], None], folder: Path = Path("/models")) -> None:
        self._listener = listener
        self._folder = folder
        self._lock = threading.Lock()
        self._downloads: list[Download] = []
        self.limit: float | None = None
        self.added: list[tuple[HubFileGroup, tuple[Path, ...]]] = []
        self.closed = False
        self.error: UserFacingError | None = None

    def put(self, download: Download) -> None:
        """Add it, or change the one of the same id."""
        with self._lock:
            place = next((n for n, each in enumerate(self._downloads) if each.id == download.id), None)
            if place is None:
                self._downloads.append(download)
            else:
                self._downloads[place] = download
        self._listener(download)

    def change(self, name: str, **more: object) -> None:
        self.put(replace(self.of(name), **more))  # type: ignore[arg-type]

    def of(self, name: str) -> Download:
        return next(each for each in self.downloads() if each.id == name)

    def add(self, group: HubFileGroup, instead_of_fetching: Iterable[Path] = ()) -> str:
        if self.error is not None:
            raise self.error
        self.added.append((group, tuple(instead_of_fetching)))
        made = download_of(group, f"d{len(self.added)}", folder=self._folder)
        self.put(made)
        return made.id

    def pause(self, name: str, why: UserFacingError | None = None) -> None:
        if self.of(name).state is not DownloadState.PAUSED:
            self.change(name, state=DownloadState.PAUSED, error=why)

    def resume(self, name: str) -> None:
        self.change(name, state=DownloadState.QUEUED, error=None)

    def retry(self, name: str) -> None:
        self.resume(name)

    def cancel(self, name: str) -> None:
        self._drop(name)

    def forget(self, name: str) -> None:
        self._drop(name)

    def _drop(self, name: str) -> None:
        with self._lock:
            self._downloads = [each for each in self._downloads if each.id != name]

    def move(self, name: str, place: int) -> None:
        with self._lock:
            moved = next(each for each in self._downloads if each.id == name)
            self._downloads.remove(moved)
            self._downloads.insert(place, moved)

    def downloads(self) -> tuple[Download, ...]:
        with self._lock:
            return tuple(self._downloads)

    def set_limit(self, bytes_per_second: float | None) -> None:
        self.limit = bytes_per_second

    def close(self) -> None:
        self.closed = True


def download_of(
    group: HubFileGroup,
    name: str = "d1",
    state: DownloadState = DownloadState.RUNNING,
    folder: Path = Path("/models"),
    **more: object,
) -> Download:
    paths = tuple(folder / group.repo / file.path for file in group.files)
    made = Download(
        name, group.repo, group.revision, group.label, group.name, group.files, paths, state, 0, group.size_bytes
    )
    return replace(made, **more)  # type: ignore[arg-type]


def item_of(group: HubFileGroup, root: Path = Path("/models"), own: bool = True, **more: object) -> LibraryItem:
    """What a library says of a group's files once they are here."""
    paths = tuple(root / group.repo / file.path for file in group.files)
    label, kind = ("Models folder", RootKind.OWN) if own else ("LM Studio", RootKind.LM_STUDIO)
    known: dict[str, object] = {"repo": group.repo, "quantisation": group.label}
    return LibraryItem(
        path=paths[0],
        files=paths,
        root=Root(root, label, not own, kind),
        format=group.format,
        kind=GgufKind.MODEL,
        name=group.name,
        size_bytes=group.size_bytes,
        modified=0.0,
        **{**known, **more},  # type: ignore[arg-type]
    )

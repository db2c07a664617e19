"""`forespeak models download` and `verify`: downloads on the command line, and whether they are still undamaged."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forespeak import terminal
from forespeak.errors import UserFacingError
from forespeak.models.folders import folders
from forespeak.models.library_settings import users_folders
from forespeak.models.sizes import size_words

if TYPE_CHECKING:
    from forespeak.models.download_queue import Download, DownloadQueue
    from forespeak.models.file_hashes import FileHash, FileHashes
    from forespeak.models.hub_files import HubFileGroup
    from forespeak.models.hub_results import HubRepo

_CELLS = 24
_LOOK_SECONDS = 0.2
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the two commands to those of `forespeak models`."""
    download = commands.add_parser(
        "download",
        help="fetch models from the Hub",
        description="Fetch models from the Hub into the models folder. Every file is checked against the Hub's hash. "
        "What was interrupted goes on where it was when the same command is given again.",
    )
    download.set_defaults(command=_download, fail=download.error)
    add = download.add_argument
    add("repo", metavar="OWNER/NAME", help="a repo, or the address of its page")
    add("what", nargs="*", metavar="FILE|QUANT", help="which of its models; not needed if there is only one")
    add("--revision", metavar="R", help="a branch, a tag, or a commit (default: the newest)")
    add("--limit", type=_rate, metavar="BYTES", help="bytes per second at most, such as 500k or 10M")
    add("--fetch", action="store_true", help="fetch also what another folder of this machine already has")
    add("--json", action="store_true", help="print what was downloaded as JSON")

    verify = commands.add_parser(
        "verify",
        help="whether downloaded files are still undamaged",
        description="Hash files again and compare them with what the Hub stated when they were downloaded.",
    )
    verify.set_defaults(command=_verify, fail=verify.error)
    about = "files, folders, or names that models list shows; default: all downloads"
    verify.add_argument("models", nargs="*", metavar="MODEL", help=about)
    verify.add_argument("--json", action="store_true", help="print what was found as JSON")


def _rate(text: str) -> float:
    number, unit = text.strip(), ""
    if number[-1:].upper() in _UNITS:
        number, unit = number[:-1], number[-1:].upper()
    try:
        rate = float(number) * _UNITS[unit]
    except ValueError:
        rate = 0.0
    if not 1.0 <= rate < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes such as 500k or 10M")
    return rate


# forespeak models download


def _download(options: argparse.Namespace) -> int:
    from forespeak.models.download_queue import DownloadQueue
    from forespeak.models.hub import Hub, repo_in
    from forespeak.models.hub_client import users_client

    client = users_client(folders().config)
    with terminal.Interrupt() as interrupt, contextlib.closing(client):
        repo = Hub(client).repo(repo_in(options.repo) or options.repo, options.revision, interrupt.asked)
        if repo is None:
            return terminal.INTERRUPTED
        groups = chosen(repo, options.what)
        changed = threading.Event()
        # Its list ends with this process, so that a window's own list stays the window's.
        queue = DownloadQueue(users_folders().models, lambda: client, lambda _: changed.set(), keep=False)
        with contextlib.closing(queue):
            queue.set_limit(options.limit)
            for group in groups:
                queue.add(group, () if options.fetch else _already_here(group, queue, interrupt))
            _watch(queue, changed, interrupt)
    downloads = queue.downloads()
    _tell_outcome(downloads, as_json=options.json)
    if interrupt.asked() and not all(each.state.is_over for each in downloads):
        terminal.say("Stopped. What is there stays, and the same command goes on with it.")
        return terminal.INTERRUPTED
    return terminal.MENDABLE if any(each.error is not None for each in downloads) else 0


def chosen(repo: HubRepo, names: Sequence[str]) -> tuple[HubFileGroup, ...]:
    """The groups of a repo that people mean by a quant, a file or a model's name. Raises UserFacingError."""
    from forespeak.models.gguf import GgufKind

    if not names:
        found = [group for group in repo.groups if group.kind is GgufKind.MODEL]
        if len(found) == 1:
            return (found[0],)
        raise UserFacingError(
            f"“{repo.repo}” holds {len(found)} models."
            if found
            else f"“{repo.repo}” holds no model that can be loaded.",
            f"They are {_listed(found)}." if found else "",
            "Name one or several of them behind the repo." if found else "Look for another repo.",
        )
    groups: dict[str, HubFileGroup] = {}
    for name in names:
        matching = [group for group in repo.groups if _is_meant(group, name.lower())]
        if not matching:
            raise UserFacingError(
                f"“{repo.repo}” has no “{name}”.",
                f"It has {_listed(repo.groups)}." if repo.groups else "",
                "Name a quant or a file of it.",
            )
        for group in matching:
            groups[group.files[0].path] = group
    return tuple(groups.values())


def _is_meant(group: HubFileGroup, name: str) -> bool:
    names = [group.label or "", group.name, *(each for file in group.files for each in (file.path, file.name))]
    return name in {each.lower() for each in names}


def _listed(groups: Sequence[HubFileGroup]) -> str:
    return ", ".join(dict.fromkeys(group.label or group.name for group in groups))


def _already_here(group: HubFileGroup, queue: DownloadQueue, interrupt: terminal.Interrupt) -> tuple[Path, ...]:
    """Files of other programs' folders that are the group's, so that they need not come over the network."""
    from forespeak.models.file_hashes import identical
    from forespeak.models.library import users_library

    others = [item for item in users_library().scan(cancelled=interrupt.asked) if item.root.read_only]
    found = identical(group, others, queue.hashes, interrupt.asked)
    if found is None:
        return ()
    terminal.say(f"{group.name} is already on this computer ({found.root.label}): it is not fetched again.")
    return tuple(found.files)


def _watch(queue: DownloadQueue, changed: threading.Event, interrupt: terminal.Interrupt) -> None:
    with _Line() as line:
        while not interrupt.asked():
            downloads = queue.downloads()
            notice = next((each.notice for each in downloads if each.notice), "")
            line.show(notice or bar_words(downloads), notice)
            if all(each.state.is_over or each.error is not None for each in downloads):
                return
            changed.wait(_LOOK_SECONDS)
            changed.clear()


def _tell_outcome(downloads: Sequence[Download], *, as_json: bool) -> None:
    if as_json:
        terminal.print_json({"downloads": [_record(each) for each in downloads]})
    for each in downloads:
        if each.error is not None:
            terminal.say_error(each.error)
        elif each.state.is_over and not as_json:
            checked = " and ".join(dict.fromkeys(way.value for way in each.verified))
            for path in each.paths:
                sys.stdout.write(f"{path}\n")
            terminal.say(f"{each.name}: {size_words(each.total_bytes)}, checked by {checked}.")


def _record(download: Download) -> dict[str, Any]:
    error = download.error
    verified = [way.name.lower() for way in download.verified]
    return {
        "repo": download.repo,
        "revision": download.revision,
        "label": download.label,
        "name": download.name,
        "state": download.state.value,
        "done_bytes": download.done_bytes,
        "total_bytes": download.total_bytes,
        "error": None if error is None else {"what": error.what, "why": error.why, "remedy": error.remedy},
        "files": [
            {
                "path": str(path),
                "size_bytes": file.size_bytes,
                "verified_by": verified[number] if number < len(verified) else None,
            }
            for number, (file, path) in enumerate(zip(download.files, download.paths, strict=True))
        ],
    }


class _Line:
    """One line on stderr that changes, on a terminal; elsewhere a line for each thing that is worth one."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._shown = ""

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self.show("")

    def show(self, line: str, worth_a_line: str = "") -> None:
        if self._is_terminal:
            line = line[: max(20, shutil.get_terminal_size().columns - 1)]
            if line != self._shown:
                self._shown = line
                sys.stderr.write(f"\r{line}\x1b[K")
                sys.stderr.flush()
        elif worth_a_line and worth_a_line != self._shown:
            self._shown = worth_a_line
            terminal.say(worth_a_line)


def bar_words(downloads: Sequence[Download]) -> str:
    """`████████░░░░░░░░  33 %  1.2 GB of 3.6 GB, 12.4 MB/s, 3 min left`"""
    from forespeak.models.download_record import DownloadState

    done, total = (sum(values) for values in zip(*((d.done_bytes, d.total_bytes) for d in downloads), strict=True))
    words = [f"{_filled(done, total)} {100 * done // max(1, total):3d} %  {size_words(done)} of {size_words(total)}"]
    if all(each.state in {DownloadState.VERIFYING, DownloadState.DONE} for each in downloads):
        return f"{words[0]}, checking"
    rate = sum(each.bytes_per_second or 0.0 for each in downloads)
    if rate >= 1.0:
        words += [f"{size_words(round(rate))}/s", time_words((total - done) / rate)]
    return ", ".join(words)


def _filled(done: int, total: int) -> str:
    filled = _CELLS * done // max(1, total)
    return "█" * filled + "░" * (_CELLS - filled)


def time_words(seconds: float) -> str:
    """How long something still takes, no finer than such a guess is worth."""
    if seconds < 60:
        return f"{5 * round(seconds / 5) or 5} s left"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min left" if hours else f"{minutes} min left"


# forespeak models verify


def _verify(options: argparse.Namespace) -> int:
    from forespeak.models.file_hashes import FileHashes

    hashes = FileHashes(users_folders().models)
    found: list[tuple[Path, str, str]] = []
    done = within = 0
    with terminal.Interrupt() as interrupt, _Line() as line:
        paths = _paths_of(options.models, interrupt)
        if interrupt.asked():
            return terminal.INTERRUPTED
        files = list(dict.fromkeys(_wanted(paths, hashes)))
        total = sum(path.stat().st_size for path, known in files if known is not None)
        for path, known in files:
            outcome = "unknown"
            if known is not None:

                def read(count: int, before: int = done, name: str = path.name) -> None:
                    nonlocal within
                    within += count
                    so_far = min(before + within, total)
                    line.show(f"{_filled(so_far, total)} {100 * so_far // max(1, total):3d} %  {name}")

                within = 0
                read(0)
                outcome = _judged(path, known, interrupt, read) or ""
                done += path.stat().st_size
            if interrupt.asked():
                return terminal.INTERRUPTED
            found.append((path, outcome, "" if known is None else f"{known.repo}/{known.path}"))
    if options.json:
        terminal.print_json(
            {"files": [{"path": str(path), "outcome": how, "from": origin} for path, how, origin in found]}
        )
    else:
        for path, how, origin in found:
            sys.stdout.write(f"{how:<8} {path}{f'  ({origin})' if origin else ''}\n")
        _sum_up([how for _, how, _ in found])
    return terminal.MENDABLE if any(how == "damaged" for _, how, _ in found) else 0


def _paths_of(names: Sequence[str], interrupt: terminal.Interrupt) -> list[Path]:
    """The files and folders that are meant; names are looked up in the library. Raises UserFacingError."""
    from forespeak.models.formats import ModelFormat
    from forespeak.models.library import users_library
    from forespeak.models.library_names import named_item

    paths: list[Path] = []
    items = None
    for name in names:
        path = Path(name).expanduser().absolute()
        if path.exists():
            paths.append(path)
            continue
        if items is None:
            items = users_library().scan(cancelled=interrupt.asked)
        if interrupt.asked():
            break
        item = named_item(items, name)
        paths += [item.path] if item.format is ModelFormat.MLX else item.files
    return paths


def _wanted(paths: Sequence[Path], hashes: FileHashes) -> Iterator[tuple[Path, FileHash | None]]:
    """What to look at: (a file, what the Hub stated of it or None)."""
    if not paths:
        # What was removed since then is not missed.
        yield from ((path, known) for path, known in hashes.downloaded() if path.is_file())
        return
    for path in paths:
        inside = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
        for each in inside:
            known = hashes.of(each)
            known = known if known is not None and known.is_downloaded else None
            if known is not None or each == path or each.suffix in {".gguf", ".safetensors"}:
                yield each, known


def _judged(path: Path, known: FileHash, interrupt: terminal.Interrupt, read: Callable[[int], None]) -> str | None:
    from forespeak.models.file_hashes import is_unchanged

    try:
        right = is_unchanged(path, known, interrupt.asked, read)
    except OSError as error:
        raise UserFacingError(
            f"{path} cannot be read.", f"{error.strerror or error}.", "Check the disk and your rights."
        ) from error
    return None if right is None else "right" if right else "damaged"


def _sum_up(outcomes: Sequence[str]) -> None:
    right, damaged, unknown = (outcomes.count(each) for each in ("right", "damaged", "unknown"))
    if not outcomes:
        terminal.say("Nothing here was downloaded from the Hub.")
    elif damaged:
        terminal.say(f"{damaged} of {len(outcomes)} files are damaged. Delete and download them again.")
    elif unknown:
        terminal.say(f"{right} files are undamaged; of {unknown} it is not known what they should be.")
    else:
        terminal.say(f"All {right} files are undamaged." if right > 1 else "The file is undamaged.")

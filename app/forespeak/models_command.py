"""`forespeak models`: what is on this computer, and the Hub's models, on the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forespeak import download_command, hub_command, terminal
from forespeak.errors import UserFacingError
from forespeak.models.folders import folders
from forespeak.models.library_settings import LibrarySettingsFile
from forespeak.models.sizes import parameter_words, size_words

if TYPE_CHECKING:
    from forespeak.models.library import Library, LibraryItem
    from forespeak.models.memory import MemoryPlan


# The arguments


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command with its own sub-commands to argparse's."""
    parser = commands.add_parser(
        "models",
        help="the models on this computer and on the Hub",
        description="List, import and remove the models on this computer; find and download others.",
    )
    own = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_list(own)
    _add_inspect(own)
    _add_import(own)
    _add_remove(own)
    hub_command.add_to(own)
    download_command.add_to(own)


_Commands = argparse._SubParsersAction


def _add_list(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "list",
        help="the models on this computer",
        description="List the models in the models folder, and in the folders of other programs.",
    )
    parser.set_defaults(command=_list)
    add = parser.add_argument
    add("--all", action="store_true", help="also what cannot be a target or a draft: projectors, incomplete ones, …")
    add("--folder", type=Path, action="append", default=[], metavar="DIR", help="look in this folder too")
    add("--json", action="store_true", help="print what there is as JSON")


def _add_inspect(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "inspect",
        help="what a model says about itself",
        description="Show what the header of a model says: a GGUF file, a folder, or a name that models list shows.",
    )
    parser.set_defaults(command=_inspect)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def _add_import(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "import",
        help="bring models into the models folder",
        description="Copy models into the models folder: GGUF files, whole sets of parts by any of them, MLX folders, "
        "or folders with such in them.",
    )
    parser.set_defaults(command=_import)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    way = parser.add_mutually_exclusive_group().add_argument
    way("--move", action="store_true", help="move them in place of copying")
    way("--link", action="store_true", help="link them: they stay where they are and take no more space")
    parser.add_argument("--json", action="store_true", help="print what was imported as JSON")


def _add_remove(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "remove",
        help="delete a model from the models folder",
        description="Delete a model from the models folder, for good. Other programs' folders are never changed.",
    )
    parser.set_defaults(command=_remove, fail=parser.error)
    parser.add_argument("model", metavar="MODEL", help="a name that models list shows, or a file of the model")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="print what was removed as JSON; needs --yes")


# What they do


def _library(added: Sequence[Path] = ()) -> Library:
    from forespeak.models.library import users_library

    return users_library([path.expanduser().absolute() for path in added])


def _put_in_order(library: Library) -> None:
    """Deal with what a crash has left, before anything is changed."""
    from forespeak.pairing.pairs import follow_models

    before = library.own
    if library.recover():
        file = LibrarySettingsFile(folders().config)
        file.write(replace(file.read(), own=library.own))
        follow_models(folders(), before, library.own)


def _scan(library: Library) -> tuple[LibraryItem, ...]:
    """Everything there is. KeyboardInterrupt if Ctrl+C stopped it."""
    with terminal.Interrupt() as interrupt:
        items = library.scan(cancelled=interrupt.asked)
    if interrupt.asked():
        raise KeyboardInterrupt
    return items


def _list(options: argparse.Namespace) -> int:
    library = _library(options.folder)
    items = _scan(library)
    shown = [item for item in items if options.all or item.usable]
    if options.json:
        roots = [{"path": str(root.path), "label": root.label, "read_only": root.read_only} for root in library.roots()]
        terminal.print_json({"folders": roots, "models": [record(item) for item in shown]})
        return 0
    if shown:
        rows: list[tuple[str, ...]] = [("model", "parameters", "quant", "size", "context", "in", "")]
        rows += [_row(item) for item in shown]
        terminal.print_table(rows, right=(1, 3, 4))
    else:
        terminal.say(f"There are no models yet. They are looked for in {library.own} and other programs' folders.")
    hidden = len(items) - len(shown)
    if hidden:
        terminal.say(f"{hidden} more cannot be a target or a draft; --all shows why.")
    return 0


def _inspect(options: argparse.Namespace) -> int:
    item = _named(options.model)
    plan = _plan(item)
    if options.json:
        terminal.print_json({**record(item), "memory": None if plan is None else memory_record(plan)})
    else:
        for name, words in _details(item):
            sys.stdout.write(f"{name:16}{words}\n")
        for number, line in enumerate([] if plan is None else [plan.sentence, *plan.lines()]):
            sys.stdout.write(f"{'' if number else 'memory':16}{line}\n")
    return 0 if item.problem is None else terminal.MENDABLE


def _plan(item: LibraryItem) -> MemoryPlan | None:
    """What it would take here with the usual settings; None where that cannot be planned."""
    from forespeak.engines.engine import LoadRequest
    from forespeak.pairing.load_plan import machine_now, plan_load

    if not item.usable:
        return None
    try:
        return plan_load(LoadRequest(item.path, None), machine_now())
    except UserFacingError:
        # The facts tell what is wrong with the file.
        return None


def _import(options: argparse.Namespace) -> int:
    from forespeak.models.library import ImportWay

    library = _library()
    _put_in_order(library)
    way = ImportWay.MOVE if options.move else ImportWay.LINK if options.link else ImportWay.COPY
    with terminal.Interrupt() as interrupt, terminal.ProgressLine() as line:
        result = library.import_models(
            [path.expanduser() for path in options.paths], way, _shown_on(line, "Importing"), interrupt.asked
        )
    for error in result.refused:
        terminal.say_error(error)
    wanted = set(result.paths)
    imported = [item for item in library.scan() if item.path in wanted] if wanted else []
    if options.json:
        refused = [{"what": error.what, "why": error.why, "remedy": error.remedy} for error in result.refused]
        there = [str(path) for path in result.there]
        terminal.print_json({"imported": [record(item) for item in imported], "there": there, "refused": refused})
    else:
        for item in imported:
            words = "was there already, in" if item.path in result.there else "is in"
            sys.stdout.write(f"{item.name} {words} {item.path.parent}\n")
        if result.cancelled:
            terminal.say("Stopped. Nothing half-written is left.")
    return terminal.INTERRUPTED if result.cancelled else terminal.MENDABLE if result.refused else 0


def _remove(options: argparse.Namespace) -> int:
    if options.json and not options.yes:
        options.fail("argument --json: needs --yes, as nothing can be asked")
    library = _library()
    _put_in_order(library)
    item = _listed(library, options.model)
    if not options.yes and not item.root.read_only and not _agreed(item):
        return terminal.INTERRUPTED
    removal = library.remove(item)
    removal.finish()
    if options.json:
        terminal.print_json({"removed": record(item), "freed_bytes": removal.freed_bytes})
    else:
        freed = f"{size_words(removal.freed_bytes)} are free again" if removal.freed_bytes else "it was only a link"
        sys.stdout.write(f"{item.name} is gone: {freed}.\n")
    return 0


def _agreed(item: LibraryItem) -> bool:
    if not sys.stdin.isatty():
        raise UserFacingError(
            f"“{item.name}” was not removed.", "Nobody can be asked here whether that is meant.", "Add --yes."
        )
    terminal.say(f"Delete {item.name} ({size_words(item.size_bytes)}) for good? y/n")
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _named(name: str) -> LibraryItem:
    """The item that a path or a name of the list stands for. Raises UserFacingError."""
    from forespeak.models.library_files import find_beside, find_mlx
    from forespeak.models.library_item import look_at
    from forespeak.models.roots import added_root

    path = Path(name).expanduser().absolute()
    if path.exists():
        model = find_mlx(path) if path.is_dir() else find_beside(path)
        item = look_at(added_root(path.parent), model) if model is not None else None
        if item is None:
            raise UserFacingError(
                f"“{path.name}” is no model.",
                "It is neither a finished GGUF file nor a folder in the MLX format.",
                "Name a .gguf file, an MLX folder, or a model that models list shows.",
            )
        return item
    return _listed(_library(), name)


def _listed(library: Library, name: str) -> LibraryItem:
    """The item of the library that a name stands for. Raises UserFacingError."""
    from forespeak.models.library_names import named_item

    return named_item(_scan(library), name)


def _shown_on(line: terminal.ProgressLine, what: str) -> Callable[[int, int], None]:
    from forespeak.engines.engine import Progress

    def show(done: int, total: int) -> None:
        if total:
            # Where lines stay, one is enough.
            more = f" {size_words(done)} of {size_words(total)}" if sys.stderr.isatty() else ""
            line.show(Progress(done / total, what + more))

    return show


# How it looks


def _row(item: LibraryItem) -> tuple[str, ...]:
    return (
        item.name,
        "" if item.parameters is None else parameter_words(item.parameters),
        item.quantisation or "",
        size_words(item.size_bytes),
        "" if item.context_length is None else f"{item.context_length:,}",
        item.root.label,
        item.unusable_because or "",
    )


def _details(item: LibraryItem) -> list[tuple[str, str]]:
    active = "" if item.active_parameters is None else f", of which {parameter_words(item.active_parameters)} active"
    rows = [
        ("name", item.name),
        ("title", item.title),
        ("repo", item.repo),
        ("kind", item.kind.value),
        ("format", item.format.value),
        ("architecture", item.architecture),
        ("parameters", None if item.parameters is None else parameter_words(item.parameters) + active),
        ("quant", item.quantisation),
        ("context", None if item.context_length is None else f"{item.context_length:,} tokens"),
        ("vocabulary", None if item.vocabulary_size is None else f"{item.vocabulary_size:,} tokens"),
        ("fingerprint", item.vocabulary_fingerprint),
        ("chat template", "yes" if item.has_template else "no"),
        ("MTP layers", str(item.mtp_layers) if item.mtp_layers else None),
        ("size", size_words(item.size_bytes)),
        ("files", f"{len(item.files)}, first {item.path}" if len(item.files) > 1 else str(item.path)),
        ("problem", item.unusable_because),
    ]
    return [(name, words) for name, words in rows if words]


def record(item: LibraryItem) -> dict[str, Any]:
    """The item as plain JSON values."""
    return {
        "name": item.name,
        "title": item.title,
        "repo": item.repo,
        "path": str(item.path),
        "files": [str(path) for path in item.files],
        "folder": item.root.label,
        "read_only": item.root.read_only,
        "format": item.format.value,
        "kind": item.kind.value,
        "architecture": item.architecture,
        "parameters": item.parameters,
        "active_parameters": item.active_parameters,
        "quantisation": item.quantisation,
        "context_length": item.context_length,
        "vocabulary_size": item.vocabulary_size,
        "vocabulary_fingerprint": item.vocabulary_fingerprint,
        "has_template": item.has_template,
        "mtp_layers": item.mtp_layers,
        "size_bytes": item.size_bytes,
        "modified": item.modified,
        "usable": item.usable,
        "problem": item.unusable_because,
    }


def memory_record(plan: MemoryPlan) -> dict[str, Any]:
    """The plan as plain JSON values."""
    return {
        "fit": plan.fit.value,
        "sentence": plan.sentence,
        "needed_bytes": plan.needed_bytes,
        "context_length": plan.context_length,
        "parts": [
            {"of": part.of or "engine", "kind": part.kind.value, "device": part.device, "size_bytes": part.size_bytes}
            for part in plan.parts
        ],
        "devices": [asdict(device) | {"fit": device.fit.value} for device in plan.devices],
        "suggestions": [{"kind": each.kind.value, "words": each.words} for each in plan.suggestions],
    }

"""`forespeak models search` and `files`: the Hub on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from forespeak import terminal
from forespeak.models.folders import folders
from forespeak.models.sizes import parameter_words, size_words
from forespeak.sampling_arguments import whole

if TYPE_CHECKING:
    from forespeak.models.hub import Hub
    from forespeak.models.hub_files import HubFileGroup
    from forespeak.models.hub_results import HubModel, HubRepo
    from forespeak.models.memory import Fit

_MOST_PAGES = 20
"""Where hardly anything fits this machine, the Hub is not asked for all that it has."""
_SORTS = {"trending": "TRENDING", "downloads": "DOWNLOADS", "likes": "LIKES", "updated": "UPDATED"}


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the two commands to those of `forespeak models`."""
    search = commands.add_parser(
        "search",
        help="look for models on the Hub",
        description="Look for models on the Hub. The Hub's address, a proxy and a token are those of the settings; "
        "HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE are respected.",
    )
    search.set_defaults(command=_search, fail=search.error)
    add = search.add_argument
    add("text", nargs="*", metavar="TEXT", help="words of the name; without any, all models in the given order")
    add("--format", choices=("gguf", "mlx"), default="gguf", help="default: gguf")
    add("--licence", "--license", metavar="L", help="the Hub's short name of a licence, such as apache-2.0")
    add("--author", metavar="OWNER", help="only repos of this owner")
    add("--sort", choices=tuple(_SORTS), default="trending", help="highest or newest first (default: trending)")
    add("--fits", action="store_true", help="leave out what is too large for this machine")
    add("--limit", type=whole(1), default=30, metavar="N", help="how many to list (default: 30)")
    add("--json", action="store_true", help="print what was found as JSON")

    files = commands.add_parser(
        "files",
        help="what can be downloaded from a repo",
        description="List the models of a repo by quant, with their parts, and whether they would fit this machine.",
    )
    files.set_defaults(command=_files, fail=files.error)
    add = files.add_argument
    add("repo", metavar="OWNER/NAME", help="a repo, or the address of its page")
    add("--revision", metavar="R", help="a branch, a tag, or a commit (default: the newest)")
    add("--json", action="store_true", help="print what there is as JSON")


@contextmanager
def _connect() -> Iterator[Hub]:
    """The Hub by the user's settings and token."""
    from forespeak.models.hub import Hub
    from forespeak.models.hub_client import users_client

    client = users_client(folders().config)
    try:
        yield Hub(client)
    finally:
        client.close()


def _judge() -> Callable[[int], Fit]:
    """Tells whether so many bytes would fit the memory that is free now, that of graphics processors too."""
    from forespeak.models.memory import fit_of
    from forespeak.pairing.load_plan import machine_now

    machine = machine_now()
    return lambda size: fit_of(size, machine)


def _search(options: argparse.Namespace) -> int:
    from forespeak.models.formats import ModelFormat
    from forespeak.models.hub_results import SearchQuery, Sort
    from forespeak.models.memory import Fit

    fit = _judge()
    query = SearchQuery(
        " ".join(options.text),
        ModelFormat[options.format.upper()],
        options.licence,
        options.author,
        Sort[_SORTS[options.sort]],
        (lambda size: fit(size) is not Fit.TOO_LARGE) if options.fits else None,
        min(options.limit, 100),
    )
    found: list[HubModel] = []
    left_out, more, pages = 0, False, 0
    with _connect() as hub, terminal.Interrupt() as interrupt:
        for page in hub.pages(query, interrupt.asked):
            found += page.models
            left_out += page.left_out
            more = page.cursor is not None or len(found) > options.limit
            pages += 1
            if len(found) >= options.limit or pages == _MOST_PAGES:
                break
    found = found[: options.limit]
    if options.json:
        terminal.print_json(
            {"models": [_model_record(model, fit) for model in found], "more": more, "left_out": left_out}
        )
    elif found:
        rows: list[tuple[str, ...]] = [("repo", "parameters", "downloads", "likes", "updated", "licence", "")]
        rows += [_model_row(model, fit) for model in found]
        terminal.print_table(rows, right=(1, 2, 3))
        notes = [f"{left_out} more would be too large here."] if left_out else []
        notes += ["There are more: ask for them with --limit."] if more else []
        if notes:
            terminal.say(" ".join(notes))
    elif not interrupt.asked():
        terminal.say("All that was found is too large for this machine." if left_out else "Nothing was found.")
    return terminal.INTERRUPTED if interrupt.asked() else 0


def _files(options: argparse.Namespace) -> int:
    from forespeak.models.hub import repo_in

    with _connect() as hub, terminal.Interrupt() as interrupt:
        repo = hub.repo(repo_in(options.repo) or options.repo, options.revision, interrupt.asked)
    if repo is None:
        return terminal.INTERRUPTED
    fit = _judge()
    if options.json:
        terminal.print_json(_repo_record(repo, fit))
        return 0
    if repo.groups:
        rows: list[tuple[str, ...]] = [("quant", "size", "", "files")]
        rows += [_group_row(group, fit) for group in repo.groups]
        terminal.print_table(rows, right=(1,))
    else:
        terminal.say(f"{repo.repo} holds no model that Forespeak can load.")
    if (hint := _gate_hint(repo)) is not None:
        terminal.say(hint)
    return 0


def _gate_hint(repo: HubRepo) -> str | None:
    from forespeak.models.hub_results import Gate

    if repo.model.gate is Gate.OPEN:
        return None
    return f"Its files are only for those who accept the licence at {repo.page}."


def _model_row(model: HubModel, fit: Callable[[int], Fit]) -> tuple[str, ...]:
    size = model.least_bytes
    notes = [*(["gated"] if model.gate.value != "open" else []), *(["private"] if model.private else [])]
    notes += [] if size is None else [fit(size).value]
    return (
        model.repo,
        "" if model.parameters is None else parameter_words(model.parameters),
        "" if model.downloads is None else f"{model.downloads:,}",
        "" if model.likes is None else f"{model.likes:,}",
        "" if model.updated is None else f"{model.updated:%Y-%m-%d}",
        model.licence or "",
        ", ".join(notes),
    )


def _group_row(group: HubFileGroup, fit: Callable[[int], Fit]) -> tuple[str, ...]:
    from forespeak.models.gguf import GgufKind

    if group.kind is not GgufKind.MODEL:
        note = group.kind.value
    else:
        note = group.problem or fit(group.size_bytes).value
    count = len(group.files)
    files = group.files[0].path if count == 1 else f"{group.name}, {count} files"
    return group.label or "", size_words(group.size_bytes), note, files


def _model_record(model: HubModel, fit: Callable[[int], Fit]) -> dict[str, Any]:
    return {
        "repo": model.repo,
        "downloads": model.downloads,
        "likes": model.likes,
        "updated": model.updated.isoformat() if model.updated else None,
        "licence": model.licence,
        "access": model.gate.name.lower(),
        "private": model.private,
        "formats": sorted(each.value for each in model.formats),
        "parameters": model.parameters,
        "architecture": model.architecture,
        "context_length": model.context_length,
        "usual_bytes": model.least_bytes,
        "fits": None if model.least_bytes is None else fit(model.least_bytes).value,
    }


def _repo_record(repo: HubRepo, fit: Callable[[int], Fit]) -> dict[str, Any]:
    return {
        **_model_record(repo.model, fit),
        "revision": repo.revision,
        "page": repo.page,
        "groups": [
            {
                "label": group.label,
                "name": group.name,
                "format": group.format.value,
                "kind": group.kind.value,
                "size_bytes": group.size_bytes,
                "shards": group.shards,
                "problem": group.problem,
                "fits": fit(group.size_bytes).value,
                "files": [
                    {"path": file.path, "size_bytes": file.size_bytes, "sha256": file.sha256} for file in group.files
                ],
            }
            for group in repo.groups
        ],
    }

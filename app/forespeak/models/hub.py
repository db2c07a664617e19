"""The Hub of models: search it, look into a repo, read its card.

Everything here waits for the network and belongs on a thread of its own; a Hub may be used from several at once.
What comes back is checked: a mirror may answer anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from forespeak.models.formats import ModelFormat
from forespeak.models.hub_answers import TAGS, card_text, files_of, is_repo, json_of, model_of
from forespeak.models.hub_client import Answer, Cancelled, HubClient
from forespeak.models.hub_errors import Asked, HubError, HubProblem, nonsense
from forespeak.models.hub_files import HubFile, group_files
from forespeak.models.hub_results import Card, HubModel, HubRepo, SearchPage, SearchQuery

MOST_JSON_BYTES = 16 << 20
MOST_CARD_BYTES = 512 << 10
MOST_TREE_PAGES = 50
_EXPAND = ("downloads", "likes", "lastModified", "gated", "private", "tags", "library_name", "gguf")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def _never() -> bool:
    return False


class Hub:
    """One Hub or mirror. Every method raises HubError, and returns None only where it was cancelled."""

    def __init__(self, client: HubClient) -> None:
        self.client = client

    def search(
        self, query: SearchQuery, cursor: str | None = None, cancelled: Callable[[], bool] = _never
    ) -> SearchPage | None:
        """The first page of what is found, or the one that `cursor` of an earlier page stands for."""
        filters = [TAGS[query.format], *([f"license:{query.licence}"] if query.licence else [])]
        params: list[tuple[str, Any]] = [("filter", each) for each in filters]
        params += [("search", query.text.strip())] if query.text.strip() else []
        params += [("author", query.author)] if query.author else []
        params += [("sort", query.sort.value), ("limit", query.page_size)]
        params += [("expand", each) for each in _EXPAND]
        asked = self.client.asked()
        try:
            answer = self._get(
                "/api/models", asked, _gathered(params if cursor is None else parse_qsl(cursor)), cancelled
            )
        except Cancelled:
            return None
        listed = json_of(answer, asked)
        if not isinstance(listed, list):
            raise nonsense(asked, "It sends something else than a list of models.")
        models = [model_of(each, each["id"]) for each in listed if isinstance(each, dict) and is_repo(each.get("id"))]
        fitting = [model for model in models if _may_fit(model, query.fits)]
        return SearchPage(tuple(fitting), _cursor(answer), len(models) - len(fitting))

    def pages(self, query: SearchQuery, cancelled: Callable[[], bool] = _never) -> Iterator[SearchPage]:
        """One page after the other, each asked for when it is wanted; ends early where it was cancelled."""
        cursor = None
        while (page := self.search(query, cursor, cancelled)) is not None:
            yield page
            cursor = page.cursor
            if cursor is None:
                return

    def repo(self, name: str, revision: str | None = None, cancelled: Callable[[], bool] = _never) -> HubRepo | None:
        """What a repo holds, at its newest commit or at `revision`: two requests at most for an ordinary one."""
        asked = self.client.asked(name)
        if not is_repo(name):
            raise _misspelt(name)
        path = f"/api/models/{name}" + (f"/revision/{quote(revision, safe='')}" if revision else "")
        try:
            about = json_of(self._get(path, asked, {"blobs": "true"}, cancelled), asked)
            if not isinstance(about, dict):
                raise nonsense(asked, "It sends something else than a description of the repo.")
            commit = about.get("sha")
            if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
                raise nonsense(asked, "It does not say which version of the repo this is.")
            files = files_of(about.get("siblings"), "rfilename", "sha256")
            if files is None:
                files = self._tree(name, commit, asked, cancelled)
        except Cancelled:
            return None
        # A renamed repo answers under its new name, which is the one that lasts.
        model = model_of(about, about["id"] if is_repo(about.get("id")) else name)
        groups = group_files(model.repo, commit, files, ModelFormat.MLX in model.formats)
        return HubRepo(model, commit, f"{self.client.endpoint}/{model.repo}", files, groups)

    def card(self, repo: HubRepo, cancelled: Callable[[], bool] = _never) -> Card | None:
        """The repo's README as Markdown; an empty one if there is none."""
        path = next((file.path for file in repo.files if file.path.lower() == "readme.md"), None)
        if path is None:
            return Card("")
        asked = self.client.asked(repo.repo, path)
        address = f"/{repo.repo}/resolve/{repo.revision}/{quote(path)}"
        try:
            answer = self._get(address, asked, None, cancelled, MOST_CARD_BYTES)
        except Cancelled:
            return None
        return Card(card_text(answer.body), not answer.complete)

    def account(self) -> str:
        """The name of the account that the token belongs to. Raises HubError: TOKEN_MISSING, TOKEN_WRONG, …"""
        asked = self.client.asked()
        about = json_of(self._get("/api/whoami-v2", asked, None, _never), asked)
        name = about.get("name") if isinstance(about, dict) else None
        if not isinstance(name, str):
            raise nonsense(asked, "It does not say whose token this is.")
        return name

    def _tree(self, name: str, commit: str, asked: Asked, cancelled: Callable[[], bool]) -> tuple[HubFile, ...]:
        """All files with their sizes, page by page, where the description of the repo has none."""
        files: list[HubFile] = []
        params: dict[str, Any] | None = {"recursive": "true"}
        for _ in range(MOST_TREE_PAGES):
            answer = self._get(f"/api/models/{name}/tree/{commit}", asked, params, cancelled)
            found = files_of(json_of(answer, asked), "path", "oid")
            if found is None:
                raise nonsense(asked, "It lists no files with their sizes.")
            files += found
            following = _cursor(answer)
            if following is None:
                return tuple(files)
            params = _gathered(parse_qsl(following))
        raise nonsense(asked, "Its list of files has no end.")

    def _get(
        self,
        path: str,
        asked: Asked,
        params: Mapping[str, Any] | None,
        cancelled: Callable[[], bool],
        most: int | None = None,
    ) -> Answer:
        if cancelled():
            raise Cancelled
        url = self.client.endpoint + path
        return self.client.get(url, asked, most=most or MOST_JSON_BYTES, params=params, cancelled=cancelled)


def repo_in(text: str) -> str | None:
    """The repo that somebody pasted, as `owner/name` or as an address of its page; None if it is something else."""
    text = text.strip()
    if "://" in text:
        text = "/".join(urlsplit(text).path.strip("/").split("/")[:2])
    return text if is_repo(text) else None


def _gathered(pairs: list[tuple[str, Any]]) -> dict[str, list[Any]]:
    """Pairs by their keys, repeated ones in order."""
    gathered: dict[str, list[Any]] = {}
    for key, value in pairs:
        gathered.setdefault(key, []).append(value)
    return gathered


def _cursor(answer: Answer) -> str | None:
    """The query of the next page. Its server is not taken over: mirrors name the original there."""
    return urlsplit(answer.next_page).query or None if answer.next_page else None


def _may_fit(model: HubModel, fits: Callable[[int], bool] | None) -> bool:
    return fits is None or model.least_bytes is None or fits(model.least_bytes)


def _misspelt(name: str) -> HubError:
    return HubError(
        HubProblem.NO_SUCH_REPO,
        f"“{name}” is not the name of a repo.",
        "A repo is named by its owner and its own name, with a slash between them.",
        "Write it like owner/name.",
    )

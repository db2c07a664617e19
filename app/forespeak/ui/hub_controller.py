"""What is looked for on the Hub and what came of it: the search with its pages, and the repo that is open."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from enum import Enum

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from forespeak.errors import UserFacingError
from forespeak.models.hub import repo_in
from forespeak.models.hub_errors import offline_error
from forespeak.models.hub_results import Card, HubModel, HubRepo, SearchPage, SearchQuery
from forespeak.ui.card_text import card_markdown
from forespeak.ui.hub_account import HubAccount
from forespeak.ui.latest import Latest

SEARCH_DELAY_MS = 350
_EMPTY_PAGES = 5
"""Pages in a row without anything that fits, after which one has to ask for more."""


class SearchState(Enum):
    FIRST = "first"
    """Nothing was asked yet, and nothing is sent until somebody does."""
    SEARCHING = "searching"
    FOUND = "found"
    NOTHING = "nothing"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class SearchStatus:
    """`models` stay while a new search runs. `left_out` were found and do not fit this machine.

    `more`: there is another page; `more_error`: it could not be loaded.
    """

    state: SearchState = SearchState.FIRST
    query: SearchQuery = field(default_factory=SearchQuery)
    models: tuple[HubModel, ...] = ()
    left_out: int = 0
    more: bool = False
    loading_more: bool = False
    more_error: UserFacingError | None = None
    error: UserFacingError | None = None


@dataclass(frozen=True, slots=True)
class RepoStatus:
    """`name` None: no repo is open. `card` None: not there yet, or `card_error`; its text is without HTML."""

    name: str | None = None
    model: HubModel | None = None
    repo: HubRepo | None = None
    card: Card | None = None
    error: UserFacingError | None = None
    card_error: UserFacingError | None = None

    @property
    def loading(self) -> bool:
        return self.name is not None and self.repo is None and self.error is None


class HubController(QObject):
    """Asks the Hub off the UI thread. What is asked anew makes the question before it void."""

    searchChanged = Signal(object)
    repoChanged = Signal(object)

    def __init__(self, account: HubAccount, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._account = account
        self._search = SearchStatus()
        self._repo = RepoStatus()
        self._wanted = SearchQuery()
        self._cursor: str | None = None
        self._searching = Latest("hub search", self)
        self._paging = Latest("hub pages", self)
        self._opening = Latest("hub repo", self)
        self._reading = Latest("hub card", self)
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(SEARCH_DELAY_MS)
        self._later.timeout.connect(self._start)
        account.settingsChanged.connect(self._settings_changed)

    @property
    def search(self) -> SearchStatus:
        return self._search

    @property
    def repo(self) -> RepoStatus:
        return self._repo

    # -- searching

    def type_query(self, query: SearchQuery) -> None:
        """Somebody is typing: search when they pause."""
        self._wanted = query
        self._later.start()

    def ask(self, query: SearchQuery) -> None:
        """Search now. The name or address of a repo opens it as well: it may be private, or not a model of ours."""
        self._wanted = query
        self._start()
        name = repo_in(query.text)
        if name is not None:
            self.open_repo(name)

    @Slot()
    def retry(self) -> None:
        self._start()

    @Slot()
    def load_more(self) -> None:
        """The next page, unless it is on its way or there is none."""
        status = self._search
        if status.state is not SearchState.FOUND or not status.more or status.loading_more or status.more_error:
            return
        self._load_more()

    @Slot()
    def retry_more(self) -> None:
        if self._search.more and not self._search.loading_more:
            self._load_more()

    @Slot()
    def _start(self) -> None:
        self._later.stop()
        self._paging.cancel()
        query = self._wanted
        before = self._search
        if self._account.offline:
            self._searching.cancel()
            self._show_search(SearchStatus(SearchState.FAILED, query, error=offline_error()))
            return
        self._show_search(
            replace(before, state=SearchState.SEARCHING, query=query, error=None, more_error=None, loading_more=False)
        )
        account = self._account

        # The Hub's search knows names, not the addresses that people paste.
        asked = replace(query, text=repo_in(query.text) or query.text)
        self._searching.run(lambda stop: _pages(account, asked, None, stop), self._found, self._not_found)

    def _found(self, page: SearchPage | None) -> None:
        if page is None:
            return
        self._cursor = page.cursor
        empty = not page.models and page.cursor is None
        state = SearchState.NOTHING if empty else SearchState.FOUND
        self._show_search(
            SearchStatus(state, self._wanted, page.models, left_out=page.left_out, more=page.cursor is not None)
        )

    def _not_found(self, error: Exception) -> None:
        self._show_search(SearchStatus(SearchState.FAILED, self._wanted, error=_shown(error)))

    def _load_more(self) -> None:
        query, cursor, account = self._search.query, self._cursor, self._account
        self._show_search(replace(self._search, loading_more=True, more_error=None))
        self._paging.run(lambda stop: _pages(account, query, cursor, stop), self._more_came, self._more_failed)

    def _more_came(self, page: SearchPage | None) -> None:
        if page is None:
            return
        self._cursor = page.cursor
        status = self._search
        known = {model.repo for model in status.models}
        # What moved between two pages comes twice.
        new = tuple(model for model in page.models if model.repo not in known)
        models = status.models + new
        self._show_search(
            replace(
                status,
                state=SearchState.FOUND if models or page.cursor else SearchState.NOTHING,
                models=models,
                left_out=status.left_out + page.left_out,
                more=page.cursor is not None,
                loading_more=False,
            )
        )

    def _more_failed(self, error: Exception) -> None:
        self._show_search(replace(self._search, loading_more=False, more_error=_shown(error)))

    # -- one repo

    def open_repo(self, name: str, model: HubModel | None = None) -> None:
        """Show a repo; `model` is what a search said of it. Opening what is open does nothing."""
        if name == self._repo.name and self._repo.error is None:
            return
        self._open(name, model)

    def close_repo(self) -> None:
        self._opening.cancel()
        self._reading.cancel()
        self._show_repo(RepoStatus())

    @Slot()
    def reload_repo(self) -> None:
        if self._repo.name is not None:
            self._open(self._repo.name, self._repo.model)

    @Slot()
    def retry_card(self) -> None:
        if self._repo.repo is not None:
            self._read_card(self._repo.repo)

    def _open(self, name: str, model: HubModel | None) -> None:
        self._reading.cancel()
        if self._account.offline:
            self._opening.cancel()
            self._show_repo(RepoStatus(name, model, error=offline_error()))
            return
        self._show_repo(RepoStatus(name, model))
        account = self._account
        self._opening.run(lambda stop: account.hub().repo(name, cancelled=stop.is_set), self._opened, self._not_opened)

    def _opened(self, repo: HubRepo | None) -> None:
        if repo is None:
            return
        self._show_repo(replace(self._repo, model=repo.model, repo=repo))
        self._read_card(repo)

    def _not_opened(self, error: Exception) -> None:
        self._show_repo(replace(self._repo, error=_shown(error)))

    def _read_card(self, repo: HubRepo) -> None:
        self._show_repo(replace(self._repo, card=None, card_error=None))
        account = self._account

        def read(stop: threading.Event) -> Card | None:
            card = account.hub().card(repo, cancelled=stop.is_set)
            # A long one takes a while.
            return None if card is None else replace(card, text=card_markdown(card.text))

        self._reading.run(read, self._card_came, self._card_failed)

    def _card_came(self, card: Card | None) -> None:
        if card is not None:
            self._show_repo(replace(self._repo, card=card))

    def _card_failed(self, error: Exception) -> None:
        self._show_repo(replace(self._repo, card_error=_shown(error)))

    # -- the rest

    @Slot()
    def _settings_changed(self) -> None:
        """Another Hub, or another token: what failed may go now, and what was found may not hold."""
        if self._search.state is not SearchState.FIRST:
            self._start()
        if self._repo.name is not None:
            self.reload_repo()

    def close(self) -> None:
        self._later.stop()
        for asking in (self._searching, self._paging, self._opening, self._reading):
            # The window does not wait for the network.
            asking.close(0.0)

    def _show_search(self, status: SearchStatus) -> None:
        self._search = status
        self.searchChanged.emit(status)

    def _show_repo(self, status: RepoStatus) -> None:
        self._repo = status
        self.repoChanged.emit(status)


def _pages(account: HubAccount, query: SearchQuery, cursor: str | None, stop: threading.Event) -> SearchPage | None:
    """The next page with anything in it: with a filter of ours, the Hub's own pages may be empty."""
    hub = account.hub()
    left_out = 0
    page: SearchPage | None = None
    for _ in range(_EMPTY_PAGES):
        page = hub.search(query, cursor, stop.is_set)
        if page is None:
            return None
        left_out += page.left_out
        cursor = page.cursor
        if page.models or cursor is None:
            break
    return None if page is None else SearchPage(page.models, cursor, left_out)


def _shown(error: Exception) -> UserFacingError:
    """What the world did wrong; anything else is our bug, and goes to the crash dialog."""
    if isinstance(error, UserFacingError):
        return error
    raise error

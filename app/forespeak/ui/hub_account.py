"""How the Hub is reached and who asks it: the settings and the token, for the pages that show and change them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from PySide6.QtCore import QObject, Signal

from forespeak.errors import UserFacingError
from forespeak.models.hub import Hub
from forespeak.models.hub_client import HubClient
from forespeak.models.hub_results import Card, HubRepo, SearchPage, SearchQuery
from forespeak.models.hub_settings import HubSettings, HubSettingsFile, forced_offline
from forespeak.models.hub_token import TokenSource, TokenStore
from forespeak.ui.background import Worker


class HubLike(Protocol):
    """What is asked of a Hub: `models.hub.Hub`. Waits for the network; raises HubError; None where it was cancelled."""

    def search(
        self, query: SearchQuery, cursor: str | None = None, cancelled: Callable[[], bool] = ...
    ) -> SearchPage | None: ...

    def repo(self, name: str, revision: str | None = None, cancelled: Callable[[], bool] = ...) -> HubRepo | None: ...

    def card(self, repo: HubRepo, cancelled: Callable[[], bool] = ...) -> Card | None: ...

    def account(self) -> str: ...


@dataclass(frozen=True, slots=True)
class TokenStatus:
    """`source` None: there is none, or it was not looked for yet (`known` False). `hint` tells two tokens apart.

    `keyring_problem`: why a token cannot be kept beyond this session. `user` is whose token it is, once it was tested.
    """

    known: bool = False
    source: TokenSource | None = None
    hint: str = ""
    keyring_problem: str | None = None
    busy: bool = False
    user: str | None = None
    error: UserFacingError | None = None


class HubAccount(QObject):
    """Keeps settings and token; `hub` gives the Hub that they lead to, from any thread."""

    settingsChanged = Signal(object)
    """HubSettings: what was asked before may have another answer now."""
    tokenChanged = Signal(object)
    """TokenStatus"""
    problemFound = Signal(object)
    """UserFacingError: the settings could not be saved."""

    def __init__(
        self,
        file: HubSettingsFile,
        tokens: TokenStore,
        connect: Callable[[HubClient], HubLike] = Hub,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._file = file
        self._tokens = tokens
        self._connect = connect
        self._worker = Worker("hub account", self)
        self._lock = threading.Lock()
        self._client: HubClient | None = None
        self._clients: list[HubClient] = []
        """All there were: a download may still read through a former one."""
        self._hub: HubLike | None = None
        self._settings = file.read()
        self._status = TokenStatus()

    @property
    def settings(self) -> HubSettings:
        return self._settings

    @property
    def status(self) -> TokenStatus:
        return self._status

    @property
    def offline(self) -> bool:
        """By the settings, or because the environment forbids the network."""
        return self._settings.offline or forced_offline()

    @property
    def tokens(self) -> TokenStore:
        return self._tokens

    def client(self) -> HubClient:
        """The way to the Hub by the settings and the token of now."""
        with self._lock:
            return self._current_client()

    def hub(self) -> HubLike:
        with self._lock:
            if self._hub is None:
                self._hub = self._connect(self._current_client())
            return self._hub

    def _current_client(self) -> HubClient:
        if self._client is None:
            settings, tokens = self._settings, self._tokens
            self._client = HubClient(settings, lambda: tokens.token(settings.endpoint))
            self._clients.append(self._client)
        return self._client

    def set_settings(self, settings: HubSettings) -> None:
        """Take these over at once and keep them."""
        if settings == self._settings:
            return
        other_place = settings.endpoint != self._settings.endpoint
        with self._lock:
            self._settings = settings
            self._client = self._hub = None
        self._worker.run(lambda: self._file.write(settings), failed=self._not_saved)
        self.settingsChanged.emit(settings)
        if other_place:
            self._show(TokenStatus())
            self.look()

    def look(self) -> None:
        """Find out whether there is a token. A keyring may be slow, and may ask for its password."""
        endpoint = self._settings.endpoint
        self._worker.run(lambda: self._find(endpoint), self._found)

    def store_token(self, value: str) -> None:
        """Keep it and try it: `tokenChanged` tells the outcome."""
        endpoint = self._settings.endpoint
        self._show(replace(self._status, busy=True, error=None, user=None))

        def store() -> TokenStatus:
            self._tokens.store(endpoint, value)
            self._forget_hub()
            return self._tried(endpoint)

        self._worker.run(store, self._token_came, self._failed)

    def forget_token(self) -> None:
        endpoint = self._settings.endpoint
        self._show(replace(self._status, busy=True, error=None, user=None))

        def forget() -> TokenStatus:
            self._tokens.forget(endpoint)
            self._forget_hub()
            return self._find(endpoint)

        self._worker.run(forget, self._token_came, self._failed)

    def test(self) -> None:
        """Ask the Hub whose token it is."""
        endpoint = self._settings.endpoint
        self._show(replace(self._status, busy=True, error=None, user=None))
        self._worker.run(lambda: self._tried(endpoint), self._found, self._failed)

    def close(self) -> None:
        """Once nobody asks any more: connections that are kept open end too."""
        self._worker.close(0.1)
        with self._lock:
            for client in self._clients:
                client.close()

    # -- on the worker

    def _find(self, endpoint: str) -> TokenStatus:
        token = self._tokens.token(endpoint)
        problem = self._tokens.keyring_problem()
        if token is None:
            return TokenStatus(known=True, keyring_problem=problem)
        return TokenStatus(known=True, source=token.source, hint=token.hint, keyring_problem=problem)

    def _tried(self, endpoint: str) -> TokenStatus:
        status = self._find(endpoint)
        try:
            return replace(status, user=self.hub().account())
        except UserFacingError as error:
            return replace(status, error=error)

    def _forget_hub(self) -> None:
        with self._lock:
            self._client = self._hub = None

    # -- outcomes

    def _found(self, status: TokenStatus) -> None:
        self._show(status)

    def _token_came(self, status: TokenStatus) -> None:
        self._show(status)
        self.settingsChanged.emit(self._settings)

    def _failed(self, error: Exception) -> None:
        if not isinstance(error, UserFacingError):
            raise error
        self._show(replace(self._status, busy=False, error=error))

    def _not_saved(self, error: Exception) -> None:
        if not isinstance(error, UserFacingError):
            raise error
        self.problemFound.emit(error)

    def _show(self, status: TokenStatus) -> None:
        if status != self._status:
            self._status = status
            self.tokenChanged.emit(status)

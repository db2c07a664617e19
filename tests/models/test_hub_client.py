"""What every request to the Hub goes through: limits of time, proxy, offline, and who gets the token."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Callable, Iterator
from typing import NoReturn

import pytest

from forespeak.models import hub_client
from forespeak.models.hub import Hub
from forespeak.models.hub_client import HubClient
from forespeak.models.hub_errors import HubError, HubProblem
from forespeak.models.hub_results import SearchQuery
from forespeak.models.hub_settings import HubSettings
from forespeak.models.hub_token import Token, TokenSource
from loopback_api import Script, ScriptedServer, hubs
from loopback_hub import Fault, LoopbackHub, Repo

FOUND = Script(body=b'[{"id": "o/m"}]')


@pytest.fixture
def loopback() -> Iterator[LoopbackHub]:
    with LoopbackHub() as server:
        server.add(Repo("o/m", {"README.md": b"Hello", "m-Q4_0.gguf": b"1234"}))
        yield server


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def at() -> Iterator[Callable[..., Hub]]:
    with hubs() as make:
        yield make


def problem_of(hub: Hub) -> HubProblem:
    with pytest.raises(HubError) as error:
        hub.search(SearchQuery())
    assert error.value.what
    return error.value.problem


# The token


def test_the_token_goes_to_the_hub(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    at(loopback.endpoint, "hf_secret").search(SearchQuery())
    at(loopback.endpoint).search(SearchQuery())
    assert [request.token for request in loopback.requests] == ["Bearer hf_secret", None]


def test_the_token_follows_no_redirect_to_another_server(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    with ScriptedServer(FOUND) as other:
        loopback.hub_faults.append(Fault(location=f"{other.address}/api/models"))
        assert at(loopback.endpoint, "hf_secret").search(SearchQuery()) is not None
        assert [request.headers.get("authorization") for request in other.requests] == [None]


def test_the_token_goes_to_no_location_elsewhere(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    with ScriptedServer(Script(headers={"ETag": '"x"'})) as other:
        loopback.hub_faults.append(Fault(location=f"{other.address}/m-Q4_0.gguf"))
        client = at(loopback.endpoint, "hf_secret").client
        location = client.locate("o/m", "main", "m-Q4_0.gguf")
        assert location.url.startswith(other.address)
        with client.stream("GET", location.url, client.asked("o/m")) as response:
            response.read()
        assert {request.headers.get("authorization") for request in other.requests} == {None}


def test_the_token_is_not_sent_where_it_could_be_read(at: Callable[..., Hub]) -> None:
    """Over plain http it goes no further than this machine; the proxy shows what would have left it."""
    with ScriptedServer(FOUND) as proxy:
        at("http://hub.example", "hf_secret", proxy=proxy.address).search(SearchQuery())
        assert proxy.requests[0].path.startswith("http://hub.example/api/models?")
        assert "authorization" not in proxy.requests[0].headers


def test_two_hubs_at_once_do_not_share_a_token(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    with LoopbackHub() as second:
        hubs = [(at(loopback.endpoint, "hf_first"), loopback), (at(second.endpoint, "hf_second"), second)]
        threads = [
            threading.Thread(target=lambda hub=hub: [hub.search(SearchQuery()) for _ in range(5)]) for hub, _ in hubs
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [{request.token for request in server.requests} for _, server in hubs] == [
            {"Bearer hf_first"},
            {"Bearer hf_second"},
        ]


def test_the_token_is_looked_up_once_and_only_when_needed(loopback: LoopbackHub) -> None:
    looked: list[int] = []

    def find() -> Token:
        looked.append(1)
        return Token("hf_secret", TokenSource.KEYRING)

    client = HubClient(HubSettings(loopback.endpoint), find)
    assert looked == []
    hub = Hub(client)
    hub.search(SearchQuery())
    hub.search(SearchQuery())
    client.close()
    assert looked == [1]
    assert client.has_token


def test_the_librarys_own_token_is_not_used(
    loopback: LoopbackHub, at: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_environment")
    hub = at(loopback.endpoint)
    hub.search(SearchQuery())
    hub.client.locate("o/m", "main", "m-Q4_0.gguf")
    assert {request.token for request in loopback.requests} == {None}


# Working offline, and telling nobody


def test_offline_asks_nothing(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    hub = at(loopback.endpoint, offline=True)
    assert problem_of(hub) is HubProblem.OFFLINE
    with pytest.raises(HubError) as error:
        hub.client.locate("o/m", "main", "m-Q4_0.gguf")
    assert error.value.problem is HubProblem.OFFLINE
    assert loopback.requests == []


def test_the_environment_can_force_offline(
    loopback: LoopbackHub, at: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(HubError, match="HF_HUB_OFFLINE") as error:
        at(loopback.endpoint).search(SearchQuery())
    assert error.value.problem is HubProblem.OFFLINE
    assert loopback.requests == []


def test_nothing_is_reported_about_the_user(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    from huggingface_hub import constants

    at(loopback.endpoint).repo("o/m")
    assert constants.HF_HUB_DISABLE_TELEMETRY
    assert [request.path for request in loopback.requests] == ["/api/models/o/m?blobs=true"]
    agent = loopback.requests[0].headers["user-agent"]
    assert agent.startswith("forespeak/")
    assert "torch" not in agent
    assert "agent/" not in agent


# Where a file is


def test_a_file_is_located_by_one_request(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    repo = loopback.repos["o/m"]
    location = at(loopback.endpoint).client.locate("o/m", repo.commit, "m-Q4_0.gguf")
    assert location.url.startswith(f"{loopback.cdn}/blobs/")
    assert (location.commit, location.size_bytes) == (repo.commit, 4)
    assert location.etag == repo.files["m-Q4_0.gguf"].sha256
    assert [(request.method, request.path) for request in loopback.requests] == [
        ("HEAD", f"/o/m/resolve/{repo.commit}/m-Q4_0.gguf")
    ]


@pytest.mark.parametrize(
    ("repo", "path", "problem"),
    [
        ("o/m", "missing.gguf", HubProblem.NO_SUCH_FILE),
        ("o/none", "m-Q4_0.gguf", HubProblem.PRIVATE_OR_MISSING),
        ("not a repo", "m-Q4_0.gguf", HubProblem.PRIVATE_OR_MISSING),
    ],
)
def test_a_file_that_is_not_there(
    loopback: LoopbackHub, at: Callable[..., Hub], repo: str, path: str, problem: HubProblem
) -> None:
    with pytest.raises(HubError) as error:
        at(loopback.endpoint).client.locate(repo, "main", path)
    assert error.value.problem is problem


@pytest.mark.parametrize(("status", "problem"), [(500, HubProblem.SERVER), (429, HubProblem.RATE_LIMITED)])
def test_locating_does_not_try_again_and_again(
    loopback: LoopbackHub, at: Callable[..., Hub], status: int, problem: HubProblem
) -> None:
    loopback.hub_faults.append(Fault(status=status))
    with pytest.raises(HubError) as error:
        at(loopback.endpoint).client.locate("o/m", "main", "m-Q4_0.gguf")
    assert error.value.problem is problem
    assert len(loopback.requests) == 1


def test_the_library_by_itself_has_limits_of_time_too(
    loopback: LoopbackHub, at: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import HfApi

    at(loopback.endpoint).search(SearchQuery())
    monkeypatch.setattr(hub_client, "SILENCE_SECONDS", 0.1)
    loopback.hub_faults.append(Fault(stall=True))
    with pytest.raises(Exception, match="timed out"):
        HfApi(endpoint=loopback.endpoint, token=False).model_info("o/m")
    assert HfApi(endpoint=loopback.endpoint, token=False).model_info("o/m").id == "o/m"


# Proxies


def test_a_proxy_is_asked_for_everything(at: Callable[..., Hub]) -> None:
    with ScriptedServer(FOUND) as proxy:
        address = proxy.address.replace("http://", "http://me:pass@")
        page = at("http://hub.example", proxy=address).search(SearchQuery("word"))
        assert page is not None
        assert [model.repo for model in page.models] == ["o/m"]
        assert proxy.requests[0].path.startswith("http://hub.example/api/models?filter=gguf&search=word")
        assert proxy.requests[0].headers["proxy-authorization"] == "Basic bWU6cGFzcw=="


def test_the_systems_proxy_is_used_but_for_what_it_leaves_out(
    loopback: LoopbackHub, at: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedServer(FOUND) as proxy:
        monkeypatch.setenv("http_proxy", proxy.address)
        at("http://hub.example").search(SearchQuery())
        assert len(proxy.requests) == 1
        at(loopback.endpoint).search(SearchQuery())
        assert len(proxy.requests) == 1
        monkeypatch.setenv("no_proxy", "hub.example")
        monkeypatch.setattr(socket, "getaddrinfo", nowhere)
        assert problem_of(at("http://hub.example")) is HubProblem.DNS
        assert len(proxy.requests) == 1


def test_a_proxy_that_is_not_there(at: Callable[..., Hub]) -> None:
    with ScriptedServer(FOUND) as proxy:
        address = proxy.address
    assert problem_of(at("http://hub.example", proxy=address)) is HubProblem.PROXY


@pytest.mark.parametrize("status", [407, 502])
def test_a_proxy_that_refuses_to_connect(at: Callable[..., Hub], status: int) -> None:
    with ScriptedServer(Script(status=status)) as proxy:
        assert problem_of(at("https://hub.example", proxy=proxy.address)) is HubProblem.PROXY
        assert [request.method for request in proxy.requests] == ["CONNECT"]


def test_a_proxy_of_an_unknown_kind(at: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "gopher://me:pass@127.0.0.1:1")
    with pytest.raises(HubError, match="“gopher”") as error:
        at("http://hub.example").search(SearchQuery())
    assert error.value.problem is HubProblem.PROXY
    assert "pass" not in str(error.value)


# The network


def nowhere(*_: object, **__: object) -> NoReturn:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def test_a_name_that_is_not_known(at: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    assert problem_of(at("https://no.such.hub")) is HubProblem.DNS


@pytest.mark.parametrize("number", [errno.ENETUNREACH, errno.EHOSTUNREACH])
def test_no_network(at: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def unreachable(*_: object, **__: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(socket, "create_connection", unreachable)
    assert problem_of(at("https://hub.example")) is HubProblem.NO_NETWORK


def test_nobody_listens(at: Callable[..., Hub]) -> None:
    with ScriptedServer(FOUND) as server:
        address = server.address
    assert problem_of(at(address)) is HubProblem.REFUSED


def test_no_secure_connection(at: Callable[..., Hub]) -> None:
    with ScriptedServer(FOUND) as server:
        assert problem_of(at(server.address.replace("http://", "https://"))) is HubProblem.CERTIFICATE


def test_silence_is_a_timeout(loopback: LoopbackHub, at: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_client, "SILENCE_SECONDS", 0.1)
    loopback.hub_faults.append(Fault(stall=True))
    assert problem_of(at(loopback.endpoint)) is HubProblem.TIMEOUT


def test_an_answer_that_trickles_is_a_timeout_too(at: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_client, "WHOLE_SECONDS", -1.0)
    with ScriptedServer(FOUND) as server:
        assert problem_of(at(server.address)) is HubProblem.TIMEOUT


def test_a_connection_that_was_closed_meanwhile_is_made_anew(at: Callable[..., Hub]) -> None:
    """The server ends a connection without a word after its answer."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for answer in (b"", b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n" + FOUND.body):
            connection, _ = listener.accept()
            connection.recv(65536)
            connection.sendall(answer)
            connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    page = at(f"http://127.0.0.1:{listener.getsockname()[1]}").search(SearchQuery())
    thread.join()
    listener.close()
    assert page is not None
    assert [model.repo for model in page.models] == ["o/m"]

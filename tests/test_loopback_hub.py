"""The tests' Hub answers the real client as the Hub does."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import httpx2
import pytest
from huggingface_hub import HfApi, get_hf_file_metadata, hf_hub_url
from huggingface_hub.errors import (
    GatedRepoError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from loopback_hub import Fault, LoopbackHub, Repo, Then, content

MODEL = content(300_000)
SMALL = b'{"model_type": "llama"}\n'


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    with LoopbackHub() as hub:
        hub.add(
            Repo("org/one-GGUF", {"q4/model-Q4_0.gguf": MODEL, "config.json": SMALL}, gguf={"architecture": "llama"})
        )
        yield hub


def test_the_client_finds_pages_of_models(hub: LoopbackHub) -> None:
    for number in range(50):
        hub.add(Repo(f"org/many-{number}", {}, downloads=number))
    hub.page_size = 7
    found = list(HfApi(hub.endpoint, token=False).list_models(search="many", filter="gguf", sort="downloads", limit=30))
    assert [model.id for model in found] == [f"org/many-{number}" for number in range(49, 19, -1)]


def test_the_client_reads_a_repository(hub: LoopbackHub) -> None:
    api = HfApi(hub.endpoint, token=False)
    info = api.model_info("org/one-GGUF", files_metadata=True)
    assert {file.rfilename: file.size for file in info.siblings or []} == {
        "q4/model-Q4_0.gguf": len(MODEL),
        "config.json": len(SMALL),
    }
    assert api.model_info("org/one-GGUF", expand=["gguf"]).gguf == {"architecture": "llama"}
    assert {entry.path for entry in api.list_repo_tree("org/one-GGUF", recursive=True)} == {
        "q4", "q4/model-Q4_0.gguf", "config.json"
    }  # fmt: skip


def test_a_big_file_lies_on_another_origin(hub: LoopbackHub) -> None:
    url = hf_hub_url("org/one-GGUF", "q4/model-Q4_0.gguf", endpoint=hub.endpoint)
    found = get_hf_file_metadata(url, token="hf_secret", endpoint=hub.endpoint)
    stored = hub.repos["org/one-GGUF"].files["q4/model-Q4_0.gguf"]
    assert (found.etag, found.size) == (stored.sha256, len(MODEL))
    assert found.location.startswith(hub.cdn)
    answer = httpx2.get(found.location, headers={"Range": "bytes=100-199"})
    assert (answer.status_code, answer.content) == (206, MODEL[100:200])
    assert answer.headers["content-range"] == f"bytes 100-199/{len(MODEL)}"
    assert [request.token for request in hub.requests] == ["Bearer hf_secret", None]
    assert hub.sent() == 100
    hub.expire_locations()
    assert httpx2.get(found.location).status_code == 403


def test_a_small_file_comes_from_the_hub(hub: LoopbackHub) -> None:
    url = hf_hub_url("org/one-GGUF", "config.json", endpoint=hub.endpoint)
    found = get_hf_file_metadata(url, token=False, endpoint=hub.endpoint)
    assert found.location.startswith(hub.endpoint)
    assert (found.etag, found.size) == (hub.repos["org/one-GGUF"].files["config.json"].oid, len(SMALL))
    assert httpx2.get(found.location).content == SMALL


def test_errors_are_told_apart(hub: LoopbackHub) -> None:
    hub.add(Repo("org/gated", {"a.gguf": MODEL}, gated="manual", needs="right"))
    hub.add(Repo("org/private", {"a.gguf": MODEL}, private=True, needs="right"))
    for name, file, revision, error in (
        ("org/gated", "a.gguf", "main", GatedRepoError),
        ("org/private", "a.gguf", "main", RepositoryNotFoundError),
        ("org/none", "a.gguf", "main", RepositoryNotFoundError),
        ("org/one-GGUF", "a.gguf", "main", RemoteEntryNotFoundError),
        ("org/one-GGUF", "config.json", "v1", RevisionNotFoundError),
    ):
        url = hf_hub_url(name, file, revision=revision, endpoint=hub.endpoint)
        with pytest.raises(error):
            get_hf_file_metadata(url, token=False, endpoint=hub.endpoint)
    for name in ("org/gated", "org/private"):
        get_hf_file_metadata(hf_hub_url(name, "a.gguf", endpoint=hub.endpoint), token="right", endpoint=hub.endpoint)


def test_a_body_breaks_off_as_asked(hub: LoopbackHub) -> None:
    url = f"{hub.cdn}/blobs/{hub.repos['org/one-GGUF'].files['q4/model-Q4_0.gguf'].sha256}?signature=1"
    hub.cdn_faults += [Fault(after=1000), Fault(after=1000, then=Then.RST), Fault(after=1000, then=Then.STALL)]
    with pytest.raises(httpx2.RemoteProtocolError):
        httpx2.get(url)
    with pytest.raises(httpx2.ReadError):
        httpx2.get(url)
    with pytest.raises(httpx2.ReadTimeout):
        httpx2.get(url, timeout=0.2)
    assert httpx2.get(url).content == MODEL
    assert [request.sent for request in hub.seen("cdn")] == [1000, 1000, 1000, len(MODEL)]


def test_nothing_listens_after_the_end() -> None:
    with LoopbackHub() as hub:
        port = int(hub.endpoint.rsplit(":", 1)[1])
        socket.create_connection(("127.0.0.1", port), 1).close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), 1)

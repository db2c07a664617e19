"""The Hub through the real client, against servers on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from forespeak.models import hub as hub_module
from forespeak.models.formats import ModelFormat
from forespeak.models.gguf import GgufKind
from forespeak.models.hub import Hub, repo_in
from forespeak.models.hub_errors import HubError, HubProblem
from forespeak.models.hub_results import Card, Gate, SearchPage, SearchQuery, Sort
from loopback_api import Script, ScriptedServer, hubs, packed
from loopback_hub import Fault, LoopbackHub, Repo


@pytest.fixture
def at() -> Iterator[Callable[..., Hub]]:
    with hubs() as make:
        yield make


def found(page: SearchPage | None) -> list[str]:
    assert page is not None
    return [model.repo for model in page.models]


def problem(error: pytest.ExceptionInfo[HubError]) -> HubProblem:
    assert error.value.what
    assert error.value.remedy
    return error.value.problem


# Search


def test_a_search_tells_what_the_list_shows(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    loopback.add(
        Repo(
            "qwen/Small-GGUF",
            {"a-Q4_0.gguf": b"x"},
            tags=("gguf", "license:apache-2.0"),
            downloads=1200,
            likes=34,
            gguf={"total": 500_000_000, "architecture": "qwen2", "context_length": 32768, "chat_template": "{{ x }}"},
        )
    )
    page = at(loopback.endpoint).search(SearchQuery("small"))
    assert page is not None
    assert page.cursor is None
    (model,) = page.models
    assert (model.owner, model.name) == ("qwen", "Small-GGUF")
    assert (model.downloads, model.likes, model.licence, model.gate) == (1200, 34, "apache-2.0", Gate.OPEN)
    assert (model.parameters, model.architecture, model.context_length) == (500_000_000, "qwen2", 32768)
    assert model.updated == datetime(2025, 2, 7, 10, tzinfo=UTC)
    assert model.formats == {ModelFormat.GGUF}
    assert model.least_bytes == 306_250_000


def test_a_search_asks_by_text_format_licence_and_owner(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    loopback.add(Repo("a/One-GGUF", {}, tags=("gguf", "license:mit")))
    loopback.add(Repo("a/Two-GGUF", {}, tags=("gguf", "license:apache-2.0")))
    loopback.add(Repo("b/One-GGUF", {}, tags=("gguf", "license:mit")))
    loopback.add(Repo("a/One-MLX", {}, tags=("mlx", "license:mit")))
    hub = at(loopback.endpoint)
    assert found(hub.search(SearchQuery("one"))) == ["a/One-GGUF", "b/One-GGUF"]
    assert found(hub.search(SearchQuery(licence="mit"))) == ["a/One-GGUF", "b/One-GGUF"]
    assert found(hub.search(SearchQuery(author="a"))) == ["a/One-GGUF", "a/Two-GGUF"]
    assert found(hub.search(SearchQuery("one", author="a", licence="mit"))) == ["a/One-GGUF"]
    assert found(hub.search(SearchQuery(format=ModelFormat.MLX))) == ["a/One-MLX"]
    assert found(hub.search(SearchQuery("nothing like it"))) == []


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        (Sort.DOWNLOADS, ["o/b", "o/c", "o/a"]),
        (Sort.LIKES, ["o/c", "o/a", "o/b"]),
        (Sort.UPDATED, ["o/a", "o/b", "o/c"]),
    ],
)
def test_a_search_is_sorted_by_the_hub(
    loopback: LoopbackHub, at: Callable[..., Hub], sort: Sort, order: list[str]
) -> None:
    loopback.add(Repo("o/a", {}, downloads=1, likes=2, modified="2026-03-01T00:00:00.000Z"))
    loopback.add(Repo("o/b", {}, downloads=3, likes=1, modified="2026-02-01T00:00:00.000Z"))
    loopback.add(Repo("o/c", {}, downloads=2, likes=3, modified="2026-01-01T00:00:00.000Z"))
    assert found(at(loopback.endpoint).search(SearchQuery(sort=sort))) == order


def test_trending_is_asked_for_by_the_hubs_own_word(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    at(loopback.endpoint).search(SearchQuery(sort=Sort.TRENDING))
    assert "sort=trendingScore" in loopback.requests[-1].path


def test_pages_come_one_at_a_time(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    for number in range(25):
        loopback.add(Repo(f"o/m{number:02d}", {}))
    hub = at(loopback.endpoint)
    first = hub.search(SearchQuery(page_size=10))
    assert found(first) == [f"o/m{number:02d}" for number in range(10)]
    assert len(loopback.requests) == 1
    second = hub.search(SearchQuery(page_size=10), first.cursor if first else None)
    assert found(second) == [f"o/m{number:02d}" for number in range(10, 20)]
    sizes = [len(page.models) for page in hub.pages(SearchQuery(page_size=10))]
    assert sizes == [10, 10, 5]


def test_pages_stop_where_they_are_cancelled(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    for number in range(9):
        loopback.add(Repo(f"o/m{number}", {}))
    stop = threading.Event()
    pages = at(loopback.endpoint).pages(SearchQuery(page_size=3), stop.is_set)
    assert len(next(pages).models) == 3
    stop.set()
    assert list(pages) == []
    assert len(loopback.requests) == 1


def test_what_is_too_large_here_is_left_out_and_counted(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    loopback.add(Repo("o/small", {}, gguf={"total": 1_000_000_000}))
    loopback.add(Repo("o/large", {}, gguf={"total": 70_000_000_000}))
    loopback.add(Repo("o/unknown", {}))
    page = at(loopback.endpoint).search(SearchQuery(fits=lambda size: size < 8_000_000_000))
    assert found(page) == ["o/small", "o/unknown"]
    assert page is not None
    assert page.left_out == 1


def test_a_slow_answer_can_be_cancelled_in_the_middle(at: Callable[..., Hub]) -> None:
    stop = threading.Event()
    asked = []

    def cancelled() -> bool:
        asked.append(1)
        if len(asked) > 1:
            stop.set()
        server.go.release()
        return stop.is_set()

    with ScriptedServer(Script(pieces=[b"[", b" ", b" ", b"]"])) as server:
        server.go.release()
        assert at(server.address).search(SearchQuery(), cancelled=cancelled) is None
    assert stop.is_set()


def test_a_mirror_that_names_the_original_as_next_is_asked_itself(at: Callable[..., Hub]) -> None:
    link = {"Link": '<https://huggingface.co/api/models?filter=gguf&cursor=abc%3D%3D&expand=gguf>; rel="next"'}
    with ScriptedServer(Script(body=b'[{"id": "o/a"}]', headers=link), Script(body=b'[{"id": "o/b"}]')) as server:
        names = [name for page in at(server.address).pages(SearchQuery()) for name in found(page)]
        assert names == ["o/a", "o/b"]
        assert server.requests[1].path == "/api/models?filter=gguf&cursor=abc%3D%3D&expand=gguf"


@pytest.mark.parametrize(
    "entry",
    [
        {"id": "o/m", "downloads": "many", "likes": -3, "lastModified": "yesterday", "tags": "gguf", "gguf": []},
        {
            "id": "o/m",
            "downloads": True,
            "gguf": {"total": 1e9, "architecture": 7, "context_length": None},
            "tags": [1],
        },
        {"id": "o/m", "lastModified": 5, "private": "no", "gated": False, "library_name": ["gguf"]},
    ],
)
def test_what_makes_no_sense_counts_as_not_told(at: Callable[..., Hub], entry: dict[str, Any]) -> None:
    bad = [{"id": "../etc"}, {"id": "o/../m"}, {"id": 3}, "text", None, {"id": "o/m/n"}, {"id": "x" * 300}]
    with ScriptedServer(Script(body=json.dumps([*bad, entry]).encode())) as server:
        page = at(server.address).search(SearchQuery())
    assert page is not None
    (model,) = page.models
    assert (model.repo, model.downloads, model.likes, model.updated) == ("o/m", None, None, None)
    assert (model.parameters, model.architecture, model.context_length) == (None, None, None)
    assert (model.private, model.gate) == (False, Gate.OPEN)


# A repo


def test_a_repo_tells_its_commit_files_and_groups(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    repo = loopback.add(
        Repo(
            "o/m-GGUF",
            {
                "README.md": b"# Hello",
                "m-Q8_0.gguf": b"12345678",
                "m-Q4_0.gguf": b"1234",
                "big/m-BF16-00001-of-00002.gguf": b"1" * 10,
                "big/m-BF16-00002-of-00002.gguf": b"2" * 10,
                "cut/m-F32-00002-of-00002.gguf": b"2",
                "mmproj-m-F16.gguf": b"p",
            },
            gguf={"total": 5, "architecture": "llama", "context_length": 4096},
        )
    )
    found = at(loopback.endpoint).repo("o/m-GGUF")
    assert found is not None
    assert len(loopback.requests) == 1
    assert (found.repo, found.revision, found.page) == ("o/m-GGUF", repo.commit, f"{loopback.endpoint}/o/m-GGUF")
    assert (found.model.architecture, found.model.licence) == ("llama", "apache-2.0")
    sizes = {file.path: (file.size_bytes, file.sha256) for file in found.files}
    assert sizes["m-Q4_0.gguf"] == (4, repo.files["m-Q4_0.gguf"].sha256)
    assert sizes["README.md"] == (7, None)
    assert [(group.label, group.kind, group.downloadable) for group in found.groups] == [
        ("Q4_0", GgufKind.MODEL, True),
        ("Q8_0", GgufKind.MODEL, True),
        ("BF16", GgufKind.MODEL, True),
        ("F32", GgufKind.MODEL, False),
        ("F16", GgufKind.PROJECTOR, True),
    ]
    assert {group.revision for group in found.groups} == {repo.commit}


def test_an_mlx_repo_is_one_group(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    loopback.add(Repo("mlx/m-4bit", {"config.json": b"{}", "model.safetensors": b"w"}, tags=("mlx",)))
    found = at(loopback.endpoint).repo("mlx/m-4bit")
    assert found is not None
    assert [(group.format, group.label, len(group.files)) for group in found.groups] == [(ModelFormat.MLX, "4-bit", 2)]


def test_where_sizes_are_left_out_the_tree_is_read_page_by_page(at: Callable[..., Hub]) -> None:
    about = {"id": "o/m", "sha": "c" * 40, "siblings": [{"rfilename": "a.gguf"}, {"rfilename": "sub/b.gguf"}]}
    link = {"Link": f'<https://elsewhere.example/api/models/o/m/tree/{"c" * 40}?recursive=true&cursor=2>; rel="next"'}
    large = {"type": "file", "path": "a.gguf", "size": 134, "lfs": {"oid": "d" * 64, "size": 900, "pointerSize": 134}}
    folder = {"type": "directory", "path": "sub", "size": 0}
    small = {"type": "file", "path": "sub/b.gguf", "size": 7}
    with ScriptedServer(
        Script(body=json.dumps(about).encode()),
        Script(body=json.dumps([large, folder]).encode(), headers=link),
        Script(body=json.dumps([small]).encode()),
    ) as server:
        found = at(server.address).repo("o/m")
        paths = [request.path for request in server.requests]
    assert found is not None
    assert [(file.path, file.size_bytes, file.sha256) for file in found.files] == [
        ("a.gguf", 900, "d" * 64),
        ("sub/b.gguf", 7, None),
    ]
    assert paths[1:] == [f"/api/models/o/m/tree/{'c' * 40}?recursive=true{more}" for more in ("", "&cursor=2")]


def test_a_list_of_files_without_end_is_nonsense(at: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "MOST_TREE_PAGES", 3)
    about = {"id": "o/m", "sha": "c" * 40}
    again = {"Link": '<http://x.example/?cursor=1>; rel="next"'}
    with (
        ScriptedServer(Script(body=json.dumps(about).encode()), Script(body=b"[]", headers=again)) as server,
        pytest.raises(HubError) as error,
    ):
        at(server.address).repo("o/m")
    assert problem(error) is HubProblem.NONSENSE
    assert len(server.requests) == 4


def test_a_renamed_repo_goes_by_its_new_name(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    loopback.add(Repo("new/m", {"m-Q4_0.gguf": b"x"}))
    loopback.hub_faults.append(Fault(location="/api/models/new/m?blobs=true"))
    found = at(loopback.endpoint).repo("old/m")
    assert found is not None
    assert found.repo == "new/m"
    assert found.groups[0].repo == "new/m"


def test_a_revision_can_be_asked_for(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    repo = loopback.add(Repo("o/m", {"m-Q4_0.gguf": b"x"}))
    found = at(loopback.endpoint).repo("o/m", repo.commit)
    assert found is not None
    assert found.revision == repo.commit
    with pytest.raises(HubError) as error:
        at(loopback.endpoint).repo("o/m", "refs/pr/9")
    assert problem(error) is HubProblem.NO_SUCH_REVISION


def test_a_gated_repo_is_shown_with_its_gate(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    loopback.add(Repo("o/auto", {}, gated="auto", needs="hf_x"))
    loopback.add(Repo("o/manual", {}, gated="manual", needs="hf_x"))
    hub = at(loopback.endpoint)
    gates = [repo.model.gate for name in ("o/auto", "o/manual") if (repo := hub.repo(name)) is not None]
    assert gates == [Gate.AUTOMATIC, Gate.MANUAL]


def test_missing_and_private_are_told_apart_as_far_as_the_hub_does(
    loopback: LoopbackHub, at: Callable[..., Hub]
) -> None:
    loopback.add(Repo("o/secret", {"m-Q4_0.gguf": b"x"}, private=True, needs="hf_right"))
    for name in ("o/secret", "o/missing"):
        with pytest.raises(HubError) as error:
            at(loopback.endpoint).repo(name)
        assert problem(error) is HubProblem.PRIVATE_OR_MISSING
        assert error.value.page == f"{loopback.endpoint}/settings/tokens"
        with pytest.raises(HubError) as error:
            at(loopback.endpoint, "hf_other").repo(name)
        assert problem(error) is HubProblem.NO_SUCH_REPO
    found = at(loopback.endpoint, "hf_right").repo("o/secret")
    assert found is not None
    assert found.model.private


@pytest.mark.parametrize("name", ["name", "o/m/n", "../m", "o/m?x=1", "o/m#x", "o m/x", "", "o/" + "m" * 300])
def test_what_is_no_name_of_a_repo_is_not_asked_for(loopback: LoopbackHub, at: Callable[..., Hub], name: str) -> None:
    with pytest.raises(HubError) as error:
        at(loopback.endpoint).repo(name)
    assert problem(error) is HubProblem.NO_SUCH_REPO
    assert loopback.requests == []


@pytest.mark.parametrize(
    ("text", "repo"),
    [
        ("o/m", "o/m"),
        (" https://huggingface.co/o/m ", "o/m"),
        ("https://huggingface.co/o/m/tree/main/sub?x=1#y", "o/m"),
        ("http://127.0.0.1:99/o/m/blob/main/a.gguf", "o/m"),
        ("just words", None),
        ("https://huggingface.co/", None),
        ("https://huggingface.co/o", None),
        ("o/m/n", None),
    ],
)
def test_a_pasted_address_names_a_repo(text: str, repo: str | None) -> None:
    assert repo_in(text) == repo


def test_a_cancelled_look_asks_nothing(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    hub = at(loopback.endpoint)
    assert hub.repo("o/m", cancelled=lambda: True) is None
    assert hub.search(SearchQuery(), cancelled=lambda: True) is None
    assert loopback.requests == []


# The card


def card(loopback: LoopbackHub, hub: Hub, readme: bytes) -> Card | None:
    loopback.add(Repo("o/m", {"README.md": readme}))
    repo = hub.repo("o/m")
    assert repo is not None
    return hub.card(repo)


@pytest.mark.parametrize(
    ("readme", "text"),
    [
        (b"# Hello\n\nWorld\n", "# Hello\n\nWorld"),
        (b"---\nlicense: mit\ntags:\n- a\n---\n\n# Hello\n", "# Hello"),
        (b"\xef\xbb\xbf---\r\nlicense: mit\r\n---\r\n# Hello\r\nYou", "# Hello\nYou"),
        (b"---\nlicense: mit\n---", ""),
        # A line in the middle of a text is no metadata.
        (b"# Hello\n\n---\nx: y\n---\nMore", "# Hello\n\n---\nx: y\n---\nMore"),
        (b"---\nnever closed", "---\nnever closed"),
        (b"caf\xe9", "caf\ufffd"),
        (b"", ""),
    ],
)
def test_the_card_is_the_readme_without_its_metadata(
    loopback: LoopbackHub, at: Callable[..., Hub], readme: bytes, text: str
) -> None:
    assert card(loopback, at(loopback.endpoint), readme) == Card(text)


def test_a_long_card_is_shortened(
    loopback: LoopbackHub, at: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_module, "MOST_CARD_BYTES", 10)
    assert hub_module.MOST_CARD_BYTES == 10
    assert card(loopback, at(loopback.endpoint), b"x" * 11) == Card("x" * 10, shortened=True)


def test_a_repo_without_a_readme_has_an_empty_card(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    loopback.add(Repo("o/m", {}))
    hub = at(loopback.endpoint)
    repo = hub.repo("o/m")
    assert repo is not None
    before = len(loopback.requests)
    assert hub.card(repo) == Card("")
    assert len(loopback.requests) == before


def test_the_card_of_a_gated_repo_asks_for_the_licence(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    loopback.add(Repo("o/m", {"README.md": b"x"}, gated="auto", needs="hf_right"))
    for token in (None, "hf_other"):
        hub = at(loopback.endpoint, token)
        repo = hub.repo("o/m")
        assert repo is not None
        with pytest.raises(HubError) as error:
            hub.card(repo)
        assert problem(error) is HubProblem.GATED
        assert error.value.page == f"{loopback.endpoint}/o/m"
        assert f"{loopback.endpoint}/o/m" in error.value.remedy


# The account


def test_a_token_names_its_account(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    loopback.tokens = {"hf_right"}
    assert at(loopback.endpoint, "hf_right").account() == "someone"
    with pytest.raises(HubError) as error:
        at(loopback.endpoint, "hf_wrong").account()
    assert problem(error) is HubProblem.TOKEN_WRONG
    with pytest.raises(HubError) as error:
        at(loopback.endpoint).account()
    assert problem(error) is HubProblem.TOKEN_MISSING


# Trouble


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault(status=429, headers={"Retry-After": "120"}), HubProblem.RATE_LIMITED),
        (Fault(status=500), HubProblem.SERVER),
        (Fault(status=503), HubProblem.SERVER),
        (Fault(status=401, message="Invalid credentials in Authorization header"), HubProblem.TOKEN_WRONG),
        (Fault(status=401, message="User Access Token has expired"), HubProblem.TOKEN_EXPIRED),
        (Fault(status=403, message="Access to this resource is disabled."), HubProblem.DISABLED),
        (Fault(status=403, error_code="GatedRepo"), HubProblem.GATED),
        (Fault(status=403, message="This token lacks a scope"), HubProblem.FORBIDDEN),
        (Fault(status=404, error_code="RevisionNotFound"), HubProblem.NO_SUCH_REVISION),
        (Fault(status=404), HubProblem.NO_SUCH_REPO),
        (Fault(status=407), HubProblem.PROXY),
        (Fault(location="/api/models/o/m?blobs=true"), None),
    ],
)
def test_each_refusal_is_told_apart_at_once(
    loopback: LoopbackHub, at: Callable[..., Hub], fault: Fault, expected: HubProblem | None
) -> None:
    loopback.add(Repo("o/m", {}))
    loopback.hub_faults.append(fault)
    if expected is None:
        assert at(loopback.endpoint, "hf_token").repo("o/m") is not None
        return
    with pytest.raises(HubError) as error:
        at(loopback.endpoint, "hf_token").repo("o/m")
    assert problem(error) is expected
    assert len(loopback.requests) == 1


def test_a_rate_limit_says_how_long_to_wait(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    loopback.hub_faults.append(Fault(status=429, headers={"RateLimit": '"api";r=0;t=55'}))
    with pytest.raises(HubError) as error:
        at(loopback.endpoint).search(SearchQuery())
    assert error.value.retry_after == 55
    assert "in 55 seconds" in error.value.remedy
    assert "token" in error.value.remedy


def test_redirects_without_end_are_nonsense(loopback: LoopbackHub, at: Callable[..., Hub]) -> None:
    loopback.hub_faults.extend(Fault(location="/api/models/o/m") for _ in range(40))
    with pytest.raises(HubError) as error:
        at(loopback.endpoint).repo("o/m")
    assert problem(error) is HubProblem.NONSENSE


PORTAL = b"<!DOCTYPE html><html><title>Sign in to the hotel</title></html>"


@pytest.mark.parametrize(
    "script",
    [
        Script(body=PORTAL, kind="text/html"),
        Script(body=PORTAL, kind="application/json"),
        Script(status=404, body=PORTAL, kind="text/html"),
        Script(status=403, body=PORTAL, kind="text/html"),
        Script(body=b'{"models": 3}'),
        Script(body=b'{"id": "o/m", "sha": "main", "siblings": []}'),
        Script(body=b'{"id": "o/m", "sha": "../../etc", "siblings": []}'),
        Script(body=b"[" * 100_000),
        Script(body=b"\xff\xfe\x00"),
        Script(body=b""),
        Script(status=418, body=b"{}"),
        Script(body=b"not packed at all", headers={"Content-Encoding": "gzip"}),
        Script(body=b'"text"'),
    ],
)
def test_a_mirror_that_answers_nonsense_is_named(at: Callable[..., Hub], script: Script) -> None:
    with ScriptedServer(script) as server:
        hub = at(server.address)
        with pytest.raises(HubError) as error:
            hub.repo("o/m")
        assert problem(error) is HubProblem.NONSENSE
        assert server.address.removeprefix("http://") in error.value.what
        with pytest.raises(HubError) as error:
            hub.search(SearchQuery())
        assert problem(error) is HubProblem.NONSENSE


def test_an_answer_without_end_is_cut_off(at: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "MOST_JSON_BYTES", 1000)
    with ScriptedServer(
        Script(body=packed(b"[" + b" " * 1_000_000 + b"]"), headers={"Content-Encoding": "gzip"})
    ) as server:
        with pytest.raises(HubError) as error:
            at(server.address).search(SearchQuery())
        assert problem(error) is HubProblem.NONSENSE


def test_a_packed_answer_is_read(at: Callable[..., Hub]) -> None:
    with ScriptedServer(Script(body=packed(b'[{"id": "o/m"}]'), headers={"Content-Encoding": "gzip"})) as server:
        assert found(at(server.address).search(SearchQuery())) == ["o/m"]


def test_a_body_that_breaks_off_is_a_lost_connection(at: Callable[..., Hub]) -> None:
    with ScriptedServer(Script(body=b'[{"id"', length=1000)) as server:
        with pytest.raises(HubError) as error:
            at(server.address).search(SearchQuery())
        assert problem(error) is HubProblem.CONNECTION_LOST

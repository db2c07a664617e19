"""Headers of files on the Hub, read by a few requests for parts of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from forespeak.models import remote_header
from forespeak.models.gguf import GgufError, GgufHeader, Problem, parse_header
from forespeak.models.hub_client import HubClient
from forespeak.models.hub_errors import HubError, HubProblem
from forespeak.models.hub_files import HubFile
from forespeak.models.remote_header import read_remote_header
from forespeak.models.vocabulary import read_vocabulary
from loopback_api import Script, ScriptedServer, big_vocabulary, hub_at
from loopback_hub import Fault, LoopbackHub, Repo, Then

NAME = "m-Q4_0.gguf"
SMALL = big_vocabulary(300)
MIB = 1 << 20


@pytest.fixture(scope="session")
def large() -> bytes:
    """A header as large as that of a vocabulary of 152k: 5.2 MB, and a few MB of weights behind it."""
    content = big_vocabulary(151_936)
    header = parse_header(Path("x"), len(content), lambda offset, length: content[offset : offset + length])
    assert 5_000_000 < header.data_offset < 7 * MIB
    return content


def read(
    loopback: LoopbackHub, client: HubClient, content: bytes, cache: Path, name: str = NAME, **more: bytes
) -> GgufHeader:
    repo = loopback.repos.get("o/m") or loopback.add(Repo("o/m", {name: content, **more}))
    stored = repo.files[name]
    header = read_remote_header(client, "o/m", repo.commit, HubFile(name, stored.size, stored.sha256), cache)
    assert header is not None
    return header


def test_a_header_is_read_without_its_file(loopback: LoopbackHub, client: HubClient, tmp_path: Path) -> None:
    content = SMALL + bytes(5 * MIB)
    header = read(loopback, client, content, tmp_path)
    assert (header.architecture, header.name, header.context_length) == ("llama", "Remote", 32768)
    assert header.size_bytes == len(content)
    assert header.parameters == 64 * 4096
    assert loopback.sent() == MIB
    assert [request.method for request in loopback.requests] == ["HEAD", "GET"]


def test_a_vocabulary_of_152k_takes_four_requests(
    loopback: LoopbackHub, client: HubClient, tmp_path: Path, large: bytes
) -> None:
    content = large + bytes(64 * MIB)
    loopback.rate = 200e6
    header = read(loopback, client, content, tmp_path)
    vocabulary = read_vocabulary(header)
    assert vocabulary.size == 151_936
    assert vocabulary.tokens[150_000] == b"t150000xy"
    assert vocabulary.eos == 151_935
    assert len(loopback.seen("", "HEAD")) == 1
    parts = [request for request in loopback.seen() if request.method == "GET"]
    client.close()
    assert len(parts) <= 3
    assert {request.headers["accept-encoding"] for request in parts} == {"identity"}
    assert [request.headers["range"] for request in parts[:2]] == [f"bytes=0-{MIB - 1}", f"bytes={MIB}-{3 * MIB - 1}"]


def test_the_largest_vocabulary_takes_no_more(loopback: LoopbackHub, client: HubClient, tmp_path: Path) -> None:
    """Gemma's, with 262k tokens and 16 MB."""
    content = big_vocabulary(262_144, 400_000)
    header = read(loopback, client, content, tmp_path)
    assert header.data_offset > 12_000_000
    assert read_vocabulary(header).size == 262_144
    assert len(loopback.requests) == 4


def test_no_more_is_read_than_needed(loopback: LoopbackHub, client: HubClient, tmp_path: Path, large: bytes) -> None:
    content = large + bytes(64 * MIB)
    loopback.rate = 200e6
    header = read(loopback, client, content, tmp_path)
    assert header.size_bytes == len(content)
    client.close()
    # What is on its way in the sockets when we hang up cannot be told exactly.
    assert loopback.sent() < 20 * MIB


def test_what_was_read_stays_readable_and_needs_no_network(
    loopback: LoopbackHub, client: HubClient, tmp_path: Path
) -> None:
    first = read(loopback, client, SMALL, tmp_path)
    tokens = read_vocabulary(first).tokens
    asked = len(loopback.requests)
    again = read(loopback, client, SMALL, tmp_path)
    assert len(loopback.requests) == asked
    assert again == first
    assert read_vocabulary(again).tokens == tokens == tuple(f"t{number:06d}xy".encode() for number in range(300))
    assert again.path.name == NAME
    assert again.path.stat().st_size == min(first.data_offset, len(SMALL))


def test_what_is_damaged_in_the_cache_is_read_again(loopback: LoopbackHub, client: HubClient, tmp_path: Path) -> None:
    path = read(loopback, client, SMALL, tmp_path).path
    asked = len(loopback.requests)
    path.write_bytes(path.read_bytes()[:1000])
    assert read_vocabulary(read(loopback, client, SMALL, tmp_path)).size == 300
    (path.parent / "about.json").write_text('{"size": "large"}', encoding="utf-8")
    assert read_vocabulary(read(loopback, client, SMALL, tmp_path)).size == 300
    assert len(loopback.requests) == 3 * asked


def test_another_revision_repo_or_file_is_another_header(
    loopback: LoopbackHub, client: HubClient, tmp_path: Path
) -> None:
    repo = loopback.add(Repo("o/m", {"a.gguf": SMALL, "sub/a.gguf": big_vocabulary(200)}))
    sizes = {}
    for path in ("a.gguf", "sub/a.gguf"):
        file = HubFile(path, repo.files[path].size)
        header = read_remote_header(client, "o/m", repo.commit, file, tmp_path)
        assert header is not None
        sizes[path] = read_vocabulary(header).size
    assert sizes == {"a.gguf": 300, "sub/a.gguf": 200}
    with pytest.raises(HubError) as error:
        read_remote_header(client, "o/m", "e" * 40, HubFile("a.gguf", 9), tmp_path)
    assert error.value.problem is HubProblem.NO_SUCH_REVISION


def test_a_server_without_range_is_read_as_far_as_needed(
    loopback: LoopbackHub, client: HubClient, tmp_path: Path, large: bytes
) -> None:
    content = large + bytes(64 * MIB)
    loopback.rate = 200e6
    loopback.cdn_faults.append(Fault(ignore_range=True))
    header = read(loopback, client, content, tmp_path)
    assert read_vocabulary(header).size == 151_936
    assert len(loopback.requests) == 2
    client.close()
    # What is on its way in the sockets when we hang up cannot be told exactly.
    assert loopback.sent() < 20 * MIB


def test_a_connection_that_breaks_off_is_taken_up_again(
    loopback: LoopbackHub, client: HubClient, tmp_path: Path, large: bytes
) -> None:
    loopback.cdn_faults.extend([Fault(), Fault(after=MIB, then=Then.RST), Fault(after=MIB)])
    header = read(loopback, client, large, tmp_path)
    assert read_vocabulary(header).size == 151_936


def test_a_server_that_sends_less_than_asked_for_is_asked_again(tmp_path: Path, large: bytes) -> None:
    about = {"X-Repo-Commit": "c" * 40, "ETag": '"x"'}
    size = len(large)
    pieces = [
        Script(
            status=206,
            body=large[start : start + MIB],
            headers={**about, "Content-Range": f"bytes {start}-{min(start + MIB, size) - 1}/{size}"},
        )
        for start in range(0, size, MIB)
    ]
    with ScriptedServer(Script(headers=about, length=size), *pieces) as server:
        client = hub_at(server.address).client
        header = read_remote_header(client, "o/m", "c" * 40, HubFile(NAME, size), tmp_path)
        client.close()
    assert header is not None
    # One for each part of the header, and none for what is behind it.
    assert len(server.requests) == 1 + -(-header.data_offset // MIB)
    assert read_vocabulary(header).size == 151_936


def test_a_connection_that_brings_nothing_is_an_error(loopback: LoopbackHub, client: HubClient, tmp_path: Path) -> None:
    loopback.cdn_faults.append(Fault(after=0, then=Then.RST))
    with pytest.raises(HubError) as error:
        read(loopback, client, SMALL, tmp_path)
    assert error.value.problem is HubProblem.CONNECTION_LOST
    assert list(tmp_path.iterdir()) == []


def test_an_expired_address_is_asked_for_anew(
    loopback: LoopbackHub, client: HubClient, tmp_path: Path, large: bytes
) -> None:
    loopback.cdn_faults.extend([Fault(), Fault(status=403, message="Request has expired")])
    header = read(loopback, client, large, tmp_path)
    assert read_vocabulary(header).size == 151_936
    assert len(loopback.seen("hub", "HEAD")) == 2


@pytest.mark.parametrize("status", [403, 404])
def test_an_address_that_stays_refused_is_an_error(
    loopback: LoopbackHub, client: HubClient, tmp_path: Path, status: int
) -> None:
    loopback.cdn_faults.extend([Fault(status=status), Fault(status=status)])
    with pytest.raises(HubError) as error:
        read(loopback, client, SMALL, tmp_path)
    assert error.value.problem is HubProblem.FORBIDDEN


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (Fault(status=503), HubProblem.SERVER),
        (Fault(status=429, headers={"Retry-After": "7"}), HubProblem.RATE_LIMITED),
        (Fault(headers={"Content-Encoding": "gzip"}), HubProblem.NONSENSE),
    ],
)
def test_trouble_of_the_files_server_is_told(
    loopback: LoopbackHub, client: HubClient, tmp_path: Path, fault: Fault, problem: HubProblem
) -> None:
    loopback.cdn_faults.append(fault)
    with pytest.raises(HubError) as error:
        read(loopback, client, SMALL, tmp_path)
    assert error.value.problem is problem


def test_another_part_than_asked_for_is_not_taken(
    loopback: LoopbackHub, client: HubClient, tmp_path: Path, large: bytes
) -> None:
    loopback.cdn_faults.extend([Fault(), Fault(wrong_range=True)])
    with pytest.raises(HubError) as error:
        read(loopback, client, large, tmp_path)
    assert error.value.problem is HubProblem.NONSENSE


def test_a_file_of_another_length_than_listed_is_not_taken(
    loopback: LoopbackHub, client: HubClient, tmp_path: Path
) -> None:
    repo = loopback.add(Repo("o/m", {NAME: SMALL}))
    for length in (len(SMALL) + 5, len(SMALL) - 5):
        with pytest.raises(HubError) as error:
            read_remote_header(client, "o/m", repo.commit, HubFile(NAME, length), tmp_path)
        assert error.value.problem is HubProblem.NONSENSE
        assert NAME in error.value.what


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"<html>not a model</html>", Problem.NOT_GGUF),
        (SMALL[:2000], Problem.TRUNCATED),
        (b"GGUF" + b"\xff" * 100, Problem.UNSUPPORTED),
    ],
)
def test_what_is_no_model_is_told_and_not_kept(
    loopback: LoopbackHub, client: HubClient, tmp_path: Path, content: bytes, problem: Problem
) -> None:
    with pytest.raises(GgufError) as error:
        read(loopback, client, content, tmp_path)
    assert error.value.problem is problem
    assert NAME in error.value.what
    assert list(tmp_path.iterdir()) == []


def test_a_gated_file_says_what_to_do(loopback: LoopbackHub, tmp_path: Path) -> None:
    repo = loopback.add(Repo("o/m", {NAME: SMALL}, gated="auto", needs="hf_right"))
    file = HubFile(NAME, len(SMALL))
    for token in (None, "hf_wrong"):
        client = hub_at(loopback.endpoint, token).client
        with pytest.raises(HubError) as error:
            read_remote_header(client, "o/m", repo.commit, file, tmp_path)
        client.close()
        assert error.value.problem is HubProblem.GATED
        assert error.value.page == f"{loopback.endpoint}/o/m"
    client = hub_at(loopback.endpoint, "hf_right").client
    assert read_remote_header(client, "o/m", repo.commit, file, tmp_path) is not None
    client.close()


def test_the_token_does_not_go_to_the_files_server(loopback: LoopbackHub, tmp_path: Path, large: bytes) -> None:
    repo = loopback.add(Repo("o/m", {NAME: large}))
    client = hub_at(loopback.endpoint, "hf_secret").client
    read_remote_header(client, "o/m", repo.commit, HubFile(NAME, len(large)), tmp_path)
    client.close()
    assert [request.token for request in loopback.seen("hub")] == ["Bearer hf_secret"]
    assert {request.token for request in loopback.seen("cdn")} == {None}


def test_reading_can_be_cancelled(loopback: LoopbackHub, client: HubClient, tmp_path: Path, large: bytes) -> None:
    repo = loopback.add(Repo("o/m", {NAME: large}))

    def after_the_first() -> bool:
        return bool(loopback.seen("cdn", "GET"))

    assert read_remote_header(client, "o/m", repo.commit, HubFile(NAME, len(large)), tmp_path, after_the_first) is None
    assert len(loopback.requests) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["../../up.gguf", "con.gguf", "sub\\b.gguf", "ü ñ.gguf", "a" * 300, "about.json", ".."]
)
def test_a_hostile_name_stays_within_the_cache(tmp_path: Path, name: str) -> None:
    """The Hub of the tests does not matter here: any answer will do."""
    cache = tmp_path / "cache"
    about = {"X-Repo-Commit": "c" * 40, "ETag": '"x"'}
    with ScriptedServer(
        Script(headers=about, length=len(SMALL)),
        Script(
            status=206,
            body=SMALL,
            headers={**about, "Content-Range": f"bytes 0-{len(SMALL) - 1}/{len(SMALL)}"},
        ),
    ) as server:
        client = hub_at(server.address).client
        header = read_remote_header(client, "o/m", "c" * 40, HubFile(name, len(SMALL)), cache)
        client.close()
    assert header is not None
    assert read_vocabulary(header).size == 300
    assert [entry.name for entry in tmp_path.iterdir()] == ["cache"]
    assert header.path.parent.parent == cache
    assert header.path.name.partition(".")[0].lower() != "con"


def test_the_headers_not_asked_for_longest_are_forgotten(
    loopback: LoopbackHub, client: HubClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_header, "MOST_KEPT", 2)
    repo = loopback.add(Repo("o/m", {f"{letter}.gguf": SMALL for letter in "abcd"}))
    for letter in "abcd":
        header = read_remote_header(client, "o/m", repo.commit, HubFile(f"{letter}.gguf", len(SMALL)), tmp_path)
        assert header is not None
    assert sorted(path.name for path in tmp_path.glob("*/*.gguf")) == ["c.gguf", "d.gguf"]


def test_a_cache_that_cannot_be_written_is_told(loopback: LoopbackHub, client: HubClient, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    repo = loopback.add(Repo("o/m", {NAME: SMALL}))
    with pytest.raises(Exception, match="could not be made") as error:
        read_remote_header(client, "o/m", repo.commit, HubFile(NAME, len(SMALL)), blocked)
    assert type(error.value).__name__ == "UserFacingError"

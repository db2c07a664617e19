"""What answers and failures of the Hub mean, in words."""

from __future__ import annotations

import pickle
import ssl
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2
import pytest

from forespeak.models.hub_errors import (
    Asked,
    HubError,
    HubProblem,
    answer_error,
    offline_error,
    transport_error,
    wait_words,
)

HUB = "https://hub.example"
PLAIN = Asked(HUB, "o/m", "a.gguf")
SIGNED_IN = Asked(HUB, "o/m", "a.gguf", has_token=True)


@pytest.mark.parametrize(
    ("status", "code", "message", "asked", "problem"),
    [
        (401, "RepoNotFound", "Invalid username or password.", PLAIN, HubProblem.PRIVATE_OR_MISSING),
        (404, "RepoNotFound", "Repository not found", SIGNED_IN, HubProblem.NO_SUCH_REPO),
        (404, "", "", PLAIN, HubProblem.PRIVATE_OR_MISSING),
        (401, "GatedRepo", "Access to model o/m is restricted.", PLAIN, HubProblem.GATED),
        (403, "GatedRepo", "You are not in the authorized list.", SIGNED_IN, HubProblem.GATED),
        (404, "RevisionNotFound", "", PLAIN, HubProblem.NO_SUCH_REVISION),
        (404, "EntryNotFound", "", PLAIN, HubProblem.NO_SUCH_FILE),
        (401, "", "Invalid credentials in Authorization header", SIGNED_IN, HubProblem.TOKEN_WRONG),
        (401, "", 'User Access Token "x" is expired', SIGNED_IN, HubProblem.TOKEN_EXPIRED),
        (401, "", "", Asked(HUB), HubProblem.TOKEN_MISSING),
        (403, "", "This token has no right to read it", SIGNED_IN, HubProblem.FORBIDDEN),
        (403, "", "Forbidden", PLAIN, HubProblem.FORBIDDEN),
        (403, "", "Access to this resource is disabled.", PLAIN, HubProblem.DISABLED),
        (429, "", "", PLAIN, HubProblem.RATE_LIMITED),
        (500, "", "", PLAIN, HubProblem.SERVER),
        (504, "GatedRepo", "", PLAIN, HubProblem.SERVER),
        (407, "", "", PLAIN, HubProblem.PROXY),
        (418, "", "", PLAIN, HubProblem.NONSENSE),
    ],
)
def test_answers_are_told_apart(status: int, code: str, message: str, asked: Asked, problem: HubProblem) -> None:
    headers = {"X-Error-Code": code, "X-Error-Message": message}
    error = answer_error(status, {name: value for name, value in headers.items() if value}, b"", asked)
    assert error.problem is problem
    assert all((error.what, error.why or problem is HubProblem.FORBIDDEN, error.remedy))


def test_a_message_may_stand_in_the_body() -> None:
    error = answer_error(403, {}, b'{"error": "This token has no right"}', SIGNED_IN)
    assert error.why == "It says: This token has no right."


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"error": 3}', b"\xff", b'{"error": {"a": 1}}'])
def test_any_body_will_do(body: bytes) -> None:
    assert answer_error(403, {}, body, PLAIN).problem is HubProblem.FORBIDDEN


def test_a_long_message_from_outside_is_cut() -> None:
    error = answer_error(403, {"X-Error-Message": "x\n" * 5000}, b"", PLAIN)
    assert len(error.why) < 250
    assert "\n" not in error.why


@pytest.mark.parametrize("asked", [PLAIN, SIGNED_IN])
def test_a_gated_repo_names_the_page_of_its_licence(asked: Asked) -> None:
    error = answer_error(403, {"x-error-code": "GatedRepo"}, b"", asked)
    assert error.page == "https://hub.example/o/m"
    assert "https://hub.example/o/m" in error.remedy


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "120"}, 120),
        ({"Retry-After": " 5 "}, 5),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-3"}, None),
        ({"RateLimit": '"api";r=0;t=55'}, 55),
        ({"RateLimit": '"api";r=3;t=55'}, None),
        ({}, None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    error = answer_error(429, headers, b"", PLAIN)
    assert error.retry_after == seconds
    assert ("in a few minutes" in error.remedy) is (seconds is None)


def test_a_date_to_wait_for() -> None:
    later = datetime.now(UTC) + timedelta(minutes=10)
    error = answer_error(429, {"Retry-After": format_datetime(later, usegmt=True)}, b"", PLAIN)
    assert error.retry_after == pytest.approx(600, abs=5)
    assert "in 10 minutes" in error.remedy


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "in a second"),
        (1.5, "in 2 seconds"),
        (90, "in 90 seconds"),
        (91, "in 2 minutes"),
        (300, "in 5 minutes"),
        (7200, "in 2 hours"),
    ],
)
def test_a_wait_in_words(seconds: float, words: str) -> None:
    assert wait_words(seconds) == words


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (httpx2.ReadTimeout("x"), HubProblem.TIMEOUT),
        (httpx2.ConnectTimeout("x"), HubProblem.TIMEOUT),
        (httpx2.PoolTimeout("x"), HubProblem.TIMEOUT),
        (httpx2.ReadError(""), HubProblem.CONNECTION_LOST),
        (httpx2.RemoteProtocolError("x"), HubProblem.CONNECTION_LOST),
        (httpx2.ConnectError("x"), HubProblem.REFUSED),
        (httpx2.ProxyError("403 Forbidden"), HubProblem.PROXY),
        (httpx2.TooManyRedirects("x"), HubProblem.NONSENSE),
        (httpx2.UnsupportedProtocol("x"), HubProblem.NONSENSE),
        (httpx2.InvalidURL("x"), HubProblem.NONSENSE),
        (httpx2.DecodingError("x"), HubProblem.NONSENSE),
    ],
)
def test_failures_are_told_apart(error: Exception, problem: HubProblem) -> None:
    found = transport_error(error, PLAIN)
    assert found.problem is problem
    assert found.what
    assert found.why
    assert found.remedy


def test_behind_a_proxy_it_is_the_proxy_that_does_not_answer() -> None:
    asked = Asked(HUB, proxy="http://proxy.example:3128")
    assert transport_error(httpx2.ConnectError("x"), asked).problem is HubProblem.PROXY
    assert transport_error(httpx2.ConnectTimeout("x"), asked).problem is HubProblem.PROXY
    assert transport_error(httpx2.ReadTimeout("x"), asked).problem is HubProblem.TIMEOUT


def test_a_certificate_that_is_not_trusted() -> None:
    cause = ssl.SSLCertVerificationError(1, "certificate verify failed")
    cause.verify_message = "self-signed certificate"
    error = httpx2.ConnectError("x")
    error.__cause__ = cause
    found = transport_error(error, PLAIN)
    assert found.problem is HubProblem.CERTIFICATE
    assert "self-signed certificate" in found.why


def test_errors_travel_between_processes() -> None:
    for error in (
        answer_error(429, {"Retry-After": "9"}, b"", PLAIN),
        offline_error(),
        answer_error(404, {}, b"", PLAIN),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert isinstance(copy, HubError)
        assert (copy.problem, copy.retry_after, copy.page, str(copy)) == (
            error.problem,
            error.retry_after,
            error.page,
            str(error),
        )


def test_what_may_pass_by_itself() -> None:
    assert HubProblem.SERVER.passes
    assert HubProblem.NO_NETWORK.passes
    assert not HubProblem.GATED.passes
    assert not HubProblem.OFFLINE.passes

"""The Hub's address, proxy and offline setting, and the file that keeps them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forespeak.errors import UserFacingError
from forespeak.models.hub_errors import HubError, HubProblem
from forespeak.models.hub_settings import (
    PUBLIC_HUB,
    HubSettings,
    HubSettingsFile,
    checked_endpoint,
    checked_proxy,
    default_endpoint,
    forced_offline,
    hub_settings,
    may_carry_token,
    origin,
)


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_ENDPOINT", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("https://huggingface.co", "https://huggingface.co"),
        ("  https://HuggingFace.co/ ", "https://huggingface.co"),
        ("hf-mirror.example", "https://hf-mirror.example"),
        ("mirror.example/hub/", "https://mirror.example/hub"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x"),
        ("127.0.0.1:99", "https://127.0.0.1:99"),
    ],
)
def test_an_address_is_tidied_up(text: str, endpoint: str) -> None:
    assert checked_endpoint(text) == endpoint
    assert checked_endpoint(endpoint) == endpoint


@pytest.mark.parametrize(
    "text",
    [
        *("", "   ", "https://", "ftp://hub.example", "file:///etc/passwd", "https://hub.example:99999", "http://:80"),
        *("https://user:pass@hub.example", "https://hub.example?x=1", "https://hub.example/#x", "two words"),
        *("https://hub.example:port", "https://[::1", "javascript://x", "https://hub.example/a b", "https://h\nx"),
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(HubError) as error:
        checked_endpoint(text)
    assert error.value.problem is HubProblem.BAD_SETTING
    assert error.value.what
    assert error.value.remedy


@pytest.mark.parametrize(
    ("text", "proxy"),
    [
        ("proxy.example:3128", "http://proxy.example:3128"),
        ("http://me:p%40ss@proxy.example:3128/", "http://me:p%40ss@proxy.example:3128"),
        ("https://proxy.example", "https://proxy.example"),
    ],
)
def test_a_proxy_is_tidied_up(text: str, proxy: str) -> None:
    assert checked_proxy(text) == proxy


@pytest.mark.parametrize("text", ["", "socks5://proxy.example:1080", "http://proxy.example/path", "http://", "a b"])
def test_what_is_no_proxy_is_refused(text: str) -> None:
    with pytest.raises(HubError) as error:
        checked_proxy(text)
    assert error.value.problem is HubProblem.BAD_SETTING


def test_what_was_typed_becomes_settings() -> None:
    assert hub_settings() == HubSettings(PUBLIC_HUB, None, False)
    assert hub_settings(" ", " ", True) == HubSettings(PUBLIC_HUB, None, True)
    assert hub_settings("mirror.example", "proxy:1") == HubSettings("https://mirror.example", "http://proxy:1", False)
    assert HubSettings().is_public_hub
    assert not hub_settings("mirror.example").is_public_hub


def test_the_environment_may_name_another_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example/")
    assert default_endpoint() == "https://mirror.example"
    assert hub_settings().endpoint == "https://mirror.example"
    monkeypatch.setenv("HF_ENDPOINT", "nonsense://")
    assert default_endpoint() == PUBLIC_HUB


@pytest.mark.parametrize(("value", "forced"), [("1", True), ("on", True), ("TRUE", True), ("0", False), ("", False)])
def test_the_environment_may_force_offline(monkeypatch: pytest.MonkeyPatch, value: str, forced: bool) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", value)
    assert forced_offline() is forced


def test_settings_survive(tmp_path: Path) -> None:
    file = HubSettingsFile(tmp_path / "config")
    assert file.read() == HubSettings()
    settings = HubSettings("https://mirror.example", "http://proxy.example:1", True)
    file.write(settings)
    assert HubSettingsFile(tmp_path / "config").read() == settings
    assert [entry.name for entry in (tmp_path / "config").iterdir()] == ["hub.json"]


def test_the_default_address_is_not_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = HubSettingsFile(tmp_path)
    file.write(HubSettings())
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example")
    assert file.read().endpoint == "https://mirror.example"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        json.dumps({"endpoint": 3, "proxy": ["x"], "offline": "yes"}),
        json.dumps({"endpoint": "ftp://x", "proxy": "socks5://x", "offline": 1}),
    ],
)
def test_a_damaged_file_counts_as_not_set(tmp_path: Path, content: str) -> None:
    (tmp_path / "hub.json").write_text(content, encoding="utf-8")
    assert HubSettingsFile(tmp_path).read() == HubSettings()


def test_settings_that_cannot_be_saved_are_told(tmp_path: Path) -> None:
    (tmp_path / "hub.json").mkdir()
    with pytest.raises(UserFacingError):
        HubSettingsFile(tmp_path).write(HubSettings())
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UserFacingError):
        HubSettingsFile(tmp_path / "file").write(HubSettings())


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://hub.example", "https://hub.example:443/x", True),
        ("https://HUB.example", "https://hub.example", True),
        ("https://hub.example", "http://hub.example", False),
        ("https://hub.example", "https://hub.example:444", False),
        ("https://hub.example", "https://hub.example.evil.test", False),
        ("https://hub.example", "https://hub.example@evil.test", False),
        ("https://hub.example", "https://hub.example:bad", False),
    ],
)
def test_who_answers_at_an_address(one: str, other: str, same: bool) -> None:
    assert (origin(one) == origin(other)) is same


@pytest.mark.parametrize(
    ("address", "may"),
    [
        ("https://hub.example", True),
        ("http://hub.example", False),
        ("http://127.0.0.1:8080", True),
        ("http://localhost", True),
        ("http://[::1]:80", True),
        ("http://127.0.0.1.evil.test", False),
        ("http://localhost.evil.test", False),
    ],
)
def test_where_a_token_may_go(address: str, may: bool) -> None:
    assert may_carry_token(address) is may

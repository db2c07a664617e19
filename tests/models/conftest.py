"""The tests' own Hub, and a client that asks it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from forespeak.models.hub_client import HubClient
from loopback_api import hub_at
from loopback_hub import LoopbackHub


@pytest.fixture
def loopback() -> Iterator[LoopbackHub]:
    with LoopbackHub() as server:
        yield server


@pytest.fixture
def client(loopback: LoopbackHub) -> Iterator[HubClient]:
    client = hub_at(loopback.endpoint).client
    yield client
    client.close()

from collections.abc import Iterator
from pathlib import Path

import pytest

from forespeak.chats.store import ChatStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.sqlite3"


@pytest.fixture
def store(path: Path) -> Iterator[ChatStore]:
    with ChatStore(path) as opened:
        yield opened

"""Real models: eight of the starter's thirty layers as they come, in Q4_1, and unpacked to F32 once per run.

With so few layers a pair is unsure of its words and of each other's: of what is drafted a third is rejected, where
the whole starter accepts nearly everything. Faults of a check or of a cut cache show all the sooner. The whole pair
writes in the tests of the command line and of the self-test.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fewer_layers import FEW, with_layers
from forespeak.engines.engine import ConversionRequest, LoadRequest, LoadSettings
from forespeak.engines.llamacpp.engine import LlamaEngine
from forespeak.models.starter import starter_draft_path


def accept_any_pair(_target: Path, _draft: Path) -> None:
    return None


@pytest.fixture(scope="session")
def whole_q4_1() -> Path:
    path = starter_draft_path()
    if path is None:
        pytest.skip("the starter's weights are not installed (extra: starter)")
    return path


@pytest.fixture(scope="session")
def q4_1(whole_q4_1: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_layers(whole_q4_1, FEW, tmp_path_factory.mktemp("models") / "starter-q4_1.gguf")


@pytest.fixture(scope="session")
def f32(q4_1: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    destination = tmp_path_factory.mktemp("models") / "starter-f32.gguf"
    LlamaEngine(accept_any_pair).convert(ConversionRequest(q4_1, destination), lambda _: None, lambda: False)
    return destination


@pytest.fixture(scope="session")
def _engine(q4_1: Path, f32: Path) -> Iterator[LlamaEngine]:
    engine = LlamaEngine(accept_any_pair)
    loaded = engine.load(LoadRequest(f32, q4_1, LoadSettings(reproducible=True)), lambda _: None, lambda: False)
    assert loaded is not None
    assert loaded.draft is not None, loaded.draft_problem
    yield engine
    engine.close()


@pytest.fixture
def engine(_engine: LlamaEngine) -> LlamaEngine:
    """The starter pair in the reproducible setting, with nothing in its caches."""
    _engine.forget()
    return _engine

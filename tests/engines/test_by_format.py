from __future__ import annotations

import queue
import sys
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from forespeak.engines.by_format import EngineByFormat
from forespeak.engines.engine import (
    ChatMessage,
    Engine,
    EngineEvent,
    Failed,
    GenerationRequest,
    Loaded,
    LoadRequest,
    Role,
)
from forespeak.engines.host import EngineProcess, is_last
from forespeak.engines.pair_knowledge import ReproducibleEngine
from forespeak.errors import UserFacingError
from forespeak.pairing.compatibility import refusal
from forespeak.speculation.events import Finished
from tiny_llama import vocabulary, write_llama

ASK = GenerationRequest((ChatMessage(Role.USER, "the"),), max_tokens=4)
needs_mlx = pytest.mark.skipif(find_spec("mlx_lm") is None, reason="mlx-lm is not installed (extra: mlx)")


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    return write_llama(vocabulary(), tmp_path / "tiny.gguf")


@pytest.fixture
def engine() -> Iterator[EngineByFormat]:
    engine = EngineByFormat(refusal)
    yield engine
    engine.close()


def test_is_an_engine_that_can_be_checked(engine: EngineByFormat) -> None:
    as_engine: Engine = engine
    assert isinstance(as_engine, ReproducibleEngine)
    assert (engine.loaded_request, engine.engine) == (None, "")
    with pytest.raises(UserFacingError, match="No model is loaded"):
        engine.generate(ASK, lambda: False)


def test_a_file_is_for_llama_cpp(engine: EngineByFormat, gguf: Path) -> None:
    loaded = engine.load(LoadRequest(gguf), lambda _: None, lambda: False)
    assert loaded is not None
    assert isinstance(list(engine.generate(ASK, lambda: False))[-1], Finished)
    with engine.bench(256) as bench:
        assert bench.engine.startswith("llama.cpp ")
        assert engine.engine == bench.engine


def test_a_folder_without_mlx_lm_is_a_clear_error(
    engine: EngineByFormat, gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is loaded then makes way: the caller asked for something else."""
    assert engine.load(LoadRequest(gguf), lambda _: None, lambda: False) is not None
    monkeypatch.setitem(sys.modules, "forespeak.engines.mlx.engine", None)
    with pytest.raises(UserFacingError, match="needs mlx-lm") as caught:
        engine.load(LoadRequest(gguf.parent), lambda _: None, lambda: False)
    assert "choose a GGUF file" in caught.value.remedy
    assert ("pip install 'forespeak[mlx]'" in caught.value.remedy) == (sys.platform != "win32")
    assert engine.loaded_request is None


@needs_mlx
def test_a_folder_is_for_mlx_and_a_mixed_pair_for_neither(engine: EngineByFormat, gguf: Path, tmp_path: Path) -> None:
    from mlx_folders import convert

    folder = convert(gguf, tmp_path / "tiny")
    for target, draft in ((folder, gguf), (gguf, folder)):
        loaded = engine.load(LoadRequest(target, draft), lambda _: None, lambda: False)
        assert loaded is not None
        assert loaded.draft is None
        assert "one engine has to run both" in (loaded.draft_problem or "")
        assert isinstance(list(engine.generate(ASK, lambda: False))[-1], Finished)
    both = engine.load(LoadRequest(folder, folder), lambda _: None, lambda: False)
    assert both is not None
    assert (both.draft_problem, both.devices) == (None, ("CPU",))
    with engine.bench(256) as bench:
        assert bench.engine.startswith("MLX ")


@needs_mlx
def test_the_window_runs_mlx_in_a_child_that_ends(gguf: Path, tmp_path: Path) -> None:
    from mlx_folders import convert

    folder = convert(gguf, tmp_path / "tiny")
    events: queue.Queue[EngineEvent] = queue.Queue()
    client = EngineProcess(
        events.put, log_path=tmp_path / "log", pair_check=refusal, engine=partial(EngineByFormat, memory=None)
    )

    def answer(number: int) -> object:
        while not is_last((event := events.get(timeout=120)).body) or event.request != number:
            pass
        return event.body

    assert isinstance(answer(client.load(LoadRequest(folder, folder))), Loaded)
    first = client.pid
    assert isinstance(answer(client.generate(ASK)), Finished)
    # Another target is another child: the memory of this one comes back.
    assert isinstance(answer(client.load(LoadRequest(gguf))), Loaded)
    assert client.pid not in {first, None}
    number = client.load(LoadRequest(folder))
    client.cancel(number)
    assert isinstance(answer(number), Failed | Loaded)
    client.close()

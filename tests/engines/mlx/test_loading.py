"""What loading a folder tells, what stops it, and what it says of folders that are no models."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed (extra: mlx)")

from engines.mlx.conftest import accept_any_pair
from forespeak.engines.engine import LoadRequest, LoadSettings, Progress
from forespeak.engines.mlx import loading
from forespeak.engines.mlx.engine import MlxEngine
from forespeak.errors import UserFacingError


@pytest.fixture
def copy(tiny: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny, tmp_path / "copy"))


def load(folder: Path, cancelled: Callable[[], bool] = lambda: False, **settings: int) -> tuple[MlxEngine, list[float]]:
    told: list[Progress] = []
    engine = MlxEngine(accept_any_pair)
    loaded = engine.load(LoadRequest(folder, settings=LoadSettings(**settings)), told.append, cancelled)  # type: ignore[arg-type]
    assert (loaded is None) == cancelled()
    return engine, [each.fraction for each in told]


def test_progress_and_what_was_loaded(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_CHUNK_BYTES", 4000)
    engine, fractions = load(tiny)
    assert len(fractions) > 5
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0.0, 1.0)
    about = loading.summary(tiny, engine.target)
    assert (about.name, about.description) == ("tiny", "llama 0M F32")
    assert (about.context_length, about.trained_context_length) == (2048, 2048)
    assert about.size_bytes == 4 * about.parameters == (tiny / "model.safetensors").stat().st_size - header(tiny)
    engine.close()


def header(folder: Path) -> int:
    return 8 + int.from_bytes((folder / "model.safetensors").read_bytes()[:8], "little")


def test_a_context_is_no_longer_than_the_model_can_read(tiny: Path) -> None:
    for wanted, given in ((100, 100), (5000, 2048)):
        engine, _ = load(tiny, context_length=wanted)
        assert engine.target.context_length == given
        engine.close()


def test_a_load_can_be_cancelled(tiny: Path) -> None:
    engine, _ = load(tiny, lambda: True)
    assert engine.loaded_request is None
    again = engine.load(LoadRequest(tiny), lambda _: None, lambda: False)
    assert again is not None
    engine.close()


def test_loading_asks_nobody(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*_: object) -> None:
        raise AssertionError("something is asked over the network")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", connect)
    load(tiny)[0].close()


def spoil_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")


def spoil_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:5000])


def spoil_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text('{"model": 3}')


def change_config(**entries: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | entries))

    return change


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (shutil.rmtree, "There is no model folder"),
        (remove("config.json"), r"config\.json is missing"),
        (remove("tokenizer.json"), r"tokenizer\.json is missing"),
        (remove("model.safetensors"), "weights .* are missing"),
        (spoil_config, r"config\.json cannot be read"),
        (change_config(model_type=None), "what kind of model"),
        (change_config(model_type="teapot"), "teapot"),
        (change_config(num_hidden_layers="many"), "could not be loaded"),
        (change_config(num_hidden_layers=2), "could not be loaded"),
        (spoil_weights, "could not be loaded"),
        (spoil_tokenizer, "could not be loaded"),
        (change_config(model_file="own.py"), "disabled by default"),
    ],
    ids=range(12),
)
def test_a_folder_that_is_no_model_is_a_clear_error(copy: Path, spoil: Callable[[Path], None], words: str) -> None:
    (copy / "own.py").write_text("raise AssertionError('code of a model was run')")
    spoil(copy)
    engine = MlxEngine(accept_any_pair)
    with pytest.raises(UserFacingError) as caught:
        engine.load(LoadRequest(copy), lambda _: None, lambda: False)
    import re

    assert re.search(words, f"{caught.value.what} {caught.value.why}"), str(caught.value)
    assert caught.value.remedy
    assert engine.loaded_request is None


def test_the_template_may_lie_in_a_file_of_its_own(copy: Path) -> None:
    assert load(copy)[0].target.chat_template is None
    (copy / "chat_template.jinja").write_text("{{ messages[0].content }}!")
    assert load(copy)[0].target.chat_template == "{{ messages[0].content }}!"

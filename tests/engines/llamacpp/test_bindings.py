"""Where ggml's functions are found, and that modules of a build with loadable backends are loaded."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from forespeak.engines.llamacpp import bindings


class Ggml:
    """A library of ggml in which `registered` backends are compiled in."""

    def __init__(self, registered: int) -> None:
        self.loaded_from: list[str] = []

        # Not a method: as with ctypes' functions, one may set what it takes.
        def load_all(folder: bytes) -> None:
            self.loaded_from.append(folder.decode())

        self.ggml_backend_load_all_from_path = load_all
        self.ggml_backend_reg_count = lambda: registered


def _start_over(monkeypatch: pytest.MonkeyPatch, *libraries: object) -> None:
    monkeypatch.setattr(bindings, "_libraries", lambda: libraries)
    # The log that is there stays llama.cpp's; a second one would be called after it is gone.
    monkeypatch.setattr(bindings, "_Log", SimpleNamespace)
    bindings._start()


def test_a_build_without_compiled_in_backends_loads_those_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ggml = Ggml(registered=0)
    _start_over(monkeypatch, ggml)
    spec = find_spec("llama_cpp")
    assert spec is not None
    assert spec.origin is not None
    assert ggml.loaded_from == [str(Path(spec.origin).with_name("lib"))]


def test_a_plain_build_loads_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    ggml = Ggml(registered=1)
    _start_over(monkeypatch, ggml)
    assert ggml.loaded_from == []


def test_on_windows_each_library_gives_only_its_own_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    llama, ggml = SimpleNamespace(), Ggml(registered=0)
    _start_over(monkeypatch, llama, ggml)
    assert ggml.loaded_from
    with pytest.raises(ImportError, match="ggml_backend_dev_name"):
        bindings._ggml("ggml_backend_dev_name")


def test_ggmls_own_libraries_are_opened_where_they_lie_beside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("llama.dll", "ggml.dll", "ggml-base.dll", "ggml-vulkan.dll"):
        (tmp_path / name).touch()
    opened: list[str] = []
    monkeypatch.setattr("llama_cpp.llama_cpp._base_path", tmp_path)
    monkeypatch.setattr("ctypes.CDLL", opened.append)
    bindings._libraries.__wrapped__()
    assert opened == [str(tmp_path / "ggml.dll"), str(tmp_path / "ggml-base.dll")]


def test_devices_are_listed_with_the_processor() -> None:
    processor = next(device for device in bindings.devices() if device.kind == "CPU")
    assert processor.name == "CPU"
    assert 0 < processor.free_bytes <= processor.total_bytes

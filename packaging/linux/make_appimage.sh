#!/bin/bash
# Makes an AppImage of dist/forespeak: packaging/linux/make_appimage.sh APPIMAGETOOL
# The tool fetches the runtime that goes in front of the image by itself, so this needs the network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
tool="$(realpath "${1:?give the path of appimagetool}")"
python="${PYTHON:-python3}"
version="$("$python" packaging/bundle.py version)"
"$python" packaging/bundle.py appdir
# A build machine need not have FUSE.
ARCH="$(uname -m)" VERSION="$version" APPIMAGE_EXTRACT_AND_RUN=1 \
    "$tool" dist/Forespeak.AppDir "dist/Forespeak-$version-$(uname -m).AppImage"

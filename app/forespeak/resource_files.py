"""Where the files that come with the program are: beside the package once installed, at the top of a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_INSTALLED = _PACKAGE / "resources"
_CHECKOUT = _PACKAGE.parent.parent / "resources"


def resource_path(*parts: str) -> Path:
    """The path of a file that comes with the program, for example `resource_path("themes", "light.toml")`."""
    root = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT
    return root.joinpath(*parts)

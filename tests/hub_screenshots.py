"""Takes the pictures of the Discover and Downloads tabs in resources/screenshots, with a scripted Hub behind them.

QT_QPA_PLATFORM=offscreen python tests/hub_screenshots.py [--to FOLDER] [NAME …]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

PICTURES = Path(__file__).resolve().parents[1] / "resources" / "screenshots"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--to", type=Path, default=PICTURES)
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    with tempfile.TemporaryDirectory(prefix="forespeak-pictures-") as home:
        os.environ["FORESPEAK_HOME"] = home
        from hub_scenes import SCENES

        for name in arguments.names or SCENES:
            target = arguments.to / f"{name}.png"
            SCENES[name](target)
            sys.stdout.write(f"{target.name} {target.stat().st_size // 1024} KiB\n")


if __name__ == "__main__":
    main()

"""A process that downloads one file, to be killed: `python downloading_child.py ENDPOINT REPO SIZE SHA256 PATH FOLDER`.

It writes a line when the download starts to run, when it waits and why, and when it is done.
"""

from __future__ import annotations

import sys
from pathlib import Path

from forespeak.models.download_control import Control, Tuning
from forespeak.models.downloads import FileDownload
from forespeak.models.hub_client import HubClient
from forespeak.models.hub_files import HubFile
from forespeak.models.hub_settings import HubSettings


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def main(endpoint: str, repo: str, size: str, sha256: str, path: str, folder: str) -> None:
    client = HubClient(HubSettings(endpoint))
    control = Control(notice=say)
    download = FileDownload(
        repo, "main", HubFile(path, int(size), sha256), Path(folder) / path, lambda: client, control, Tuning(reserve=0)
    )
    say("running")
    try:
        download.run()
        download.finish()
    finally:
        download.close()
    say("done")


if __name__ == "__main__":
    main(*sys.argv[1:])

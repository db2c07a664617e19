"""A process with a queue of downloads, to be killed: `python queueing_child.py ENDPOINT FOLDER`.

What it is to do comes as lines: `add REPO LABEL`, `pause N`, `wait done` (until nothing is to be done). It answers each
with a line; N counts the downloads in the list from 0.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from forespeak.models.download_control import Tuning
from forespeak.models.download_queue import DownloadQueue
from forespeak.models.download_record import DownloadState
from forespeak.models.hub import Hub
from forespeak.models.hub_client import HubClient
from forespeak.models.hub_settings import HubSettings


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def main(endpoint: str, folder: str) -> None:
    client = HubClient(HubSettings(endpoint))
    queue = DownloadQueue(Path(folder), lambda: client, lambda _: None, tuning=Tuning(first_wait=0.05, reserve=0))
    say(" ".join(f"{each.name}:{each.state.value}" for each in queue.downloads()))
    for line in sys.stdin:
        match line.split():
            case ["add", name, label]:
                repo = Hub(client).repo(name)
                assert repo is not None
                queue.add(next(group for group in repo.groups if group.label == label))
            case ["pause", number]:
                queue.pause(queue.downloads()[int(number)].id)
            case ["wait", "done"]:
                while any(each.state is not DownloadState.DONE for each in queue.downloads()):
                    time.sleep(0.01)
        say("ok")
    queue.close()


if __name__ == "__main__":
    main(*sys.argv[1:])

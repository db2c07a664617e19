"""What an MLX repo on the Hub says of its tokens, without its weights: a few small files of it.

They stay in the cache, beside the headers of GGUF files, as a folder that can be read like one of the library.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from forespeak.models.gguf_values import damaged
from forespeak.models.hub_client import Cancelled, HubClient
from forespeak.models.hub_files import HubFile, HubFileGroup
from forespeak.models.mlx_vocabulary import CONFIG, SETTINGS, TOKENIZER
from forespeak.models.remote_header import ABOUT, RemoteFile, folder_of, keep, prune, safe_name

MOST_BYTES = 64 << 20
"""Of one of these files. The longest in use have 33 MB."""
_NAMES = (CONFIG, SETTINGS, TOKENIZER)


def _never() -> bool:
    return False


def read_remote_folder(
    client: HubClient, group: HubFileGroup, cache: Path, cancelled: Callable[[], bool] = _never
) -> Path | None:
    """A folder with the settings and the tokenizer of an MLX group, named as its repo is; None if it was cancelled.

    What is in `cache` already needs no network. Raises HubError, GgufError for what is no such model, and
    UserFacingError where the cache cannot be written.
    """
    place = folder_of(cache, client, group.repo, group.revision, CONFIG)
    folder = place / safe_name(group.name)
    wanted = {file.name: file for file in group.files if file.path in _NAMES}
    if CONFIG not in wanted:
        raise damaged(folder, f"Its repo has no {CONFIG}, which says what model it is.")
    if any(file.size_bytes > MOST_BYTES for file in wanted.values()):
        raise damaged(folder, "What describes its tokens is far too long.")
    if _is_kept(place, folder, wanted):
        return folder
    contents = {}
    for name, file in wanted.items():
        remote = RemoteFile(client, group.repo, group.revision, file, cancelled)
        try:
            contents[folder / name] = remote.fetch(0, file.size_bytes)
        except Cancelled:
            return None
        finally:
            remote.close()
    keep(place, contents, _size(wanted))
    prune(cache, place)
    return folder


def _is_kept(place: Path, folder: Path, wanted: Mapping[str, HubFile]) -> bool:
    """Whether everything is there from an earlier time."""
    try:
        about = json.loads((place / ABOUT).read_text(encoding="utf-8"))
        lengths = {path.name: path.stat().st_size for path in folder.iterdir()}
        whole = about["size"] == _size(wanted) and all(
            lengths.get(name) == file.size_bytes for name, file in wanted.items()
        )
        (place / ABOUT).touch()
    except (OSError, ValueError, TypeError, KeyError):
        return False
    return whole


def _size(files: Mapping[str, HubFile]) -> int:
    return sum(file.size_bytes for file in files.values())

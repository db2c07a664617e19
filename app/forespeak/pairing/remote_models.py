"""A model on the Hub as one of a pair, by what can be read of it without its weights. Waits for the network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from forespeak.models.formats import ModelFormat
from forespeak.models.hub_client import HubClient
from forespeak.models.hub_files import HubFileGroup
from forespeak.models.remote_folder import read_remote_folder
from forespeak.models.remote_header import read_remote_header
from forespeak.pairing.compatibility import Judge, Verdict
from forespeak.pairing.members import Member, member_at, member_of


def remote_member(
    client: HubClient, group: HubFileGroup, cache: Path, cancelled: Callable[[], bool] = lambda: False
) -> Member | None:
    """The beginning of a GGUF file, of an MLX repo its tokenizer, kept in `cache`; None if it was cancelled.

    Raises HubError, GgufError for what is no model, and UserFacingError where the cache cannot be written.
    """
    if group.format is ModelFormat.MLX:
        folder = read_remote_folder(client, group, cache, cancelled)
        return None if folder is None else member_at(folder)
    header = read_remote_header(client, group.repo, group.revision, group.files[0], cache, cancelled)
    return None if header is None else member_of(header)


def remote_verdict(
    client: HubClient,
    target: Path,
    group: HubFileGroup,
    cache: Path,
    judge: Judge,
    cancelled: Callable[[], bool] = lambda: False,
) -> Verdict | None:
    """Whether a group of the Hub could draft for a target on disk; None if it was cancelled. Raises as above."""
    if member_at(target).format is not group.format:
        # Nothing has to be read for that.
        return judge.verdict_on(target, Member(group.name, group.format, _unread))
    draft = remote_member(client, group, cache, cancelled)
    return None if draft is None else judge.verdict_on(target, draft)


def _unread() -> NoReturn:
    raise AssertionError("the formats differ, so no vocabulary is compared")

"""What the Hub answers, read without trusting it: a mirror, or who sits between, may send anything."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from forespeak.models.formats import ModelFormat
from forespeak.models.hub_client import Answer
from forespeak.models.hub_errors import Asked, nonsense
from forespeak.models.hub_files import HubFile
from forespeak.models.hub_results import Gate, HubModel

TAGS = {ModelFormat.GGUF: "gguf", ModelFormat.MLX: "mlx"}
_REPO = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}")
# YAML between two lines of dashes, before anything else.
_FRONT_MATTER = re.compile(r"\A\ufeff?\s*---[ \t]*\n.*?^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)


def is_repo(name: object) -> bool:
    """Whether this may be the name of a repo, `owner/name`."""
    return isinstance(name, str) and len(name) <= 200 and bool(_REPO.fullmatch(name)) and ".." not in name


def json_of(answer: Answer, asked: Asked) -> object:
    """Raises HubError (NONSENSE)."""
    if not answer.complete:
        raise nonsense(asked, "Its answer is far too long.")
    try:
        content: object = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        page = answer.body[:200].lstrip()[:1] == b"<"
        raise nonsense(asked, "It sends a web page." if page else "Its answer is garbled.") from error
    return content


def model_of(about: Mapping[str, object], repo: str) -> HubModel:
    """A repo as a search or its own page describes it; what is missing or makes no sense there is None."""
    listed = about.get("tags")
    tags = [tag for tag in listed if isinstance(tag, str)] if isinstance(listed, list) else []
    gguf = about.get("gguf")
    details: Mapping[str, object] = gguf if isinstance(gguf, dict) else {}
    architecture, gated = details.get("architecture"), about.get("gated")
    return HubModel(
        repo=repo,
        downloads=_count(about.get("downloads")),
        likes=_count(about.get("likes")),
        updated=_when(about.get("lastModified")),
        licence=next((tag.removeprefix("license:") for tag in tags if tag.startswith("license:")), None),
        gate=Gate.MANUAL if gated == "manual" else Gate.AUTOMATIC if gated else Gate.OPEN,
        private=about.get("private") is True,
        formats=frozenset(kind for kind, tag in TAGS.items() if tag in tags or about.get("library_name") == tag),
        parameters=_count(details.get("total")) or None,
        architecture=architecture if isinstance(architecture, str) else None,
        context_length=_count(details.get("context_length")) or None,
    )


def files_of(listed: object, name: str, digest: str) -> tuple[HubFile, ...] | None:
    """The files of a list of entries; None if it leaves out sizes. `name` and `digest` are its words for them."""
    if not isinstance(listed, list):
        return None
    entries = [entry for entry in listed if isinstance(entry, dict) and entry.get("type") != "directory"]
    files = tuple(file for entry in entries if (file := _file(entry, name, digest)) is not None)
    return files if len(files) == len(entries) else None


def card_text(body: bytes) -> str:
    """The Markdown of a README, without the metadata on its top."""
    text = body.decode("utf-8", "replace").replace("\r\n", "\n")
    return _FRONT_MATTER.sub("", text, count=1).lstrip("\ufeff").strip()


def _file(entry: Mapping[str, object], name: str, digest: str) -> HubFile | None:
    path, large = entry.get(name), entry.get("lfs")
    details: Mapping[str, object] = large if isinstance(large, dict) else {}
    size = _count(details.get("size"))
    size = _count(entry.get("size")) if size is None else size
    if not isinstance(path, str) or not path or size is None:
        return None
    sha256 = details.get(digest)
    return HubFile(path, size, sha256 if isinstance(sha256, str) and _SHA256.fullmatch(sha256) else None)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62 else None


def _when(value: object) -> datetime | None:
    try:
        when = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return when.replace(tzinfo=UTC) if when is not None and when.tzinfo is None else when

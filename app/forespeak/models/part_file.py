"""A file that is still coming: its bytes so far, a note of what they are, and a running hash over them.

Beside the target lie `NAME.part`, the bytes, and `NAME.part.state`: a line of JSON that says which file it is, then a
line per 256 KiB with the hash of everything before that place. A part is trusted as far as those hashes are found
again in it, so that neither a killed process nor a power cut leaves anything to guess.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from forespeak.whole_file import sync_file, sync_folder, write_durably

if TYPE_CHECKING:
    from hashlib import _Hash

PART, STATE = ".part", ".part.state"

STEP = 1 << 18
"""Bytes between two hashes in the note. At most four times as many are not noted yet: see `PartFile.write`."""

_SYNC_SECONDS = 5.0
_DIGITS = 16


class Verification(Enum):
    """What a file's contents were checked against."""

    SHA256 = "SHA-256"
    GIT = "Git's SHA-1"
    SIZE = "its size"


@dataclass(frozen=True, slots=True)
class Identity:
    """Which bytes are expected. `etag` is the Hub's: SHA-256 of a large file, Git's SHA-1 of a small one."""

    repo: str
    revision: str
    path: str
    size: int
    etag: str | None
    sha256: str | None

    @property
    def verification(self) -> Verification:
        if self._sha256 is not None:
            return Verification.SHA256
        return Verification.GIT if _is_hex(self.etag, 40) else Verification.SIZE

    @property
    def digest(self) -> str | None:
        """What the hash over the whole file must be, if that is known."""
        return self._sha256 or (self.etag if self.verification is Verification.GIT else None)

    @property
    def _sha256(self) -> str | None:
        return self.sha256 or (self.etag if _is_hex(self.etag, 64) else None)

    def hasher(self) -> _Hash:
        return git_hasher(self.size) if self.verification is Verification.GIT else hashlib.sha256()

    def is_same_file(self, other: Identity) -> bool:
        """Whether a part of one is a part of the other: the same contents, wherever they come from."""
        if self.size != other.size or self.verification is not other.verification:
            return False
        if self.digest is not None:
            return self.digest == other.digest
        where = (self.repo, self.revision, self.path, self.etag)
        return where == (other.repo, other.revision, other.path, other.etag)


def git_hasher(size: int) -> _Hash:
    """For a file of so many bytes. Git, Documentation/gitformat-loose: a blob's name covers its header too."""
    return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)


def _is_hex(text: str | None, digits: int) -> bool:
    return text is not None and len(text) == digits and all(each in "0123456789abcdef" for each in text)


class PartFile:
    """Open for appending. One thread uses it; hashing goes on in another, beside the next read from the network.

    OSError of the disk is raised where it is noticed, which may be at a later call.
    """

    def __init__(self, target: Path, identity: Identity, stopped: Callable[[], bool] = lambda: False) -> None:
        """Take up what is there of the same file, or begin. Raises OSError.

        A long part takes a while to be checked: `stopped` ends that early, and then nothing but `close` may follow.
        """
        self.target, self.identity = target, identity
        self.path = target.with_name(target.name + PART)
        self._state_path = target.with_name(target.name + STATE)
        self._hash = identity.hasher()
        self.done = 0
        """Bytes in their place."""
        self.verified = False
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._blocks: queue.Queue[list[bytes] | None] = queue.Queue(1)
        self._thread: threading.Thread | None = None
        self._failure: OSError | None = None
        self._syncing: threading.Thread | None = None
        self._synced_at = time.monotonic()
        self._taken_up = False
        target.parent.mkdir(parents=True, exist_ok=True)
        marks, verified_at = self._read_state()
        self._file = self.path.open("r+b" if marks is not None and self.path.is_file() else "w+b", buffering=0)
        try:
            self._take_up(marks or [], verified_at, stopped)
        except BaseException:
            self._file.close()
            raise

    # What is there already

    def _read_state(self) -> tuple[list[tuple[int, str]] | None, int | None]:
        """The hashes noted (None: no note, or one of another file), and when the whole was verified."""
        try:
            first, *lines = self._state_path.read_text("utf-8").split("\n")
            saved = Identity(**json.loads(first))
        except (OSError, ValueError, TypeError):
            return None, None
        if not saved.is_same_file(self.identity):
            return None, None
        marks: list[tuple[int, str]] = []
        # What stands behind the last line's end was being written when everything ended.
        for line in lines[:-1]:
            place, _, digest = line.partition(" ")
            if place == "verified" and digest.isdecimal():
                return marks, int(digest)
            if not place.isdecimal() or len(digest) != _DIGITS or int(place) <= (marks[-1][0] if marks else 0):
                break
            marks.append((int(place), digest))
        return marks, None

    def _take_up(self, marks: list[tuple[int, str]], verified_at: int | None, stopped: Callable[[], bool]) -> None:
        there = os.fstat(self._file.fileno())
        if verified_at is not None and (there.st_size, there.st_mtime_ns) == (self.identity.size, verified_at):
            self.done, self.verified = self.identity.size, True
            self._state = self._state_path.open("ab", buffering=0)
            self._taken_up = True
            return
        good: list[tuple[int, str]] = []
        for place, digest in marks:
            if place > min(there.st_size, self.identity.size) or stopped():
                break
            block = self._file.read(place - self.done)
            running = self._hash.copy()
            running.update(block)
            if len(block) < place - self.done or running.hexdigest()[:_DIGITS] != digest:
                break
            self._hash, self.done = running, place
            good.append((place, digest))
        if stopped():
            # Nothing is known to be wrong with the rest: it stays.
            self._state = self._state_path.open("ab", buffering=0)
            return
        self._file.truncate(self.done)
        self._file.seek(self.done)
        self._write_state(good)
        self._taken_up = True

    def _write_state(self, marks: list[tuple[int, str]]) -> None:
        lines = [json.dumps(asdict(self.identity)), *(f"{place} {digest}" for place, digest in marks), ""]
        write_durably(self._state_path, "\n".join(lines))
        self._state = self._state_path.open("ab", buffering=0)

    # More bytes

    def write(self, data: bytes) -> None:
        """Append. Of what was written, up to four steps are not noted: being gathered, handed over, hashed, noted."""
        self._raise_failure()
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) or 0 :]
        self.done += len(data)
        self._gathered.append(data)
        self._gathered_bytes += len(data)
        if self._gathered_bytes >= STEP - len(data):
            self._hand_over()

    def _hand_over(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._hash_blocks, name="download hash", daemon=True)
            self._noted = self.done - self._gathered_bytes
            self._thread.start()
        self._blocks.put(self._gathered)
        self._gathered, self._gathered_bytes = [], 0
        if time.monotonic() - self._synced_at > _SYNC_SECONDS:
            self._sync_beside()

    def _hash_blocks(self) -> None:
        while (blocks := self._blocks.get()) is not None:
            for block in blocks:
                self._hash.update(block)
                self._noted += len(block)
            if self._failure is None:
                try:
                    self._state.write(f"{self._noted} {self._hash.hexdigest()[:_DIGITS]}\n".encode())
                except OSError as error:
                    self._failure = error

    def _sync_beside(self) -> None:
        """Bring to the disk what is written, in the background: a power cut then costs seconds of it."""
        if self._syncing is None or not self._syncing.is_alive():
            self._synced_at = time.monotonic()
            self._syncing = threading.Thread(target=self._sync, name="download sync", daemon=True)
            self._syncing.start()

    def _sync(self) -> None:
        try:
            sync_file(self._file.fileno())
            sync_file(self._state.fileno())
        except OSError as error:
            self._failure = error

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def flush(self) -> None:
        """Hash and note everything that was written."""
        if self._gathered:
            self._hand_over()
        if self._thread is not None:
            self._blocks.put(None)
            self._thread.join()
            self._thread = None
        if self._syncing is not None:
            self._syncing.join()
            self._syncing = None
        self._raise_failure()

    # The end

    def restart(self) -> None:
        """Forget all bytes."""
        with contextlib.suppress(OSError):
            self.flush()
        self._failure = None
        self._state.close()
        self._file.seek(0)
        self._file.truncate(0)
        self._hash, self.done, self.verified = self.identity.hasher(), 0, False
        self._write_state([])

    def verify(self) -> bool:
        """Whether the file is whole and its hash, where one is known, is right. True is noted, on the disk."""
        self.flush()
        if self.done != self.identity.size:
            return False
        if self.verified:
            return True
        if self.identity.digest is not None and self._hash.hexdigest() != self.identity.digest:
            return False
        sync_file(self._file.fileno())
        self._state.write(f"verified {os.fstat(self._file.fileno()).st_mtime_ns}\n".encode())
        sync_file(self._state.fileno())
        self.verified = True
        return True

    def close(self) -> None:
        """Note what is there and let go; the part stays. Never raises: what could not be noted is fetched again."""
        with contextlib.suppress(OSError):
            # A full disk took a piece of the last write, and has no room for the note then.
            if self._taken_up and os.fstat(self._file.fileno()).st_size > self.done:
                self._file.truncate(self.done)
        with contextlib.suppress(OSError):
            self.flush()
        self._state.close()
        self._file.close()

    def discard(self) -> None:
        """Close, and remove all traces."""
        self.close()
        remove_part(self.target)


def finish(target: Path) -> None:
    """A verified, closed part takes its target's place. Raises OSError."""
    target.with_name(target.name + PART).replace(target)
    sync_folder(target.parent)
    with contextlib.suppress(OSError):
        target.with_name(target.name + STATE).unlink()


def remove_part(target: Path) -> None:
    """Remove what is there of a download. Raises OSError."""
    for ending in (STATE, PART):
        target.with_name(target.name + ending).unlink(missing_ok=True)

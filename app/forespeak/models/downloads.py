"""One file of the Hub onto this disk: resumed where it broke off, verified, and in its place only when it is right."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from forespeak.errors import UserFacingError
from forespeak.models.disk_errors import disk_error, disk_full
from forespeak.models.download_control import Control, Stopped, Tuning
from forespeak.models.download_source import RangeRefusedError, RefusedError, Source
from forespeak.models.file_lock import FileLock
from forespeak.models.hub_client import Location
from forespeak.models.hub_errors import HubError, HubProblem, wait_words
from forespeak.models.hub_files import HubFile
from forespeak.models.part_file import PART, Identity, PartFile, Verification, finish, remove_part
from forespeak.models.sizes import compared_words

if TYPE_CHECKING:
    import httpx2

    from forespeak.models.file_hashes import FileHashes
    from forespeak.models.hub_client import HubClient

LOCK, LINK = ".part.lock", ".part.link"
_READ = 1 << 20


class _AgainError(Exception):
    """This attempt failed, another may not. `wait` None: longer each time; `most` in a row are the end."""

    def __init__(self, error: UserFacingError, wait: float | None = None, most: int | None = None) -> None:
        super().__init__(error)
        self.error, self.wait, self.most = error, wait, most


class FileDownload:
    """`run` fetches and verifies into a part beside the target; `finish` puts it in its place; `close` in any case.

    From `run` to `close` no other process has the file.
    """

    def __init__(
        self,
        repo: str,
        revision: str,
        file: HubFile,
        target: Path,
        hub: Callable[[], HubClient],
        control: Control,
        tuning: Tuning | None = None,
    ) -> None:
        self.file, self.target = file, target
        self.sha256: str | None = file.sha256
        """Of the verified file, where it is known."""
        self.git: str | None = None
        self._repo, self._revision = repo, revision
        self._hub, self._control, self._tuning = hub, control, tuning or Tuning()
        self._link = target.with_name(target.name + LINK)
        self._lock = FileLock(target.with_name(target.name + LOCK))
        self._part: PartFile | None = None
        self._verified: Identity | None = None
        self._in_place = False
        self._restarts = self._damages = 0
        self._furthest = -1

    def run(self, instead: Iterable[Path] = (), hashes: FileHashes | None = None) -> Verification:
        """Returns what the contents were checked against. Raises UserFacingError (HubError for the Hub's), Stopped.

        A file of `instead` that has the right SHA-256, as `hashes` knows or computes it, is linked or copied.
        """
        try:
            self._take_lock()
            if self._is_there(self.file.sha256) or (hashes is not None and self._take_over(instead, hashes)):
                return self._done(Verification.SHA256)
            source = Source(self._hub(), self._repo, self._revision, self.file.path, self._tuning.silence)
            try:
                return self._fetch(source)
            finally:
                if self._part is not None:
                    self._part.close()
        except OSError as error:
            raise disk_error(error, self.target) from error

    def finish(self) -> None:
        """Raises UserFacingError, and then changes nothing."""
        if not self._in_place:
            try:
                if self._link.exists():
                    self._link.replace(self.target)
                    remove_part(self.target)
                else:
                    finish(self.target)
            except OSError as error:
                raise disk_error(error, self.target) from error
            self._in_place = True

    def close(self) -> None:
        self._lock.release()

    def discard(self) -> None:
        """Remove what is there of it; a finished file stays. Others' parts stay. Raises UserFacingError."""
        try:
            if self.target.parent.is_dir() and (self._lock.held or self._lock.acquire()):
                remove_part(self.target)
                self._link.unlink(missing_ok=True)
        except OSError as error:
            raise disk_error(error, self.target) from error
        finally:
            self._lock.release()

    # Before anything is fetched

    def _take_lock(self) -> None:
        while not self._try_to_lock():
            holder = self._lock.holder()
            who = "Another process" if holder is None else f"Process {holder}"
            self._control.notice(f"{who} is downloading “{self.target.name}”: waiting for it.")
            if self._control.wait(0.3):
                raise Stopped
        self._control.notice("")
        self._link.unlink(missing_ok=True)

    def _try_to_lock(self) -> bool:
        while True:
            self.target.parent.mkdir(parents=True, exist_ok=True)
            try:
                return self._lock.acquire()
            except FileNotFoundError:
                # A download that was cancelled has just taken its empty folder away.
                self._control.check()

    def _is_there(self, digest: str | None, identity: Identity | None = None) -> bool:
        """Whether the target is already what is wanted."""
        if digest is None or not self.target.is_file() or self.target.stat().st_size != self.file.size_bytes:
            return False
        self._control.checking(True)
        hasher = (identity or self._identity(None)).hasher()
        with self.target.open("rb", buffering=0) as file:
            while block := file.read(_READ):
                hasher.update(block)
                self._control.check()
        self._control.checking(False)
        self._in_place = hasher.hexdigest() == digest
        return self._in_place

    def _take_over(self, instead: Iterable[Path], hashes: FileHashes) -> bool:
        """Whether a file of this machine served. It is linked where that is possible: no second copy on the disk."""
        for path in instead:
            try:
                original = path.resolve(strict=True)
                if original.stat().st_size != self.file.size_bytes or not self._equals(path, hashes):
                    continue
            except OSError:
                continue
            try:
                self._link.hardlink_to(original)
            except OSError:
                return self._copy_from(original)
            return True
        return False

    def _equals(self, path: Path, hashes: FileHashes) -> bool:
        self._control.checking(True)
        found = hashes.sha256(path, self._control.stopped)
        self._control.check()
        self._control.checking(False)
        return found is not None and found == self.file.sha256

    def _copy_from(self, original: Path) -> bool:
        part = PartFile(self.target, self._identity(None), self._control.stopped)
        try:
            self._control.check()
            self._check_space(part.identity.size - part.done)
            with original.open("rb", buffering=0) as file:
                file.seek(part.done)
                while block := file.read(_READ):
                    self._control.check()
                    part.write(block)
                    self._control.progress(part.done)
            return part.verify()
        finally:
            part.close()

    def _identity(self, etag: str | None) -> Identity:
        return Identity(self._repo, self._revision, self.file.path, self.file.size_bytes, etag, self.file.sha256)

    # The loop

    def _fetch(self, source: Source) -> Verification:
        failures = 0
        while True:
            self._control.check()
            try:
                verification = self._attempt(source)
            except _AgainError as again:
                self._control.check()
                done = self._part.done if self._part is not None else 0
                if done > self._furthest:
                    self._furthest, failures = done, 0
                failures += 1
                if failures >= (again.most or self._tuning.tries):
                    raise again.error from again
                self._wait(again, failures)
            else:
                return self._done(verification)

    def _wait(self, again: _AgainError, failures: int) -> None:
        if again.wait is not None:
            seconds = min(again.wait, self._tuning.longest_asked_wait)
        else:
            seconds = min(self._tuning.first_wait * 2 ** (failures - 1), self._tuning.longest_wait)
            # So that not all who were thrown out together come back together.
            seconds *= random.uniform(0.75, 1.25)
        self._control.notice(f"{again.error.what} Trying again {wait_words(seconds)}.")
        if self._control.wait(seconds):
            raise Stopped
        self._control.notice("")

    def _attempt(self, source: Source) -> Verification:
        """One question to the Hub and, if something is missing, one to the server of its files."""
        try:
            location = source.locate()
        except HubError as error:
            raise _passing(error) from error
        identity = self._identity(location.etag.lower() if location.etag else None)
        self._check_identity(identity, location)
        self._verified = identity
        if self._part is None and self.file.sha256 is None and self._is_there(identity.digest, identity):
            return identity.verification
        part = self._part_of(identity)
        if part.done < identity.size:
            self._check_space(identity.size - part.done)
            self._receive(source, location, part)
        self._control.checking(True)
        try:
            right = part.verify()
        finally:
            self._control.checking(False)
        if not right:
            raise self._damaged(part)
        return identity.verification

    def _check_identity(self, identity: Identity, location: Location) -> None:
        stated = self.file.sha256
        if stated is not None and location.etag is not None and len(location.etag) == 64 and location.etag != stated:
            raise self._changed("Its contents are others than those that were listed.")
        if location.size_bytes not in {None, identity.size}:
            listed, offered = compared_words(identity.size, location.size_bytes or 0)
            raise self._changed(f"It was listed with {listed}, and now has {offered}.")

    def _changed(self, why: str) -> UserFacingError:
        return UserFacingError(
            f"“{self.target.name}” is another file on the Hub now.",
            why,
            "Open the repository anew, and download again.",
        )

    def _part_of(self, identity: Identity) -> PartFile:
        if self._part is not None and not self._part.identity.is_same_file(identity):
            self._part.discard()
            self._part = None
        if self._part is None:
            begun = self.target.with_name(self.target.name + PART).exists()
            self._control.checking(begun)
            self._part = PartFile(self.target, identity, self._control.stopped)
            self._control.checking(False)
            self._control.check()
            self._control.progress(self._part.done)
        return self._part

    def _check_space(self, missing: int) -> None:
        needed = missing + self._tuning.reserve + self._control.claimed()
        if (free := shutil.disk_usage(self.target.parent).free) < needed:
            raise disk_full(self.target, missing, free)

    def _receive(self, source: Source, location: Location, part: PartFile) -> None:
        """Read on where the part ends, until it is whole. Raises _AgainError, UserFacingError, Stopped, OSError."""
        try:
            with source.open(location, part.done) as answer:
                self._control.hold(answer.response)
                if answer.total is not None and answer.total != part.identity.size:
                    stated, sent = compared_words(part.identity.size, answer.total)
                    raise _AgainError(self._changed(f"The Hub states {stated}, its server has {sent}."), most=2)
                if answer.start > part.done:
                    raise _AgainError(_broken_off("The server left out a piece of the file."))
                self._copy(answer.response, part.done - answer.start, part)
        except RangeRefusedError as refused:
            raise self._anew(part, "The server has no such place in the file.") from refused
        except RefusedError as refused:
            # A signed address expires: the first fresh one is asked for at once.
            wait = 0.0 if part.done > self._furthest else None
            raise _AgainError(refused.error, wait, most=3) from refused
        except HubError as error:
            self._control.check()
            raise _passing(error) from error
        finally:
            self._control.let_go()
        if part.done < part.identity.size:
            raise _AgainError(_broken_off("It ended before the file did."))

    def _copy(self, response: httpx2.Response, skip: int, part: PartFile) -> None:
        size, control = part.identity.size, self._control
        looked_at = time.monotonic()
        for data in response.iter_raw():
            control.check()
            taken = len(data)
            if skip:
                # A server that cannot begin in the middle sends again what is there.
                skipped = min(skip, len(data))
                skip -= skipped
                data = data[skipped:]  # noqa: PLW2901
            if part.done + len(data) > size:
                raise self._anew(part, "The server sent more than the file holds.")
            part.write(data)
            control.progress(part.done)
            control.limiter.take(taken, control.wait)
            if (now := time.monotonic()) - looked_at > 1.0:
                looked_at = now
                free = shutil.disk_usage(self.target.parent).free
                if free < size - part.done:
                    raise disk_full(self.target, size - part.done, free)

    def _anew(self, part: PartFile, why: str) -> _AgainError:
        """From the first byte, once."""
        self._restarts += 1
        part.restart()
        self._furthest = 0
        self._control.progress(0)
        return _AgainError(
            _broken_off(why), 0.0 if self._restarts == 1 else None, most=1 if self._restarts > 2 else None
        )

    def _damaged(self, part: PartFile) -> _AgainError:
        """Nobody can tell which bytes are wrong: all of them again, once."""
        self._damages += 1
        self._from_the_start(part)
        error = UserFacingError(
            f"“{self.target.name}” arrived damaged.",
            f"Its {part.identity.verification.value} is not the one that the Hub states.",
            "Try again later, or over another connection.",
        )
        return _AgainError(error, 0.0, most=None if self._damages < 2 else 1)

    def _from_the_start(self, part: PartFile) -> None:
        part.restart()
        self._furthest = 0
        self._control.progress(0)

    def _done(self, verification: Verification) -> Verification:
        if (identity := self._verified) is not None:
            self.sha256 = identity.digest if verification is Verification.SHA256 else None
            self.git = identity.digest if verification is Verification.GIT else None
        self._control.progress(self.file.size_bytes)
        return verification


def _passing(error: HubError) -> Exception:
    """What is worth another try, as such; else the error itself."""
    if not error.problem.passes:
        return error
    return _AgainError(error, error.retry_after)


def _broken_off(why: str) -> HubError:
    return HubError(HubProblem.CONNECTION_LOST, "The connection to the Hub broke off.", why, "Try again.")

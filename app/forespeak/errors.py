"""The one error that people see: what happened, why, and what to do about it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class UserFacingError(Exception):
    """Something in the world went wrong, and the user can do something about it.

    Anything else that is raised is a bug of ours. The three parts are plain sentences.
    """

    def __init__(self, what: str, why: str = "", remedy: str = "") -> None:
        super().__init__(what, why, remedy)
        self.what = what
        self.why = why
        self.remedy = remedy

    def __str__(self) -> str:
        return " ".join(part for part in (self.what, self.why, self.remedy) if part)


def unsaved(what: str, error: OSError, where: str = "") -> UserFacingError:
    """What the disk refused. `what`: the sentence to begin with; `where`: a place that the reason should name."""
    reason = f"{error.strerror or error}."
    why = f"{where}: {reason}" if where else reason
    return UserFacingError(what, why, "Check that there is room on the disk and that you may write there.")


@contextlib.contextmanager
def disk_told(what: str) -> Iterator[None]:
    """Turns what the disk refuses meanwhile into a UserFacingError that begins with `what`."""
    try:
        yield
    except OSError as error:
        raise unsaved(what, error) from error

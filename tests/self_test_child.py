"""Windows that do not work, as the self-test's child process meets them."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection

from forespeak.errors import UserFacingError
from forespeak.self_test_command import BrokenError


def dies(answer: Connection) -> None:
    os._exit(7)


def cannot_open(answer: Connection) -> None:
    answer.send(UserFacingError("No window.", "No display.", "Get one."))


def is_broken(answer: Connection) -> None:
    answer.send(BrokenError("ValueError: no such thing"))

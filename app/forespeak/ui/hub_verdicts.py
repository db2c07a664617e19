"""Whether a model on the Hub could draft for the target in use: a little of it is fetched and judged like one here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, Signal

from forespeak.errors import UserFacingError
from forespeak.models.formats import model_stem
from forespeak.models.gguf import GgufError, GgufKind
from forespeak.models.hub_client import HubClient
from forespeak.models.hub_files import HubFileGroup
from forespeak.pairing.compatibility import Judge
from forespeak.pairing.remote_models import remote_verdict
from forespeak.ui.disk_models import short_words
from forespeak.ui.latest import Latest
from forespeak.ui.pair_controller import Fit


class JudgeRemote(Protocol):
    """How a group of the Hub goes with a target on disk; None if stopped. Raises UserFacingError. Waits for both."""

    def __call__(self, target: Path, group: HubFileGroup, stopped: Callable[[], bool]) -> Fit | None: ...


class RemoteJudge:
    """`cache` is the folder for headers and verdicts, where the command line and the wizard keep theirs too."""

    def __init__(self, client: Callable[[], HubClient], cache: Path) -> None:
        self._client, self._cache = client, cache

    def __call__(self, target: Path, group: HubFileGroup, stopped: Callable[[], bool]) -> Fit | None:
        judge = Judge(self._cache / "verdicts")
        verdict = remote_verdict(self._client(), target, group, self._cache / "headers", judge, stopped)
        return None if verdict is None else Fit(verdict.usable, short_words(verdict), verdict.reason)


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """`target`: the name of the model that a group can be asked about; empty if it cannot. `fit` None: not known."""

    target: str = ""
    fit: Fit | None = None
    judging: bool = False


class HubVerdicts(QObject):
    """One group at a time is judged, off the UI thread, and only when somebody asks; what was found stays."""

    changed = Signal()
    problemFound = Signal(object)
    """UserFacingError"""

    def __init__(self, judge_remote: JudgeRemote, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._judge = judge_remote
        self._latest = Latest("hub verdict", self)
        self._target: Path | None = None
        self._found: dict[tuple[Path, HubFileGroup], Fit] = {}
        self._asked: HubFileGroup | None = None

    def set_target(self, target: Path | None) -> None:
        if target != self._target:
            self.stop()
            self._target = target
            self.changed.emit()

    def of(self, group: HubFileGroup) -> GroupVerdict:
        target = self._target
        if target is None or group.kind is not GgufKind.MODEL or not group.downloadable:
            return GroupVerdict()
        return GroupVerdict(model_stem(target), self._found.get((target, group)), group == self._asked)

    def ask(self, group: HubFileGroup) -> None:
        """Instead of what was asked before."""
        target = self._target
        if target is None:
            return
        self._asked = group

        def judged(fit: Fit | None) -> None:
            self._asked = None
            if fit is not None:
                self._found[target, group] = fit
            self.changed.emit()

        def failed(error: Exception) -> None:
            if isinstance(error, GgufError):
                judged(Fit(False, "cannot be used", str(error)))
                return
            judged(None)
            if not isinstance(error, UserFacingError):
                raise error
            self.problemFound.emit(error)

        self._latest.run(lambda stop: self._judge(target, group, stop.is_set), judged, failed)
        self.changed.emit()

    def stop(self) -> None:
        if self._asked is not None:
            self._latest.cancel()
            self._asked = None
            self.changed.emit()

    def leave(self, repo: str) -> None:
        """Another repo is open now: who looks at that waits for no other one."""
        if self._asked is not None and self._asked.repo != repo:
            self.stop()

    def close(self) -> None:
        self._latest.close(0.0)

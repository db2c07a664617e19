"""What a comparison is measured with beside what its page sets up: as the chat is set, or as an earlier one was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QObject, Signal, Slot

from forespeak.compare.lanes import Plan
from forespeak.engines.engine import LoadSettings, Start, TextSourceSettings
from forespeak.engines.load_record import load_words
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.ui.compare_setup import CompareSetup
from forespeak.ui.preferences import Preferences
from forespeak.ui.session import Session


@dataclass(frozen=True, slots=True)
class Conditions:
    """Of `sampling` all but the temperature, which is set up."""

    sampling: SamplingSettings
    rule: Rule
    load_settings: LoadSettings
    text_sources: TextSourceSettings
    start: Start = Start.COLD
    warm_up: bool = True


def conditions_of(source: Preferences | Plan) -> Conditions:
    """As the chat is set, or as a comparison was measured."""
    sampling = replace(source.sampling, temperature=0.0)
    found = Conditions(sampling, source.rule, source.load_settings, source.text_sources)
    return replace(found, start=source.start, warm_up=source.warm_up) if isinstance(source, Plan) else found


def differing(then: Conditions, now: Conditions) -> str:
    """What of `then` is not so now, in a few words each; nothing if all is."""
    return ", ".join(_differing(then, now))


def _differing(then: Conditions, now: Conditions) -> Iterator[str]:
    if then.load_settings != now.load_settings:
        today = set(load_words(now.load_settings))
        # Where only today's has words, as for a draft's own device, there are none for then.
        yield from [words for words in load_words(then.load_settings) if words not in today] or [_tr("loading")]
    if then.rule is not now.rule:
        yield _tr("rule {0}").format(then.rule.value)
    if then.sampling != now.sampling:
        yield _tr("sampling")
    if then.text_sources != now.text_sources:
        yield _tr("settings of lookups")
    if then.start is not now.start:
        yield _tr("each run begun {0}").format(then.start.value)
    if then.warm_up is not now.warm_up:
        yield _tr("no warm-up")


def _tr(words: str) -> str:
    return QCoreApplication.translate("CompareConditions", words)


class ChosenConditions(QObject):
    """Today's, until a comparison is set up again: then its own, as long as the target stays and nobody objects."""

    changed = Signal()

    def __init__(self, session: Session, setup: CompareSetup) -> None:
        super().__init__(setup)
        self._session, self._setup = session, setup
        self._former: tuple[Path | None, Conditions] | None = None
        """Those of an earlier comparison, and the target for which it was set up again"""
        setup.todayRequested.connect(self.forget)

    @property
    def current(self) -> Conditions:
        former = self._former
        if former is not None and former[0] == self._session.preferences.target:
            return former[1]
        return conditions_of(self._session.preferences)

    def take(self, plan: Plan) -> None:
        self._former = (self._session.preferences.target, conditions_of(plan))
        self.show()

    @Slot()
    def forget(self) -> None:
        """As the chat is set today."""
        self._former = None
        self.show()
        self.changed.emit()

    def show(self) -> None:
        """Say what is not as it is set today."""
        words = differing(self.current, conditions_of(self._session.preferences))
        sentence = self.tr("It is measured as the earlier comparison was, which is not as it is set today: {0}.")
        self._setup.show_conditions(sentence.format(words) if words else "")

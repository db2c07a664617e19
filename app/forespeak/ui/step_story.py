"""One step of speculation in three parts: what was proposed, the check, what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from forespeak.speculation.trace import Origin, Step
from forespeak.ui.compare_parts import card
from forespeak.ui.draft_sources import NAMES
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.replay import LaneRecording, Phase, proposed_of
from forespeak.ui.theme import LIGHT, MarkKind, Theme, mark_kind
from forespeak.ui.token_card import visible_text

_ORDER = (Phase.PROPOSING, Phase.CHECKING, Phase.JUDGED)


class StepStory(QWidget):
    """Shows the step that a replay stands at, as far as it has come."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._shown: tuple[LaneRecording | None, tuple[int, Phase] | None, str] = (None, None, "")
        frame, column = card()
        self._frame: QFrame = frame
        self.title = PlainLabel()
        self.title.setProperty("heading", True)
        self.phases: dict[Phase, PlainLabel] = {}
        stages = QHBoxLayout()
        stages.setSpacing(18)
        for phase, words in zip(
            _ORDER, (self.tr("1  Propose"), self.tr("2  Check"), self.tr("3  Accept or reject")), strict=True
        ):
            label = PlainLabel(words)
            self.phases[phase] = label
            stages.addWidget(label)
        stages.addStretch(1)
        self.tokens = PlainLabel()
        self.tokens.setTextFormat(Qt.TextFormat.RichText)
        self.tokens.setWordWrap(True)
        self.words = PlainLabel()
        self.words.setWordWrap(True)
        self.meanwhile = PlainLabel()
        self.meanwhile.setProperty("caption", True)
        self.meanwhile.setWordWrap(True)
        column.addWidget(self.title)
        column.addLayout(stages)
        for label in (self.tokens, self.words, self.meanwhile):
            column.addWidget(label)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(frame)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.show_moment(*self._shown)

    def show_moment(self, lane: LaneRecording | None, moment: tuple[int, Phase] | None, meanwhile: str) -> None:
        """`moment`: the step, and what was finished last in it; None: before the first."""
        self._shown = (lane, moment, meanwhile)
        self.meanwhile.setText(meanwhile)
        if lane is None:
            self._tell("", "", self.tr("No lane speculates here, so there are no steps to explain."), None)
            return
        if moment is None:
            words = self.tr(
                "The target reads the prompt. Its first token comes with that. Press Right for the next step."
            )
            self._tell(self.tr("Before the first token"), "", words, None)
            return
        number, phase = moment
        step = lane.steps[number]
        title = self.tr("Step {0} of {1}").format(number, len(lane.steps) - 1)
        proposed = proposed_of(step)
        if number == 0:
            words = self.tr("The first token comes from reading the prompt: nothing was drafted for it.")
            self._tell(self.tr("The first token"), self._outcome(step), words, Phase.JUDGED)
        elif not proposed:
            words = self.tr("Nothing was drafted here: the target wrote this token by itself, in {0} ms.")
            self._tell(title, self._outcome(step), words.format(_ms(step.target_seconds)), Phase.JUDGED)
        elif phase is Phase.PROPOSING:
            self._tell(title, self._chips(proposed), self._proposal_words(step, len(proposed)), phase)
        elif phase is Phase.CHECKING:
            self._tell(title, self._chips(proposed), self._check_words(step), phase)
        else:
            self._tell(title, self._outcome(step), self._outcome_words(step), phase)

    def _tell(self, title: str, tokens: str, words: str, phase: Phase | None) -> None:
        self.title.setText(title)
        self.title.setVisible(bool(title))
        self.tokens.setText(tokens)
        self.tokens.setVisible(bool(tokens))
        self.words.setText(words)
        self.setAccessibleName(f"{title}. {words}")
        for each, label in self.phases.items():
            here = each is phase
            colour = self._theme.accent if here else self._theme.muted
            label.setStyleSheet(f"color: {colour}; font-weight: {600 if here else 400};")

    # -- words

    def _proposal_words(self, step: Step, count: int) -> str:
        who = NAMES[step.source] if step.source is not None else self.tr("The draft")
        words = (
            self.tr("{0} guesses the next token, in {2} ms.")
            if count == 1
            else self.tr("{0} guesses the next {1} tokens, one after the other, in {2} ms.")
        )
        if step.source is not None and not step.source.uses_model:
            words = self.tr("{0} found these words earlier in the text: {1} tokens, in {2} ms.")
        return words.format(who, count, _ms(step.draft_seconds))

    def _check_words(self, step: Step) -> str:
        tested = step.tested_count
        words = self.tr("The target reads the guess in one go, {0} tokens in one evaluation: {1} ms.")
        if not tested:
            return self.tr("The guess was not found worth a check; the target writes one token by itself.")
        return words.format(tested + 1, _ms(step.target_seconds))

    def _outcome_words(self, step: Step) -> str:
        tested, accepted = step.tested_count, step.accepted_count
        emitted = len(step.emitted)
        last = step.emitted[-1] if step.emitted else None
        parts = []
        if tested:
            parts.append(self.tr("{0} of {1} accepted.").format(accepted, tested))
        if last is not None and last.origin is Origin.CORRECTED:
            if step.rejected:
                words = self.tr("The target put “{0}” in place of “{1}”; what stood behind it fell with it.")
                parts.append(words.format(visible_text(last.text), visible_text(step.rejected[0].text)))
            else:
                parts.append(self.tr("The target put “{0}” in its place.").format(visible_text(last.text)))
        elif last is not None and last.origin is Origin.BONUS:
            parts.append(
                self.tr("All were right, so the target’s own next token “{0}” comes on top.").format(
                    visible_text(last.text)
                )
            )
        if step.ignored:
            parts.append(self.tr("{0} were never tested.").format(len(step.ignored)))
        parts.append(
            self.tr("1 token from this check.")
            if emitted == 1
            else self.tr("{0} tokens from one check.").format(emitted)
        )
        return " ".join(parts)

    # -- tokens

    def _chips(self, texts: tuple[str, ...]) -> str:
        look = f"background-color:{self._theme.bubble};color:{self._theme.ink}"
        return _joined(f'<span style="{look}">&nbsp;{_shown(text)}&nbsp;</span>' for text in texts)

    def _outcome(self, step: Step) -> str:
        """In the chat's colours: accepted, then what the target chose, then what was rejected, struck."""
        parts = []
        own = [token for token in step.emitted if token.origin is not Origin.ACCEPTED]
        accepted = [token for token in step.emitted if token.origin is Origin.ACCEPTED]
        for token in (*accepted, *own):
            kind = mark_kind(token.origin, token.source)
            parts.append(self._chip(token.text, kind))
        parts += [self._chip(token.text, MarkKind.REJECTED) for token in step.rejected]
        look = f"color:{self._theme.muted}"
        parts += [f'<span style="{look}">({_shown(token.text)})</span>' for token in step.ignored]
        return _joined(parts)

    def _chip(self, text: str, kind: MarkKind | None) -> str:
        theme = self._theme
        if kind is None:
            return f'<span style="color:{theme.ink};font-weight:600">&nbsp;{_shown(text)}&nbsp;</span>'
        mark = theme.mark(kind)
        line = "line-through" if kind is MarkKind.REJECTED else "underline"
        colour = mark.line if kind is MarkKind.REJECTED else theme.ink
        sign = {MarkKind.CORRECTED: "→ ", MarkKind.BONUS: "+ "}.get(kind, "" if kind is MarkKind.REJECTED else "✓ ")
        look = f"background-color:{mark.fill};color:{colour};text-decoration:{line}"
        return f'<span style="color:{mark.line}">{sign}</span><span style="{look}">&nbsp;{_shown(text)}&nbsp;</span>'


def _shown(text: str) -> str:
    return escape(visible_text(text)).replace(" ", "&nbsp;")


def _joined(parts: Iterable[str]) -> str:
    return " &nbsp; ".join(parts)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f}"

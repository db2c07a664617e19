"""The files of a repo as one chooses among them: a row for each quant, with its size and whether it fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QCoreApplication, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from forespeak.models.formats import NO_MLX, ModelFormat, mlx_is_installed
from forespeak.models.gguf import GgufKind
from forespeak.models.hub_files import HubFileGroup
from forespeak.models.memory import Fit
from forespeak.models.sizes import size_words
from forespeak.ui.badge import Badge, BadgeTone
from forespeak.ui.fit_words import fit_words
from forespeak.ui.hub_verdicts import GroupVerdict
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.recommended import SizeFit
from forespeak.ui.theme import LIGHT, Theme
from forespeak.ui.tool_tips import plain_tip

SIDES, GAP = 30, 10
"""What a row leaves free at both sides together, and between its parts, in pixels."""


@dataclass(frozen=True, slots=True)
class LocalCopy:
    """Files on this computer. `path` is what is loaded, `place` the folder in words.

    `same_repo`: they lie where a download would put them or are known to be this repo's; otherwise the sizes
    are the same, and the contents were not compared yet.
    """

    path: Path
    place: str
    same_repo: bool


@dataclass(frozen=True, slots=True)
class GroupView:
    """What is known of one group here. `recommended`: why it is the one to take, empty if it is not.

    `progress`: what its download is doing, in words.
    `checking`: a copy is being compared, how far in words. `verdict`: how it goes with the target.
    """

    group: HubFileGroup
    fit: SizeFit | None = None
    recommended: str = ""
    copy: LocalCopy | None = None
    progress: str = ""
    checking: str = ""
    verdict: GroupVerdict = field(default_factory=GroupVerdict)


class GroupRow(QFrame):
    downloadRequested = Signal(object)
    useRequested = Signal(object)
    """A GroupView whose copy is to be taken as the target."""
    compareRequested = Signal(object)
    showDownloadRequested = Signal(object)
    judgeRequested = Signal(object)
    """Does it suit the target? Once more: stop finding out."""

    def __init__(self, view: GroupView, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view = view
        self._sure = False
        self.name = PlainLabel(self)
        self.name.setObjectName("rowName")
        self.advice = Badge(parent=self)
        self.fit = Badge(parent=self)
        self.here = Badge(parent=self)
        self.facts = _caption(self)
        self.note = _caption(self)
        self.verdict = _caption(self)
        self.button = QPushButton(self)
        self.button.clicked.connect(self._clicked)
        self.other = QPushButton(self)
        self.other.setProperty("flat", True)
        self.other.clicked.connect(self._other_clicked)
        first = QHBoxLayout()
        first.setSpacing(8)
        first.addWidget(self.name)
        for badge in (self.advice, self.here, self.fit):
            first.addWidget(badge)
        first.addStretch(1)
        left = QVBoxLayout()
        left.setSpacing(3)
        left.addStretch(1)
        left.addLayout(first)
        left.addWidget(self.facts)
        left.addWidget(self.note)
        left.addWidget(self.verdict)
        left.addStretch(1)
        self._first = first
        row = QHBoxLayout(self)
        row.setContentsMargins(SIDES // 2 + 1, 11, SIDES // 2 - 1, 11)
        row.setSpacing(GAP)
        row.addLayout(left, 1)
        self._buttons = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._buttons.setSpacing(GAP)
        for button in (self.other, self.button):
            self._buttons.addWidget(button, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addLayout(self._buttons)
        self.show_view(view)

    def wanted_width(self) -> int:
        """From which its buttons can stand side by side."""
        shown = [button.sizeHint().width() for button in (self.other, self.button) if not button.isHidden()]
        return self._first.minimumSize().width() + sum(shown) + len(shown) * GAP + SIDES

    def set_beside(self, beside: bool) -> None:
        """Else the buttons stand one above the other, the first to be wanted on top."""
        direction = QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.BottomToTop
        self._buttons.setDirection(direction)
        self._buttons.setSpacing(GAP if beside else 2)

    def set_theme(self, theme: Theme) -> None:
        for badge in (self.advice, self.fit, self.here):
            badge.set_theme(theme)

    def show_view(self, view: GroupView) -> None:
        if view.group != self.view.group:
            self._sure = False
        self.view = view
        group = view.group
        self.name.setText(group.label or group.name)
        self.advice.set_words(self.tr("Recommended") if view.recommended else "", BadgeTone.GOOD, view.recommended)
        if view.fit is None or view.copy is not None:
            self.fit.set_words("")
        else:
            known = fit_words(view.fit.kind, group.size_bytes)
            self.fit.set_words(known.words, known.tone, view.fit.why)
        same = view.copy is not None and view.copy.same_repo
        self.here.set_words(self.tr("Here") if same else "", BadgeTone.GOOD)
        facts = [size_words(group.size_bytes)]
        if group.shards > 1:
            facts.append(self.tr("{0} parts").format(group.shards))
        elif group.format is ModelFormat.MLX:
            facts.append(self.tr("{0} files").format(len(group.files)))
        if group.label and group.format is ModelFormat.GGUF:
            facts.append(group.name)
        self.facts.setText(" · ".join(facts))
        note = self._note_words(view)
        self.note.setText(note)
        self.note.setVisible(bool(note))
        verdict = _verdict_words(view.verdict)
        self.verdict.setText(verdict)
        self.verdict.setVisible(bool(verdict))
        self._show_buttons()
        spoken = [
            self.name.text(),
            self.advice.words,
            self.here.words,
            self.fit.words,
            self.facts.text(),
            note,
            verdict,
        ]
        self.setAccessibleName(", ".join(part for part in spoken if part))
        if view.fit is not None:
            self.setAccessibleDescription(view.fit.why)

    def _note_words(self, view: GroupView) -> str:
        if view.checking:
            return view.checking
        if view.progress:
            return view.progress
        if view.group.problem:
            return view.group.problem
        copy = view.copy
        if copy is not None and copy.same_repo:
            place = self.tr("In {0}.").format(copy.place)
            return place if self._can_be_loaded else f"{place} {NO_MLX}"
        if copy is not None:
            return self.tr("A file of the same size is here ({0}). It is compared before it is used.").format(
                copy.place
            )
        if self._sure and view.fit is not None:
            return view.fit.why
        return view.recommended

    def _show_buttons(self) -> None:
        view = self.view
        copy = view.copy
        focused = next((each for each in (self.button, self.other, self) if each.hasFocus()), None)
        primary, other = "", ""
        if view.checking:
            pass
        elif view.progress:
            primary = self.tr("Show")
        elif copy is not None and copy.same_repo:
            primary = self.tr("Use") if self._can_be_loaded else ""
        elif copy is not None:
            primary, other = self.tr("Use it"), self.tr("Download")
        elif view.group.downloadable:
            too_large = view.fit is not None and view.fit.kind is Fit.TOO_LARGE
            primary = self.tr("Download anyway") if too_large and self._sure else self.tr("Download")
        judged = view.verdict
        if not other and judged.target and judged.fit is None:
            other = self.tr("Stop") if judged.judging else self.tr("Suits my target?")
        for button, words in ((self.button, primary), (self.other, other)):
            button.setText(words)
            button.setVisible(bool(words))
            button.setAccessibleName(f"{words} {self.name.text()}".strip())
        if focused is self or (focused is not None and focused.isHidden()):
            # The keyboard stays at this row, whatever its buttons become.
            (self.button if primary else self).setFocus(Qt.FocusReason.OtherFocusReason)
        about = self.tr("Reads the beginning of the file, a few megabytes, and compares its vocabulary with {0}.")
        if view.group.format is ModelFormat.MLX:
            about = self.tr("Reads the model's tokenizer, a few megabytes, and compares its vocabulary with {0}.")
        self.other.setToolTip(
            plain_tip(about.format(judged.target)) if self._asks_for_verdict and not judged.judging else ""
        )
        self.button.setToolTip(self.tr("Load it as the target.") if copy is not None and copy.same_repo else "")
        wanted = "primaryButton" if view.recommended and not view.progress and copy is None else ""
        if self.button.objectName() != wanted:
            self.button.setObjectName(wanted)
            self.button.style().unpolish(self.button)
            self.button.style().polish(self.button)

    @Slot()
    def _clicked(self) -> None:
        view = self.view
        if view.progress:
            self.showDownloadRequested.emit(view)
        elif view.copy is not None and view.copy.same_repo:
            self.useRequested.emit(view)
        elif view.copy is not None:
            self.compareRequested.emit(view)
        elif view.fit is not None and view.fit.kind is Fit.TOO_LARGE and not self._sure:
            # What cannot be run here is asked about once more, with the reason beside it.
            self._sure = True
            self.show_view(view)
        else:
            self.downloadRequested.emit(view)

    @property
    def _can_be_loaded(self) -> bool:
        return self.view.group.format is ModelFormat.GGUF or mlx_is_installed()

    @property
    def _asks_for_verdict(self) -> bool:
        """What the second button is for: with a copy here that is not compared yet, it downloads."""
        copy = self.view.copy
        return copy is None or copy.same_repo or bool(self.view.checking or self.view.progress)

    @Slot()
    def _other_clicked(self) -> None:
        (self.judgeRequested if self._asks_for_verdict else self.downloadRequested).emit(self.view)


class FileGroups(QWidget):
    """A card with a row for each model of a repo, and a word about its other files."""

    downloadRequested = Signal(object)
    useRequested = Signal(object)
    compareRequested = Signal(object)
    showDownloadRequested = Signal(object)
    judgeRequested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self.rows: list[GroupRow] = []
        self._lines: list[QFrame] = []
        self._card = QFrame(self)
        self._card.setObjectName("hubCard")
        self._list = QVBoxLayout(self._card)
        self._list.setContentsMargins(0, 0, 0, 0)
        self._list.setSpacing(0)
        self.others = _caption(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self._card)
        column.addWidget(self.others)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        for row in self.rows:
            row.set_theme(theme)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """In all rows alike."""
        beside = self.width() >= max((row.wanted_width() for row in self.rows), default=0)
        for row in self.rows:
            row.set_beside(beside)

    def show_views(self, views: Sequence[GroupView]) -> None:
        """Rows that show the same groups as before are kept, with the focus on them."""
        models = [view for view in views if view.group.kind is GgufKind.MODEL]
        if [row.view.group for row in self.rows] == [view.group for view in models]:
            for row, view in zip(self.rows, models, strict=True):
                if row.view != view:
                    row.show_view(view)
        else:
            self._rebuild(models)
        self._arrange()
        self._card.setVisible(bool(models))
        words = _other_words([view.group for view in views if view.group.kind is not GgufKind.MODEL])
        if not models:
            words = " ".join(
                part for part in (self.tr("No file here is a model that can be downloaded."), words) if part
            )
        self.others.setText(words)
        self.others.setVisible(bool(words))

    def _rebuild(self, views: Sequence[GroupView]) -> None:
        for old in (*self.rows, *self._lines):
            self._list.removeWidget(old)
            old.hide()
            old.deleteLater()
        self.rows, self._lines = [], []
        for view in views:
            if self.rows:
                line = QFrame(self._card)
                line.setObjectName("hubLine")
                line.setFixedHeight(1)
                self._list.addWidget(line)
                self._lines.append(line)
            row = GroupRow(view, self._card)
            row.set_theme(self._theme)
            row.downloadRequested.connect(self.downloadRequested)
            row.useRequested.connect(self.useRequested)
            row.compareRequested.connect(self.compareRequested)
            row.showDownloadRequested.connect(self.showDownloadRequested)
            row.judgeRequested.connect(self.judgeRequested)
            self._list.addWidget(row)
            self.rows.append(row)


def _verdict_words(verdict: GroupVerdict) -> str:
    def tr(words: str) -> str:
        return QCoreApplication.translate("FileGroups", words)

    if verdict.judging:
        return tr("Reading its vocabulary…")
    if verdict.fit is None:
        return ""
    suits = tr("Could draft for {0}: {1}. {2}") if verdict.fit.fits else tr("Cannot draft for {0}: {1}. {2}")
    return suits.format(verdict.target, verdict.fit.short, verdict.fit.full).strip()


def _other_words(groups: Sequence[HubFileGroup]) -> str:
    """What else is there, which is no model."""

    def tr(words: str) -> str:
        return QCoreApplication.translate("FileGroups", words)

    counts = {kind: sum(group.kind is kind for group in groups) for kind in (GgufKind.PROJECTOR, GgufKind.IMATRIX)}
    parts = []
    if count := counts[GgufKind.PROJECTOR]:
        parts.append(tr("a projector for images") if count == 1 else tr("{0} projectors for images").format(count))
    if count := counts[GgufKind.IMATRIX]:
        parts.append(tr("an importance matrix") if count == 1 else tr("{0} importance matrices").format(count))
    return tr("Also in this repo, and no models: {0}.").format(tr(" and ").join(parts)) if parts else ""


def _caption(parent: QWidget) -> PlainLabel:
    label = PlainLabel(parent)
    label.setProperty("caption", True)
    label.setWordWrap(True)
    return label

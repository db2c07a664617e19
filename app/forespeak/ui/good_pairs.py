"""Good pairs to begin with: well-known targets with a draft each, those first that fit this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QFrame, QGridLayout, QProgressBar, QPushButton, QVBoxLayout, QWidget

from forespeak.models.formats import ModelFormat, mlx_is_installed
from forespeak.models.good_pairs import GoodModel, GoodPair, best_first
from forespeak.models.memory import Fit
from forespeak.models.sizes import size_words
from forespeak.ui.badge import Badge
from forespeak.ui.fit_words import fit_words
from forespeak.ui.folding_row import FoldingRow
from forespeak.ui.form import caption, scrolled
from forespeak.ui.pair_fetcher import PairFetcher, PairProgress, PairStep
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.restyle import restyle
from forespeak.ui.theme import Theme

WIDE_FROM = 720
BUTTON_WIDTH = 148


class PairRow(FoldingRow):
    """One pair: what it is, whether it fits, and the one thing that can be done about it now."""

    pressed = Signal()

    def __init__(self, pair: GoodPair, fit: Fit, parent: QWidget | None = None) -> None:
        super().__init__(WIDE_FROM, 260, parent)
        self.pair = pair
        self.fit = fit
        self.title = PlainLabel(pair.title)
        self.title.setProperty("heading", True)
        self.title.setWordWrap(True)
        self.good_for = caption(pair.good_for)
        self.models = PlainLabel(f"{_named(pair.target)}\n{_named(pair.draft)}")
        self.models.setWordWrap(True)
        self.publishers = caption(f"{pair.target.repo}\n{pair.draft.repo}")
        words = fit_words(fit, pair.size_bytes)
        self.badge = Badge(words.words, words.tone)
        self.badge.setToolTip(words.why)
        memory = self.tr("For {count} GB").format(count=pair.memory)
        self.size_words = caption(f"{memory} · {size_words(pair.size_bytes)}")
        self.size_words.setWordWrap(False)
        self.button = QPushButton()
        self.button.setMinimumWidth(BUTTON_WIDTH)
        self.button.clicked.connect(self.pressed)
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setRange(0, 1000)
        self.note = PlainLabel()
        self.note.setWordWrap(True)
        self.grid.setContentsMargins(16, 12, 16, 12)
        self.grid.setHorizontalSpacing(18)
        self.fold(wide=True)

    def set_theme(self, theme: Theme) -> None:
        self.badge.set_theme(theme)

    def show_progress(self, progress: PairProgress) -> None:
        step = progress.step
        words = {
            PairStep.OFFERED: self.tr("Download both"),
            PairStep.ASKING: self.tr("Asking the Hub"),
            PairStep.COMING: self.tr("Downloading"),
            PairStep.STOPPED: self.tr("See downloads"),
            PairStep.HERE: self.tr("Use this pair"),
        }[step]
        if step is PairStep.OFFERED and progress.missing and progress.missing < self.pair.size_bytes:
            words = self.tr("Download the other")
        self.button.setText(words)
        self.button.setAccessibleName(f"{words}: {self.pair.title}")
        self.button.setEnabled(step not in {PairStep.ASKING, PairStep.COMING})
        here = step is PairStep.HERE
        restyle(self.button, primary=here)
        moving = step in {PairStep.COMING, PairStep.STOPPED}
        self.bar.setVisible(moving)
        note = "" if progress.error is None else str(progress.error)
        if moving and progress.total:
            self.bar.setValue(round(1000 * progress.done / progress.total))
            if not note:
                note = self.tr("{done} of {total}").format(
                    done=size_words(progress.done), total=size_words(progress.total)
                )
        self.note.setText(note)
        self.note.setVisible(bool(note))
        restyle(self.note, danger=progress.error is not None, caption=progress.error is None)

    def place_parts(self, grid: QGridLayout, *, wide: bool) -> None:
        top = Qt.AlignmentFlag.AlignTop
        if wide:
            grid.addWidget(self.title, 0, 0, top)
            grid.addWidget(self.good_for, 1, 0, top)
            grid.addWidget(self.models, 0, 1, top)
            grid.addWidget(self.publishers, 1, 1, top)
            grid.addWidget(self.badge, 0, 2, top)
            grid.addWidget(self.size_words, 1, 2, top)
            grid.addWidget(self.button, 0, 3, 2, 1, Qt.AlignmentFlag.AlignVCenter)
            grid.addWidget(self.bar, 2, 0, 1, 4)
            grid.addWidget(self.note, 3, 0, 1, 4)
            grid.setColumnStretch(0, 4)
            grid.setColumnStretch(1, 5)
            grid.setColumnMinimumWidth(2, 132)
        else:
            grid.addWidget(self.title, 0, 0, 1, 2)
            grid.addWidget(self.good_for, 1, 0, 1, 2)
            grid.addWidget(self.models, 2, 0, 1, 2)
            grid.addWidget(self.publishers, 3, 0, 1, 2)
            grid.addWidget(self.badge, 4, 0, top)
            grid.addWidget(self.size_words, 5, 0, top)
            grid.addWidget(self.button, 4, 1, 2, 1, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight)
            grid.addWidget(self.bar, 6, 0, 1, 2)
            grid.addWidget(self.note, 7, 0, 1, 2)
            grid.setColumnStretch(0, 1)


class GoodPairs(QWidget):
    """`fit_of` judges bytes against this machine's memory now; `mlx`: whether it is Apple silicon."""

    pairRequested = Signal(object, object)
    """Paths of target and draft, both in the library"""
    downloadsRequested = Signal()

    def __init__(
        self,
        pairs: Sequence[GoodPair],
        fetcher: PairFetcher,
        fit_of: Callable[[int], Fit],
        mlx: bool,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._fetcher = fetcher
        self._theme: Theme | None = None
        self.rows: dict[str, PairRow] = {}
        title = PlainLabel(self.tr("Good pairs to begin with"))
        title.setProperty("heading", True)
        self.intro = caption(
            self.tr(
                "A large target answers, and a small draft with the same vocabulary guesses ahead of it. These are "
                "well-known pairs of known publishers; those that fit this machine's memory stand first. None was "
                "tried here: whether a draft brings anything shows when it is used."
            )
        )
        self.mlx_note = caption(
            self.tr(
                "Pairs in the MLX format can be downloaded; to run them, mlx-lm has to be installed beside Forespeak."
            )
        )
        card = QFrame()
        card.setProperty("card", True)
        self._column = QVBoxLayout(card)
        self._column.setContentsMargins(1, 1, 1, 1)
        self._column.setSpacing(0)
        self._waiting = list(best_first(pairs, fit_of, mlx=mlx))
        has_mlx = any(pair.format is ModelFormat.MLX for pair, _ in self._waiting)
        self.mlx_note.setVisible(has_mlx and not mlx_is_installed())
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 8, 0)
        column.setSpacing(6)
        for widget in (title, self.intro, self.mlx_note):
            column.addWidget(widget)
        column.addSpacing(4)
        column.addWidget(card)
        column.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(scrolled(inside, see_through=True))
        fetcher.changed.connect(self._show)
        # One row at a time: all of them at once would keep the window waiting.
        self._next = QTimer(self)
        self._next.setInterval(0)
        self._next.timeout.connect(self._add_row)
        self._next.start()

    @property
    def complete(self) -> bool:
        """Whether all rows are there."""
        return not self._waiting

    @Slot()
    def _add_row(self) -> None:
        if not self._waiting:
            self._next.stop()
            return
        pair, fit = self._waiting.pop(0)
        row = PairRow(pair, fit)
        row.setProperty("first", not self.rows)
        row.pressed.connect(self._pressed)
        if self._theme is not None:
            row.set_theme(self._theme)
        row.show_progress(self._fetcher.progress_of(pair))
        if not self.rows:
            self.setFocusProxy(row.button)
        self.rows[pair.id] = row
        self._column.addWidget(row)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        for row in self.rows.values():
            row.set_theme(theme)

    @Slot()
    def refresh(self) -> None:
        """The library is another one."""
        for name in self.rows:
            self._show(name)

    @Slot(str)
    def _show(self, name: str) -> None:
        row = self.rows.get(name)
        if row is not None:
            row.show_progress(self._fetcher.progress_of(row.pair))

    @Slot()
    def _pressed(self) -> None:
        row = self.sender()
        assert isinstance(row, PairRow)
        pair = row.pair
        match self._fetcher.progress_of(pair).step:
            case PairStep.HERE:
                target, draft = self._fetcher.place_of(pair.target), self._fetcher.place_of(pair.draft)
                self.pairRequested.emit(target, draft)
            case PairStep.STOPPED:
                self.downloadsRequested.emit()
            case PairStep.OFFERED:
                self._fetcher.fetch(pair)
            case _:
                pass


def _named(model: GoodModel) -> str:
    # Quant and size stay in one line, where there is no room for all.
    size = size_words(model.size_bytes).replace(" ", "\u00a0")
    return f"{model.name} · {model.quant}\u00a0·\u00a0{size}"

"""The strip along the top: the pair, the memory, the speculation switch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QSizePolicy, QToolButton, QWidget

from forespeak.models.memory import MemoryPlan
from forespeak.models.sizes import size_words
from forespeak.ui.draft_sources import NAMES, chain_words, what_it_does
from forespeak.ui.hardware_words import place_words, placement_lines
from forespeak.ui.icons import icon
from forespeak.ui.model_picker import Chip, Choice, ModelChip, Place, SpeculationSwitch, Tone
from forespeak.ui.pair_controller import PairState, PairStatus
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.preferences import Preferences
from forespeak.ui.theme import Theme

WITH_MEMORY = 1120
WITH_BRAND = 1000
WITH_PLUS = 700
WITH_SOURCE = 580
"""Window widths from which these parts are shown, in pixels."""


class TopBar(QFrame):
    sidebarToggled = Signal()
    panelToggled = Signal()

    def __init__(self, choices: Callable[[], Sequence[Choice]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._plan: MemoryPlan | None = None
        self.setObjectName("topBar")
        self.setFixedHeight(56)
        self.sidebar_button = QToolButton()
        self.sidebar_button.setAccessibleName(self.tr("Chats"))
        self.sidebar_button.setToolTip(self.tr("Show or hide the chats"))
        self.sidebar_button.clicked.connect(self.sidebarToggled)
        self.mark = PlainLabel()
        self.brand = PlainLabel("Forespeak")
        self.brand.setObjectName("brand")
        self.target = ModelChip(Place.TARGET, choices)
        self.plus = PlainLabel("+")
        self.plus.setObjectName("plus")
        self.draft = ModelChip(Place.DRAFT, choices)
        self.memory = Chip()
        self.memory.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.memory.setVisible(False)
        self.speculation = SpeculationSwitch()
        self.panel_button = QToolButton()
        self.panel_button.setAccessibleName(self.tr("Speculation panel"))
        self.panel_button.setToolTip(self.tr("Show or hide the speculation panel"))
        self.panel_button.clicked.connect(self.panelToggled)
        self.more_button = QToolButton()
        self.more_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.more_button.setAccessibleName(self.tr("Menu"))
        self.more_button.setToolTip(self.tr("Menu"))
        for button in (self.sidebar_button, self.panel_button, self.more_button):
            button.setIconSize(QSize(20, 20))
        row = QHBoxLayout(self)
        row.setContentsMargins(10, 0, 10, 0)
        row.setSpacing(10)
        self._brand_box = QWidget()
        self._brand_box.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
        brand_row = QHBoxLayout(self._brand_box)
        brand_row.setContentsMargins(0, 0, 0, 0)
        brand_row.setSpacing(8)
        brand_row.addWidget(self.mark)
        brand_row.addWidget(self.brand)
        brand_row.addStretch(1)
        row.addWidget(self.sidebar_button)
        row.addWidget(self._brand_box)
        row.addWidget(self.target, 3)
        row.addWidget(self.plus)
        row.addWidget(self.draft, 3)
        row.addWidget(self.memory, 2)
        row.addStretch(0)
        row.addWidget(self.speculation)
        row.addWidget(self.panel_button)
        row.addWidget(self.more_button)

    def set_theme(self, theme: Theme) -> None:
        self.sidebar_button.setIcon(icon("chat", theme.muted))
        self.panel_button.setIcon(icon("panel", theme.muted))
        self.more_button.setIcon(icon("more", theme.muted))
        self.speculation.set_theme(theme)

    def set_menu(self, menu: QMenu) -> None:
        self.more_button.setMenu(menu)

    def set_window_width(self, width: int, sidebar_width: int) -> None:
        """Leave out what matters least, so that the pair stays readable."""
        self._brand_box.setVisible(width >= WITH_BRAND)
        self._brand_box.setFixedWidth(max(124, sidebar_width - 42))
        self.memory.setVisible(width >= WITH_MEMORY and bool(self.memory.words()[1]))
        self.speculation.set_parts(label=width >= WITH_BRAND, source=width >= WITH_SOURCE)
        self.plus.setVisible(width >= WITH_PLUS)

    def set_memory(self, used: int, total: int) -> None:
        """Bytes of the app with its engine, and of the machine."""
        gigabytes = 1_000_000_000
        value = self.tr("{used:.1f} of {total:.1f} GB").format(used=used / gigabytes, total=total / gigabytes)
        tip = self.tr("Forespeak and its engine use {used} of this machine's {total}.")
        words = [tip.format(used=size_words(used), total=size_words(total))]
        if self._plan is not None:
            words += ["", self.tr("Planned for this pair:"), *(f"{part}: {size}" for part, size in self._plan.rows())]
        self.memory.set_words(self.tr("Memory"), value, "\n".join(words))
        window = self.window()
        self.memory.setVisible(window.width() >= WITH_MEMORY)

    def set_plan(self, plan: MemoryPlan | None) -> None:
        """What the pair in use was planned to take; the chip tells with its next measurement."""
        self._plan = plan

    def show_pair(self, status: PairStatus, preferences: Preferences, name: Callable[[Path | None], str]) -> None:
        """What is chosen, how far it is, and whether the two fit."""
        target, draft = preferences.target, preferences.draft
        self.target.set_current(target)
        used = [] if status.loaded is None else placement_lines(status.loaded)
        tip = "\n".join([*([] if target is None else [str(target)]), *used])
        self.target.set_words(*self._target_words(status, name(target) if target else ""), tooltip=tip)
        wanted = preferences.drafting
        self.draft.set_current(draft if wanted[-1].uses_model else None)
        has_draft = draft is not None and status.draft_problem is None
        sources = preferences.drafting_if(has_draft)
        if draft is None or not wanted[-1].uses_model:
            value = NAMES[sources[0]] if len(sources) == 1 else self.tr("{0} text sources").format(len(sources))
            tip = what_it_does(sources[0]) if len(sources) == 1 else f"{chain_words(sources)}."
            self.draft.set_words(self.tr("Draft · no model"), value, tip)
        else:
            caption, tone, why = self._draft_words(status)
            if len(sources) > 1 and tone is not Tone.PROBLEM:
                why = "\n".join(part for part in (f"{chain_words(sources)}.", why) if part)
            self.draft.set_words(caption, name(draft), "\n".join(part for part in (why, str(draft)) if part), tone)
        obstacle = self.tr("Choose a draft model first, beside the target.") if draft is None else status.draft_problem
        self.speculation.set_state(preferences.speculate, sources, obstacle)

    def _target_words(self, status: PairStatus, name: str) -> tuple[str, str]:
        match status.state:
            case PairState.UNPACKING | PairState.LOADING:
                doing = self.tr("unpacking") if status.state is PairState.UNPACKING else self.tr("loading")
                percent = "" if status.progress is None else f" {100 * status.progress.fraction:.0f} %"
                return self.tr("Target · {doing}").format(doing=doing) + percent, name
            case PairState.FAILED | PairState.TOO_LARGE if name:
                return self.tr("Target · not loaded"), name
            case PairState.READY if status.loaded is not None and status.loaded.placement is not None:
                return self.tr("Target · {where}").format(where=place_words(status.loaded.placement)), name
            case _:
                return self.tr("Target"), name or self.tr("Choose a model")

    def _draft_words(self, status: PairStatus) -> tuple[str, Tone, str]:
        fit = status.fit
        if fit is not None and not fit.fits:
            return self.tr("Draft · {why}").format(why=fit.short), Tone.PROBLEM, fit.full
        if status.draft_problem is not None:
            return self.tr("Draft · not in use"), Tone.PROBLEM, status.draft_problem
        if fit is not None:
            return self.tr("Draft · {why}").format(why=fit.short), Tone.GOOD, fit.full
        return self.tr("Draft"), Tone.PLAIN, ""

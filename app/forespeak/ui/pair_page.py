"""The page that pairs targets with drafts: the kept pairs in front, and the wizard in its four steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from forespeak.errors import UserFacingError
from forespeak.models.formats import model_stem
from forespeak.models.good_pairs import GoodModel
from forespeak.models.sizes import size_words
from forespeak.pairing.named_pair import NamedPair
from forespeak.ui.navigation import PageWidget
from forespeak.ui.notices import Banner, Toast
from forespeak.ui.pairs_list import PairsList
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.restyle import restyle
from forespeak.ui.theme import Theme
from forespeak.ui.wizard_controller import WizardController
from forespeak.ui.wizard_draft import DraftStep
from forespeak.ui.wizard_keep import KeepStep
from forespeak.ui.wizard_state import WizardStep
from forespeak.ui.wizard_style import wizard_style_sheet
from forespeak.ui.wizard_target import TargetStep
from forespeak.ui.wizard_trial import TestStep

WIDE_MARGIN, NARROW_MARGIN = 40, 14
WIDE_FROM = 720


class StepBar(QWidget):
    """The four steps; those that can be gone to are buttons."""

    chosen = Signal(object)
    """WizardStep"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Steps"))
        names = {
            WizardStep.TARGET: self.tr("1 Target"),
            WizardStep.DRAFT: self.tr("2 Draft"),
            WizardStep.TEST: self.tr("3 Test"),
            WizardStep.KEEP: self.tr("4 Keep"),
        }
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        self.buttons: dict[WizardStep, QPushButton] = {}
        for step, name in names.items():
            if self.buttons:
                arrow = PlainLabel("→")
                arrow.setProperty("muted", True)
                row.addWidget(arrow)
            button = QPushButton(name)
            button.setObjectName("wizardStep")
            button.clicked.connect(self._clicked)
            button.setProperty("step", step.value)
            self.buttons[step] = button
            row.addWidget(button)
        row.addStretch(1)

    def show_step(self, current: WizardStep, reachable: Sequence[WizardStep]) -> None:
        for step, button in self.buttons.items():
            button.setEnabled(step in reachable)
            button.setAccessibleDescription(self.tr("This step is shown") if step is current else "")
            restyle(button, current=step is current)

    @Slot()
    def _clicked(self) -> None:
        button = self.sender()
        assert isinstance(button, QPushButton)
        self.chosen.emit(WizardStep(button.property("step")))


class PairPage(PageWidget):
    useRequested = Signal(object)
    """NamedPair to chat with"""
    discoverRequested = Signal()
    undoChanged = Signal()

    def __init__(self, controller: WizardController, goods: Sequence[GoodModel], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("pairPage")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.controller = controller
        self._in_front: bool | None = None
        """Whether the kept pairs are shown; None: not decided before they are read."""
        self.banner = Banner()
        self.title = PlainLabel()
        self.title.setProperty("title", True)
        self.title.setWordWrap(True)
        self.subtitle = PlainLabel()
        self.subtitle.setProperty("muted", True)
        self.subtitle.setWordWrap(True)
        self.steps = StepBar()
        self.steps.chosen.connect(self._go)
        self.pairs = PairsList(controller.keeper)
        self.target = TargetStep(controller, goods)
        self.draft = DraftStep(controller)
        self.test = TestStep(controller)
        self.keep = KeepStep(controller)
        self._parts: dict[WizardStep, TargetStep | DraftStep | TestStep | KeepStep] = {
            WizardStep.TARGET: self.target,
            WizardStep.DRAFT: self.draft,
            WizardStep.TEST: self.test,
            WizardStep.KEEP: self.keep,
        }
        self.stack = QStackedWidget()
        for part in (self.pairs, *self._parts.values()):
            self.stack.addWidget(part)
        self.back = QPushButton(self.tr("Back"))
        self.back.clicked.connect(self._back)
        self.hub_button = QPushButton()
        self.hub_button.clicked.connect(self._hub)
        self.second = QPushButton()
        self.second.clicked.connect(self._second)
        self.next = QPushButton()
        self.next.setProperty("primary", True)
        self.next.clicked.connect(self._next)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.back)
        row.addStretch(1)
        for button in (self.hub_button, self.second, self.next):
            row.addWidget(button)
        inside = QWidget()
        self._layout = QVBoxLayout(inside)
        self._layout.setSpacing(8)
        self._layout.addWidget(self.title)
        self._layout.addWidget(self.subtitle)
        self._layout.addWidget(self.steps)
        self._layout.addSpacing(6)
        self._layout.addWidget(self.stack, 1)
        self._layout.addSpacing(4)
        self._layout.addLayout(row)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.banner)
        layout.addWidget(inside, 1)
        self.toast = Toast(self)
        self._connect()
        self._show()

    def _connect(self) -> None:
        controller = self.controller
        controller.changed.connect(self._show)
        controller.foundChanged.connect(self._show)
        controller.hubChanged.connect(self._show)
        controller.problemFound.connect(self.show_problem)
        controller.useRequested.connect(self.useRequested)
        controller.tester.changed.connect(self._show)
        controller.keeper.changed.connect(self._pairs_changed)
        controller.keeper.kept.connect(self._kept)
        controller.keeper.problemFound.connect(self.show_problem)
        controller.keeper.removalsChanged.connect(self._removed)
        controller.fetcher.changed.connect(self._show)
        controller.maker.changed.connect(self._show)
        self.target.targetChosen.connect(self.find_draft)
        self.target.selectionChanged.connect(self._show)
        self.target.discoverRequested.connect(self.discoverRequested)
        self.draft.testRequested.connect(self._test_candidate)
        self.keep.submitted.connect(self._next)
        self.pairs.useRequested.connect(self.useRequested)
        self.pairs.retestRequested.connect(self._retest)

    # -- the window

    def set_theme(self, theme: Theme) -> None:
        self.setStyleSheet(wizard_style_sheet(theme))
        self.pairs.set_theme(theme)
        for part in self._parts.values():
            part.set_theme(theme)

    def take_focus(self) -> None:
        if self._in_front:
            self.pairs.take_focus()
        else:
            self._parts[self.controller.state.step].take_focus()

    def focus_search(self) -> None:
        if not self._in_front:
            self.controller.go(WizardStep.TARGET)
        else:
            self._start_new()
        self.target.take_focus()

    @property
    def can_undo(self) -> bool:
        return bool(self.controller.keeper.removals)

    def undo(self) -> None:
        self.toast.hide()
        self.controller.keeper.undo()

    @Slot(object)
    def find_draft(self, target: Path) -> None:
        """Begin with a target: the chat's, or a model of the library."""
        self.banner.dismiss()
        self._in_front = False
        self.controller.choose_target(target)
        self._show()
        self.take_focus()

    @Slot(object)
    def show_problem(self, error: UserFacingError) -> None:
        self.banner.show_message(str(error))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.back.isVisibleTo(self):
            self._back()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        side = WIDE_MARGIN if event.size().width() >= WIDE_FROM else NARROW_MARGIN
        self._layout.setContentsMargins(side, 26, side, 18)

    # -- what is shown

    @Slot()
    def _pairs_changed(self) -> None:
        keeper, state = self.controller.keeper, self.controller.state
        if self._in_front is None and keeper.read:
            # Whoever was in the middle of a pair goes on there.
            self._in_front = bool(keeper.pairs) and state.target is None
            self._show()
            if self.isVisible():
                self.take_focus()
        elif self._in_front and not keeper.pairs and not keeper.removals:
            self._in_front = False
            self._show()
        else:
            self._show()

    @Slot()
    def _show(self, *_: object) -> None:
        state = self.controller.state
        front = bool(self._in_front)
        part: QWidget = self.pairs if front else self._parts[state.step]
        if self.stack.currentWidget() is not part:
            had_focus = self.isAncestorOf(self.focusWidget()) if self.focusWidget() is not None else False
            if part is self.keep:
                self.keep.begin()
            self.stack.setCurrentWidget(part)
            if self.isVisible() and had_focus:
                self.take_focus()
        self.steps.setVisible(not front)
        reachable = [step for step in WizardStep if self.controller.can_go(step)]
        self.steps.show_step(state.step, reachable)
        self._show_title()
        self._show_buttons()

    def _show_title(self) -> None:
        state, found = self.controller.state, self.controller.found
        if self._in_front:
            self.title.setText(self.tr("Pairs"))
            count = len(self.controller.keeper.pairs)
            words = self.tr("1 kept pair") if count == 1 else self.tr("{count} kept pairs").format(count=count)
            self.subtitle.setText(words)
            return
        if state.target is None or state.step is WizardStep.TARGET:
            self.title.setText(self.tr("Find a draft"))
            self.subtitle.setText(self.tr("A small draft with the same vocabulary makes a large target faster."))
            return
        name = model_stem(state.target) if found is None else found.target.name.removesuffix(".gguf")
        self.title.setText(self.tr("A draft for {name}").format(name=name))
        parts = []
        if found is not None:
            parts = [found.target.label or "", size_words(found.target.size_bytes)]
            rate = found.plain_rate
            if rate is not None:
                figure = f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}"
                words = self.tr("{rate} tokens/s on this machine")
                words = words if found.is_timed else self.tr("about {rate} tokens/s on this machine")
                parts.append(words.format(rate=figure))
        if state.step in {WizardStep.TEST, WizardStep.KEEP} and self.controller.line is not None:
            parts.append(self.tr("with {draft}").format(draft=self.controller.line.name))
        self.subtitle.setText(" · ".join(part for part in parts if part) or " ")

    def _show_buttons(self) -> None:
        controller, state, hub = self.controller, self.controller.state, self.controller.hub
        front, step = bool(self._in_front), state.step
        tester = controller.tester.status
        has_pairs = bool(controller.keeper.pairs)
        self.back.setVisible(not front and (step is not WizardStep.TARGET or has_pairs))
        self.back.setText(self.tr("Kept pairs") if step is WizardStep.TARGET and not front else self.tr("Back"))
        self.hub_button.setVisible(not front and step is WizardStep.DRAFT)
        again = self.tr("Try the Hub again") if hub.problems else self.tr("Find more on the Hub")
        self.hub_button.setText(self.tr("Stop searching") if hub.searching else again)
        line = controller.line
        second = ""
        if not front and step is WizardStep.TEST and state.measurement is None and not tester.running:
            second = self.tr("Keep without a test")
        elif not front and step is WizardStep.KEEP:
            second = self.tr("Keep and use in chat")
        self.second.setText(second)
        self.second.setVisible(bool(second))
        self.next.setVisible(True)
        enabled = True
        if front:
            words = self.tr("Find a draft…")
        elif step is WizardStep.TARGET:
            words, enabled = self.target.action_words, self.target.can_go_on
        elif step is WizardStep.DRAFT:
            words = self.tr("Test this pair")
            enabled = line is not None and line.is_here and not line.problem
        elif step is WizardStep.TEST:
            words = self.tr("Keep this pair")
            self.next.setVisible(state.measurement is not None and not tester.running)
        else:
            words = self.tr("Update the pair") if state.pair_id is not None else self.tr("Keep")
        self.next.setText(words)
        self.next.setEnabled(enabled)

    # -- what is done

    @Slot(object)
    def _go(self, step: WizardStep) -> None:
        self.controller.go(step)

    @Slot()
    def _next(self) -> None:
        step = self.controller.state.step
        if self._in_front:
            self._start_new()
        elif step is WizardStep.TARGET:
            self.target.go_on()
        elif step is WizardStep.DRAFT:
            self.controller.go(WizardStep.TEST)
        elif step is WizardStep.TEST:
            self.controller.go(WizardStep.KEEP)
        else:
            self.keep.keep(use=False)
        self.banner.dismiss()

    @Slot()
    def _second(self) -> None:
        if self.controller.state.step is WizardStep.TEST:
            self.controller.go(WizardStep.KEEP)
        else:
            self.keep.keep(use=True)

    @Slot()
    def _back(self) -> None:
        step = self.controller.state.step
        if self._in_front:
            return
        if step is WizardStep.TARGET:
            if self.controller.keeper.pairs:
                self._in_front = True
                self._show()
                self.take_focus()
            return
        steps = list(WizardStep)
        self.controller.go(steps[steps.index(step) - 1])

    @Slot()
    def _hub(self) -> None:
        if self.controller.hub.searching:
            self.controller.cancel_hub()
        else:
            self.controller.search_hub()

    @Slot()
    def _start_new(self) -> None:
        self._in_front = False
        if self.controller.state.pair_id is not None:
            self.controller.start_over()
        self._show()
        self.take_focus()

    @Slot(str)
    def _test_candidate(self, key: str) -> None:
        self.controller.choose(key)
        self.controller.go(WizardStep.TEST)

    @Slot(object)
    def _retest(self, pair: NamedPair) -> None:
        self._in_front = False
        self.controller.retest(pair)
        self._show()
        self.take_focus()

    @Slot(object)
    def _kept(self, pair: NamedPair) -> None:
        self._in_front = True
        self.banner.dismiss()
        self._show()
        self.pairs.show_pair(pair.id)

    @Slot()
    def _removed(self) -> None:
        removals = self.controller.keeper.removals
        if removals:
            words = self.tr("Removed “{name}”.").format(name=removals[-1][0].name)
            self.toast.offer(words, self.tr("Undo"), self.controller.keeper.undo)
        self.undoChanged.emit()

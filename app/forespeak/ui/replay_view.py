"""Recorded replies side by side, with the keys of a player, and one step at a time as an explanation of the method."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QButtonGroup,
    QHBoxLayout,
    QPushButton,
    QSlider,
    QStyle,
    QStyleOptionSlider,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from forespeak.ui.compare_lane import LaneView
from forespeak.ui.compare_parts import ElidedChoice, SideBySide
from forespeak.ui.compare_values import Recorded
from forespeak.ui.flow_row import FlowRow
from forespeak.ui.icons import icon
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.replay import LaneRecording, Player
from forespeak.ui.step_story import StepStory
from forespeak.ui.theme import LIGHT, MarkStyle, Theme

_SLIDER_STEPS = 2000
_NARROW = 600
_JUMP = 0.05
"""Of the whole, with an arrow key."""


class _Scrubber(QSlider):
    """Goes to where it is clicked; the keys are the replay's."""

    jumped = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.setRange(0, _SLIDER_STEPS)
        self.setMinimumWidth(80)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._follow(event)
        else:
            event.ignore()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._follow(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        event.ignore()

    def _follow(self, event: QMouseEvent) -> None:
        option = QStyleOptionSlider()
        self.initStyleOption(option)
        handle = self.style().subControlRect(
            QStyle.ComplexControl.CC_Slider, option, QStyle.SubControl.SC_SliderHandle, self
        )
        room = max(self.width() - handle.width(), 1)
        at = int(event.position().x()) - handle.width() // 2
        self.jumped.emit(QStyle.sliderValueFromPosition(0, _SLIDER_STEPS, at, room))


class _PlayButton(QPushButton):
    """Has the focus of the whole replay, which is seen by it; the keys are the replay's."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self.click()
        else:
            event.ignore()


class ReplayView(QWidget):
    """Two lanes of one prompt. Space plays, arrows move, 1 and 2 choose the speed, S goes step by step."""

    def __init__(self, player: Player | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._recorded: tuple[Recorded, ...] = ()
        self._pair: tuple[LaneRecording, ...] = ()
        self.player = player or Player(self)
        self.prompts = ElidedChoice(18)
        self.prompts.setAccessibleName(self.tr("Prompt to replay"))
        self.against = ElidedChoice(28)
        self.against.setAccessibleName(self.tr("Lane to show beside the first"))
        choices = FlowRow()
        heading = PlainLabel(self.tr("Replay"))
        heading.setProperty("muted", True)
        choices.add(heading)
        choices.add(self.prompts)
        choices.add(self.against)
        self._choices = choices
        self.lanes = (LaneView(self), LaneView(self))
        both = SideBySide()
        for lane in self.lanes:
            both.add(lane)
        self.story = StepStory(self)
        self.story.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addWidget(choices)
        column.addWidget(both)
        column.addLayout(self._make_controls())
        column.addWidget(self.story)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setAccessibleName(self.tr("Replay"))
        keys = self.tr("Space plays and pauses. Arrow keys move. 1 and 2 choose the speed, S goes step by step.")
        self.setAccessibleDescription(keys)
        self.play_button.setAccessibleDescription(keys)
        self.prompts.activated.connect(self._choose)
        self.against.activated.connect(self._choose_lane)
        self.player.moved.connect(self._moved)
        self.player.playingChanged.connect(self._show_state)
        self.player.steppingChanged.connect(self._show_state)
        self._show_state()

    def _make_controls(self) -> QBoxLayout:
        self.play_button = _PlayButton()
        self.play_button.setIconSize(QSize(18, 18))
        self.play_button.setFixedWidth(48)
        self.play_button.clicked.connect(self._play_clicked)
        self.back_button, self.forward_button = QToolButton(), QToolButton()
        for button, words, act in (
            (self.back_button, self.tr("Back (Left)"), self.player.previous_moment),
            (self.forward_button, self.tr("On (Right)"), self.player.next_moment),
        ):
            button.setToolTip(words)
            button.setAccessibleName(words)
            button.clicked.connect(act)
        self.scrubber = _Scrubber()
        self.scrubber.setAccessibleName(self.tr("Place in the replay"))
        self.scrubber.jumped.connect(self._jumped)
        self.clock = PlainLabel()
        self.clock.setProperty("muted", True)
        self.clock.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.normal, self.slow, self.step = (QPushButton(words) for words in ("1×", "0.25×", self.tr("Step")))
        self._modes = QButtonGroup(self)
        tips = (
            self.tr("As fast as it was (1)"),
            self.tr("Four times slower (2)"),
            self.tr("Propose, check, accept or reject, one after the other (S)"),
        )
        for number, (mode, tip) in enumerate(zip((self.normal, self.slow, self.step), tips, strict=True)):
            mode.setCheckable(True)
            mode.setProperty("flat", True)
            mode.setToolTip(tip)
            mode.setAccessibleDescription(tip)
            self._modes.addButton(mode, number)
        self._modes.idClicked.connect(self._mode_chosen)
        row = QHBoxLayout()
        row.setSpacing(8)
        for widget in (self.play_button, self.back_button, self.forward_button):
            row.addWidget(widget)
        row.addWidget(self.scrubber, 1)
        row.addWidget(self.clock)
        modes = QHBoxLayout()
        modes.setSpacing(4)
        for mode in (self.normal, self.slow, self.step):
            modes.addWidget(mode)
        modes.addStretch(1)
        self._controls = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._controls.setSpacing(8)
        self._controls.addLayout(row, 1)
        self._controls.addLayout(modes)
        return self._controls

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        below = QBoxLayout.Direction.TopToBottom
        narrow = event.size().width() < _NARROW
        self._controls.setDirection(below if narrow else QBoxLayout.Direction.LeftToRight)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        for lane in self.lanes:
            lane.set_theme(theme)
        self.story.set_theme(theme)
        for mode in (self.normal, self.slow, self.step):
            mode.setStyleSheet(
                f"QPushButton {{ padding: 5px 8px; }} QPushButton:focus {{ padding: 4px 7px; }} QPushButton:checked "
                f"{{ color: {theme.accent}; background: {theme.accent_soft}; }}"
            )
        self.back_button.setIcon(icon("previous", theme.muted, theme.line))
        self.forward_button.setIcon(icon("next", theme.muted, theme.line))
        self._show_state()

    def set_mark_style(self, style: MarkStyle) -> None:
        for lane in self.lanes:
            lane.set_mark_style(style)

    # -- what is shown

    def show_recorded(self, recorded: Sequence[Recorded]) -> None:
        """Nothing is played before it is asked for: the replies stand there as they ended."""
        self._recorded = tuple(one for one in recorded if one.lanes)
        self.setVisible(bool(self._recorded))
        self.prompts.clear()
        self.prompts.addItems([one.label for one in self._recorded])
        self.prompts.setVisible(len(self._recorded) > 1)
        if self._recorded:
            self._choose(0)

    @Slot(int)
    def _choose(self, number: int) -> None:
        lanes = self._recorded[number].lanes
        others = [lane.name for lane in _others(lanes)]
        kept = self.against.currentText()
        self.against.clear()
        self.against.addItems(others)
        self.against.setCurrentIndex(max(self.against.findText(kept), 0))
        self.against.setVisible(len(others) > 1)
        self._choices.setVisible(len(self._recorded) > 1 or len(others) > 1)
        self._choose_lane(self.against.currentIndex())

    @Slot(int)
    def _choose_lane(self, number: int) -> None:
        lanes = self._recorded[max(self.prompts.currentIndex(), 0)].lanes
        chosen = _others(lanes)[number : number + 1]
        base = next((lane for lane in lanes if chosen and lane.name == chosen[0].base), lanes[0])
        self._pair = (base, *chosen)
        for view, lane in zip(self.lanes, self._pair, strict=False):
            view.set_name(lane.name, is_plain=lane.is_plain)
        self.lanes[1].setVisible(len(self._pair) > 1)
        self.player.load(self._pair)
        self.player.seek(self.player.duration)

    @Slot(float)
    def _moved(self, seconds: float) -> None:
        duration = self.player.duration
        for view, lane in zip(self.lanes, self._pair, strict=False):
            done = lane.done_at(seconds)
            view.show_steps(lane.steps, done)
            view.set_rate(lane.rate if done == len(lane.steps) else lane.rate_at(seconds))
        self.scrubber.setValue(round(_SLIDER_STEPS * seconds / duration) if duration else 0)
        self.clock.setText(self.tr("{0} of {1} s").format(f"{seconds:.1f}", f"{duration:.1f}"))
        self._tell_step()

    def _tell_step(self) -> None:
        if not self.player.stepping:
            return
        stepped = next((lane for lane in self._pair if not lane.is_plain), None)
        self.story.show_moment(stepped, self.player.moment, self._meanwhile(stepped))

    def _meanwhile(self, stepped: LaneRecording | None) -> str:
        other = next((lane for lane in self._pair if lane is not stepped), None)
        if other is None or stepped is None:
            return ""
        counts = [lane.tokens_at(self.player.position) for lane in (stepped, other)]
        words = self.tr("By now: {0} has {1} tokens, {2} has {3}.")
        return words.format(stepped.name, counts[0], other.name, counts[1])

    @Slot()
    def _show_state(self, *_: object) -> None:
        player = self.player
        words = self.tr("Pause (Space)") if player.playing else self.tr("Play (Space)")
        self.play_button.setIcon(icon("paused" if player.playing else "play", self._theme.ink))
        self.play_button.setToolTip(words)
        self.play_button.setAccessibleName(words)
        for button in (self.back_button, self.forward_button):
            button.setVisible(player.stepping)
        self.story.setVisible(player.stepping)
        self._modes.button(2 if player.stepping else 0 if player.speed == 1.0 else 1).setChecked(True)
        self._tell_step()

    # -- what is asked

    @Slot()
    def _play_clicked(self) -> None:
        self.player.toggle()

    @Slot(int)
    def _jumped(self, value: int) -> None:
        self.player.seek(self.player.duration * value / _SLIDER_STEPS)

    @Slot(int)
    def _mode_chosen(self, mode: int) -> None:
        if mode == 2:
            at_end = self.player.position >= self.player.duration
            self.player.set_stepping(True)
            if at_end:
                self.player.seek(0.0)
        else:
            self.player.set_speed(1.0 if mode == 0 else 0.25)
        self._show_state()

    def focusInEvent(self, event: QFocusEvent) -> None:
        # No focus proxy: Tab would pass by what stands before it.
        self.play_button.setFocus(event.reason())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        player = self.player
        match event.key():
            case Qt.Key.Key_Space | Qt.Key.Key_K:
                player.toggle()
            case Qt.Key.Key_Right if player.stepping:
                player.next_moment()
            case Qt.Key.Key_Left if player.stepping:
                player.previous_moment()
            case Qt.Key.Key_Right:
                player.seek(player.position + _JUMP * player.duration)
            case Qt.Key.Key_Left:
                player.seek(player.position - _JUMP * player.duration)
            case Qt.Key.Key_Home:
                player.seek(0.0)
            case Qt.Key.Key_End:
                player.seek(player.duration)
            case Qt.Key.Key_1:
                self._mode_chosen(0)
            case Qt.Key.Key_2:
                self._mode_chosen(1)
            case Qt.Key.Key_S:
                self._mode_chosen(2)
            case _:
                super().keyPressEvent(event)


def _others(lanes: Sequence[LaneRecording]) -> tuple[LaneRecording, ...]:
    """What may stand beside the lane that it is compared with: at other temperatures that is another one."""
    return tuple(lane for lane in lanes[1:] if lane.base) or tuple(lanes[1:])

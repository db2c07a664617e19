"""Playing recorded replies again at the speed at which they were written. The clock is asked, never counted up."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from forespeak.speculation.trace import Origin, Step

FRAME_MS = 16
SPEEDS = (1.0, 0.25)


class Phase(Enum):
    """Where in a step a moment lies."""

    READING = "reading"
    """The prompt is being read."""
    PROPOSING = "proposing"
    CHECKING = "checking"
    JUDGED = "judged"
    """The step's tokens are there."""
    OVER = "over"


@dataclass(frozen=True, slots=True)
class LaneRecording:
    """One lane's reply. `ends` are the seconds, from the request on, at which each step's tokens were there.

    `rate` is the whole reply's decoded tokens per second, as it was measured; `base` names the lane that it is compared
    with, if there is one.
    """

    name: str
    is_plain: bool
    steps: tuple[Step, ...]
    ends: tuple[float, ...]
    rate: float | None = None
    base: str = ""

    def __post_init__(self) -> None:
        if len(self.steps) != len(self.ends):
            raise ValueError("every step needs the time at which it was there")

    @property
    def seconds(self) -> float:
        return self.ends[-1] if self.ends else 0.0

    def done_at(self, seconds: float) -> int:
        """How many steps are there at that time."""
        return bisect_right(self.ends, seconds)

    def tokens_at(self, seconds: float) -> int:
        return sum(len(step.emitted) for step in self.steps[: self.done_at(seconds)])

    def rate_at(self, seconds: float) -> float | None:
        """Decoded tokens per second so far: the first step belongs to the prompt."""
        done = self.done_at(seconds)
        if done < 2:
            return None
        took = self.ends[done - 1] - self.ends[0]
        tokens = sum(len(step.emitted) for step in self.steps[1:done])
        return tokens / took if took > 0 else None

    def moments(self) -> tuple[tuple[float, int, Phase], ...]:
        """(seconds, step, what was just finished then): the places that stepping stops at."""
        found: list[tuple[float, int, Phase]] = []
        before = 0.0
        for index, (step, end) in enumerate(zip(self.steps, self.ends, strict=True)):
            if index and proposed_of(step):
                # What the record left between two steps goes to the check: a proposal is never shown late.
                proposed = min(before + step.draft_seconds, end)
                found += [(proposed, index, Phase.PROPOSING), (end - (end - proposed) / 4, index, Phase.CHECKING)]
            found.append((end, index, Phase.JUDGED))
            before = end
        return tuple(found)


def proposed_of(step: Step) -> tuple[str, ...]:
    """The texts that the draft proposed, in their order."""
    accepted = [token.text for token in step.emitted if token.origin is Origin.ACCEPTED]
    return (*accepted, *(token.text for token in step.rejected), *(token.text for token in step.ignored))


class Player(QObject):
    """Moves through recordings. `position` is in recorded seconds; `moved` after each change of it."""

    moved = Signal(float)
    playingChanged = Signal(bool)
    steppingChanged = Signal(bool)

    def __init__(self, parent: QObject | None = None, clock: Callable[[], float] = time.perf_counter) -> None:
        super().__init__(parent)
        self._clock = clock
        self._lanes: tuple[LaneRecording, ...] = ()
        self._moments: tuple[tuple[float, int, Phase], ...] = ()
        self._position = 0.0
        self._speed = 1.0
        self._from: tuple[float, float] | None = None
        """(clock, position) since when it plays at this speed."""
        self._stepping = False
        self._timer = QTimer(self)
        self._timer.setInterval(FRAME_MS)
        self._timer.timeout.connect(self.tick)

    # -- what others ask

    @property
    def lanes(self) -> tuple[LaneRecording, ...]:
        return self._lanes

    @property
    def position(self) -> float:
        return self._position

    @property
    def duration(self) -> float:
        """Recorded seconds until the slowest lane is done."""
        return max((lane.seconds for lane in self._lanes), default=0.0)

    @property
    def playing(self) -> bool:
        return self._from is not None

    @property
    def speed(self) -> float:
        return self._speed

    @property
    def stepping(self) -> bool:
        return self._stepping

    @property
    def moment(self) -> tuple[int, Phase] | None:
        """The step that stepping stands at and what was finished last in it; None before the first."""
        found = None
        for seconds, step, phase in self._moments:
            if seconds > self._position + 1e-9:
                break
            found = (step, phase)
        return found

    # -- what is asked of it

    def load(self, lanes: Sequence[LaneRecording]) -> None:
        """Other recordings, from their beginning. Stepping follows the first lane that speculates."""
        self.pause()
        self._lanes = tuple(lanes)
        stepped = next((lane for lane in self._lanes if not lane.is_plain), self._lanes[0] if self._lanes else None)
        self._moments = () if stepped is None else stepped.moments()
        self._go(0.0)

    @Slot()
    def play(self) -> None:
        """From here; from the beginning if it is at its end."""
        if self.playing or not self._lanes:
            return
        self.set_stepping(False)
        if self._position >= self.duration:
            self._go(0.0)
        self._from = (self._clock(), self._position)
        self._timer.start()
        self.playingChanged.emit(True)

    @Slot()
    def pause(self) -> None:
        if self.playing:
            self.tick()
        if self.playing:
            self._stop()

    @Slot()
    def toggle(self) -> None:
        self.pause() if self.playing else self.play()

    def set_speed(self, speed: float) -> None:
        """1.0 is as it was."""
        if self.playing:
            self.tick()
        self._speed = speed
        self.set_stepping(False)
        if self.playing:
            self._from = (self._clock(), self._position)

    def set_stepping(self, on: bool) -> None:
        """Step by step: nothing moves by itself."""
        if on == self._stepping:
            return
        if on:
            self.pause()
        self._stepping = on
        self.steppingChanged.emit(on)

    def seek(self, seconds: float) -> None:
        self._go(min(max(seconds, 0.0), self.duration))
        if self.playing:
            self._from = (self._clock(), self._position)

    @Slot()
    def next_moment(self) -> None:
        after = [seconds for seconds, _, _ in self._moments if seconds > self._position + 1e-9]
        self.pause()
        self._go(after[0] if after else self.duration)

    @Slot()
    def previous_moment(self) -> None:
        before = [seconds for seconds, _, _ in self._moments if seconds < self._position - 1e-9]
        self.pause()
        self._go(before[-1] if before else 0.0)

    @Slot()
    def tick(self) -> None:
        """Where it is by now."""
        if self._from is None:
            return
        since, position = self._from
        now = position + (self._clock() - since) * self._speed
        self._go(min(now, self.duration))
        if now >= self.duration:
            self._stop()

    def _go(self, seconds: float) -> None:
        self._position = seconds
        self.moved.emit(seconds)

    def _stop(self) -> None:
        self._from = None
        self._timer.stop()
        self.playingChanged.emit(False)

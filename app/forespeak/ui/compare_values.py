"""What the Compare page shows and asks for: plain values, without anything of how a comparison is carried out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from forespeak.compare.lanes import Lane
from forespeak.engines.engine import ChatMessage
from forespeak.ui.replay import LaneRecording


class PromptKind(Enum):
    CHAT = "chat"
    """The last message of the chat that is open."""
    TYPED = "typed"
    FILE = "file"
    SUITES = "suites"


@dataclass(frozen=True, slots=True)
class PromptChoice:
    """`text` of the chat's message or as typed; `suites`: (category, how many of its prompts).

    `messages`: the chat up to that message, which it ends.
    """

    kind: PromptKind
    text: str = ""
    messages: tuple[ChatMessage, ...] = ()
    file: Path | None = None
    suites: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Setup:
    """A comparison as it is asked for, of the chat's target. `minutes` None: as long as it takes."""

    lanes: tuple[Lane, ...]
    prompts: PromptChoice
    repeats: int = 3
    tokens: int = 128
    temperature: float = 0.0
    minutes: int | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a set-up will take: `least` to `most` seconds. None: nothing is known of this machine's speed yet."""

    runs: int
    least: float | None = None
    most: float | None = None
    basis: str = ""
    """Where that comes from, in words."""


class Tone(Enum):
    GOOD = "good"
    EVEN = "even"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """How many times as fast, with its interval if there is one. `note` says it in words."""

    label: str
    ratio: float
    low: float | None = None
    high: float | None = None
    note: str = ""

    @property
    def tone(self) -> Tone:
        """What the interval shows; without one, nothing is shown to differ."""
        if self.low is not None and self.low > 1.0:
            return Tone.GOOD
        if self.high is not None and self.high < 1.0:
            return Tone.BAD
        return Tone.EVEN


@dataclass(frozen=True, slots=True)
class Rate:
    """Tokens per second in one category, with its interval if there is one."""

    category: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class LaneFigures:
    """What the charts show of one lane. Shares are 0 to 1."""

    name: str
    is_plain: bool
    rates: tuple[Rate, ...] = ()
    by_position: tuple[float, ...] = ()
    draft_share: float | None = None


@dataclass(frozen=True, slots=True)
class SpeedUps:
    """The rows of one lane against the plain one. `against` names both."""

    against: str
    rows: tuple[SpeedUp, ...]


@dataclass(frozen=True, slots=True)
class Recorded:
    """One prompt as all lanes answered it."""

    label: str
    lanes: tuple[LaneRecording, ...]


@dataclass(frozen=True, slots=True)
class ResultValues:
    """A finished comparison, or one that was ended early, ready to be shown.

    `ratio` None: nothing could be compared. `advice` says what to try next; `sameness` whether the words were the
    same; `notes` what else should be known. `table` has a head and rows of as many cells.
    """

    id: str
    name: str
    subtitle: str
    ratio: float | None
    tone: Tone
    headline: str
    details: str
    advice: str
    sameness: str
    speed_ups: tuple[SpeedUps, ...]
    lanes: tuple[LaneFigures, ...]
    table: tuple[tuple[str, ...], ...]
    recorded: tuple[Recorded, ...] = ()
    notes: tuple[str, ...] = ()
    resumable: bool = False


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A kept comparison in the list. `when` is a time as people write it; `summary` what it found."""

    id: str
    name: str
    when: str
    summary: str

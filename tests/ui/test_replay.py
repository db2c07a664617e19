"""Replays last as long as what they show, at every speed, and stop where they are asked to."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from forespeak.speculation.trace import Source
from forespeak.ui.replay import LaneRecording, Phase, Player, proposed_of
from ui.compare_doubles import lane_recording
from ui.scripted_engine import scripted_steps

FRAME = 1 / 60


class Clock:
    """Seconds, moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lanes() -> tuple[LaneRecording, LaneRecording]:
    return lane_recording("Off", None), lane_recording("Draft · Auto", Source.DRAFT_MODEL)


def played(player: Player, clock: Clock, frame: float = FRAME) -> float:
    """Seconds until it stops by itself, looked at once a frame."""
    began = clock.now
    player.play()
    while player.playing:
        clock.now += frame
        player.tick()
    return clock.now - began


@pytest.mark.parametrize(("speed", "frame"), [(1.0, FRAME), (1.0, 0.13), (0.25, FRAME)])
def test_it_lasts_as_long_as_the_recorded_run(qtbot: QtBot, clock: Clock, speed: float, frame: float) -> None:
    player = Player(clock=clock)
    off, draft = lanes()
    player.load((off, draft))
    player.set_speed(speed)
    took = played(player, clock, frame)
    assert player.duration == off.seconds > draft.seconds
    # It can only be seen to end at the next frame.
    assert off.seconds / speed <= took <= off.seconds / speed + frame
    assert frame > FRAME or took == pytest.approx(off.seconds / speed, rel=0.02)
    assert player.position == player.duration


def test_it_is_on_time_all_the_way(qtbot: QtBot, clock: Clock) -> None:
    player = Player(clock=clock)
    off, draft = lanes()
    player.load((off, draft))
    player.play()
    for _ in range(40):
        clock.now += FRAME
        player.tick()
        assert player.position == pytest.approx(clock.now - 1000.0)
    player.pause()
    clock.now += 5.0
    player.tick()
    assert player.position == pytest.approx(40 * FRAME)
    assert draft.tokens_at(player.position) > off.tokens_at(player.position)


def test_a_pause_and_a_change_of_speed_lose_nothing(qtbot: QtBot, clock: Clock) -> None:
    player = Player(clock=clock)
    player.load(lanes())
    player.play()
    clock.now += 0.2
    player.pause()
    clock.now += 9.0
    player.play()
    clock.now += 0.1
    player.set_speed(0.25)
    assert player.position == pytest.approx(0.3)
    clock.now += 0.4
    player.tick()
    assert player.position == pytest.approx(0.4)


def test_at_its_end_it_begins_again(qtbot: QtBot, clock: Clock) -> None:
    player = Player(clock=clock)
    player.load(lanes())
    player.seek(99.0)
    assert player.position == player.duration
    player.toggle()
    assert player.playing
    assert player.position == 0.0
    player.toggle()
    assert player.position == 0.0
    clock.now += 1.0
    player.tick()
    assert player.position == 0.0


def test_scrubbing_while_it_plays_goes_on_from_there(qtbot: QtBot, clock: Clock) -> None:
    player = Player(clock=clock)
    player.load(lanes())
    player.play()
    clock.now += 0.1
    player.seek(0.5)
    clock.now += 0.1
    player.tick()
    assert player.position == pytest.approx(0.6)
    player.pause()


def test_stepping_shows_proposal_check_and_outcome_of_each_step(qtbot: QtBot, clock: Clock) -> None:
    player = Player(clock=clock)
    off, draft = lanes()
    player.load((off, draft))
    player.set_stepping(True)
    seen = [player.moment]
    for _ in range(7):
        player.next_moment()
        seen.append(player.moment)
    phases = (Phase.PROPOSING, Phase.CHECKING, Phase.JUDGED)
    assert seen == [None, (0, Phase.JUDGED), *((step, phase) for step in (1, 2) for phase in phases)]
    assert draft.done_at(player.position) == 3
    player.previous_moment()
    assert player.moment == (2, Phase.CHECKING)
    assert draft.done_at(player.position) == 2


def test_stepping_reaches_both_ends_and_stays(qtbot: QtBot, clock: Clock) -> None:
    player = Player(clock=clock)
    player.load(lanes())
    player.set_stepping(True)
    for _ in range(200):
        player.next_moment()
    assert player.position == player.duration
    for _ in range(200):
        player.previous_moment()
    assert player.position == 0.0


def test_playing_ends_stepping(qtbot: QtBot, clock: Clock) -> None:
    player = Player(clock=clock)
    player.load(lanes())
    player.set_stepping(True)
    with qtbot.waitSignal(player.steppingChanged):
        player.play()
    assert not player.stepping
    player.pause()


def test_rates_count_what_came_after_the_prompt() -> None:
    off, _ = lanes()
    assert off.rate_at(0.1) is None
    assert off.rate_at(off.seconds) == pytest.approx(off.rate)
    assert off.tokens_at(0.0) == 0
    assert off.tokens_at(off.seconds) == sum(len(step.emitted) for step in off.steps)


def test_times_belong_to_steps() -> None:
    steps = tuple(scripted_steps("one two three"))
    with pytest.raises(ValueError, match="every step"):
        LaneRecording("x", False, steps, (0.1,))


def test_what_was_proposed_stands_in_its_order() -> None:
    step = scripted_steps("one two three four five six seven eight")[2]
    proposed = proposed_of(step)
    assert len(proposed) == step.tested_count + len(step.ignored)
    assert proposed[: step.accepted_count] == tuple(token.text for token in step.emitted[: step.accepted_count])


def test_nothing_to_play_is_no_fault(qtbot: QtBot, clock: Clock) -> None:
    player = Player(clock=clock)
    player.play()
    player.next_moment()
    player.previous_moment()
    assert not player.playing
    assert player.duration == 0.0

"""When a frame may be drawn, without a terminal."""

import pytest

from app.tui.output.output_pace import ANSWER_S, HURRY_S, WINDOW_BYTES, OutputPace

FRAME = 4 * WINDOW_BYTES


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def pace(clock):
    return OutputPace(clock)


def send(pace, size, *, question=9):
    """A frame and its question."""
    pace.queued(size)
    if pace.ask(question):
        pace.queued(question)


def test_no_frame_while_the_last_one_is_not_written(pace):
    pace.queued(FRAME)
    assert pace.congested
    pace.wrote(FRAME - WINDOW_BYTES)
    assert not pace.congested


def test_a_small_write_delays_nothing(pace):
    pace.queued(WINDOW_BYTES)
    assert not pace.congested


def test_no_frame_while_the_terminal_has_not_read_the_last_one(pace):
    pace.answered()
    send(pace, FRAME)
    pace.wrote(FRAME + 9)  # accepted by the kernel, ssh or a multiplexer
    assert pace.congested
    pace.answered()
    assert not pace.congested


def test_a_terminal_that_never_answered_is_not_asked(pace):
    pace.queued(FRAME)
    assert not pace.ask(9)


def test_what_was_written_after_a_question_needs_another_one(pace):
    due = []
    pace.answered()
    pace.on_progress(lambda: due.append(pace.ask(9)))
    send(pace, FRAME)
    send(pace, FRAME)
    pace.wrote(2 * FRAME + 9)
    pace.answered()
    assert pace.congested  # the second frame
    assert due == [True]
    pace.queued(9)
    pace.answered()
    assert not pace.congested


def test_a_lost_answer_does_not_stop_the_screen(pace, clock):
    pace.answered()
    send(pace, FRAME)
    pace.wrote(FRAME + 9)
    clock.now = ANSWER_S + 1
    assert not pace.congested
    assert not pace.answers


def test_a_slow_link_is_left_idle_as_long_as_a_frame_took(pace, clock):
    pace.answered()
    send(pace, 20)
    clock.now = 0.1  # the delay of the link
    pace.answered()
    assert not pace.resting
    send(pace, FRAME)
    clock.now = 0.5
    pace.answered()
    assert pace.resting
    clock.now = 0.85
    assert not pace.resting


def test_an_action_of_the_user_ends_the_rest(pace, clock):
    pace.answered()
    send(pace, 20)
    pace.answered()
    send(pace, FRAME)
    clock.now = 5.0
    pace.answered()
    pace.hurry()
    assert not pace.resting
    clock.now += HURRY_S
    assert pace.resting

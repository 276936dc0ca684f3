"""How often the KV map is drawn: the rate drops when frames are expensive, and rises again."""

import pytest

from app.tui.map_governor import CALM_S, MAX_BYTES, MAX_SHARE, RATES_HZ, Drew, MapGovernor

TICK_S = 1 / 15
FULL, HALF, LOW = RATES_HZ


class Screen:
    """A screen whose blocks change all the time, and whose costs a test sets."""

    def __init__(self):
        self.governor = MapGovernor()
        self.now = 0.0
        self.spent = 0.0
        self.written = 0
        self.text_s, self.map_s, self.map_bytes, self.dropped = 0.002, 0.001, 3000, False

    def run(self, seconds):
        """The number of drawings of the map in so many seconds."""
        drawn = 0
        for _ in range(round(seconds / TICK_S)):
            self.governor.begin_tick(self.now, self.spent, self.written)
            due = self.governor.due(self.now)
            self.governor.end_tick(self.now, Drew.MAP if due else Drew.TEXT)
            drawn += due
            self.spent += self.text_s + (self.map_s if due else 0.0)
            self.written += 500 + (self.map_bytes if due else 0)
            if due and self.dropped:
                self.governor.dropped()
            self.now += TICK_S
        return drawn


def test_cheap_frames_are_drawn_ten_times_a_second():
    screen = Screen()
    assert screen.run(4.0) == pytest.approx(4 * FULL, abs=1)
    assert screen.governor.hz == FULL


def test_everything_changing_drops_the_rate_to_two_a_second():
    screen = Screen()
    screen.map_s, screen.map_bytes = 0.06, 200_000
    screen.run(2.0)
    assert screen.governor.hz == LOW
    assert screen.run(20.0) == pytest.approx(20 * LOW, abs=1)


@pytest.mark.parametrize(
    ("seconds", "nbytes", "hz"),
    [
        (0.9 * MAX_SHARE / FULL, MAX_BYTES // 2, FULL),
        (1.1 * MAX_SHARE / FULL, 3000, HALF),
        (1.1 * MAX_SHARE / HALF, 3000, LOW),
        (0.001, MAX_BYTES + 1, LOW),
    ],
)
def test_the_rate_at_which_a_frame_is_cheap_enough_stays(seconds, nbytes, hz):
    screen = Screen()
    screen.map_s, screen.map_bytes = seconds, nbytes
    screen.run(5.0)
    for _ in range(30):
        screen.run(0.5)
        assert screen.governor.hz == hz


def test_the_cost_of_streamed_text_is_not_the_maps():
    screen = Screen()
    screen.text_s = 0.02
    screen.run(5.0)
    assert screen.governor.hz == FULL


def test_frames_that_the_terminal_does_not_take_drop_the_rate():
    screen = Screen()
    screen.dropped = True
    screen.run(5.0)
    assert screen.governor.hz == LOW


def test_the_rate_rises_step_by_step_when_frames_are_cheap_again():
    screen = Screen()
    screen.map_bytes = 200_000
    screen.run(5.0)
    screen.map_bytes = 3000
    rates = []
    for _ in range(40):
        screen.run(0.25)
        rates.append(screen.governor.hz)
    assert sorted(set(rates), key=rates.index) == [LOW, HALF, FULL]
    assert rates.index(FULL) * 0.25 >= 2 * CALM_S


def test_one_expensive_frame_changes_nothing():
    screen = Screen()
    screen.run(1.0)
    screen.spent += 1.0
    screen.written += 10 * MAX_BYTES
    screen.run(1.0)
    assert screen.governor.hz == FULL


def test_after_a_quiet_time_the_rate_is_the_full_one():
    screen = Screen()
    screen.map_bytes = 200_000
    screen.run(5.0)
    screen.map_bytes = 3000
    screen.now += 60.0
    screen.run(2 * TICK_S + 1 / LOW)
    assert screen.governor.hz == FULL


def test_many_requests_limit_the_rate():
    screen = Screen()
    screen.governor.crowded = True
    assert screen.run(10.0) == pytest.approx(10 * LOW, abs=1)


def test_more_drawings_than_necessary_do_not_delay_the_next():
    governor = MapGovernor()
    for _ in range(50):
        governor.begin_tick(1.0, 0.0, 0)
        governor.end_tick(1.0, Drew.FIGURES_AND_MAP)
    assert governor.due(1.0 + 1.01 / FULL)


def test_drawings_of_all_figures_are_not_judged():
    governor = MapGovernor()
    for number in range(50):
        governor.begin_tick(number * 0.1, number * 0.1, number * MAX_BYTES * 2)
        governor.end_tick(number * 0.1, Drew.FIGURES_AND_MAP)
    assert governor.hz == FULL

"""The clock with an injected time: it sleeps, wakes, slows down, recovers and survives failures."""

import asyncio

from app.tui.frame_clock import CALM_S, CROWDED_HZ, FULL_HZ, MIN_HZ, RECENT, FrameClock, Governor


class Ticker:
    """A tick that reports more work a given number of times."""

    def __init__(self, busy=0):
        self.busy = busy
        self.count = 0
        self.ticked = asyncio.Event()
        self.error = None

    async def __call__(self, now):
        self.count += 1
        self.ticked.set()
        if self.error:
            raise self.error
        self.busy -= 1
        return self.busy > 0


async def asleep(clock):
    """Give the loop turns until the clock sleeps and has taken its last look."""
    turns = 0
    while turns < 5:
        await asyncio.sleep(0.001)
        turns = turns + 1 if clock.sleeping else 0


async def test_with_nothing_to_do_it_sleeps_until_woken():
    tick = Ticker()
    clock = FrameClock(tick, on_error=print)
    clock.start()
    await asleep(clock)
    count = tick.count
    for _ in range(50):
        await asyncio.sleep(0)
    assert tick.count == count
    tick.ticked.clear()
    clock.wake()
    await tick.ticked.wait()
    await asleep(clock)
    assert tick.count > count
    await clock.stop()
    clock.wake()


async def test_it_is_woken_from_any_thread():
    tick = Ticker()
    clock = FrameClock(tick, on_error=print)
    clock.start()
    await asleep(clock)
    tick.ticked.clear()
    await asyncio.to_thread(clock.wake)
    async with asyncio.timeout(20):
        await tick.ticked.wait()
    await clock.stop()


async def test_a_wake_up_while_it_falls_asleep_is_not_lost():
    woken = []

    async def tick(now):
        if len(woken) == 0:
            woken.append(now)
            clock.wake()  # not sleeping yet: a bare flag test
        return False

    clock = FrameClock(tick, on_error=print)
    clock.start()
    await asleep(clock)
    assert clock.ticks >= 2
    await clock.stop()


async def test_a_failing_tick_is_reported_once_and_the_clock_continues():
    told = []
    tick = Ticker(busy=100)
    clock = FrameClock(tick, on_error=told.append)
    tick.error = RuntimeError("first")
    assert await clock.tick_once()
    assert await clock.tick_once()
    assert [str(error) for error in told] == ["first"]
    tick.error = None
    await clock.tick_once()
    tick.error = RuntimeError("second")
    await clock.tick_once()
    assert [str(error) for error in told] == ["first", "second"]


async def test_ticks_that_cost_too_much_slow_it_down():
    now = iter([0.0, 0.1, 1.0, 1.1, 2.0, 2.1, 3.0, 3.001])
    clock = FrameClock(Ticker(busy=9), on_error=print, clock=lambda: next(now))
    for _ in range(3):
        await clock.tick_once()
    assert clock.governor.hz == FULL_HZ / 2
    await clock.tick_once()
    assert clock.governor.hz == FULL_HZ / 2


def test_one_slow_tick_among_quick_ones_changes_nothing():
    governor = Governor()
    for second in range(50):
        governor.observe(1.0 if second % 4 == 0 else 0.001, float(second))
        assert governor.hz == FULL_HZ


def test_the_rate_halves_down_to_a_floor_and_comes_back_after_calm():
    governor = Governor()
    for second in range(30):
        governor.observe(1.0, float(second))
    assert governor.hz == MIN_HZ
    now = 30.0
    for _ in range(RECENT):
        governor.observe(0.0, now)
    governor.observe(0.0, now)
    governor.observe(0.0, now + CALM_S - 0.01)
    assert governor.hz == MIN_HZ
    governor.observe(0.0, now + CALM_S)
    assert governor.hz == MIN_HZ * 2
    for step in range(20):
        governor.observe(0.0, now + CALM_S * (2 + step))
    assert governor.hz == FULL_HZ


def test_slow_ticks_end_the_calm():
    governor = Governor()
    for _ in range(3):
        governor.observe(1.0, 0.0)
    governor.observe(0.0, 1.0)
    for _ in range(3):
        governor.observe(1.0, 2.0)
    assert governor.hz == FULL_HZ / 4
    governor.observe(0.0, 2.0)
    governor.observe(0.0, 1.0 + CALM_S)
    assert governor.hz == FULL_HZ / 4
    governor.observe(0.0, 2.0 + CALM_S)
    assert governor.hz == FULL_HZ / 2


def test_many_requests_bound_the_frame_rate():
    governor = Governor()
    governor.crowded = True
    assert governor.hz == CROWDED_HZ
    governor.crowded = False
    assert governor.hz == FULL_HZ

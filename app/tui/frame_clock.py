"""One clock for the whole screen: widgets pull on its ticks, and an idle screen has no ticks at all.

Guard: a tick must stay far under its period; the governor halves the rate when most do not. No
widget owns a timer. `wake` is the only method other threads may call, and it never blocks.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

FULL_HZ = 15.0
CROWDED_HZ = 5.0
"""The most while many requests run: text still flows, half a dozen words at a time, and each frame not
drawn is time for them."""
MIN_HZ = 2.0
BUSY_SHARE = 0.3
"""A tick over this share of its period is slow."""
CALM_S = 2.0
"""Calm that restores the full rate."""
RECENT = 5
"""Ticks whose median cost counts: one that a collection or another process held up proves nothing."""


class Governor:
    """Chooses the rate from the cost of ticks: halves it when they are slow, restores it after calm.

    Attributes:
        crowded: many requests run beside: at most `CROWDED_HZ`.
    """

    def __init__(self, full_hz: float = FULL_HZ) -> None:
        self._full_hz = full_hz
        self._hz = full_hz
        self.crowded = False
        self._costs: deque[float] = deque(maxlen=RECENT)
        self._calm_since: float | None = None

    @property
    def hz(self) -> float:
        """Ticks a second now."""
        return min(self._hz, CROWDED_HZ) if self.crowded else self._hz

    def observe(self, cost: float, now: float) -> None:
        """Take in the cost of the tick that ended at `now`, both in seconds."""
        self._costs.append(cost)
        slow = sum(each * self._hz > BUSY_SHARE for each in self._costs)
        if slow > RECENT // 2:
            self._costs.clear()  # the new rate has another limit
            self._hz = max(MIN_HZ, self._hz / 2)
            self._calm_since = None
        elif self._hz < self._full_hz:
            if self._calm_since is None:
                self._calm_since = now
            elif now - self._calm_since >= CALM_S:
                self._hz = min(self._full_hz, self._hz * 2)
                self._calm_since = None


class FrameClock:
    """Calls `tick` while it returns True, then sleeps until woken.

    Args:
        tick: draws what changed; returns whether more is coming. What it raises is logged and given
            to `on_error`; the clock goes on.
        on_error: told of an exception in a tick, once per run of failures.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        tick: Callable[[float], Awaitable[bool]],
        *,
        on_error: Callable[[Exception], None],
        clock: Callable[[], float] = time.monotonic,
        governor: Governor | None = None,
    ) -> None:
        self._tick = tick
        self._on_error = on_error
        self._clock = clock
        self.governor = governor or Governor()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._awake = asyncio.Event()
        self._sleeping = False
        self._eager = False
        self._failing = False
        self.ticks = 0

    def start(self) -> None:
        """Begin on the running loop, awake."""
        self._loop = asyncio.get_running_loop()
        self._awake.set()
        self._task = self._loop.create_task(self._run(), name="frame-clock")

    async def stop(self) -> None:
        """End for good; after it `wake` does nothing."""
        self._loop = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def sleeping(self) -> bool:
        """Whether no tick is due until `wake`."""
        return self._sleeping

    def expect_first_token(self, expected: bool) -> None:
        """While True, a wake-up is drawn at once and not at the next tick."""
        self._eager = expected

    def wake(self) -> None:
        """Tick soon. Any thread; a plain flag test unless the clock sleeps or a first token is due."""
        loop = self._loop
        if loop is None or not (self._sleeping or self._eager):
            return
        try:
            loop.call_soon_threadsafe(self._awake.set)
        except RuntimeError:  # the loop closed since the test: nobody is left to draw
            log.debug("woken after the loop had closed")

    async def _run(self) -> None:
        while True:
            more = await self.tick_once()
            self._awake.clear()
            if more:
                self._sleeping = False
                try:
                    async with asyncio.timeout(1 / self.governor.hz):
                        await self._awake.wait()
                except TimeoutError:
                    continue
            else:
                # A wake-up between the tick's last look and this flag would be lost: look once more.
                self._sleeping = True
                if not await self.tick_once():
                    await self._awake.wait()
                self._sleeping = False

    async def tick_once(self) -> bool:
        """One guarded tick; True when more is coming."""
        began = self._clock()
        try:
            more = await self._tick(began)
            self._failing = False
        except Exception as error:
            log.exception("a tick failed")
            if not self._failing:
                self._on_error(error)
            self._failing = True
            more = True
        self.ticks += 1
        ended = self._clock()
        self.governor.observe(ended - began, ended)
        return more

"""The clock of the whole screen: widgets are updated on its ticks, and an idle screen has no ticks.

Guard: a tick must take a small share of its period; the governor halves the rate if most ticks do not.
No widget owns a timer. `wake` is the only method that other threads may call, and it never blocks.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

FULL_HZ = 15.0
CROWDED_HZ = 5.0
"""Maximum rate while many requests run, to leave processor time to the engine: text then appears about
six words at a time."""
MIN_HZ = 2.0
BUSY_SHARE = 0.3
"""A tick over this share of its period is slow."""
CALM_S = 2.0
"""Seconds without slow ticks after which the rate is doubled."""
RECENT = 5
"""Number of ticks of which most must be slow, so that single outliers have no effect."""


class Governor:
    """Chooses the tick rate: halves it after slow ticks, doubles it after `CALM_S` without them.

    Attributes:
        crowded: whether many requests run, which limits the rate to `CROWDED_HZ`.
    """

    def __init__(self, full_hz: float = FULL_HZ) -> None:
        self._full_hz = full_hz
        self._hz = full_hz
        self.crowded = False
        self._costs: deque[float] = deque(maxlen=RECENT)
        self._calm_since: float | None = None

    @property
    def hz(self) -> float:
        """The current rate, ticks a second."""
        return min(self._hz, CROWDED_HZ) if self.crowded else self._hz

    def observe(self, cost: float, now: float) -> None:
        """Record the duration of the tick that ended at `now`, both in seconds."""
        self._costs.append(cost)
        slow = sum(each * self._hz > BUSY_SHARE for each in self._costs)
        if slow > RECENT // 2:
            self._costs.clear()  # the limit depends on the rate
            self._hz = max(MIN_HZ, self._hz / 2)
            self._calm_since = None
        elif self._hz < self._full_hz:
            if self._calm_since is None:
                self._calm_since = now
            elif now - self._calm_since >= CALM_S:
                self._hz = min(self._full_hz, self._hz * 2)
                self._calm_since = None


class FrameClock:
    """Calls `tick` while it returns True, then sleeps until `wake`.

    Args:
        tick: draws what changed; returns whether further changes are expected. Exceptions are logged
            and passed to `on_error`; the clock continues.
        on_error: called once for consecutive failures of ticks.
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
        """Start ticking on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._awake.set()
        self._task = self._loop.create_task(self._run(), name="frame-clock")

    async def stop(self) -> None:
        """Stop permanently; `wake` has no effect afterwards."""
        self._loop = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def sleeping(self) -> bool:
        """Whether no tick is due until `wake`."""
        return self._sleeping

    def expect_first_token(self, expected: bool) -> None:
        """While True, a wake-up causes an immediate tick."""
        self._eager = expected

    def wake(self) -> None:
        """Request a tick, from any thread; no effect unless the clock sleeps or expects a first token."""
        loop = self._loop
        if loop is None or not (self._sleeping or self._eager):
            return
        try:
            loop.call_soon_threadsafe(self._awake.set)
        except RuntimeError:  # the loop was closed after the test
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
                # A wake-up between the tick and this flag would be lost: tick once more.
                self._sleeping = True
                if not await self.tick_once():
                    await self._awake.wait()
                self._sleeping = False

    async def tick_once(self) -> bool:
        """One tick with error handling; True if further changes are expected."""
        began = self._clock()
        try:
            more = await self._tick(began)
            self._failing = False
        except Exception as error:
            if not self._failing:
                log.exception("a tick failed")
                self._on_error(error)
            self._failing = True
            more = True
        self.ticks += 1
        ended = self._clock()
        self.governor.observe(ended - began, ended)
        return more

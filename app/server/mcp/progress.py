"""`Progress`: notifications while a tool runs, for callers that asked for them.

The protocol wants numbers that increase with each notification. Between two whole numbers, a tool that has
nothing new says that it is alive with fractions, so that a caller's timeout starts anew.
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from app.server.mcp.silence import silence_broken

INTERVAL_S = 0.5
"""Least time between two notifications."""
ALIVE_S = 2.0
"""Silence after which a notification says that the tool is still at work."""

Report = Callable[[float, float | None, str | None], Awaitable[None]]


class Progress:
    """The notifications of one call."""

    def __init__(
        self, send: Report, *, alive_s: float = ALIVE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Nothing is sent yet.

        Args:
            send: sends progress, total and message; does nothing if the caller did not ask.
            alive_s: as `ALIVE_S`.
            clock: monotonic seconds.
        """
        self._send = send
        self._alive_s = alive_s
        self._clock = clock
        self._begun = self._sent_at = clock()
        self._done = 0
        self._beats = 0
        self._sent = -1.0

    async def report(self, done: int, total: int | None = None, message: str | None = None) -> None:
        """Tell how much is done; left out if the last notification was a moment ago.

        Args:
            done: a count that never decreases.
            total: the largest that it can become, if that is known.
            message: what happens now, in a few words.
        """
        if done <= self._done or (self._sent >= 0 and self._silence() < INTERVAL_S):
            return
        self._done, self._beats = done, 0
        await self._notify(float(done), total, message)

    def kept_alive(self) -> AbstractAsyncContextManager[None]:
        """Within the block, silence is broken every few seconds."""
        return silence_broken(self._alive_s, self._silence, self._beat)

    async def _beat(self) -> None:
        self._beats += 1
        fraction = self._beats / (self._beats + 1)
        waited = self._clock() - self._begun
        await self._notify(self._done + fraction, None, f"at work for {waited:.0f} s")

    def _silence(self) -> float:
        """Seconds since the last notification."""
        return self._clock() - self._sent_at

    async def _notify(self, value: float, total: int | None, message: str | None) -> None:
        self._sent, self._sent_at = value, self._clock()
        await self._send(value, total, message)

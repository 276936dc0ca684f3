"""Leaving in good order: no new work, running work gets a while, then it is told.

serving → draining (`begin`) → expired (`expire`). `idle` is set while nothing is being answered.
All methods run on the event loop.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from app.server.wire.errors import ApiError, unavailable

SHUTTING_DOWN = "The server is shutting down; the answer was cut off."
EXPIRED_S = 3.0
"""How long expired requests have to deliver their last event."""


class Drain:
    """Counts generating requests and knows whether new ones may come in."""

    def __init__(self) -> None:
        self._draining = False
        self._active = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._expired = asyncio.Event()

    @property
    def draining(self) -> bool:
        """Whether the server is on its way out."""
        return self._draining

    @property
    def active(self) -> int:
        """Generating requests."""
        return self._active

    def begin(self) -> None:
        """Refuse new work from now on."""
        self._draining = True

    def expire(self) -> None:
        """End what still runs: streams get an error event, whole answers a 503."""
        self._draining = True
        self._expired.set()

    @contextmanager
    def work(self) -> Iterator[None]:
        """Hold the server open for one generating request.

        Raises:
            ApiError: 503 while draining.
        """
        if self._draining:
            raise unavailable(
                "The server is shutting down and takes no new work.", code="shutting_down"
            )
        self._active += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._active -= 1
            if not self._active:
                self._idle.set()

    async def wait_expired(self) -> None:
        """Return when running work has had its time."""
        await self._expired.wait()

    async def run(self, seconds: float) -> None:
        """Drain: returns when nothing runs any more, expiring what is left after `seconds`."""
        self.begin()
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            self.expire()
            with suppress(TimeoutError):  # a client that reads nothing must not hold us up
                async with asyncio.timeout(EXPIRED_S):
                    await self._idle.wait()


def cut_off() -> ApiError:
    """The error of a request that outlived the drain."""
    return unavailable(SHUTTING_DOWN, code="shutting_down")

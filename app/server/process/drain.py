"""Graceful shutdown: refuse new requests, wait for running ones, then end them.

States: serving → draining (`begin`) → expired (`expire`). All methods run on the event loop.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from app.server.wire.errors import ApiError, unavailable

SHUTTING_DOWN = "The server is shutting down; the answer was cut off."
EXPIRED_S = 3.0
"""Time that expired requests have to deliver their last event."""


class Drain:
    """Counts generating requests and refuses new ones while draining."""

    def __init__(self) -> None:
        self._draining = False
        self._active = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._expired = asyncio.Event()

    @property
    def draining(self) -> bool:
        """Whether the drain has begun."""
        return self._draining

    @property
    def active(self) -> int:
        """Number of generating requests."""
        return self._active

    def begin(self) -> None:
        """Refuse new requests from now on."""
        self._draining = True

    def expire(self) -> None:
        """End running requests: streams get an error event, other requests a 503."""
        self._draining = True
        self._expired.set()

    @contextmanager
    def work(self, *, goes_on: bool = False) -> Iterator[None]:
        """Count one generating request, for which the drain waits.

        Args:
            goes_on: whether it is a part of a request that is counted already.

        Raises:
            ApiError: 503 while draining, but not for what goes on.
        """
        if self._draining and not goes_on:
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
        """Return when the drain has expired."""
        await self._expired.wait()

    async def run(self, seconds: float) -> None:
        """Drain; returns when no request runs. Requests that run after `seconds` are ended."""
        self.begin()
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            self.expire()
            with suppress(TimeoutError):  # a client that does not read must not block the exit
                async with asyncio.timeout(EXPIRED_S):
                    await self._idle.wait()


def shutting_down_error() -> ApiError:
    """The error of a request that outlived the drain."""
    return unavailable(SHUTTING_DOWN, code="shutting_down")

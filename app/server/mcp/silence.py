"""`silence_broken`: something is sent whenever nothing was for some time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress


@asynccontextmanager
async def silence_broken(
    interval_s: float, silence: Callable[[], float], send: Callable[[], Awaitable[None]]
) -> AsyncIterator[None]:
    """Within the block, call `send` after each silence.

    Args:
        interval_s: the longest silence.
        silence: returns the seconds since something was sent; `send` makes them start anew.
        send: sends a sign of life.
    """
    breaking = asyncio.create_task(_break_silence(interval_s, silence, send))
    try:
        yield
    finally:
        breaking.cancel()
        with suppress(asyncio.CancelledError):
            await breaking


async def _break_silence(
    interval_s: float, silence: Callable[[], float], send: Callable[[], Awaitable[None]]
) -> None:
    while True:
        await asyncio.sleep(max(0.0, interval_s - silence()))
        if silence() >= interval_s:
            await send()

"""`SettledPilot`: Textual's pilot, but the event loop itself says when the app has nothing left to do.

Textual 8.2.8 waits 20 ms twice after every key and once at every pause, takes an app for idle that used
little processor time meanwhile, as it does on a loaded machine too, and posts a message to every widget.
What a timer brings, or a thread that is held, is waited for elsewhere, by `Harness.until`.
"""

import asyncio
import time
from typing import Any

from textual.pilot import Pilot
from textual.screen import Screen

MAX_S = 1.0
"""Seconds after which a loop that never runs out of work counts as settled, as in Textual."""
POLL_S = 0.001
"""Seconds between two looks at the threads."""
_LOOKS = 2
"""Turns of the loop without work: in the first one a timer may become due."""


class SettledPilot(Pilot[Any]):
    """Presses keys and moves the mouse, each when the effects of the last are complete and drawn."""

    async def press(self, *keys: str) -> None:
        """Press keys."""
        for key in keys:
            await self.app._press_keys([key])
            await self.settle()

    async def pause(self, delay: float | None = None) -> None:
        """Let the app work until it is settled, at least for `delay` seconds."""
        if delay is not None:
            await asyncio.sleep(delay)
        await self.settle()

    async def wait_for_scheduled_animations(self) -> None:
        """Wait until animations have ended."""
        await self.settle()
        await self.app.animator.wait_until_complete()
        await self.settle()

    async def settle(self) -> None:
        """Let the loop run until nothing is ready; what changed is drawn at once, not with the next frame."""
        await loop_without_work()
        while due := self._screens_to_draw():
            for screen in due:
                screen._on_timer_update()
            await loop_without_work()

    def _screens_to_draw(self) -> list[Screen[Any]]:
        """Screens that wait for their next frame; those behind a modal screen are drawn, too."""
        app = self.app
        if not app._running or not app.screen_stack:
            return []
        shown = [*app._background_screens, app.screen]
        return [screen for screen in shown if screen._update_timer._active.is_set()]

    async def _wait_for_screen(self, timeout: float = 30.0) -> bool:  # noqa: ASYNC109 - Textual's signature
        await self.settle()
        return self.app._running


async def loop_without_work(min_sleep: float = 0.0, max_sleep: float = MAX_S) -> None:
    """Wait until this loop and its threads have no work; takes the place of Textual's `wait_for_idle`."""
    loop: Any = asyncio.get_running_loop()
    deadline = time.monotonic() + max_sleep
    idle = 0
    while idle < _LOOKS and time.monotonic() < deadline:
        waits = not loop._ready and _threads_work(loop._default_executor)
        await asyncio.sleep(POLL_S if waits else 0)
        idle = 0 if waits or loop._ready else idle + 1


def _threads_work(executor: Any) -> bool:
    """Whether the loop waits for a thread, which parses Markdown or reads a file."""
    return executor is not None and executor._idle_semaphore._value < len(executor._threads)

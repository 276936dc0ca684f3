"""The keys of the scheduler pane, and of going back in time."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

from app.text.scheduling_titles import BATCH_FORMER_TITLES, POLICY_TITLES
from app.tui.chat_screen import ChatScreen
from app.tui.keys import hint
from engine.api.errors import InvalidRequest, PravahaError
from engine.api.scheduling import Scheduling


class SchedulerActions:
    """Change how requests are scheduled."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen

    async def policy(self) -> None:
        """The next policy."""
        now = self._screen.client.snapshot().scheduling.policy
        self.change(policy=_following(now, list(POLICY_TITLES)))

    async def steps(self) -> None:
        """The next batch former."""
        now = self._screen.client.snapshot().scheduling.batch_former
        self.change(batch_former=_following(now, list(BATCH_FORMER_TITLES)))

    def change(self, **changes: str) -> None:
        """Change policy or batch former for all requests of this engine."""
        wanted = replace(self._screen.client.snapshot().scheduling, **changes)  # type: ignore[arg-type]
        self._screen.run_worker(self._set(wanted))

    async def _set(self, wanted: Scheduling) -> None:
        screen = self._screen
        try:
            # A round trip with --attach.
            await asyncio.to_thread(screen.client.set_scheduling, wanted)
        except PravahaError as error:
            screen.notify_safely(str(error), "error")
            return
        steps = f"{wanted.batch_former} steps"
        if wanted.batch_former == "timed":
            steps += f" of {wanted.step_target_ms:g} ms"
        screen.notify_safely(f"Scheduling: {POLICY_TITLES[wanted.policy]}; {steps}.")


class TimeActions:
    """Show the engine as it was some seconds ago, in all panes but the messages.

    Each method raises InvalidRequest if the instant that it leads to is shown already.

    Args:
        go_in_time: as `Drawing.go_in_time`.
    """

    def __init__(
        self, go_in_time: Callable[[float | None], bool], keymap: Mapping[str, str]
    ) -> None:
        self._go_in_time = go_in_time
        self._keymap = keymap

    def back(self) -> None:
        """One second earlier."""
        self._go(-1.0)

    def forward(self) -> None:
        """One second later."""
        self._go(1.0)

    def far_back(self) -> None:
        """Ten seconds earlier."""
        self._go(-10.0)

    def far_forward(self) -> None:
        """Ten seconds later."""
        self._go(10.0)

    def live(self) -> None:
        """Back to the present."""
        self._go(None)

    def _go(self, seconds: float | None) -> None:
        if self._go_in_time(seconds):
            return
        if seconds is not None and seconds < 0:
            raise InvalidRequest("Nothing earlier of the engine is kept.")
        key = hint("time.back", "", self._keymap)[0]
        raise InvalidRequest(f"The engine is shown as it is now; {key} goes back.")


def _following(name: str, names: list[str]) -> str:
    return names[(names.index(name) + 1) % len(names)] if name in names else names[0]

"""The keys of the scheduler pane, and of going back in time."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from app.text.scheduling_titles import BATCH_FORMER_TITLES, POLICY_TITLES
from engine.api.errors import PravahaError
from engine.api.scheduling import Scheduling

if TYPE_CHECKING:
    from app.tui.app import PravahaApp


class SchedulerActions:
    """Change how requests are scheduled."""

    def __init__(self, app: "PravahaApp") -> None:
        self._app = app

    async def policy(self) -> None:
        """The next policy."""
        now = self._app.client.snapshot().scheduling.policy
        self.change(policy=_following(now, list(POLICY_TITLES)))

    async def steps(self) -> None:
        """The next batch former."""
        now = self._app.client.snapshot().scheduling.batch_former
        self.change(batch_former=_following(now, list(BATCH_FORMER_TITLES)))

    def change(self, **changes: str) -> None:
        """Change policy or batch former for all requests of this engine."""
        wanted = replace(self._app.client.snapshot().scheduling, **changes)  # type: ignore[arg-type]
        self._app.run_worker(self._set(wanted))

    async def _set(self, wanted: Scheduling) -> None:
        app = self._app
        try:
            await asyncio.to_thread(app.client.set_scheduling, wanted)  # a round trip with --attach
        except PravahaError as error:
            app.notify_safely(str(error), "error")
            return
        steps = f"{wanted.batch_former} steps"
        if wanted.batch_former == "timed":
            steps += f" of {wanted.step_target_ms:g} ms"
        app.notify_safely(f"Scheduling: {POLICY_TITLES[wanted.policy]}; {steps}.")


class TimeActions:
    """Show the engine as it was some seconds ago, in all panes but the messages."""

    def __init__(self, app: "PravahaApp") -> None:
        self._app = app

    async def back(self) -> None:
        """One second earlier."""
        self._app.go_in_time(-1.0)

    async def forward(self) -> None:
        """One second later."""
        self._app.go_in_time(1.0)

    async def far_back(self) -> None:
        """Ten seconds earlier."""
        self._app.go_in_time(-10.0)

    async def far_forward(self) -> None:
        """Ten seconds later."""
        self._app.go_in_time(10.0)

    async def live(self) -> None:
        """Back to the present."""
        self._app.go_in_time(None)


def _following(name: str, names: list[str]) -> str:
    return names[(names.index(name) + 1) % len(names)] if name in names else names[0]

"""`Drawing`: draws the main screen on the ticks of the frame clock, from a `Presenter`.

A tick is left out while the terminal has not taken the last frame.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from app.tui.frame_clock import FrameClock
from app.tui.presenter import Presenter
from app.tui.textual_workarounds.paced_output import PacedOutput
from app.tui.toasts import toast
from engine.clients.engine_client import EngineClient
from engine.conversations.session import TreeSession


class Drawing:
    """Everything that is drawn without a key.

    Args:
        on_error: called with the exception of a tick that failed.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        app: PacedOutput,
        client: EngineClient,
        session: TreeSession,
        *,
        on_error: Callable[[Exception], None],
        clock: Callable[[], float],
    ) -> None:
        self._app = app
        self._client = client
        self._session = session
        self.presenter: Presenter | None = None
        """None until the widgets are mounted."""
        self.frame_clock = FrameClock(self._tick, on_error=on_error, clock=clock)

    def start(self) -> None:
        """Start the clock; the engine wakes it."""
        self._client.on_wake(self.frame_clock.wake)
        self.frame_clock.start()

    async def stop(self) -> None:
        """Stop the clock: no tick may follow the removal of the widgets."""
        await self.frame_clock.stop()

    def draw_all(self) -> None:
        """Draw everything at the next tick, and wake the clock."""
        self._app.pace.hurry()
        if self.presenter is not None:
            self.presenter.draw_all()
        self.frame_clock.wake()

    def context(self) -> AbstractContextManager[None]:
        """The context of all drawing: under load, the engine yields one core to the screen.

        Otherwise drawing would preempt one of the engine's threads, for which all others would wait.
        """
        crowded = self.presenter is not None and self.presenter.crowded
        return self._client.yield_core() if crowded else nullcontext()

    @property
    def in_past(self) -> bool:
        """Whether panes show an earlier instant of the engine."""
        return self.presenter is not None and self.presenter.in_past

    def go_in_time(self, seconds: float | None) -> bool:
        """Show the engine so many seconds later (negative: earlier); None shows the present.

        Returns:
            Whether that is another instant than before.
        """
        moved = self.presenter is not None and self.presenter.go_in_time(seconds)
        self.draw_all()
        return moved

    async def _tick(self, now: float) -> bool:
        if self.presenter is None or not self._app.is_running:
            return False
        if self._app.draw_deferred() or self._app.pace.resting:
            self.presenter.map_governor.dropped()
            return True
        notice = self._session.writes.take_notice()
        if notice:
            toast(self._app, notice, "warning")
        try:
            with self.context():
                more = await self.presenter.tick(now)
        except Exception:
            if not self._app.is_running:  # the app ended meanwhile, and its widgets are removed
                return False
            raise
        self.frame_clock.governor.crowded = self.presenter.crowded
        self.frame_clock.expect_first_token(self.presenter.awaits_first_text)
        return more

"""`ChatScreen`: what actions and panes may ask of the screen. `PravahaApp` implements it.

What only some of them need has a home of its own, which they get beside it: `ScreenLayout`, `Selection`,
`Terminal`, `Marks`.
"""

from typing import Any, Protocol, TypeVar

from textual.screen import Screen, ScreenResultCallbackType
from textual.widget import AwaitMount
from textual.worker import Worker, WorkType

from app.tui.toasts import Severity
from engine.clients.engine_client import EngineClient
from engine.conversations.session import TreeSession

T = TypeVar("T")


class ChatScreen(Protocol):
    """The screen of a session and its engine. Only `wake` may be called from other threads than the app's."""

    @property
    def session(self) -> TreeSession:
        """The open conversation; the same object for as long as the screen is open."""
        ...

    @property
    def client(self) -> EngineClient:
        """The engine; over HTTP if the screen is attached to a server."""
        ...

    @property
    def main(self) -> Screen[Any]:
        """The screen of the messages, under any dialog: for its widgets and its focus.

        A query fails with `NoMatches` before the first frame and after the last one.
        """
        ...

    @property
    def dialog(self) -> Screen[Any] | None:
        """The topmost dialog; None if none is open."""
        ...

    def open_dialog(
        self, dialog: Screen[T], answered: ScreenResultCallbackType[T] | None = None
    ) -> AwaitMount:
        """Open a dialog over the screen; no effect if one of its class is open already.

        Args:
            answered: called with the result of the dialog when it closes.

        Returns:
            Waits until the dialog's widgets are mounted; need not be awaited.
        """
        ...

    def notify_safely(self, text: str, severity: Severity = "information") -> None:
        """Show a notification, without control sequences. It is logged: `text` holds no text of a chat."""
        ...

    async def show_chat(self) -> None:
        """Show the messages of the open path, after the path or a message of it has changed."""
        ...

    def draw_all(self) -> None:
        """Draw everything at the next tick, and wake the clock: what a pane shows has changed."""
        ...

    def wake(self) -> None:
        """Let the clock tick, from any thread; never blocks. The figures are drawn only if they are due."""
        ...

    def run_worker(
        self,
        work: WorkType[T],
        *,
        group: str = ...,
        exit_on_error: bool = ...,
        exclusive: bool = ...,
    ) -> Worker[T]:
        """Run a coroutine on the event loop, without waiting for it.

        Args:
            exit_on_error: report an exception, which is dropped otherwise.
            exclusive: cancel the others of the group first.
        """
        ...

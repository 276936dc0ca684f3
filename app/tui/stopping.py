"""`Stopping`: Ctrl+C, stopping the answer of the open path, and quitting."""

from collections.abc import Callable

from textual.widgets import TextArea

from app.tui.chat_screen import ChatScreen
from app.tui.terminal import Terminal
from app.tui.widgets.confirm import ConfirmScreen

_QUIT_WINDOW_S = 2.0


class Stopping:
    """Ends what runs.

    Args:
        exit_app: ends the app.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        screen: ChatScreen,
        terminal: Terminal,
        *,
        exit_app: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._screen = screen
        self._terminal = terminal
        self._exit_app = exit_app
        self._clock = clock
        self._interrupted_at = float("-inf")

    def stop(self) -> None:
        """Stop the answer at the engine's next step; its text is kept."""
        self._screen.session.answers.stop()
        self._screen.draw_all()

    def interrupt(self) -> None:
        """Ctrl+C: copy a selection, else stop the answer, else quit on the second press in 2 s."""
        top = self._screen.dialog if self._screen.dialog is not None else self._screen.main
        selected = top.get_selected_text()
        if isinstance(top.focused, TextArea) and top.focused.selected_text:
            selected = top.focused.selected_text
        if selected:
            self._terminal.copy_text(selected)
            top.clear_selection()
        elif self._screen.session.answers.generating:
            self.stop()
        elif self._clock() - self._interrupted_at <= _QUIT_WINDOW_S:
            self.quit()
        else:
            self._interrupted_at = self._clock()
            self._screen.notify_safely("Press ctrl+c again to quit.")

    def quit(self) -> None:
        """Quit; the conversation is saved. Asks first if it cannot be."""
        reason = self._screen.session.writes.unsaved
        if reason is None:
            self._exit_app()
        else:
            confirm = ConfirmScreen("Quit and lose the last messages?", f"Not saved: {reason}.")
            self._screen.open_dialog(confirm, lambda yes: self._exit_app() if yes else None)

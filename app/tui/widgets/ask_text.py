"""A small dialog that asks for one line of text."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from app.tui.textual_workarounds.one_line import OneLine


class AskText(ModalScreen[str | None]):
    """Dismisses with the text, or with None after Esc."""

    BINDINGS: ClassVar = [("escape", "cancel", "back")]

    def __init__(self, title: str, text: str = "", *, hint: str = "") -> None:
        super().__init__()
        self._title = title
        self._text = text
        self._hint = hint

    def compose(self) -> ComposeResult:
        """One input."""
        with Vertical(id="ask-box") as box:
            box.border_title = self._title
            box.border_subtitle = "enter keeps, esc leaves"
            yield OneLine(self._text, placeholder=self._hint, id="ask-input", compact=True)

    @on(Input.Submitted)
    def _keep(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value)

    def action_cancel(self) -> None:
        """Close without a text."""
        self.dismiss(None)

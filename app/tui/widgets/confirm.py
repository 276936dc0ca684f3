"""A yes-or-no question whose default is no; space has no effect."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical

from app.tui.view.spans import Span
from app.tui.widgets.dialog import Dialog
from app.tui.widgets.lines import Lines


class ConfirmScreen(Dialog[bool]):
    """Dismisses with True for `y` only."""

    BINDINGS: ClassVar = [("y", "answer(True)", "yes"), ("n,escape,enter", "answer(False)", "no")]

    def __init__(self, question: str, reason: str = "") -> None:
        super().__init__()
        self._question = question
        self._reason = reason

    def compose(self) -> ComposeResult:
        """The question and its keys."""
        with Vertical(id="confirm-box"):
            yield Lines(id="confirm-lines")

    def on_mount(self) -> None:
        """Show the question."""
        keys = (
            Span("y", "bold $accent"), Span(" yes    ", "$muted"),
            Span("n", "bold $accent"), Span(" no", "$muted"),
        )  # fmt: skip
        asked = [(Span(text),) for text in (self._reason, self._question) if text]
        self.query_one("#confirm-lines", Lines).show_lines([*asked, (), keys])

    def action_answer(self, yes: bool) -> None:
        """Close with the answer."""
        self.dismiss(yes)

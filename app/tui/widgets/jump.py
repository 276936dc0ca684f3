"""Labels over the screen: typing one goes to what it stands on."""

from collections.abc import Mapping
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.geometry import Offset

from app.tui.view.spans import Span
from app.tui.widgets.dialog import Dialog
from app.tui.widgets.lines import Lines


class JumpScreen(Dialog[str | None]):
    """Dismisses with the label that was typed; with None after esc, or if the screen changes its size.

    Args:
        labels: label → the cell of the screen where it begins; all labels have the same length.
    """

    BINDINGS: ClassVar = [("escape", "dismiss", "close")]

    def __init__(self, labels: Mapping[str, Offset]) -> None:
        super().__init__()
        self._labels = labels
        self._typed = ""
        self._laid_out = False

    def compose(self) -> ComposeResult:
        """A widget for each label, and what to do."""
        for label, cell in self._labels.items():
            shown = Lines(id=f"jump-{label}", classes="jump-label")
            shown.styles.offset = cell
            yield shown
        yield Lines(id="jump-hint")

    def on_mount(self) -> None:
        """Show the labels."""
        for label in self._labels:
            self.query_one(f"#jump-{label}", Lines).show_lines([(Span(label),)])
        self.query_one("#jump-hint", Lines).show_lines([(Span("type a label, esc leaves"),)])

    def on_resize(self) -> None:
        """Close, because the labels are no longer where they belong."""
        if self._laid_out:
            self.dismiss(None)
        self._laid_out = True

    def on_key(self, event: events.Key) -> None:
        """Take the label, or hide those that begin otherwise; other letters have no effect."""
        typed = self._typed + (event.character or "")
        if typed == self._typed or not any(label.startswith(typed) for label in self._labels):
            return
        event.stop()
        self._typed = typed
        if typed in self._labels:
            self.dismiss(typed)
            return
        for label in self._labels:
            self.query_one(f"#jump-{label}").display = label.startswith(typed)

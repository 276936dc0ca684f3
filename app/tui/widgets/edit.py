"""The dialog that shows what an answer changes in files, and asks whether to write it."""

import time
from collections.abc import Callable
from typing import ClassVar, Literal

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll

from app.runtime.edited_files import Offer
from app.tui.view.edit_lines import build_edit, build_edit_keys
from app.tui.widgets.dialog import Dialog
from app.tui.widgets.lines import Lines
from app.tui.widgets.quiet_time import QuietTime

EditChoice = Literal["apply", "apply_and_test", "test", "take_back"]
_CELLS = 104
_BORDER_CELLS = 8
"""Cells of the dialog's border, padding and scrollbar."""


class EditScreen(Dialog[EditChoice]):
    """Dismisses with what to do, or with None to do nothing.

    As in the dialog of approvals, keys that come right after it opened are ignored, and no usual key applies.
    """

    AUTO_FOCUS = ""
    BINDINGS: ClassVar = [
        ("y", "choose('apply')", "apply"),
        ("t", "choose('test')", "test"),
        ("u", "choose('take_back')", "take back"),
        ("escape", "dismiss", "close"),
        ("j,down", "scroll(1)", "down"),
        ("k,up", "scroll(-1)", "up"),
        ("pagedown,space", "scroll(20)", "page down"),
        ("pageup", "scroll(-20)", "page up"),
    ]

    def __init__(
        self, offer: Offer, *, applied: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._offer = offer
        self._applied = applied
        self._quiet = QuietTime(clock)

    def compose(self) -> ComposeResult:
        """The diff, and the keys."""
        with Vertical(id="edit-box"):
            with VerticalScroll(id="edit-text", can_focus=False):
                yield Lines(id="edit-lines")
            yield Lines(id="edit-keys")

    def on_mount(self) -> None:
        """Show the diff."""
        self._quiet.begin()
        cells = max(20, min(_CELLS, int(self.app.size.width * 0.95)) - _BORDER_CELLS)
        lines = build_edit(self._offer, cells, applied=self._applied)
        self.query_one("#edit-lines", Lines).show_lines(lines)
        keys = build_edit_keys(applied=self._applied, cells=cells)
        self.query_one("#edit-keys", Lines).show_lines([(), *keys])

    def on_key(self, event: events.Key) -> None:
        """Ignore keys that were meant for what was focused before."""
        if event.key != "escape" and self._quiet.ignores_key():
            event.stop()
            event.prevent_default()

    def action_scroll(self, rows: int) -> None:
        """Scroll the diff."""
        self.query_one("#edit-text").scroll_relative(y=rows, animate=False)

    def action_choose(self, choice: EditChoice) -> None:
        """Close with a choice; one that does not apply has no effect."""
        if self._applied:
            if choice != "apply":
                self.dismiss(choice)
        elif choice != "take_back":
            self.dismiss("apply_and_test" if choice == "test" else "apply")

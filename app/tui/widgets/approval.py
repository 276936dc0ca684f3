"""The question whether an agent may call a tool.

All keys are ignored right after it opened (`QuietTime`). Space and enter never allow anything.
"""

import time
from collections.abc import Callable
from typing import ClassVar, NamedTuple

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Input

from agents.runs.approvals import ApprovalRequest, Decision
from app.tui.textual_workarounds.one_line import OneLine
from app.tui.view.approval_lines import build_approval, build_approval_keys
from app.tui.widgets.dialog import Dialog
from app.tui.widgets.lines import Lines
from app.tui.widgets.quiet_time import QuietTime

_CELLS = 76
_BORDER_CELLS = 8
"""Cells of the dialog's border, padding and scrollbar."""
MAX_REASON = 500


class Answer(NamedTuple):
    """What the person decided, and why if it was denied."""

    decision: Decision
    reason: str = ""


class ApprovalScreen(Dialog[Answer]):
    """Dismisses with the answer, or with None to leave the call waiting."""

    AUTO_FOCUS = ""  # nothing: the field for a reason would take the keys
    BINDINGS: ClassVar = [
        ("y", "answer('once')", "allow once"),
        ("t", "answer('always')", "allow this in the conversation"),
        ("n", "deny", "deny"),
        ("escape", "leave", "later"),
        ("j,down", "scroll(1)", "down"),
        ("k,up", "scroll(-1)", "up"),
    ]

    def __init__(
        self, request: ApprovalRequest, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self.request = request
        self._quiet = QuietTime(clock)

    def compose(self) -> ComposeResult:
        """The call, the keys, and the field for a reason."""
        with Vertical(id="approval-box"):
            with VerticalScroll(id="approval-text", can_focus=False):
                yield Lines(id="approval-request")
            yield Lines(id="approval-keys")
            yield OneLine(
                placeholder="why not? enter denies, esc goes back",
                max_length=MAX_REASON,
                id="approval-reason",
                compact=True,
            )

    def on_mount(self) -> None:
        """Show the call."""
        self._quiet.begin()
        self._ask_reason(False)
        cells = max(20, min(_CELLS, self.app.size.width - _BORDER_CELLS))
        self.query_one("#approval-request", Lines).show_lines(build_approval(self.request, cells))
        keys = build_approval_keys(self.request, cells)
        self.query_one("#approval-keys", Lines).show_lines([(), *keys])

    @property
    def _reason(self) -> Input:
        return self.query_one("#approval-reason", Input)

    def _ask_reason(self, asked: bool) -> None:
        """Show the field for a reason in the place of the keys: a small terminal has no room for both."""
        self._reason.display = asked
        self.query_one("#approval-keys").display = not asked

    def on_key(self, event: events.Key) -> None:
        """Ignore keys that were meant for what was focused before."""
        if not self._reason.display and self._quiet.ignores_key():
            event.stop()
            event.prevent_default()

    def action_scroll(self, rows: int) -> None:
        """Scroll the arguments."""
        if not self._quiet.ignores_key():
            self.query_one("#approval-text").scroll_relative(y=rows, animate=False)

    def action_answer(self, decision: Decision) -> None:
        """Close with a decision."""
        if not self._reason.display and not self._quiet.ignores_key():
            self.dismiss(Answer(decision))

    def action_deny(self) -> None:
        """Ask why; the agent is told."""
        if not self._quiet.ignores_key():
            self._ask_reason(True)
            self._reason.focus()

    @on(Input.Submitted, "#approval-reason")
    def _denied(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(Answer("deny", event.value.strip()))

    def action_leave(self) -> None:
        """Go back from the reason to the choice, else close without an answer."""
        if self._reason.display:
            self._ask_reason(False)
            self._reason.value = ""
            self.set_focus(None)
            self._quiet.begin()  # what is still typed was meant for the reason
        elif not self._quiet.ignores_key():
            self.dismiss(None)

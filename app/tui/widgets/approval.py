"""The question whether an agent may call a tool.

Somebody who types when the dialog opens must not answer it: all keys are ignored for `QUIET_S` after it
opened, and each ignored key begins that time anew. Space and enter never allow anything.
"""

import time
from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll

from agents.runs.approvals import ApprovalRequest, Decision
from app.tui.view.agent_lines import build_approval
from app.tui.view.spans import Span
from app.tui.widgets.dialog import Dialog
from app.tui.widgets.lines import Lines

QUIET_S = 0.35
_CELLS = 76


class ApprovalScreen(Dialog[Decision]):
    """Dismisses with the decision, or with None to leave the call waiting."""

    BINDINGS: ClassVar = [
        ("y", "answer('once')", "allow once"),
        ("t", "answer('always')", "allow always"),
        ("n", "answer('deny')", "deny"),
        ("escape", "leave", "later"),
    ]

    def __init__(
        self, request: ApprovalRequest, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._request = request
        self._clock = clock
        self._quiet_since = clock()

    def compose(self) -> ComposeResult:
        """The call and the keys."""
        with Vertical(id="approval-box"):
            with VerticalScroll(id="approval-text"):
                yield Lines(id="approval-request")
            yield Lines(id="approval-keys")

    def on_mount(self) -> None:
        """Show the call."""
        self._quiet_since = self._clock()
        self.query_one("#approval-request", Lines).show_lines(build_approval(self._request, _CELLS))
        words = (
            ("y", "allow once"),
            ("t", "allow exactly this always"),
            ("n", "deny"),
            ("esc", "later"),
        )
        spans = [
            span
            for key, word in words
            for span in (Span(key, "bold $accent"), Span(f" {word}    ", "$muted"))
        ]
        self.query_one("#approval-keys", Lines).show_lines([(), tuple(spans)])

    def _is_quiet(self) -> bool:
        """Whether keys are still ignored; begins the time anew if so."""
        if self._clock() - self._quiet_since >= QUIET_S:
            return False
        self._quiet_since = self._clock()
        return True

    def on_key(self, event: events.Key) -> None:
        """Ignore keys that were meant for what was focused before."""
        if self._is_quiet():
            event.stop()
            event.prevent_default()

    def action_answer(self, decision: Decision) -> None:
        """Close with a decision."""
        if not self._is_quiet():
            self.dismiss(decision)

    def action_leave(self) -> None:
        """Close without one."""
        if not self._is_quiet():
            self.dismiss(None)

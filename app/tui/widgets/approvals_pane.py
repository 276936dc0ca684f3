"""The approvals pane: tool calls of agents that wait for a decision."""

import time
from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.message import Message

from agents.runs.approvals import ApprovalRequest
from agents.service.run_service import RunService
from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.keys import APPROVAL_KEYS, bindings
from app.tui.view.approval_lines import build_approvals
from app.tui.widgets.lines import Lines
from app.tui.widgets.needs_drawing import DrawnOnTicks, NeedsDrawing


class ApprovalsPane(DrawnOnTicks, VerticalScroll, can_focus=True):
    """A row for each call; `enter` opens it. Nothing here allows a call."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(APPROVAL_KEYS)

    class Opened(Message):
        """A row was opened."""

        def __init__(self, request: ApprovalRequest) -> None:
            super().__init__()
            self.request = request

    def __init__(
        self,
        service: RunService | None,
        glyphs: Glyphs,
        *,
        wall_clock: Callable[[], float] = time.time,
        id: str | None = None,  # noqa: A002
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._service = service
        self._glyphs = glyphs
        self._wall = wall_clock
        self._cursor = 0

    def compose(self) -> ComposeResult:
        """One widget of lines."""
        yield Lines(id="approval-lines")

    def show(self, frame: Frame) -> bool:
        """Draw what changed."""
        cells = self.scrollable_content_region.width - 4
        if cells <= 1:
            return False
        pending = self._pending()
        self._cursor = min(self._cursor, max(0, len(pending) - 1))
        lines = build_approvals(
            pending, self._cursor, self._glyphs, cells, "enter opens", now=self._wall()
        )
        self.query_one("#approval-lines", Lines).show_lines(lines)
        return bool(pending)  # the time that is left

    def _pending(self) -> list[ApprovalRequest]:
        return [] if self._service is None else list(self._service.approvals())

    def action_move(self, rows: int) -> None:
        """Move the cursor."""
        self._cursor = min(max(self._cursor + rows, 0), max(0, len(self._pending()) - 1))
        self.post_message(NeedsDrawing())

    def action_open(self) -> None:
        """Open the selected call."""
        pending = self._pending()
        if self._cursor < len(pending):
            self.post_message(self.Opened(pending[self._cursor]))

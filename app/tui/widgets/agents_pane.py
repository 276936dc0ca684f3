"""The agents pane: runs with their agents, and the trace of the one that is open."""

import time
from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.geometry import Region
from textual.widgets import Input

from agents.service.run_service import RunService
from agents.service.run_view import RunView
from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.keys import AGENT_KEYS, APP_KEYS, bindings, shown
from app.tui.view.agent_lines import (
    ORDERS,
    Order,
    RowId,
    build_agents_head,
    build_empty,
    build_runs,
    build_trace,
)
from app.tui.view.spans import Line, Span
from app.tui.widgets.lines import Lines
from app.tui.widgets.needs_drawing import DrawnOnTicks, NeedsDrawing


class AgentsPane(DrawnOnTicks, Vertical, can_focus=True):
    """One row for each run and each of its agents; `enter` shows what an agent did."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(AGENT_KEYS)

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
        self._order: Order = ORDERS[0]
        self._only = ""
        self._cursor: RowId | None = None
        self._ids: list[RowId] = []
        self._opened: RowId | None = None

    def compose(self) -> ComposeResult:
        """Title, filter and rows."""
        yield Lines(id="agents-head")
        yield Input(placeholder="find", id="agents-filter", compact=True)
        with VerticalScroll(id="agents-scroll", can_focus=False):
            yield Lines(id="agents-lines")

    def on_mount(self) -> None:
        """The filter is shown while it is used."""
        self.query_one("#agents-filter").display = False

    @property
    def selected_run(self) -> str | None:
        """The run under the cursor."""
        chosen = self._opened or self._cursor
        return None if chosen is None else chosen.run

    def show(self, frame: Frame) -> bool:
        """Draw what changed."""
        scroll = self.query_one("#agents-scroll", VerticalScroll)
        cells = scroll.scrollable_content_region.width
        if cells <= 1:
            return False
        if self._service is None:
            self._draw((Span("A replay runs no agents.", "$muted"),), [])
            return False
        views = list(self._service.runs())
        waiting = len(self._service.approvals())
        head = build_agents_head(views, waiting, self._order, cells)
        opened = None if self._opened is None else _view_of(views, self._opened.run)
        if opened is not None and self._opened is not None:
            events = self._service.events(opened.id, 0)
            self._draw(head, build_trace(opened, self._opened, events, self._glyphs, cells))
            return not opened.state.finished
        self._opened = None
        lines, self._ids = build_runs(
            views,
            now=self._wall(),
            order=self._order,
            only=self._only,
            cursor=self._cursor,
            glyphs=self._glyphs,
            cells=cells,
        )
        if self._cursor not in self._ids:
            self._cursor = self._ids[0] if self._ids else None
            if self._cursor is not None:
                self.post_message(NeedsDrawing())
        self._draw(head, lines or build_empty(cells, _CHAT_KEY))
        return any(not view.state.finished for view in views)

    def _draw(self, head: Line, lines: list[Line]) -> None:
        self.query_one("#agents-head", Lines).show_lines([head])
        self.query_one("#agents-lines", Lines).show_lines(lines)

    # Actions.

    def action_move(self, rows: int) -> None:
        """Move the cursor, or scroll the trace."""
        scroll = self.query_one("#agents-scroll", VerticalScroll)
        if self._opened is not None:
            scroll.scroll_relative(y=rows, animate=False)
            return
        if not self._ids:
            return
        at = self._ids.index(self._cursor) if self._cursor in self._ids else 0
        at = min(max(at + rows, 0), len(self._ids) - 1)
        self._cursor = self._ids[at]
        scroll.scroll_to_region(Region(0, at, 1, 1), animate=False)
        self.post_message(NeedsDrawing())

    def action_open(self) -> None:
        """Show what the selected agent did."""
        if self._opened is None and self._cursor is not None:
            self._opened = self._cursor
            self.query_one("#agents-scroll", VerticalScroll).scroll_home(animate=False)
            self.post_message(NeedsDrawing())

    def action_back(self) -> None:
        """Close the trace, else the filter."""
        if self._opened is not None:
            self._opened = None
        else:
            self._set_filter("")
        self.focus()
        self.post_message(NeedsDrawing())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave Esc to the app if neither a trace nor a filter is open."""
        if action == "back":
            field = self.query_one("#agents-filter")
            return self._opened is not None or bool(self._only) or field.display
        return True

    def action_order(self) -> None:
        """Sort the agents another way."""
        self._order = ORDERS[(ORDERS.index(self._order) + 1) % len(ORDERS)]
        self.post_message(NeedsDrawing())

    def action_filter(self) -> None:
        """Focus the filter."""
        field = self.query_one("#agents-filter", Input)
        field.display = True
        field.focus()

    @on(Input.Changed, "#agents-filter")
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._only = event.value
        self.post_message(NeedsDrawing())

    @on(Input.Submitted, "#agents-filter")
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.query_one("#agents-filter").display = bool(event.value)
        self.focus()

    def _set_filter(self, text: str) -> None:
        field = self.query_one("#agents-filter", Input)
        field.value = self._only = text
        field.display = bool(text)


def _view_of(views: list[RunView], run: str) -> RunView | None:
    return next((view for view in views if view.id == run), None)


_CHAT_KEY = shown(next(key for key in APP_KEYS if key.id == "pane.chat")).split()[0]

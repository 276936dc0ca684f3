"""The agents pane: runs with their agents, and the trace of the one that is open."""

import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.geometry import Region
from textual.widgets import Input

from agents.api.events import RunEvent
from agents.model.abilities import abilities
from agents.model.identity import model_identity
from agents.model.profile_record import known_profile
from agents.service.run_service import RunService
from agents.service.run_view import RunView
from app.text.safe_text import safe_line
from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.keys import AGENT_KEYS, APP_KEYS, bindings, shown
from app.tui.textual_workarounds.one_line import OneLine
from app.tui.view.agent_rows import (
    ORDERS,
    Order,
    RowId,
    build_agent_facts,
    build_agents_head,
    build_empty,
    build_model_line,
    build_run_timeline,
    build_runs,
)
from app.tui.view.agent_trace import TraceEntry, build_step_timeline, build_trace, trace_entries
from app.tui.view.spans import Line, Span
from app.tui.widgets.lines import Lines
from app.tui.widgets.needs_drawing import DrawnOnTicks, NeedsDrawing


class AgentsPane(DrawnOnTicks, Vertical, can_focus=True):
    """Rows for each run and each of its agents; `enter` shows what an agent did."""

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
        self._ids: list[RowId | None] = []
        self._views: list[RunView] = []
        self._toggled_runs: set[str] = set()
        self._opened: RowId | None = None
        self._entries: list[TraceEntry] = []
        self._owners: list[int] = []
        self._entry = 0
        self._toggled: set[int] = set()
        self._above = 0
        self._abilities: tuple[tuple[str, int], str] | None = None

    def compose(self) -> ComposeResult:
        """Title, filter and rows."""
        yield Lines(id="agents-head")
        yield OneLine(placeholder="find", id="agents-filter", compact=True)
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
        cells = self._scroll.scrollable_content_region.width
        if cells <= 1:
            return False
        if self._service is None:
            self._draw([(Span("A replay runs no agents.", "$muted"),)], [])
            return False
        self._views = list(self._service.runs())
        head = [build_agents_head(self._views, self._order, cells), *self._model(frame, cells)]
        opened = None if self._opened is None else self._view(self._opened.run)
        if opened is not None and self._opened is not None:
            events = self._service.events(opened.id, 0)
            self._draw(head, self._trace(opened, self._opened, events, cells))
            return not opened.state.finished
        self._opened = None
        lines, self._ids = build_runs(
            self._views,
            now=self._wall(),
            order=self._order,
            only=self._only,
            cursor=self._cursor,
            glyphs=self._glyphs,
            cells=cells,
            folded=self._folded(),
        )
        if self._cursor is None or self._cursor not in self._ids:
            self._cursor = next((one for one in self._ids if one is not None), None)
            if self._cursor is not None:
                self.post_message(NeedsDrawing())
        self._draw(head, lines or build_empty(cells, _CHAT_KEY))
        return any(not view.state.finished for view in self._views)

    def _folded(self) -> set[str]:
        """The runs whose agents are not shown: finished ones but the newest, and those chosen by a key."""
        at_first = {view.id for view in self._views[1:] if view.state.finished}
        return at_first ^ self._toggled_runs

    def _trace(
        self, view: RunView, row_id: RowId, events: Sequence[RunEvent], cells: int
    ) -> list[Line]:
        """The open trace; its cursor follows the newest entry while it is on the last one."""
        whole_run = not row_id.agent and not row_id.node
        own = [
            event
            for event in events
            if whole_run or (event.node, event.agent) == (row_id.node, row_id.agent)
        ]
        at_end = self._entry >= len(self._entries) - 1
        self._entries = trace_entries(own)
        if at_end and not view.state.finished:
            self._entry = len(self._entries) - 1
        self._entry = max(0, min(self._entry, len(self._entries) - 1))
        title = f"{row_id.agent or row_id.node or view.name}  {safe_line(view.goal)}".rstrip()
        top: list[Line] = [(Span(title, "bold $primary"),)]
        row = next((r for r in view.rows if (r.node, r.agent) == (row_id.node, row_id.agent)), None)
        if row is not None:
            top.append(build_agent_facts(row, self._wall(), self._glyphs, cells))
        top += (
            build_run_timeline(view, self._wall(), self._glyphs, cells)
            if whole_run
            else build_step_timeline(own, self._glyphs, cells)
        )
        lines, self._owners = build_trace(
            self._entries,
            toggled=self._toggled,
            cursor=self._entry,
            with_agents=whole_run,
            glyphs=self._glyphs,
            cells=cells,
        )
        self._above = len(top) + 1
        return [*top, (), *lines]

    def _model(self, frame: Frame, cells: int) -> list[Line]:
        """What the loaded model does for the agents; read again after each run, which may test it."""
        model = frame.snapshot.model
        if model is None:
            return []
        identity = model_identity(model, frame.client.tokenizer_fingerprint())
        key = identity, sum(view.state.finished for view in self._views)
        if self._abilities is None or self._abilities[0] != key:
            self._abilities = key, abilities(known_profile(identity))
        return [build_model_line(model.name, self._abilities[1], cells)]

    def _draw(self, head: list[Line], lines: list[Line]) -> None:
        self.query_one("#agents-head", Lines).show_lines(head)
        self.query_one("#agents-lines", Lines).show_lines(lines)

    def _view(self, run: str) -> RunView | None:
        return next((view for view in self._views if view.id == run), None)

    @property
    def _scroll(self) -> VerticalScroll:
        return self.query_one("#agents-scroll", VerticalScroll)

    # Actions.

    def action_move(self, rows: int) -> None:
        """Move the cursor among the rows, or among the entries of the trace."""
        if self._opened is not None:
            self._entry = max(0, min(self._entry + rows, len(self._entries) - 1))
            self._show_entry()
        else:
            self._move_row(rows)
        self.post_message(NeedsDrawing())

    def _move_row(self, rows: int) -> None:
        places = [at for at, one in enumerate(self._ids) if one is not None]
        if not places:
            return
        known = self._cursor is not None and self._cursor in self._ids
        at = self._ids.index(self._cursor) if known else places[0]
        chosen = places[max(0, min(places.index(at) + rows, len(places) - 1))]
        self._cursor = self._ids[chosen]
        top = 0 if chosen == places[0] else chosen
        self._scroll.scroll_to_region(Region(0, top, 1, chosen - top + 1), animate=False)

    def _show_entry(self) -> None:
        if self._entry in self._owners:
            at = self._above + self._owners.index(self._entry)
            top = 0 if self._entry == 0 else at
            self._scroll.scroll_to_region(Region(0, top, 1, at - top + 1), animate=False)

    def action_open(self) -> None:
        """Show what the selected agent did; in its trace, unfold or fold an entry."""
        if self._opened is not None:
            self.action_fold()
        elif self._cursor is not None:
            self._opened = self._cursor
            self._entries, self._entry, self._toggled = [], 0, set()
            self._scroll.scroll_home(animate=False)
            self.post_message(NeedsDrawing())

    def action_fold(self) -> None:
        """Fold or unfold the run, or the entry of the trace."""
        if self._opened is None:
            if self._cursor is not None:
                self._toggled_runs ^= {self._cursor.run}
                self._cursor = RowId(self._cursor.run)
        elif self._entry < len(self._entries):
            self._toggled ^= {self._entries[self._entry].number}
        self.post_message(NeedsDrawing())

    def action_fold_all(self) -> None:
        """Unfold all runs or entries; if all are, fold them."""
        if self._opened is None:
            folded = self._folded()
            at_first = folded ^ self._toggled_runs
            wanted = set() if folded else {view.id for view in self._views}
            self._toggled_runs = at_first ^ wanted
        else:
            closed = {one.number for one in self._entries if not one.is_open_at_first}
            opened = {one.number for one in self._entries if one.is_open_at_first}
            self._toggled = opened if closed <= self._toggled else closed
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


_CHAT_KEY = shown(next(key for key in APP_KEYS if key.id == "pane.chat")).split()[0]

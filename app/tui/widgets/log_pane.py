"""The log pane: the newest records of engine and app; only the visible ones are laid out."""

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Input

from app.text.log_ring import LogEntry, LogRing
from app.tui.frame import Frame
from app.tui.keys import LOG_KEYS, bindings, shown
from app.tui.textual_workarounds.one_line import OneLine
from app.tui.view.log_lines import LogFilter, build_log_head, build_log_rows
from app.tui.view.spans import Line
from app.tui.widgets.lines import Lines
from app.tui.widgets.needs_drawing import DrawnOnTicks, NeedsDrawing

_WHEEL = 3


class LogPane(DrawnOnTicks, Vertical, can_focus=True):
    """Follows the newest record until it is scrolled up."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(LOG_KEYS)

    def __init__(
        self,
        ring: LogRing,
        *,
        id: str | None = None,  # noqa: A002
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._ring = ring
        self._filter = LogFilter()
        self._last: int | None = None  # number of the last record on screen; None for the newest
        self._found: list[LogEntry] = []
        self._found_for: tuple[int, LogFilter] | None = None

    def compose(self) -> ComposeResult:
        """Title, filter and rows."""
        yield Lines(id="log-head")
        yield OneLine(placeholder="find", id="log-filter", compact=True)
        yield Lines(id="log-lines")

    def on_mount(self) -> None:
        """The filter is shown while it is used."""
        self.query_one("#log-filter").display = False

    def show(self, frame: Frame) -> bool:
        """Draw what changed."""
        body = self.query_one("#log-lines", Lines)
        cells, rows = body.size
        if cells <= 1 or rows <= 0:
            return False
        found = self._matching()
        end = self._end(found)
        head = build_log_head(
            self._filter,
            len(found),
            len(self._ring.entries()) if self._filter != LogFilter() else len(found),
            len(found) - end,
            (_key("logs.level"), _key("logs.find")),
            cells,
        )
        self.query_one("#log-head", Lines).show_lines([head])
        lines = build_log_rows(found[:end], cells, rows)
        blank: list[Line] = [()] * (rows - len(lines))
        body.show_lines([*lines, *blank])
        return False

    def _matching(self) -> list[LogEntry]:
        state = (self._ring.count, self._filter)
        if state != self._found_for:
            self._found_for = state
            self._found = [entry for entry in self._ring.entries() if self._filter(entry)]
        return self._found

    def _end(self, found: list[LogEntry]) -> int:
        """How many of the matching records are above the pane's end, itself included."""
        if self._last is None:
            return len(found)
        return max(1, sum(entry.number <= self._last for entry in found)) if found else 0

    def action_scroll(self, records: int) -> None:
        """Scroll by records; at the newest one, new ones are followed."""
        found = self._matching()
        if not found:
            return
        end = max(1, min(self._end(found) + records, len(found)))
        self._last = None if end == len(found) else found[end - 1].number
        self.post_message(NeedsDrawing())

    def action_page(self, pages: int) -> None:
        """Scroll by about a page."""
        self.action_scroll(pages * max(1, self.query_one("#log-lines").size.height - 1))

    def action_edge(self, direction: int) -> None:
        """Go to the first record, or to the newest one and follow."""
        if direction > 0:
            self._last = None
            self.post_message(NeedsDrawing())
        else:
            # As far up as the rows are still filled.
            rows = self.query_one("#log-lines").size.height
            self.action_scroll(-(self._end(self._matching()) - rows))

    def action_level(self) -> None:
        """Show records from the next level on."""
        self._filter_by(LogFilter(self._filter.next_level, self._filter.text))

    def action_find(self) -> None:
        """Focus the filter."""
        field = self.query_one("#log-filter", Input)
        field.display = True
        field.focus()

    def action_unfilter(self) -> None:
        """Show all records again."""
        field = self.query_one("#log-filter", Input)
        field.value = ""
        field.display = False
        self._filter_by(LogFilter())
        self.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave Esc to the app if no filter is set."""
        if action == "unfilter":
            return self._filter != LogFilter() or self.query_one("#log-filter").display
        return True

    @on(Input.Changed, "#log-filter")
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._filter_by(LogFilter(self._filter.level, event.value))

    @on(Input.Submitted, "#log-filter")
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.query_one("#log-filter").display = bool(event.value)
        self.focus()

    def _filter_by(self, wanted: LogFilter) -> None:
        if wanted != self._filter:
            self._filter = wanted
            self._last = None
            self.post_message(NeedsDrawing())

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down."""
        event.stop()
        self.action_scroll(_WHEEL)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up."""
        event.stop()
        self.action_scroll(-_WHEEL)


def _key(name: str) -> str:
    return next(shown(key) for key in LOG_KEYS if key.id == name)

"""The comparison pane: two to four texts in columns that scroll together.

Only the visible rows are passed to the widgets, so that long texts cost no more than short ones.
"""

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical

from app.tui.comparison import Comparison
from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.keys import COMPARE_KEYS, bindings
from app.tui.marks import MAX_MARKS
from app.tui.view.compare_lines import (
    AlignedRows,
    CompareColumn,
    align_rows,
    build_column_head,
    build_compare_head,
)
from app.tui.view.spans import Line, Span
from app.tui.widgets.lines import Lines
from app.tui.widgets.needs_drawing import DrawnOnTicks, NeedsDrawing

_GUTTER = 2
_ABOVE = 2
"""Rows shown above a difference that is scrolled to."""
_WHEEL = 3


class ComparePane(DrawnOnTicks, Vertical, can_focus=True):
    """Shows a `Comparison`; see `open`."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(COMPARE_KEYS)

    def __init__(
        self,
        glyphs: Glyphs,
        *,
        id: str | None = None,  # noqa: A002
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._glyphs = glyphs
        self._comparison: Comparison | None = None
        self._rows: AlignedRows | None = None
        self._cells = 0
        self._height = 1
        self._top = 0
        self._selected = 0
        self._current: int | None = None  # index in the rows' differences

    def compose(self) -> ComposeResult:
        """A row of figures above the columns."""
        yield Lines(id="compare-head")
        with Horizontal(id="compare-columns"):
            for _ in range(MAX_MARKS):
                yield Lines(classes="compare-column")

    def open(self, comparison: Comparison) -> None:
        """Show a comparison from its first difference on."""
        self._comparison = comparison
        self._rows = None
        self._selected = 0
        for index, column in enumerate(self.query(".compare-column")):
            column.display = index < len(comparison.columns)
        self.post_message(NeedsDrawing())

    @property
    def columns(self) -> tuple[CompareColumn, ...]:
        """The texts, left to right."""
        return () if self._comparison is None else self._comparison.columns

    @property
    def selected(self) -> str | None:
        """The node of the selected column."""
        return (
            None if self._comparison is None else self._comparison.columns[self._selected].node_id
        )

    def show(self, frame: Frame) -> bool:
        """Draw what changed."""
        comparison = self._comparison
        if comparison is None:
            return False
        room = self.query(".compare-column").first(Lines).scrollable_content_region
        if room.width <= _GUTTER or room.height <= 2:
            return False
        self._height = room.height - 2
        rows = self._aligned(comparison, room.width - _GUTTER)
        head = build_compare_head(
            comparison.parting, rows, self._current, self._top, self.size.width - 2
        )
        self.query_one("#compare-head", Lines).show_lines([head])
        path = set(frame.session.tree.path(frame.session.head))
        for index, column in enumerate(comparison.columns):
            widget = self.query(".compare-column")[index]
            chosen = index == self._selected
            widget.set_class(chosen, "-selected")
            lines = build_column_head(
                column, index + 1, self._glyphs, room.width, selected=chosen,
                open=column.node_id in path,
            )  # fmt: skip
            visible = [
                self._with_gutter(rows, row, rows.columns[index][row])
                for row in range(self._top, min(rows.height, self._top + self._height))
            ]
            blank: list[Line] = [()] * (self._height - len(visible))
            if isinstance(widget, Lines):
                widget.show_lines([*lines, *visible, *blank])
        return False

    def _aligned(self, comparison: Comparison, cells: int) -> AlignedRows:
        """The rows for this width. With another width, the current difference stays in view."""
        if self._rows is None or cells != self._cells:
            fresh = self._rows is None
            texts = [column.text for column in comparison.columns]
            self._rows = align_rows(texts, comparison.parting, cells)
            self._cells = cells
            if fresh:
                self._top, self._current = 0, None
                parting = self._rows.parting
                if parting is not None:
                    self._go_to(self._rows.differences.index(parting))
            elif self._current is not None:
                self._go_to(min(self._current, len(self._rows.differences) - 1))
        self._top = max(0, min(self._top, self._rows.height - self._height))
        return self._rows

    def _with_gutter(self, rows: AlignedRows, row: int, line: Line) -> Line:
        if self._current is not None and rows.differences[self._current] == row:
            return (Span(f"{self._glyphs.current} ", "bold $accent"), *line)
        return (Span("  "), *line)

    def _go_to(self, difference: int) -> None:
        if self._rows is not None and self._rows.differences:
            self._current = difference
            row = self._rows.differences[difference]
            if not self._top <= row < self._top + self._height:
                self._top = max(0, row - _ABOVE)

    def action_scroll(self, rows: int) -> None:
        """Scroll all columns."""
        limit = 0 if self._rows is None else max(0, self._rows.height - self._height)
        self._top = max(0, min(self._top + rows, limit))
        self.post_message(NeedsDrawing())

    def action_page(self, pages: int) -> None:
        """Scroll all columns by pages."""
        self.action_scroll(pages * max(1, self._height - 1))

    def action_edge(self, direction: int) -> None:
        """Go to the first or the last row."""
        self.action_scroll(direction * (0 if self._rows is None else self._rows.height))

    def action_difference(self, steps: int) -> None:
        """Go to the next or previous difference, from the current one."""
        if self._rows is not None and self._rows.differences:
            last = len(self._rows.differences) - 1
            start = -1 if self._current is None else self._current
            self._go_to(max(0, min(start + steps, last)))
            self.post_message(NeedsDrawing())

    def action_select(self, steps: int) -> None:
        """Select the column to the left or right."""
        self._select(self._selected + steps)

    def on_key(self, event: events.Key) -> None:
        """A digit selects the column of that number."""
        if event.character is not None and event.character in tuple("1234"):
            event.stop()
            event.prevent_default()
            self._select(int(event.character) - 1)

    def _select(self, index: int) -> None:
        if self._comparison is not None and index < len(self._comparison.columns):
            self._selected = max(0, index)
            self.post_message(NeedsDrawing())

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down."""
        event.stop()
        self.action_scroll(_WHEEL)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up."""
        event.stop()
        self.action_scroll(-_WHEEL)

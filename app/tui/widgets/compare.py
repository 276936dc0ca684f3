"""The comparison pane: two to four texts in columns that scroll together.

Only the visible rows are passed to the widgets. The texts of running answers are read at every tick with
new text, and aligned again when the last alignment is `REST` times its own duration ago: with 4 answers of
300 words it takes 25 ms, of 3,000 words 170 ms.
"""

import time
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical

from app.tui.comparison import Comparison, followed
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
REST = 4
"""Durations of an alignment between two, while answers run."""


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
        self._aligned_for: Comparison | None = None  # the texts of the rows
        self._cells = 0
        self._height = 1
        self._top = 0
        self._selected = 0
        self._current: int | None = None  # index in the rows' differences
        self._rests_until = 0.0

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
        if self._comparison is None:
            return False
        fresh = followed(frame.session, self._comparison)
        waits = fresh is not self._comparison and time.perf_counter() < self._rests_until
        if not waits:
            self._comparison = fresh
        comparison = self._comparison
        room = self.query(".compare-column").first(Lines).scrollable_content_region
        if room.width <= _GUTTER or room.height <= 2:
            return waits
        self._height = room.height - 2
        rows = self._aligned(comparison, room.width - _GUTTER)
        head = build_compare_head(
            comparison.parting, rows, self._current, self._top, self.size.width - 2,
            running=comparison.running,
        )  # fmt: skip
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
        return waits

    def _aligned(self, comparison: Comparison, cells: int) -> AlignedRows:
        """The rows for these texts and this width.

        With another width the current difference stays in view; of texts that grow, the visible rows do,
        or the last ones if those were visible.
        """
        old, resized = self._rows, cells != self._cells
        rows = old
        if rows is None or resized or comparison is not self._aligned_for:
            began = time.perf_counter()
            rows = align_rows(
                [column.text for column in comparison.columns], comparison.parting, cells
            )
            ended = time.perf_counter()
            self._rests_until = ended + REST * (ended - began)
            self._rows, self._aligned_for, self._cells = rows, comparison, cells
            if old is None:
                self._top, self._current = 0, None
                if rows.parting is not None:
                    self._go_to(rows.differences.index(rows.parting))
            else:
                self._keep_place(old, rows, resized=resized)
        self._top = max(0, min(self._top, rows.height - self._height))
        return rows

    def _keep_place(self, old: AlignedRows, rows: AlignedRows, *, resized: bool) -> None:
        if self._current is not None:
            last = len(rows.differences) - 1
            self._current = min(self._current, last) if last >= 0 else None
        if not resized and self._top + self._height >= old.height:
            self._top = rows.height
        elif resized and self._current is not None:
            self._go_to(self._current)

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

"""The KV pool as a map of cells, which redraws only the rows that changed (Textual's line API).

Guard: `render_line` does dictionary look-ups only; the numpy computations run once for each update and
cost O(blocks). Do not call `refresh()` without a region on an update: at 10 000 blocks it takes longer
than a frame. A region that includes the scroll bar draws that, too. Two rows of cells share a text row
through `▀`; without colour, or in ASCII, each row of cells is a row of glyphs.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from app.tui.glyphs import Glyphs
from app.tui.keys import KV_KEYS, bindings
from app.tui.view.kv_cells import (
    ZOOMS,
    BlockInfo,
    Cell,
    block_cells,
    block_info,
    changed_spans,
    glyph_of,
    paired,
    role_of,
    rows_of,
    runs,
    state_counts,
    zoomed,
)
from app.tui.view.kv_colors import ColorMode, mode_codes, next_mode
from app.tui.widgets.needs_drawing import NeedsDrawing
from app.tui.widgets.theme_colors import rich_color
from engine.api.snapshot import BlockMap

_NOTHING = -1
_EMPTY: NDArray[np.int16] = np.zeros((0, 0), dtype=np.int16)
_NO_BLOCKS: NDArray[np.int32] = np.zeros(0, dtype=np.int32)


class KvMap(ScrollView, can_focus=True):
    """Cells of the pool with a cursor, zoom and the highlighted blocks of one request."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(KV_KEYS)

    class Pointed(Message):
        """The cursor or the pointer is on another block, or that block changed."""

        def __init__(self, info: BlockInfo | None, zoom: int) -> None:
            super().__init__()
            self.info = info
            self.zoom = zoom

    def __init__(self, glyphs: Glyphs, *, colored: bool) -> None:
        super().__init__()
        self._glyphs = glyphs
        self._half_blocks = glyphs.half_blocks and colored
        self._blocks: BlockMap | None = None
        self._own: str | None = None
        self._states: dict[Cell, int] = {}
        self._mode = ColorMode.STATE
        self._flashing = _NO_BLOCKS
        self._block_size = 1
        self._now = 0.0
        self._lit: str | None = None
        self._paths: tuple[NDArray[np.int32], ...] = ()
        self._zoom = ZOOMS[0]
        self._grid = _EMPTY
        self._cursor: int | None = None
        self._styles_by_pair: dict[tuple[int, int], Style] = {}
        self._rows: dict[int, Strip] = {}
        """Strips by row of the widget, of rows that are not dirty."""
        self._scrolled_in: tuple[Size, Size] | None = None
        self._last_posted: tuple[BlockInfo | None, int] | None = None

    @property
    def colored(self) -> bool:
        """Whether cells are coloured half-blocks instead of glyphs."""
        return self._half_blocks

    @property
    def zoom(self) -> int:
        """Number of blocks in a cell."""
        return self._zoom

    @property
    def cursor(self) -> int | None:
        """The block under the cursor, or None before the first move."""
        return self._cursor

    @property
    def states(self) -> dict[Cell, int]:
        """Number of blocks in each state."""
        return self._states

    @property
    def mode(self) -> ColorMode:
        """What the colours mean."""
        return self._mode

    @property
    def owners(self) -> tuple[str, ...]:
        """The requests in the map."""
        return () if self._blocks is None else self._blocks.owners

    @property
    def lit(self) -> str | None:
        """The request whose blocks are highlighted."""
        return self._lit

    def show(
        self,
        blocks: BlockMap | None,
        own: str | None,
        *,
        block_size: int,
        now: float,
        flashing: NDArray[np.int32] = _NO_BLOCKS,
    ) -> bool:
        """Draw what changed; whether a cell did.

        Args:
            blocks: a newer map, or None for the last one.
            own: request of the open conversation, or None.
            block_size: tokens in a block.
            now: the current instant, on the clock of `BlockMap.last_used`.
            flashing: blocks that flash.
        """
        unchanged = own == self._own and np.array_equal(flashing, self._flashing)
        if blocks is None and unchanged and self._mode is not ColorMode.AGE:
            return False
        self._blocks = blocks or self._blocks
        self._own, self._flashing = own, flashing
        self._block_size, self._now = block_size, now
        if self._blocks is not None:
            self._states = state_counts(self._blocks, own)
        changed = self._redraw()
        if self._cursor is None and self.has_focus:
            self.action_move(0, 0)
        self._post_pointed()
        return changed

    def _redraw(self) -> bool:
        """Draw the cells that differ; whether there were some."""
        columns = self.scrollable_content_region.width
        if self._blocks is None or columns <= 0:
            return False
        codes = block_cells(
            self._blocks,
            self._own,
            self._lit,
            colored_by=mode_codes(
                self._mode, self._blocks, block_size=self._block_size, now=self._now
            ),
            flashing=self._flashing,
            paths=[path[path < len(self._blocks.state)] for path in self._paths],
        )
        cells = zoomed(codes, self._zoom)
        grid = rows_of(cells, columns)
        if self._half_blocks:
            grid = paired(grid)
        changed = changed_spans(self._grid, grid, self._rows_per_line)
        self._grid = grid
        if changed is None:
            self.virtual_size = Size(columns, len(grid) // self._rows_per_line)
            self.refresh()
            return True
        # Not `refresh_line`, which includes the scroll bar.
        top = self.scroll_offset.y
        visible = range(top, top + self.size.height)
        regions = [
            Region(first, line - top, stop - first, 1)
            for line, first, stop in changed
            if line in visible
        ]
        if regions:
            self.refresh(*regions)
        return bool(changed)

    @property
    def _rows_per_line(self) -> int:
        return 2 if self._half_blocks else 1

    def _scroll_update(self, virtual_size: Size) -> None:
        # Textual's `ScrollView` redraws its scroll bar after every layout of the screen.
        measures = (virtual_size, self.container_size)
        if measures != self._scrolled_in:
            self._scrolled_in = measures
            super()._scroll_update(virtual_size)

    def on_resize(self, event: events.Resize) -> None:
        """Lay the cells out again."""
        self._redraw()

    def notify_style_update(self) -> None:
        """The theme changed: discard the cached styles and rows."""
        super().notify_style_update()
        self._styles_by_pair.clear()
        self._rows.clear()

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows of `crop`, from an own cache.

        Textual's reads the style sheet for each row that changed; the map has neither border nor padding.
        """
        if not self._half_blocks:
            return super().render_lines(crop)
        blank = self._style(_NOTHING, _NOTHING)
        for y in crop.line_range:
            if y not in self._rows:
                self._rows[y] = self.render_line(y)
        return [self._rows[y].crop_extend(crop.x, crop.right, blank) for y in crop.line_range]

    def _set_dirty(self, *regions: Region) -> None:
        # Textual clears its own cache here.
        for region in regions:
            for y in region.line_range:
                self._rows.pop(y, None)
        if not regions:
            self._rows.clear()
        super()._set_dirty(*regions)

    def render_line(self, y: int) -> Strip:
        """One text row of cells."""
        line = y + self.scroll_offset.y
        first = line * self._rows_per_line
        if first >= len(self._grid):
            width = self.scrollable_content_region.width
            return Strip.blank(width, self._style(_NOTHING, _NOTHING))
        if not self._half_blocks:
            return self._glyph_line(first)
        upper, lower = self._grid[first], self._grid[first + 1]
        if self._cursor is not None and self.has_focus:
            upper, lower = self._with_cursor(upper, first), self._with_cursor(lower, first + 1)
        known, style = self._styles_by_pair.get, self._style
        segments = [
            Segment("▀" * length, known((up, down)) or style(up, down))
            for up, down, length in runs(upper, lower)
        ]
        return Strip(segments, len(upper))

    _CURSOR = 200

    def _with_cursor(self, row: NDArray[np.int16], index: int) -> NDArray[np.int16]:
        cell = (self._cursor or 0) // self._zoom
        columns = self._grid.shape[1]
        if cell // columns != index:
            return row
        marked = row.copy()
        marked[cell % columns] = self._CURSOR
        return marked

    def _glyph_line(self, index: int) -> Strip:
        row = self._grid[index]
        if self._cursor is not None and self.has_focus:
            row = self._with_cursor(row, index)
        segments = []
        for cell, _, length in runs(row, row):
            if cell == self._CURSOR:
                glyph = glyph_of(self._under_cursor(), self._glyphs)
                style = Style(reverse=True)
            elif cell == _NOTHING:
                glyph, style = " ", self.rich_style
            else:
                glyph = glyph_of(cell, self._glyphs)
                style = self._style(cell, _NOTHING)
            segments.append(Segment(glyph * length, style))
        return Strip(segments, len(row))

    def _under_cursor(self) -> int:
        columns = self._grid.shape[1]
        cell = (self._cursor or 0) // self._zoom
        return int(self._grid[cell // columns, cell % columns])

    def _style(self, upper: int, lower: int) -> Style:
        style = self._styles_by_pair.get((upper, lower))
        if style is None:
            style = self.rich_style + Style(color=self._color(upper), bgcolor=self._color(lower))
            # Textual's filters, applied once and not to every row.
            for each in self.app.get_line_filters() if self._half_blocks else ():
                (filtered,) = each.apply([Segment("▀", style)], self.background_colors[1])
                style = filtered.style or style
            self._styles_by_pair[(upper, lower)] = style
        return style

    def _color(self, cell: int) -> str | None:
        if cell == _NOTHING:
            background = self.rich_style.bgcolor
            return background.name if background else None
        role = "kv-cursor" if cell == self._CURSOR else role_of(cell)
        return rich_color(self.app.theme_variables[role])

    def action_move(self, columns: int, rows: int) -> None:
        """Move the cursor by cells, not beyond the map; the first move only shows it."""
        if self._blocks is None or not self._grid.size:
            return
        width = self._grid.shape[1]
        step = (columns + rows * width) * self._zoom
        last = len(self._blocks.state) - 1
        target = 0 if self._cursor is None else self._cursor + step
        if 0 <= target <= last:
            self._move_to(target)

    def _move_to(self, block: int) -> None:
        old, self._cursor = self._cursor, block
        for at in {old, block} - {None}:
            self.refresh_line(self._line_of(at or 0))
        self.scroll_to_region(Region(0, self._line_of(block), 1, 1), animate=False, immediate=True)
        self._post_pointed()

    def _line_of(self, block: int) -> int:
        columns = max(1, int(self._grid.shape[1]))
        return block // self._zoom // columns // self._rows_per_line

    def action_zoom(self, step: int) -> None:
        """More (1) or fewer (-1) blocks in a cell."""
        index = ZOOMS.index(self._zoom) + step
        if 0 <= index < len(ZOOMS):
            self._zoom = ZOOMS[index]
            self._grid = _EMPTY
            self._redraw()
            self._post_pointed()

    @property
    def paths(self) -> tuple[NDArray[np.int32], ...]:
        """The blocks of the paths that are highlighted."""
        return self._paths

    def light(self, paths: Sequence[NDArray[np.int32]]) -> None:
        """Highlight the blocks of these paths and go to the first; `enter` ends it."""
        self._lit, self._paths = None, tuple(paths)
        self._redraw()
        first = next((int(path[0]) for path in paths if len(path)), None)
        if first is not None:
            if self._grid.size:
                self._move_to(first)
            else:
                self._cursor = first  # it is being opened
        self.post_message(NeedsDrawing())

    def action_light_owner(self) -> None:
        """Highlight the request of the block under the cursor, or end its highlighting."""
        if self._blocks is None or self._cursor is None:
            return
        owners = block_info(self._blocks, self._cursor).owners
        self._paths = ()
        # Of a shared block, each key press takes the next owner, and after the last one none.
        after = owners.index(self._lit) + 1 if self._lit in owners else 0
        self._lit = owners[after] if after < len(owners) else None
        self._redraw()
        self.post_message(NeedsDrawing())

    def action_tint(self) -> None:
        """Colour the map by the next property of blocks."""
        self._mode = next_mode(self._mode)
        self._redraw()
        self.post_message(NeedsDrawing())

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Move the cursor to the block under the pointer."""
        block = self._block_at(event.x, event.y)
        if block is not None and block != self._cursor:
            old, self._cursor = self._cursor, block
            if self.has_focus:
                for at in {old, block} - {None}:
                    self.refresh_line(self._line_of(at or 0))
            self._post_pointed()

    def _block_at(self, x: int, y: int) -> int | None:
        row = (y + self.scroll_offset.y) * self._rows_per_line
        if self._blocks is None or row >= len(self._grid) or not 0 <= x < self._grid.shape[1]:
            return None
        block = (row * self._grid.shape[1] + x) * self._zoom
        return block if block < len(self._blocks.state) else None

    def on_focus(self) -> None:
        """Show the cursor."""
        if self._cursor is None:
            self.action_move(0, 0)
        elif self._grid.size:
            self.refresh_line(self._line_of(self._cursor))

    def on_blur(self) -> None:
        """Hide the cursor."""
        if self._cursor is not None and self._grid.size:
            self.refresh_line(self._line_of(self._cursor))

    def _post_pointed(self) -> None:
        info = None
        if self._blocks is not None and self._cursor is not None:
            self._cursor = min(self._cursor, len(self._blocks.state) - 1)
            info = block_info(self._blocks, self._cursor)
        if (info, self._zoom) != self._last_posted:
            self._last_posted = (info, self._zoom)
            self.post_message(self.Pointed(info, self._zoom))

"""The KV map with its legend, the description of one block, the last events and the live requests."""

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.geometry import Region

from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.keys import KV_PANE_KEYS, bindings
from app.tui.view.kv_cells import BlockInfo, counted
from app.tui.view.kv_colors import ColorMode
from app.tui.view.kv_events import build_event_strip, is_shown
from app.tui.view.kv_flash import Flashes
from app.tui.view.kv_lines import (
    build_block_line,
    build_legend,
    build_mode_legend,
    build_selection,
    build_states_line,
    build_summary,
    build_swap_gauge,
    build_windows_line,
)
from app.tui.view.kv_requests import build_request_table
from app.tui.view.spans import Line
from app.tui.widgets.kv_map import KvMap
from app.tui.widgets.kv_tree import KvTree
from app.tui.widgets.lines import Lines
from app.tui.widgets.needs_drawing import DrawnOnTicks, NeedsDrawing
from engine.api.block_detail import BlockDetail
from engine.api.errors import PravahaError
from engine.api.events import Event
from engine.api.request_status import RequestStatus
from engine.api.snapshot import BlockCounts, BlockMap

EVENT_ROWS = 3
"""Events at the side; maximised, `MAX_EVENT_ROWS`."""
MAX_EVENT_ROWS = 8
REQUEST_SHARE = 0.4
"""Maximum share of the maximised pane's height for the request table."""
TREE_S = 1.0
"""Least seconds between two readings of the prefix tree, which takes a few milliseconds."""
TREE_READINGS = 2
"""Readings after a change of the blocks: over HTTP the first one returns what was known before."""
FRESH_S = 2.0
"""An event that is older when it is read makes nothing flash: the pane was not in view."""


class KvPane(DrawnOnTicks, Vertical):
    """Map, legend, description, events and, when it is maximised, the request table."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(KV_PANE_KEYS)

    _repainted: Region | None = None

    def __init__(self, glyphs: Glyphs, *, colored: bool, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._colored = colored
        self._glyphs = glyphs
        self._epoch = -1
        self._info: BlockInfo | None = None
        self._detail: BlockDetail | None = None
        self._counts = BlockCounts()
        self._blocks: BlockMap | None = None
        self._summary = ""
        self._model: str | None = None
        self._began: float | None = None
        self._next_event = 0
        self._events: deque[Event] = deque(maxlen=MAX_EVENT_ROWS)
        self._flashes = Flashes()
        self._tree_read_at = float("-inf")
        self._tree_readings = TREE_READINGS

    def compose(self) -> ComposeResult:
        """The map takes the remaining height."""
        self.border_title = "KV map"
        yield KvMap(self._glyphs, colored=self._colored)
        yield KvTree(self._glyphs)
        yield Lines(classes="kv-requests")
        yield Lines(classes="kv-legend")
        yield Lines(classes="kv-detail")
        yield Lines(classes="kv-events")

    @property
    def map(self) -> KvMap:
        """The map itself."""
        return self.query_one(KvMap)

    @property
    def prefix_tree(self) -> KvTree:
        """The prefix cache as a tree, which is shown in place of the map."""
        return self.query_one(KvTree)

    def on_mount(self) -> None:
        """The map is shown first."""
        self.prefix_tree.display = False

    def focus(self, scroll_visible: bool = True) -> Self:
        """Focus the map or the tree."""
        (self.prefix_tree if self.prefix_tree.display else self.map).focus(scroll_visible)
        return self

    def action_toggle_tree(self) -> None:
        """Show the tree, or the map again."""
        shown = not self.prefix_tree.display
        self.prefix_tree.display, self.map.display = shown, not shown
        self.border_title = "Prefix cache" if shown else "KV map"
        self._tree_readings = TREE_READINGS
        self.focus()
        self.post_message(NeedsDrawing())

    def light(self, *paths: Sequence[int]) -> None:
        """Highlight the blocks of these paths in the map, and what several of them share."""
        if self.prefix_tree.display:
            self.action_toggle_tree()
        self.map.light([np.array(blocks, np.int32) for blocks in paths])

    @on(KvTree.Chosen)
    def _chain_chosen(self, event: KvTree.Chosen) -> None:
        event.stop()
        self.light(event.blocks)

    @property
    def _cells(self) -> int:
        """Width of the rows of text."""
        return max(1, self.size.width - 2)

    def show(self, frame: Frame) -> bool:
        """Draw what changed."""
        self._follow_model(frame)
        if frame.live:
            self._show_map(frame, self._read(frame))
        self._show_tree(frame)
        self._summarise(build_summary(self._counts))
        self._show_legend(frame)
        self._show_detail(frame)
        self._show_events()
        self._show_requests(frame)
        return bool(self._flashes.running) or (self.prefix_tree.display and self._tree_readings > 0)

    def show_live(self, frame: Frame) -> bool:
        """Draw the map; whether cells changed."""
        if not self.map.display:
            return False
        return self._show_map(frame, self._read(frame))

    def _read(self, frame: Frame) -> BlockMap | None:
        """The blocks if they changed; follows the events."""
        blocks = frame.client.blocks(self._epoch)
        if blocks is not None:
            self._epoch, self._blocks = blocks.epoch, blocks
            self._tree_readings = TREE_READINGS
            self._counts = counted(blocks, frame.snapshot.blocks)
        elif not self._counts.total:
            self._counts = frame.snapshot.blocks
        self._follow_events(frame)
        return blocks

    def _show_tree(self, frame: Frame) -> None:
        if not self.prefix_tree.display:
            return
        if self._tree_readings and frame.now - self._tree_read_at >= TREE_S:
            self._tree_read_at = frame.now
            self._tree_readings -= 1
            self.prefix_tree.read(frame.client.prefix_tree(), self._blocks)
        self.prefix_tree.draw()

    def _show_map(self, frame: Frame, blocks: BlockMap | None) -> bool:
        still = self.app.animation_level == "none"
        flashing: NDArray[np.int32] = np.zeros(0, np.int32)
        if self._blocks is not None:
            flashing = self._flashes.flashing(self._blocks, frame.now, still=still)
        return self.map.show(
            blocks,
            frame.session.answers.request_id,
            block_size=self._counts.block_size,
            now=frame.snapshot.time,
            flashing=flashing,
        )

    def _follow_model(self, frame: Frame) -> None:
        model = frame.snapshot.model
        if model is None or model.name == self._model:
            return
        if self._model is not None:
            self.map.light([])  # the highlighted blocks were of the last model's pool
        self._model = model.name

    def _follow_events(self, frame: Frame) -> None:
        batch = frame.client.events(self._next_event)
        self._next_event = batch.next
        # A server, and what it still knows of its past, may be older than this screen.
        known = [frame.snapshot.time if self._began is None else self._began]
        self._began = min(known + [event.time for event in batch.events])
        self._events.extend(event for event in batch.events if is_shown(event))
        now = frame.snapshot.time
        fresh = [event for event in batch.events if now - event.time < FRESH_S]
        self._flashes = self._flashes.started(fresh, frame.now)

    def _show_legend(self, frame: Frame) -> None:
        shown, glyphs = self.map, self._glyphs
        if shown.mode is ColorMode.STATE:
            lines = build_legend(shown.states, glyphs, colored=shown.colored)
        else:
            lines = build_mode_legend(
                shown.mode, shown.owners, glyphs, colored=shown.colored, cells=self._cells
            )
        lines += build_selection(shown.lit, shown.paths, glyphs, self._cells, colored=shown.colored)
        lines += build_swap_gauge(frame.snapshot.swap, glyphs, self._cells)
        lines += build_states_line(frame.snapshot.states, self._cells)
        lines += build_windows_line(frame.snapshot.windows, self._cells)
        self.query_one(".kv-legend", Lines).show_lines(lines)

    def _show_detail(self, frame: Frame) -> None:
        info, detail = self._info, None
        if info is not None and 0 <= info.block < self._counts.total:
            with suppress(PravahaError):  # a replay may not have it
                detail = frame.client.block(info.block)
        self._detail = detail
        lines = build_block_line(
            info,
            self._counts.block_size,
            self.map.zoom,
            detail=detail,
            now=frame.snapshot.time,
            cells=self._cells,
        )
        self.query_one(".kv-detail", Lines).show_lines(lines)

    def _show_events(self) -> None:
        strip = self.query_one(".kv-events", Lines)
        strip.display = bool(self._events)
        rows = MAX_EVENT_ROWS if self._maximised else EVENT_ROWS
        lines = build_event_strip(list(self._events), self._began or 0.0, rows, self._cells)
        strip.show_lines(lines)

    def _show_requests(self, frame: Frame) -> None:
        table = self.query_one(".kv-requests", Lines)
        lines: list[Line] = []
        if self._maximised:
            requests: tuple[RequestStatus, ...] = ()
            with suppress(PravahaError):  # a replay may not have it
                requests = frame.client.request_table()
            lines = build_request_table(
                requests,
                frame.session.answers.request_id,
                self.map.lit,
                self._glyphs,
                now=frame.snapshot.time,
                rows=int(self.size.height * REQUEST_SHARE),
                cells=self._cells,
            )
        table.display = bool(lines)
        table.show_lines(lines)

    @property
    def _maximised(self) -> bool:
        """Whether the pane fills the screen."""
        return any(one.has_class("-maximised") for one in self.ancestors)

    def _summarise(self, summary: str) -> None:
        # Setting a border's title redraws the whole widget, including the map.
        if summary != self._summary:
            self._summary = summary
            self._repainted = Region(-1, self.size.height, self.outer_size.width, 1)
            self.border_subtitle = summary
            self._repainted = None

    def refresh(self, *regions: Region, **options: Any) -> Self:
        """As `Widget.refresh`, but only the border's row while the border's title changes."""
        if self._repainted is not None:
            regions = (self._repainted,)
        return super().refresh(*regions, **options)

    @on(KvMap.Pointed)
    def _pointed(self, event: KvMap.Pointed) -> None:
        event.stop()
        self._info = event.info
        lines = build_block_line(
            self._info,
            self._counts.block_size,
            self.map.zoom,
            detail=self._detail,
            cells=self._cells,
        )
        self.query_one(".kv-detail", Lines).show_lines(lines)
        self.post_message(NeedsDrawing())

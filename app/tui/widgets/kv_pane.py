"""The KV map with its legend and the description of one block."""

from typing import Any, Self

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Region

from app.tui.glyphs import Glyphs
from app.tui.view.kv_cells import BlockInfo, counted
from app.tui.view.kv_lines import build_block_line, build_legend, build_summary
from app.tui.widgets.kv_map import KvMap
from app.tui.widgets.lines import Lines
from app.tui.widgets.needs_drawing import DrawnOnTicks
from engine.api.snapshot import BlockCounts, BlockMap


class KvPane(DrawnOnTicks, Vertical):
    """Map, legend and description."""

    _repainted: Region | None = None

    def __init__(self, glyphs: Glyphs, *, colored: bool, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._colored = colored
        self._glyphs = glyphs
        self._info: BlockInfo | None = None
        self._counts = BlockCounts()
        self._summary = ""

    def compose(self) -> ComposeResult:
        """The map takes the remaining height."""
        self.border_title = "KV map"
        yield KvMap(self._glyphs, colored=self._colored)
        yield Lines(classes="kv-legend")
        yield Lines(classes="kv-detail")

    @property
    def map(self) -> KvMap:
        """The map itself."""
        return self.query_one(KvMap)

    def show(self, counts: BlockCounts, blocks: BlockMap | None, own: str | None) -> None:
        """Draw what changed."""
        self.map.show(blocks, own)
        if blocks is not None:
            counts = counted(blocks, counts)
        elif self._counts.total:
            counts = self._counts
        self._counts = counts
        self._summarise(build_summary(counts))
        own_blocks = self.map.own_blocks
        legend = build_legend(counts, self._glyphs, own=own_blocks, colored=self.map.colored)
        self.query_one(".kv-legend", Lines).show(legend)
        self._detail()

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
        self._detail()

    def _detail(self) -> None:
        lines = build_block_line(self._info, self._counts.block_size, self.map.zoom)
        self.query_one(".kv-detail", Lines).show(lines)

"""The stats pane: the engine's figures from its snapshot, which `/metrics` exports too."""

from textual.app import ComposeResult
from textual.containers import VerticalScroll

from app.tui.glyphs import Glyphs
from app.tui.view.stats import History, build_stats
from app.tui.widgets.lines import Lines
from app.tui.widgets.needs_drawing import DrawnOnTicks
from engine.api.snapshot import EngineSnapshot


class StatsPane(DrawnOnTicks, VerticalScroll, can_focus=True):
    """All figures, in one or two columns."""

    def __init__(self, glyphs: Glyphs, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._glyphs = glyphs

    def compose(self) -> ComposeResult:
        """One widget of lines."""
        yield Lines(id="stats-lines")

    def show(self, snapshot: EngineSnapshot, history: History) -> None:
        """Draw the figures that changed."""
        cells = self.scrollable_content_region.width - 4
        if cells > 20:
            self.query_one("#stats-lines", Lines).show(
                build_stats(snapshot, history, self._glyphs, cells)
            )

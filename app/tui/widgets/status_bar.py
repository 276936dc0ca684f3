"""The last row: mode, state, context, speed and key hints."""

from app.tui.glyphs import Glyphs
from app.tui.view.bars import StatusFacts, build_status, build_too_small
from app.tui.widgets.lines import Lines
from engine.api.snapshot import EngineSnapshot

MIN_COLUMNS, MIN_ROWS = 40, 10


class StatusBar(Lines):
    """One row; on a terminal that is too small it states the minimum size."""

    def show_status(self, snapshot: EngineSnapshot, facts: StatusFacts, glyphs: Glyphs) -> None:
        """Draw what changed."""
        cells, rows = self.app.size
        if cells < MIN_COLUMNS or rows < MIN_ROWS:
            self.show([build_too_small(cells)])
        else:
            self.show([build_status(snapshot, facts, glyphs, cells)])

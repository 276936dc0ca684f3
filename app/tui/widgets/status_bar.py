"""The last row: mode, state, context, speed and key hints; above it why the engine failed."""

from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.view.bars import StatusFacts, build_reason, build_status, build_too_small
from app.tui.widgets.lines import Lines
from app.tui.widgets.needs_drawing import DrawnOnTicks

MIN_COLUMNS, MIN_ROWS = 40, 10


class StatusBar(DrawnOnTicks, Lines):
    """One row, and more while the reason of a failure needs them.

    On a terminal that is too small it states the minimum size.
    """

    def __init__(self, glyphs: Glyphs, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._glyphs = glyphs

    def show(self, frame: Frame) -> bool:
        """Draw what changed."""
        cells, rows = self.app.size
        if cells < MIN_COLUMNS or rows < MIN_ROWS:
            self.show_lines([build_too_small(cells)])
            return False
        session = frame.session
        facts = StatusFacts(
            mode=frame.mode,
            context_used=session.context.used(),
            generating=session.answers.generating,
            hints=frame.hints,
            unsaved=session.writes.unsaved is not None,
            as_of=frame.as_of,
        )
        status = build_status(frame.snapshot, facts, self._glyphs, cells)
        self.show_lines([*build_reason(frame.snapshot, status, self._glyphs, cells), status])
        return False

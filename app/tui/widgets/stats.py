"""The stats pane: the figures of the engine and of sessions, which `/metrics` exports too."""

from collections.abc import Callable, Sequence

from textual.app import ComposeResult
from textual.containers import VerticalScroll

from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.view.session_lines import SessionFigures, build_sessions
from app.tui.view.stats import build_stats
from app.tui.widgets.lines import Lines
from app.tui.widgets.needs_drawing import DrawnOnTicks


class StatsPane(DrawnOnTicks, VerticalScroll, can_focus=True):
    """All figures, in one or two columns."""

    def __init__(
        self,
        glyphs: Glyphs,
        sessions: Callable[[], Sequence[SessionFigures]] = tuple,
        *,
        id: str | None = None,  # noqa: A002
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._glyphs = glyphs
        self._sessions = sessions

    def compose(self) -> ComposeResult:
        """One widget of lines."""
        yield Lines(id="stats-lines")

    def show(self, frame: Frame) -> bool:
        """Draw the figures that changed."""
        cells = self.scrollable_content_region.width - 4
        if cells > 20:
            self.query_one("#stats-lines", Lines).show_lines(
                [
                    *build_stats(frame.snapshot, frame.history, self._glyphs, cells),
                    *build_sessions(self._sessions(), cells),
                ]
            )
        return False

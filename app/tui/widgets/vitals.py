"""The avatar with the main figures."""

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.view.mood import build_mood_words
from app.tui.view.spans import Span
from app.tui.view.stats import build_vitals
from app.tui.widgets.avatar import Avatar
from app.tui.widgets.lines import Lines
from app.tui.widgets.needs_drawing import DrawnOnTicks


class Vitals(DrawnOnTicks, Horizontal):
    """Figure and caption on the left, six figures on the right."""

    def __init__(self, avatar: Avatar, glyphs: Glyphs, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._avatar = avatar
        self._glyphs = glyphs

    def compose(self) -> ComposeResult:
        """Two columns."""
        with Vertical(id="vitals-figure"):
            yield self._avatar
            yield Lines(id="mood-words")
        yield Lines(id="vitals-lines")

    def show(self, frame: Frame) -> bool:
        """Draw the figures that changed; the avatar is a pane of its own."""
        words = build_mood_words(frame.mood.mood, frame.snapshot, retry_key=frame.retry_key)
        self.query_one("#mood-words", Lines).show_lines([(Span(words, "$muted"),)])
        lines = self.query_one("#vitals-lines", Lines)
        cells = lines.content_region.width
        if cells > 8:
            lines.show_lines(build_vitals(frame.snapshot, frame.history, self._glyphs, cells))
        return False

"""The first row: face, name, model, server and conversation, and the engine's main figures."""

from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.view.bars import build_header
from app.tui.view.mood import build_mood_words
from app.tui.view.spans import Line, Span, width
from app.tui.widgets.avatar import Avatar
from app.tui.widgets.lines import Lines
from app.tui.widgets.needs_drawing import DrawnOnTicks

FIGURE_COLUMNS = 140
"""Columns from which on the figure is shown beside the chat; the header shows its face on fewer."""


class Header(DrawnOnTicks, Lines):
    """One row; two with the small figure, where the stylesheet gives it two."""

    def __init__(self, avatar: Avatar, glyphs: Glyphs, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._avatar = avatar
        self._glyphs = glyphs

    def show(self, frame: Frame) -> bool:
        """Draw what changed."""
        title, cells = frame.session.title, self.size.width
        figure: list[Line] = []
        moving, face = False, ""
        if self.size.height > 1 and self._avatar.has_small:
            figure, moving = self._avatar.small(frame)
        elif cells < FIGURE_COLUMNS:
            face = self._avatar.face(frame.mood, frame.now)
        taken = max((width(row) for row in figure), default=0) + (1 if figure else 0)
        line = build_header(
            frame.snapshot,
            title,
            self._glyphs,
            cells - taken,
            server=frame.server,
            serving=frame.serving,
            face=face,
            as_of=frame.as_of,
        )
        if figure:
            words = build_mood_words(frame.mood.mood, frame.snapshot, retry_key=frame.retry_key)
            caption = (Span(f"   {words}", "$muted"),)
            self.show_lines(
                [
                    (Span(" "), *row, *beside)
                    for row, beside in zip(figure, (line, caption), strict=True)
                ]
            )
        else:
            self.show_lines([line])
        return moving

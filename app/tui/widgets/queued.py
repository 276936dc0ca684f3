"""The messages that wait for the running answer, above the prompt."""

from collections.abc import Sequence

from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.view.spans import Line, Span, fit
from app.tui.widgets.lines import Lines


def build_queued(queued: Sequence[str], glyphs: Glyphs, cells: int) -> list[Line]:
    """The last three messages, the newest last."""
    rows: list[Line] = [
        (
            Span(f"{glyphs.queued} ", "$warning"),
            Span(fit(" ".join(text.split()), max(8, cells - 6)), "$muted"),
        )
        for text in queued[-3:]
    ]
    if rows:
        rows.append((Span("  esc takes the last one back", "$faint"),))
    return rows


class Queued(Lines):
    """One row a message; takes no room without messages."""

    in_view = True
    """Drawn although it is not displayed while there are no messages."""

    def __init__(self, glyphs: Glyphs, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._glyphs = glyphs

    def show(self, frame: Frame) -> bool:
        """Draw what changed."""
        queued = frame.session.messages.queued
        cells = self.size.width or self.screen.size.width
        self.show_lines(build_queued(queued, self._glyphs, cells))
        self.display = bool(queued)
        return False

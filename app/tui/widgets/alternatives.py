"""The alternatives of the token under the token cursor, in a box beside it."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Offset

from app.tui.glyphs import Glyphs
from app.tui.view.spans import Span
from app.tui.view.token_answer import Alternative
from app.tui.view.token_bars import build_alternative_lines
from app.tui.widgets.dialog import Dialog
from app.tui.widgets.lines import Lines

WIDTH = 50
_EDGES = 2
_COMPUTING_ROWS = 1


class AlternativesScreen(Dialog[int | None]):
    """Dismisses with the id of the token to force, or with None.

    Args:
        rows: the alternatives; None while they are computed, until `show_rows`.
        at: the cell of the token.
    """

    BINDINGS: ClassVar = [
        ("escape,full_stop", "dismiss(None)", "close"),
        ("j,down", "move(1)", "next"),
        ("k,up", "move(-1)", "previous"),
        ("enter", "choose", "fork"),
    ]

    def __init__(self, rows: Sequence[Alternative] | None, at: Offset, glyphs: Glyphs) -> None:
        super().__init__()
        self._rows = rows
        self._at = at
        self._glyphs = glyphs
        self._cursor = _first(rows)

    def compose(self) -> ComposeResult:
        """The box over a transparent screen."""
        with Vertical(id="alternatives-box") as box:
            box.border_title = "Alternatives"
            box.border_subtitle = "enter forks with it, esc closes"
            yield Lines(id="alternatives-lines")

    def on_mount(self) -> None:
        """Draw the rows."""
        self._draw()

    def on_resize(self) -> None:
        """Keep the box on the screen."""
        self._place()

    def show_rows(self, rows: Sequence[Alternative]) -> None:
        """Show the alternatives, which have been computed."""
        self._rows = rows
        self._cursor = _first(rows)
        self._draw()

    def action_move(self, step: int) -> None:
        """Move the cursor, not beyond the ends."""
        if self._rows:
            self._cursor = min(max(self._cursor + step, 0), len(self._rows) - 1)
            self._draw()

    def action_choose(self) -> None:
        """Close with the token under the cursor."""
        if self._rows:
            self.dismiss(self._rows[self._cursor].token_id)

    def _draw(self) -> None:
        lines = self.query_one("#alternatives-lines", Lines)
        if self._rows is None:
            lines.show_lines([(Span(f"{self._glyphs.queued} computing", "$muted"),)])
        else:
            inner = WIDTH - 2 * _EDGES
            lines.show_lines(build_alternative_lines(self._rows, self._cursor, self._glyphs, inner))
        self._place()

    def _place(self) -> None:
        """Below the token if there is room, else above it."""
        columns, rows = self.app.size
        height = (len(self._rows) if self._rows is not None else _COMPUTING_ROWS) + _EDGES
        below = self._at.y + 1 + height <= rows
        y = self._at.y + 1 if below else max(0, self._at.y - height)
        x = max(0, min(self._at.x, columns - WIDTH))
        self.query_one("#alternatives-box").styles.offset = (x, y)


def _first(rows: Sequence[Alternative] | None) -> int:
    """The row to begin at: the most likely token that is not the answer's own."""
    return next((at for at, row in enumerate(rows or ()) if not row.chosen), 0)

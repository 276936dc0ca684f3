"""Rows of the conversation list."""

from app.text.safe_text import safe_line
from app.tui.glyphs import Glyphs
from app.tui.numbers import age
from app.tui.view.spans import Line, Span, fit
from engine.conversations.tree import TreeSummary

UNTITLED = "New conversation"


def build_row(
    tree: TreeSummary, now: float, glyphs: Glyphs, cells: int, *, current: bool
) -> list[Line]:
    """Two rows: mark and title; age and number of messages.

    Args:
        now: seconds since the Unix epoch.
        current: whether this conversation is open.
    """
    mark = Span(f"{glyphs.current if current else ' '} ", "bold $accent")
    title = fit(safe_line(tree.title) or UNTITLED, cells - 2)
    count = f"{tree.messages} message{'' if tree.messages == 1 else 's'}"
    return [
        (mark, Span(title, "bold" if current else "")),
        (Span("  "), Span(f"{age(max(0.0, now - tree.updated_at))} · {count}", "$muted")),
    ]

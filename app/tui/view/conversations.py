"""Rows of the conversation list."""

from app.text.safe_text import safe_line
from app.tui.glyphs import Glyphs
from app.tui.numbers import age
from app.tui.view.hits import build_match
from app.tui.view.spans import Line, Span, fit
from engine.conversations.tree import TreeSummary

UNTITLED = "New conversation"


def build_row(
    tree: TreeSummary, now: float, glyphs: Glyphs, cells: int, *, current: bool, query: str = ""
) -> list[Line]:
    """Mark and title; the line that contains the filter's text, if there is one; age and messages.

    Args:
        now: seconds since the Unix epoch.
        current: whether this conversation is open.
        query: the text of the filter.
    """
    mark = Span(f"{glyphs.current if current else ' '} ", "bold $accent")
    title = fit(safe_line(tree.title) or UNTITLED, cells - 2)
    count = f"{tree.messages} message{'' if tree.messages == 1 else 's'}"
    match = [(Span("  "), *build_match(tree.match, query, cells - 2))] if tree.match else []
    return [
        (mark, Span(title, "bold" if current else "")),
        *match,
        (Span("  "), Span(f"{age(max(0.0, now - tree.updated_at))} · {count}", "$muted")),
    ]

"""Rows of search results: where a message was found, and the line with the match highlighted."""

from app.text.safe_text import safe_line
from app.tui.numbers import age
from app.tui.view.spans import Line, Span, cut, fit, width
from engine.conversations.matching_line import matching_line
from engine.conversations.node_words import ROLES
from engine.conversations.tree import SearchHit

MATCH = "bold underline $accent"


def build_match(text: str, query: str, cells: int) -> Line:
    """The line of a text that contains the query, with the match highlighted."""
    found = matching_line(text, query)
    before, match, after = (
        _piece(found.text[: found.start]),
        _piece(found.text[found.start : found.end]),
        _piece(found.text[found.end :]),
    )
    return cut((Span(before, "$muted"), Span(match, MATCH), Span(after, "$muted")), cells)


def build_hit(hit: SearchHit, query: str, now: float, cells: int) -> list[Line]:
    """Two rows: title and age; author and matching line.

    Args:
        now: seconds since the Unix epoch.
    """
    when = f"  {age(max(0.0, now - hit.created_at))}"
    title = fit(safe_line(hit.title), max(8, cells - len(when)))
    author = Span(f"  {ROLES[hit.kind]}: ", "$faint")
    return [
        (Span(title, "bold"), Span(when, "$faint")),
        (author, *build_match(hit.text, query, cells - width((author,)))),
    ]


def _piece(text: str) -> str:
    """`safe_line` that keeps a space at either end."""
    line = safe_line(text)
    start = " " if text[:1].isspace() else ""
    end = " " if line and text[-1:].isspace() else ""
    return f"{start}{line}{end}"

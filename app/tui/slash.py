"""Rows of what completes the text before the cursor; see `app.slash.completion`."""

from rich.cells import cell_len

from app.slash.completion import Completion
from app.text.safe_text import safe_line
from app.tui.view.spans import Line, Span

SHOWN = 7
_NAME_CELLS = 24


def build_completions(found: Completion | None) -> list[Line]:
    """A row for each of the first candidates, and the number of further ones."""
    if found is None:
        return []
    lines: list[Line] = []
    for one in found.candidates[:SHOWN]:
        name = safe_line(one.shown or one.text)
        padded = name + " " * (max(_NAME_CELLS - cell_len(name), 1) if one.note else 0)
        note = (Span(safe_line(one.note), "$muted"),) if one.note else ()
        lines.append((Span(padded, "$accent"), *note))
    left = len(found.candidates) - SHOWN
    if left > 0:
        more = (
            "f1 lists all"
            if found.typed.startswith("/") and " " not in found.typed
            else "tab completes"
        )
        lines.append((Span(f"{left} more; {more}", "$faint"),))
    if found.similar:
        lines.append((Span("none begins so; these are similar", "$faint"),))
    return lines

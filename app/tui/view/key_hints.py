"""The key hints at the right end of the status bar."""

from collections.abc import Sequence
from typing import NamedTuple

from app.tui.view.spans import Line, Span, width

WANTED = 2
"""Number of hints for which prices and figures make room: one of the focused pane, and the list of keys."""


class KeyHint(NamedTuple):
    """A key and what it does.

    Attributes:
        action: action of a click; empty for none.
        price: what it would cost, such as `1 tok+1 blk`; empty if unknown.
    """

    key: str
    label: str
    action: str = ""
    price: str = ""


def build_hints(hints: Sequence[KeyHint], cells: int) -> Line:
    """As many hints as fit in `cells`, in order; a price is left out where it has no room."""
    spans: list[Span] = []
    for at, hint in enumerate(hints):
        room = cells - width(spans)
        pair = _spans(hint)
        if width(pair) > room - wanted_cells(hints, at + 1):
            pair = _spans(hint._replace(price=""))
        if width(pair) > room:
            break
        spans += pair
    return tuple(spans)


def wanted_cells(hints: Sequence[KeyHint], start: int = 0) -> int:
    """Cells that the first `WANTED` hints, from `start` on, take without prices."""
    return sum(width(_spans(hint._replace(price=""))) for hint in hints[start:WANTED])


def _spans(hint: KeyHint) -> Line:
    words = f"{hint.label} {hint.price}" if hint.price else hint.label
    return (Span(hint.key, "$accent", hint.action), Span(f" {words}  ", "$muted", hint.action))

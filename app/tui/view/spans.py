"""Lines of styled spans, the result of the pure `build_*` functions; independent of Textual."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size


class Span(NamedTuple):
    """A piece of one line.

    Attributes:
        text: sanitised by `app.text.safe_text`.
        style: theme variables and attributes, such as `bold $primary`; empty for the widget's own.
        action: action of a click, such as `app.help`; empty for none.
    """

    text: str
    style: str = ""
    action: str = ""


Line = tuple[Span, ...]
"""Spans of one text row, left to right."""


def width(line: Iterable[Span]) -> int:
    """Width of a line in cells."""
    return sum(cell_len(span.text) for span in line)


def plain(lines: Iterable[Line]) -> str:
    """The text without styles, for tests and plain output."""
    return "\n".join("".join(span.text for span in line) for line in lines)


def fit(text: str, cells: int, ellipsis: str = "…") -> str:
    """`text` cut to at most `cells` cells, never through a double-width character."""
    if cell_len(text) <= cells:
        return text
    if cells <= cell_len(ellipsis):
        return ellipsis[: max(cells, 0)]
    return set_cell_size(text, cells - cell_len(ellipsis)).rstrip() + ellipsis


def justify(left: Sequence[Span], right: Sequence[Span], cells: int) -> Line:
    """A row of `cells` with a left- and a right-aligned part; the left part is shortened first."""
    room = cells - width(right)
    if room <= 0:
        return cut(right, cells)
    kept = cut(left, room - 1 if right else room)
    gap = cells - width(kept) - width(right)
    return (*kept, Span(" " * gap), *right)


def cut(line: Sequence[Span], cells: int) -> Line:
    """The spans that fit in `cells`, the last one shortened."""
    kept: list[Span] = []
    for span in line:
        length = cell_len(span.text)
        if length > cells:
            if cells > 0:
                kept.append(span._replace(text=fit(span.text, cells)))
            break
        kept.append(span)
        cells -= length
    return tuple(kept)

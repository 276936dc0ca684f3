"""`Extracted`: what a parser has taken out of a file. Offsets are characters of its text."""

from typing import NamedTuple

from engine.retrieval.parsing.outline import RowHeader, TextHeading


class Extracted(NamedTuple):
    """See `ParsedDocument`, whose attributes these become."""

    text: str
    headings: tuple[TextHeading, ...] = ()
    breaks: tuple[int, ...] = ()
    pages: tuple[int, ...] = ()
    title: str | None = None
    notes: tuple[str, ...] = ()
    media_type: str | None = None
    row_headers: tuple[RowHeader, ...] = ()

"""`Outline`: what a parser finds in a text: headings and good places to cut. Offsets are characters."""

from typing import NamedTuple

MAX_TITLE = 300
"""Characters of a heading that are kept."""
MAX_ROW_HEADER = 2_000
"""Characters of a header row that are kept."""


class TextHeading(NamedTuple):
    """A heading; see `engine.retrieval.api.parsed_document.Heading`."""

    level: int
    title: str
    start: int


class RowHeader(NamedTuple):
    """A table's header row; see `engine.retrieval.api.parsed_document.TableRows`."""

    start: int
    text: str | None


class Outline(NamedTuple):
    """See `ParsedDocument`, whose attributes these become."""

    headings: tuple[TextHeading, ...] = ()
    breaks: tuple[int, ...] = ()
    title: str | None = None
    row_headers: tuple[RowHeader, ...] = ()

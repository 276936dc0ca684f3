"""`Span`: a chunk before it has its text."""

from typing import NamedTuple


class Span(NamedTuple):
    """A half-open range of characters with its number of tokens."""

    start: int
    end: int
    tokens: int

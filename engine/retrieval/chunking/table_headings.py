"""`TableHeadings`: the headings of chunks that begin inside of a table, below its header row.

Rows mean little without the names of their columns, so these chunks are embedded with their headings, which
take room of the embedding model from them: at most half of it. A chunk that begins inside of a row has the
row's first cell among its headings, and the names of the columns from its own one on, behind `LEFT_OUT`.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from engine.retrieval.chunking.sections import Sections
from engine.retrieval.chunking.token_counter import TokenCounter
from engine.retrieval.parsing.delimiter import SAMPLE, delimiter_of, fields_of
from engine.retrieval.parsing.table_header import LEFT_OUT

_CUT = " …"
_BAR = " | "
_SAMPLE = 20_000
"""Characters of rows from which their delimiter is told."""
_MAX_LABEL = 60
"""Characters of a row's first cell that are repeated."""


class _Headings(NamedTuple):
    """Headings, outermost first, and how many tokens they have with the line end behind them."""

    path: tuple[str, ...]
    tokens: int


_NONE = _Headings((), 0)


class TableHeadings:
    """The tables of one document. Offsets are characters."""

    def __init__(
        self,
        text: str,
        rows: Sequence[tuple[int, str | None]],
        breaks: Sequence[int],
        sections: Sections,
        counter: TokenCounter,
        most: int,
    ) -> None:
        """Find the headings.

        Args:
            text: of the document.
            rows: where rows begin that belong to a header row, and that row, in order; None where they end.
            breaks: where rows begin, among other places, in order.
            sections: of the document.
            counter: counts tokens of the embedding model.
            most: the most tokens that the headings of a chunk may have.
        """
        self._text, self._counter = text, counter
        self._breaks = breaks
        self._starts = [start for start, _ in rows]
        self._headers = [header for _, header in rows]
        self._around = [sections.titles_around(start, start + 1) for start, _ in rows]
        self._section_starts = sections.starts
        self._most = most
        self._known: dict[tuple[str, ...], _Headings] = {(): _NONE}
        self._separators: dict[int, str] = {}

    def path(self, start: int) -> tuple[str, ...]:
        """The headings of a chunk that begins at an offset, outermost first; empty outside of tables.

        A chunk that begins with its section has the section's name and the header row in itself.
        """
        return self._headings(start).path

    def tokens(self, start: int) -> int:
        """How many tokens these headings have, with the line end behind them."""
        return self._headings(start).tokens

    @property
    def most_tokens(self) -> int:
        """What `tokens` returns at most."""
        return self._most + 1 if self._starts else 0

    def _headings(self, start: int) -> _Headings:
        index = bisect_right(self._starts, start) - 1
        if index < 0 or start in self._section_starts:
            return _NONE
        header = self._headers[index]
        if header is None:
            return _NONE
        row = self._row_start(self._starts[index], start)
        separator = self._separator(index, header) if row < start else ""
        inside = _inside_row(self._text[row:start], header, separator)
        path = (*self._around[index], *inside)
        if path not in self._known:
            self._known[path] = _fitting(path, self._counter, self._most)
        return self._known[path]

    def _row_start(self, first: int, start: int) -> int:
        """Where the row begins that has the character at `start`; a cell in quotes may have several lines."""
        at = bisect_right(self._breaks, start) - 1
        begin = max(first, self._breaks[at] if at >= 0 else 0)
        line = max(begin, self._text.rfind("\n", 0, start) + 1)
        return begin if self._text.count('"', begin, line) % 2 else line

    def _separator(self, index: int, header: str) -> str:
        """What separates the cells of a table."""
        if index not in self._separators:
            begin = self._starts[index]
            lines = self._text[begin : begin + _SAMPLE].split("\n")[:SAMPLE]
            is_shown = _BAR in (header or lines[0])
            self._separators[index] = _BAR if is_shown else delimiter_of(lines, header)
        return self._separators[index]


def _inside_row(before: str, header: str, separator: str) -> tuple[str, ...]:
    """The headings of what follows in a row: its first cell, if that is over, and names of columns."""
    if header.startswith("|"):  # of Markdown; other rows begin with a cell or a space
        inside, before = header.removeprefix("|").removesuffix("|"), before.removeprefix("|")
    else:
        inside = header
    cells = _cells(before, separator)
    if len(cells) < 2:
        return (header,) if header else ()
    names = [one.strip() for one in _cells(inside, separator)[len(cells) - 1 :]]
    label = cells[0].strip()[:_MAX_LABEL]
    named = separator.join((LEFT_OUT, *names)) if any(names) else ""
    return tuple(filter(None, (label, named)))


def _cells(row: str, separator: str) -> list[str]:
    """The cells of the beginning of a row."""
    return row.split(_BAR) if separator == _BAR else fields_of(row, separator)


def _fitting(path: tuple[str, ...], counter: TokenCounter, most: int) -> _Headings:
    """Headings of at most so many tokens.

    Those around the last take half of them at most, or are left out; the last one is shortened. Where nothing
    of it fits beside the others, it goes without them.
    """
    *around, header = path
    last = path[-1:]
    if around and counter.count(["\n".join(around)])[0] > most // 2:
        around, path = [], last
    (tokens,) = counter.count(["\n".join(path)])
    while tokens > most and header:
        # Tokens are not of equal length, so this may take a few turns.
        header = header[: min(len(header) - 1, len(header) * most // tokens)].rstrip()
        path = (*around, header + _CUT)
        (tokens,) = counter.count(["\n".join(path)])
    if header:
        return _Headings(path, tokens + 1)
    return _fitting(last, counter, most) if around else _NONE

"""`TableHeadings`: the headings of chunks that begin inside of a table, below its header row.

Rows mean little without the names of their columns, so these chunks are embedded with their headings, which
take room of the embedding model from them: at most half of it. A chunk that begins inside of a row has the
row's first cell among its headings, and the names of the columns from its own one on.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from engine.retrieval.chunking.sections import Sections
from engine.retrieval.chunking.token_counter import TokenCounter

_CUT = " …"
_BAR = " | "
_DELIMITERS = ",;\t|"
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
        rows: Sequence[tuple[int, str]],
        sections: Sections,
        counter: TokenCounter,
        most: int,
    ) -> None:
        """Find the headings.

        Args:
            text: of the document.
            rows: where rows begin that belong to a header row, and that row, in order.
            sections: of the document.
            counter: counts tokens of the embedding model.
            most: the most tokens that the headings of a chunk may have.
        """
        self._text, self._counter = text, counter
        self._starts = [start for start, _ in rows]
        self._headers = [header for _, header in rows]
        self._around = [sections.titles_around(start, start + 1) for start, _ in rows]
        self._section_starts = sections.starts
        self._most = most
        self._known: dict[tuple[str, ...], _Headings] = {(): _NONE}

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
        row = self._text.rfind("\n", 0, start) + 1
        path = (*self._around[index], *_inside_row(self._text[row:start], header))
        if path not in self._known:
            self._known[path] = _fitting(path, self._counter, self._most)
        return self._known[path]


def _inside_row(before: str, header: str) -> tuple[str, ...]:
    """The headings of what follows in a row: its first cell, if that is over, and names of columns."""
    separator = _separator(header or before)
    cells = _cells(before, separator)
    label = cells[0].strip()[:_MAX_LABEL] if len(cells) > 1 else ""
    names = separator.join(_cells(header, separator)[len(cells) - 1 :])
    return tuple(filter(None, (label, names)))


def _separator(row: str) -> str:
    return _BAR if _BAR in row else max(_DELIMITERS, key=row.count)


def _cells(row: str, separator: str) -> list[str]:
    """The cells of the beginning of a row; a separator in quotes is none."""
    cells: list[str] = []
    for part in row.split(separator):
        if cells and cells[-1].count('"') % 2 and separator != _BAR:
            cells[-1] += separator + part
        else:
            cells.append(part)
    return cells


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

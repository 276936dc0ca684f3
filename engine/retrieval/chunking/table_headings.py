"""`TableHeadings`: the headings of chunks that begin inside of a table, below its header row.

Rows mean little without the names of their columns, so these chunks are embedded with their headings, which
take room of the embedding model from them: at most half of it.
"""

from bisect import bisect_right
from collections.abc import Sequence

from engine.retrieval.chunking.sections import Sections
from engine.retrieval.chunking.token_counter import TokenCounter

_CUT = " …"


class TableHeadings:
    """The tables of one document. Offsets are characters."""

    def __init__(
        self,
        rows: Sequence[tuple[int, str]],
        sections: Sections,
        counter: TokenCounter,
        most: int,
    ) -> None:
        """Find the headings, and shorten header rows that are too long.

        Args:
            rows: where rows begin that belong to a header row, and that row, in order.
            sections: of the document.
            counter: counts tokens of the embedding model.
            most: the most tokens that the headings of a chunk may have.
        """
        self._starts = [start for start, _ in rows]
        self._section_starts = sections.starts
        paths = [
            (*sections.titles_around(start, start + 1), *filter(None, (header,)))
            for start, header in rows
        ]
        fitting = {one: _fitting(one, counter, most) for one in set(paths)}
        self._paths = [fitting[one][0] for one in paths]
        self._tokens = [fitting[one][1] for one in paths]

    def path(self, start: int) -> tuple[str, ...]:
        """The headings of a chunk that begins at an offset, outermost first; empty outside of tables.

        A chunk that begins with its section has the section's name and the header row in itself.
        """
        index = self._index(start)
        return () if index < 0 else self._paths[index]

    def tokens(self, start: int) -> int:
        """How many tokens these headings have, with the line end behind them."""
        index = self._index(start)
        return 0 if index < 0 else self._tokens[index]

    @property
    def most_tokens(self) -> int:
        """How many tokens the longest of these headings have."""
        return max(self._tokens, default=0)

    def _index(self, start: int) -> int:
        return -1 if start in self._section_starts else bisect_right(self._starts, start) - 1


def _fitting(
    path: tuple[str, ...], counter: TokenCounter, most: int
) -> tuple[tuple[str, ...], int]:
    """Headings of at most so many tokens, and how many they have.

    Those around the last take half of them at most, or are left out; the last one is shortened.
    """
    if not path:
        return (), 0
    *around, header = path
    if around and counter.count([_text(around)])[0] > most // 2:
        around, path = [], path[-1:]
    (tokens,) = counter.count([_text(path)])
    while tokens > most and header:
        # Tokens are not of equal length, so this may take a few turns.
        header = header[: min(len(header) - 1, len(header) * most // tokens)].rstrip()
        (tokens,) = counter.count([_text((*around, header + _CUT))])
        path = (*around, header + _CUT)
    return (path, tokens + 1) if header else ((), 0)


def _text(path: Sequence[str]) -> str:
    return "\n".join(path)

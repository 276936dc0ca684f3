"""`Sections`: the tree of a document's sections, from its headings."""

from bisect import bisect_right
from collections.abc import Callable, Sequence

from engine.retrieval.chunking.span import Span

MAX_CHUNKS = 4
"""The longest text that is read in place of a chunk, in chunks."""


class Sections:
    """All sections of one document, by index; 0 is the document itself. Offsets are characters.

    Attributes:
        starts: where the sections begin that have a heading.
    """

    def __init__(self, headings: Sequence[tuple[int, int, str]], length: int) -> None:
        """Build the tree.

        Args:
            headings: offset, level and title of each, in the order of the offsets.
            length: of the document.
        """
        self._starts = [0, *(start for start, _, _ in headings)]
        self.starts = frozenset(self._starts[1:])
        self._ends = [length] * len(self._starts)
        self._titles = ["", *(title for _, _, title in headings)]
        self._parents = [-1]
        unfinished = [(0, 0)]  # level and index; the document's level is 0
        for index, (start, level, _) in enumerate(headings, 1):
            level = max(level, 1)
            while unfinished[-1][0] >= level:
                self._ends[unfinished.pop()[1]] = start
            self._parents.append(unfinished[-1][1])
            unfinished.append((level, index))

    def around(self, start: int, end: int) -> list[int]:
        """Indices of the sections that contain a range, innermost first; the last is the document."""
        index = max(0, bisect_right(self._starts, start) - 1)
        found: list[int] = []
        while index >= 0:
            if end <= self._ends[index] or index == 0:
                found.append(index)
            index = self._parents[index]
        return found

    def titles_around(self, start: int, end: int) -> tuple[str, ...]:
        """The titles of the sections that contain a range, outermost first."""
        return tuple(self._titles[index] for index in self.around(start, end)[-2::-1])

    def read_in_place(
        self, spans: Sequence[Span], tokens_between: Callable[[int, int], int], budget: int
    ) -> list[tuple[int, int]]:
        """For each chunk the range that is read in its place.

        It is the largest section around it that is at most `MAX_CHUNKS` times `budget` tokens long. Where the
        innermost section is longer, it is read in parts: as many consecutive chunks of it as fit.
        """
        most = MAX_CHUNKS * budget
        found: list[tuple[int, int]] = []
        part: list[int] = []  # indices of chunks, all in `section`
        section = -1
        for index, span in enumerate(spans):
            around = self.around(span.start, span.end)
            fitting = [
                one for one in around if tokens_between(self._starts[one], self._ends[one]) <= most
            ]
            if fitting:
                found.append((self._starts[fitting[-1]], self._ends[fitting[-1]]))
                part, section = [], -1
                continue
            begin = spans[part[0]].start if part else span.start
            if around[0] != section or tokens_between(begin, span.end) > most:
                part, section = [], around[0]
            part.append(index)
            found.append((span.start, span.end))
            for one in part:
                found[one] = (spans[part[0]].start, span.end)
        return found

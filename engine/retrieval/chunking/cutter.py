"""`Cutter`: chooses the spans of the chunks of one text.

Invariants, which `split`'s property tests check: spans are in order; each ends behind the one before it; no
span is longer than the budget; between two spans lies only white space.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from engine.retrieval.chunking.boundaries import Strength
from engine.retrieval.chunking.span import Span
from engine.retrieval.chunking.table_headings import TableHeadings
from engine.retrieval.chunking.token_counter import SPACES, TokenCounter

_CHARACTERS_PER_TOKEN = 16
"""Bounds spans of words that the tokenizer does not know, each of which is one token, however long."""
_VISIBLE = re.compile(f"[^{SPACES}]")
_WIDEST_INDENTATION = 64
_WORDS_BACK = 48
"""Pieces that are looked through for the last space before a cut that has no better place."""


class Cutter:
    """Cuts one text. All offsets are characters."""

    def __init__(
        self,
        text: str,
        counter: TokenCounter,
        boundaries: Sequence[tuple[int, Strength]],
        budget: int,
        overlap: int,
        tables: TableHeadings,
    ) -> None:
        """Count the text.

        Args:
            text: the text.
            counter: counts its tokens.
            boundaries: see `find_boundaries`.
            budget: the longest span, in tokens, without special tokens.
            overlap: the longest repetition, in tokens; less than half of the budget.
            tables: the headings that are embedded with a span, for which it leaves room. What is left must be
                more than twice the overlap.
        """
        self._tables = tables
        self._text, self._counter = text, counter
        self._budget, self._overlap = budget, overlap
        self._most_characters = budget * _CHARACTERS_PER_TOKEN
        # The longest word must fit behind what is repeated, where headings leave least room.
        longest = budget - tables.most_tokens - overlap if tables.most_tokens else budget
        pieces = counter.pieces(text, longest, self._most_characters // 2)
        # Not lists, whose integers take 40 bytes each: a long file has tens of millions of pieces.
        self._starts = array("i", pieces.starts.tobytes())
        self._before = array("i", pieces.before.tobytes())
        self._forced = [self._starts[index] for index in pieces.forced]
        usable = [one for one in boundaries if self._is_between_words(one[0])]
        self._places = [place for place, _ in usable]
        self._strengths = [strength for _, strength in usable]
        self._headings = [place for place, one in usable if one == Strength.HEADING]

    def tokens_between(self, start: int, end: int) -> int:
        """Number of tokens of a range."""
        return self._tokens_before(end) - self._tokens_before(start)

    def spans(self) -> list[Span]:
        """The spans, in order, without white space around them but the indentation of their first line."""
        spans = list(self._cut())
        if self._counter.exact:
            return spans
        checked: list[Span] = []
        for span in self._checked(spans):
            if not checked or span.end > checked[-1].end:  # else it repeats the end of another
                checked.append(span)
        return checked

    def _cut(self) -> Iterator[Span]:
        start = covered = 0
        while (visible := _VISIBLE.search(self._text, covered)) is not None:
            if start >= covered:
                visible = _VISIBLE.search(self._text, start) or visible
                start = self._with_indentation(start, visible.start())
            end = self._end(start, max(covered, visible.start()))
            span = self._span(start, end)
            if self._text[start:end].strip():
                yield span
            covered, start = end, self._next_start(start, end)

    def _span(self, start: int, end: int) -> Span:
        trimmed = start + len(self._text[start:end].rstrip(SPACES))
        return Span(start, trimmed, self.tokens_between(start, trimmed))

    def _with_indentation(self, start: int, visible: int) -> int:
        """The beginning of the line of something visible, not before `start`."""
        line = max(start, self._text.rfind("\n", start, visible) + 1)
        return line if visible - line <= _WIDEST_INDENTATION else visible

    def _end(self, start: int, after: int) -> int:
        """Where the span that begins at `start` ends; behind `after`."""
        tokens, budget = self._tokens_before(start), self._room(start)
        last = self._reach(start, tokens + budget, after)
        minimum = budget // 4
        section_end = self._section_end(tokens + minimum, after)
        if section_end <= last:
            return section_end
        rest = self._tokens_before(section_end) - tokens
        if budget < rest < budget + minimum:
            # Leaves enough for a chunk of its own instead of a few words.
            last = max(min(last, self._place_at(tokens + rest - minimum)), self._next_word(after))
        middle = self._place_at(tokens + (self._tokens_before(last) - tokens) // 2)
        first = bisect_left(self._places, max(middle, after + 1))
        behind = bisect_right(self._places, last)
        if first < behind:
            strengths = self._strengths[first:behind]
            best = max(strengths)
            return self._places[behind - 1 - strengths[::-1].index(best)]
        return self._last_space(last, after)

    def _section_end(self, tokens: int, after: int) -> int:
        """The first heading behind `after` that has so many tokens before it, or the end of the text."""
        for index in range(bisect_right(self._headings, after), len(self._headings)):
            if self._tokens_before(self._headings[index]) >= tokens:
                return self._headings[index]
        return len(self._text)

    def _room(self, start: int) -> int:
        """Tokens that a span may have that begins at an offset."""
        return self._budget - self._tables.tokens(start)

    def _embedded(self, span: Span) -> str:
        return "\n".join((*self._tables.path(span.start), self._text[span.start : span.end]))

    def _reach(self, start: int, tokens: int, after: int) -> int:
        """The last place at which a span may end, with so many tokens before it; behind `after`."""
        last = self._place_at(tokens)
        most = start + self._most_characters
        if last > most:
            last = self._starts[bisect_right(self._starts, most) - 1]
        last = max(last, self._next_word(after))  # of a tokenizer that counts white space
        forced = bisect_right(self._forced, start)
        return min(last, self._forced[forced]) if forced < len(self._forced) else last

    def _next_word(self, after: int) -> int:
        """The end of the piece at an offset."""
        return self._starts[min(bisect_right(self._starts, after), len(self._starts) - 1)]

    def _last_space(self, last: int, after: int) -> int:
        """The last beginning of a word up to `last`, or `last` itself where there is none near."""
        index = bisect_right(self._starts, last) - 1
        for one in range(index, max(index - _WORDS_BACK, 0), -1):
            place = self._starts[one]
            if place <= after:
                break
            if self._text[place - 1].isspace():
                return place
        return last

    def _next_start(self, start: int, end: int) -> int:
        """Where the next span begins: before `end` if it repeats something."""
        index = bisect_left(self._places, end)
        at_place = index < len(self._places) and self._places[index] == end
        overlap = min(self._overlap, self._room_beside_next_word(end))
        if overlap <= 0 or (at_place and self._strengths[index] >= Strength.BREAK):
            return end
        first = bisect_left(self._before, self._tokens_before(end) - overlap)
        earliest = max(self._starts[first], end - self._most_characters // 4, start + 1)
        forced = bisect_right(self._forced, end)
        if forced:
            earliest = max(earliest, self._forced[forced - 1])
        candidate: int | None = None
        for one in range(index - 1, -1, -1):
            place = self._places[one]
            if place < earliest:
                break
            if self._strengths[one] >= Strength.BREAK:
                return place
            candidate = place
        if candidate is not None:
            return candidate
        for one in range(bisect_left(self._starts, earliest), bisect_left(self._starts, end)):
            if self._text[self._starts[one] - 1].isspace():
                return self._starts[one]
        return end

    def _room_beside_next_word(self, end: int) -> int:
        """Tokens that a span may repeat before an offset, and still have the next word."""
        visible = _VISIBLE.search(self._text, end)
        if visible is None:
            return 0
        word = self.tokens_between(end, self._next_word(visible.start()))
        return self._budget - self._tables.most_tokens - word

    def _tokens_before(self, place: int) -> int:
        """Number of tokens before a place; inside a word, those before the word."""
        return self._before[bisect_right(self._starts, place) - 1]

    def _place_at(self, tokens: int) -> int:
        """The last place that has at most so many tokens before it."""
        return self._starts[bisect_right(self._before, tokens) - 1]

    def _is_between_words(self, place: int) -> bool:
        index = bisect_right(self._starts, place) - 1
        return self._starts[index] == place or self._text[self._starts[index]] in SPACES

    def _checked(self, spans: Sequence[Span]) -> Iterator[Span]:
        """The spans with exact counts, those that are too long in halves."""
        counts = self._counter.count([self._text[one.start : one.end] for one in spans])
        embedded = counts
        if self._tables.most_tokens:  # else nothing is embedded with a header row
            embedded = self._counter.count([self._embedded(one) for one in spans])
        for span, count, whole in zip(spans, counts, embedded, strict=True):
            if whole <= self._budget or span.end - span.start == 1:
                yield Span(span.start, span.end, count)
                continue
            middle = (span.start + span.end) // 2
            space = self._text.rfind(" ", span.start + 1, middle)
            middle = space if space > span.start else middle
            halves = ((span.start, middle), (middle, span.end))
            visible = [self._span(*one) for one in halves if self._text[slice(*one)].strip()]
            yield from self._checked(visible)

"""Whether a passage supports a claim: one or two sentences of it, or a row of a table, must say the same.

A window of the passage supports a claim if
  - it has at least `MIN_COVERAGE` of the claim's content words and a cosine of at least `MIN_SIMILARITY`,
  - it has every number, month, weekday and name of the claim (names also in title, headings or file
    name), and the passage has every identifier of it,
  - it negates if and only if the claim does,
  - of a row of a table, whose header and heading count: the cell of each column that the claim names is in
    the claim. The row is compared by those columns that have a word of the claim; see `MIN_ROW_COVERAGE`.

The sentences of a chain, through which several searches came from one passage to the next (`hops`), are one
window of several passages. It is asked where no passage supports the claim alone.

The words keep similar sentences about other things apart, the vectors keep apart what happens to share
words, and the other rules catch what neither sees: `42` instead of `28`, one person instead of another,
`is not` instead of `is`. No rule understands a text: "A calls B" supports "B calls A".
`benchmarks/retrieval_answers.py` measures them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from engine.retrieval.answering.calendar_words import calendar_marks, is_month_or_weekday
from engine.retrieval.answering.names import capitalises_nouns, names_of
from engine.retrieval.answering.numbered_passage import NumberedPassage
from engine.retrieval.answering.table_rows import TableRow
from engine.retrieval.answering.terms import HALVES, content_terms, folded, identifiers, numbers
from engine.retrieval.answering.windows import (
    SourcePart,
    Window,
    chain_window,
    count_negations,
    windows_of,
)

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts to unit vectors, [texts, dimensions]; a long text may be cut."""

MIN_COVERAGE = 0.65
MIN_SIMILARITY = 0.60
MIN_ROW_SIMILARITY = 0.45
"""Of a row, which is no sentence."""

MIN_ROW_COVERAGE = 0.4
"""Of a row with a value or name of the claim and `MIN_SIMILARITY`: its columns have other words for what a
sentence says by its verb."""

MIN_TERMS = 2
"""A claim with fewer content words ("Yes.", "It is:") says nothing that could be looked up."""

_MAX_CLOSE = 8


@dataclass(frozen=True, slots=True)
class Support:
    """The part of a source that supports a claim.

    Attributes:
        n: number of the source.
        start: offset of its first character in the source's text.
        end: offset behind its last character.
        score: coverage plus similarity; comparable between the sources of one claim.
        is_joint: whether the source supports the claim only together with the other ones of its list.
    """

    n: int
    start: int
    end: int
    score: float
    is_joint: bool = False


@dataclass(frozen=True, slots=True)
class _Claim:
    """What is looked for in a window."""

    text: str
    terms: frozenset[str]
    values: frozenset[str]
    numbers: frozenset[str]
    marks: frozenset[str]
    names: frozenset[str]
    identifiers: frozenset[str]
    negations: int

    @classmethod
    def of(cls, text: str, known_names: frozenset[str]) -> Self:
        """A claim; a word that begins a sentence is a name if it is one of the known ones."""
        found = names_of(text)
        names = found.certain | (found.possible & known_names)
        terms = frozenset(one for one in content_terms(text) if not is_month_or_weekday(one))
        return cls(
            text,
            terms,
            frozenset(one for one in terms if one[0].isdigit() or one in HALVES),
            numbers(text),
            calendar_marks(text),
            names,
            identifiers(text),
            count_negations(text),
        )

    def fits(self, window: Window) -> bool:
        """Whether a window supports it as far as words tell."""
        coverage = self.coverage(window)
        return (
            coverage >= (MIN_COVERAGE if window.row is None else self._min_row_coverage)
            and self.numbers <= window.numbers
            and self.marks <= window.marks
            and self.identifiers <= window.source_words
            and (window.names is None or self.names <= window.names)
            and _same_sign(self.negations, window.negations, coverage)
            and (window.row is None or self._says_columns(window.row))
        )

    @property
    def _min_row_coverage(self) -> float:
        return MIN_ROW_COVERAGE if self.numbers or self.marks or self.names else MIN_COVERAGE

    def min_similarity(self, window: Window) -> float:
        """The least cosine of a window that fits."""
        has_words = self.coverage(window) >= MIN_COVERAGE
        return MIN_ROW_SIMILARITY if window.row is not None and has_words else MIN_SIMILARITY

    def coverage(self, window: Window) -> float:
        """The share of its words that a window has; values count as there, which `numbers` compares."""
        return len(self.terms & window.terms | self.values) / max(1, len(self.terms))

    def compared_text(self, window: Window) -> str:
        """The text of a window that the claim's vector is compared with."""
        if window.row is None:
            return window.text
        row = window.row
        columns = [
            at
            for at, cell in enumerate(row.cells)
            if self._says(cell) or (row.header and self.terms & content_terms(row.header[at]))
        ]
        return row.part(columns) or window.text

    def _says_columns(self, row: TableRow) -> bool:
        """Whether it has the cells of the columns that it names."""
        columns = list(zip(row.header, row.cells, strict=False))
        said = [content_terms(name) for name, cell in columns if self._says(cell)]
        # "closes at" names the column "Closes", whose cell is said, and not "Closed on".
        known = content_terms(" ".join(row.cells)).union(*said)
        for name, cell in columns:
            column = content_terms(name)
            is_named = bool(column) and column <= self.terms and not column <= known
            if is_named and cell and not row.is_mark(cell) and not self._says(cell):
                return False
        return True

    def _says(self, cell: str) -> bool:
        """Whether it has a word, number or date of a cell; the unit of a value alone says nothing."""
        words = () if TableRow.is_value(cell) else content_terms(cell)
        return bool(
            (cell and cell.casefold() in self.text.casefold())
            or any(one in self.terms for one in words if not one[0].isdigit())
            or self.numbers & numbers(cell)
            or self.marks & calendar_marks(cell)
        )


class SupportJudge:
    """Looks for the support of claims in some sources. Not thread-safe.

    Words, numbers, names and negations select a few windows; vectors are computed for those only, and once.
    """

    def __init__(
        self,
        sources: Sequence[NumberedPassage],
        embed: Embed,
        chain: Sequence[SourcePart] = (),
        *,
        about: frozenset[str] = frozenset(),
    ) -> None:
        """Nothing is embedded yet.

        Args:
            sources: what can be cited.
            embed: computes vectors.
            chain: sentences that lead from one source to the next; empty, or of two sources and more.
            about: names of the question, folded. A source outside of the chain supports nothing unless it
                has one of them, where any source has: small models answer about a neighbour.
        """
        self.sources = tuple(sources)
        self.chain = tuple(chain)
        self._embed = embed
        self._windows = [window for source in self.sources for window in windows_of(source)]
        linked = {part.n for part in self.chain}
        about &= frozenset[str]().union(*(window.mentions for window in self._windows))
        self._eligible = [
            window
            for window in self._windows
            if not about or window.parts[0].n in linked or about & window.mentions
        ]
        self._chained = [chain_window(self.sources, self.chain)] if self.chain else []
        self._known_names = frozenset(
            name
            for source in self.sources
            if not capitalises_nouns(source.text)
            for name in names_of(source.text).certain
        ).union(
            folded(word)
            for window in self._windows
            if window.row is not None
            for word in window.row.full_names
        )
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def is_checkable(self, claim: str) -> bool:
        """Whether the claim says enough to be looked up; what only announces something does not."""
        return not claim.rstrip().endswith(":") and len(content_terms(claim)) >= MIN_TERMS

    def supports(self, claim: str) -> list[Support]:
        """The best window of each source that supports the claim, best source first.

        If no source does alone and the chain does, its parts in their order, each `is_joint`.
        """
        checked = _Claim.of(claim, self._known_names)
        if not checked.terms:
            return []
        alone = _best_of_each(self._supporting(checked, self._eligible))
        return alone or self._supporting(checked, self._chained)

    def closest(self, question: str) -> list[Support]:
        """The one or two sentences of each source that are closest to a question, best source first."""
        terms = content_terms(question)
        readable: dict[int, list[Window]] = {}
        for window in self._windows:
            if window.is_readable:
                readable.setdefault(window.parts[0].n, []).append(window)
        near = [
            window
            for windows in readable.values()
            for window in sorted(windows, key=lambda one: -one.coverage(terms))[:_MAX_CLOSE]
        ]
        return _best_of_each(
            support
            for window, similarity in zip(
                near, self._similarities(question, [one.text for one in near]), strict=True
            )
            for support in _supports(window, window.coverage(terms) + similarity)
        )

    def _supporting(self, claim: _Claim, windows: Iterable[Window]) -> list[Support]:
        near = [window for window in windows if claim.fits(window)]
        similarities = self._similarities(claim.text, [claim.compared_text(one) for one in near])
        return [
            support
            for window, similarity in zip(near, similarities, strict=True)
            if similarity >= claim.min_similarity(window)
            for support in _supports(window, claim.coverage(window) + similarity)
        ]

    def _similarities(self, text: str, others: Sequence[str]) -> list[float]:
        """The cosine of the text with each of the others."""
        if not others:
            return []
        new = [one for one in dict.fromkeys(others) if one not in self._vectors]
        vectors = self._embed([text, *new])
        self._vectors.update(zip(new, vectors[1:], strict=True))
        return [float(self._vectors[one] @ vectors[0]) for one in others]


def _supports(window: Window, score: float) -> list[Support]:
    """What a window says of each of its sources."""
    is_joint = len(window.parts) > 1
    return [Support(one.n, one.start, one.end, score, is_joint) for one in window.parts]


def _best_of_each(supports: Iterable[Support]) -> list[Support]:
    """The best support of each source, best first."""
    best: dict[int, Support] = {}
    for one in supports:
        if one.n not in best or one.score > best[one.n].score:
            best[one.n] = one
    return sorted(best.values(), key=lambda one: -one.score)


def _same_sign(claim: int, window: int, coverage: float) -> bool:
    """Whether both negate or neither; of nearly equal texts, whether equally often."""
    if bool(claim) != bool(window):
        return False
    return coverage < 0.9 or (claim - window) % 2 == 0

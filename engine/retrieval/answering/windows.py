"""`Window`: a part of the sources that a claim is compared with.

Most are one or two sentences of one source, or a row of a table with its header (`tables_of`). The sentences
of a chain (`hops`), which lead from one source to the next, are one window of several sources.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from engine.retrieval.answering.calendar_words import calendar_marks
from engine.retrieval.answering.names import capitalises_nouns, folded_words
from engine.retrieval.answering.numbered_passage import NumberedPassage, labels_of
from engine.retrieval.answering.sentences import sentence_spans
from engine.retrieval.answering.table_rows import TableRow, tables_of
from engine.retrieval.answering.terms import content_terms, glued_units, numbers, plain_words
from engine.retrieval.store.word_forms import plain_form

_MAX_LENGTH = 600
_MAX_WINDOWS = 96
_HEADING = re.compile(r"#{1,6} |={3,}|-{3,}")
_NEGATION = re.compile(
    r"\b(?:not|no|never|cannot|without|none|neither|nor|nothing)\b|n[’']t\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class SourcePart:
    """Characters `start` to `end`, half-open, of the text of source `n`."""

    n: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Sentences of one source or of several, or a row of a table; equal only to itself.

    Attributes:
        parts: where it is.
        text: its text; of a row, its statement.
        terms: its content words; of a row, those of what its source is called, too, as the next two.
        numbers: its numbers, and those in the title and headings of its source.
        marks: its months and weekdays (`calendar_marks`).
        negations: how many words negate.
        source_words: every word of its sources and of what they are called.
        mentions: every word of its sources and of what they are called, folded.
        names: its words and those of what its sources are called, folded; None if capitals do not tell
            names there, so that names are not compared.
        row: the row; None of sentences.
    """

    parts: tuple[SourcePart, ...]
    text: str
    terms: frozenset[str]
    numbers: frozenset[str]
    marks: frozenset[str]
    negations: int
    source_words: frozenset[str]
    mentions: frozenset[str]
    names: frozenset[str] | None
    row: TableRow | None = None

    @property
    def is_readable(self) -> bool:
        """Whether it can be shown alone: it begins with no heading and lies within one paragraph."""
        return not _HEADING.match(self.text) and "\n\n" not in self.text

    def coverage(self, terms: frozenset[str]) -> float:
        """The share of some content words that it has."""
        return len(terms & self.terms) / max(1, len(terms))


def windows_of(source: NumberedPassage) -> list[Window]:
    """Each sentence, each two neighbours that are short enough to be read as one statement, and each row."""
    text, tables = source.text, tables_of(source)
    # A sentence never reaches into a table, whose rows would be read as one statement.
    parts = [_sentences(text, *part) for part in tables.prose]
    spans = [span for part in parts for span in part]
    pairs = [
        (first[0], second[1])
        for part in parts
        for first, second in pairwise(part)
        if second[1] - first[0] <= _MAX_LENGTH
    ]
    labels = labels_of(source.passage)
    whole = _Whole.of(f"{text} {labels}")
    headings = " ".join((source.passage.title or "", *source.passage.heading_path))
    called = None if capitalises_nouns(text) else folded_words(labels)
    rows = [
        _window(
            (SourcePart(source.n, row.start, row.end),),
            row.statement,
            whole,
            called,
            row=row,
            labels=labels,
        )
        for row in tables.rows
    ]
    return rows + [
        _window(
            (SourcePart(source.n, *span),), text[slice(*span)], whole, called, headings=headings
        )
        for span in spans[:_MAX_WINDOWS] + pairs[:_MAX_WINDOWS]
    ]


def _sentences(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The spans of the sentences with a word in a part of a text."""
    found = [(start + first, start + last) for first, last in sentence_spans(text[start:end])]
    return [span for span in found if plain_words(text[slice(*span)])]


def chain_window(sources: Sequence[NumberedPassage], parts: Sequence[SourcePart]) -> Window:
    """The sentences of a chain as one window."""
    by_number = {source.n: source for source in sources}
    own = [by_number[part.n] for part in parts]
    text = " ".join(
        source.text[part.start : part.end] for source, part in zip(own, parts, strict=True)
    )
    labels = " ".join(labels_of(source.passage) for source in own)
    whole = _Whole.of(" ".join([labels, *(source.text for source in own)]))
    has_names = not any(capitalises_nouns(source.text) for source in own)
    return _window(tuple(parts), text, whole, folded_words(labels) if has_names else None)


def count_negations(text: str) -> int:
    """How many words of a text negate."""
    return len(_NEGATION.findall(plain_form(text)))


@dataclass(frozen=True, slots=True)
class _Whole:
    """The words of whole sources, as they are and folded."""

    words: frozenset[str]
    folded: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Self:
        return cls(plain_words(text) | glued_units(text), folded_words(text))


def _window(
    parts: tuple[SourcePart, ...],
    text: str,
    whole: _Whole,
    called: frozenset[str] | None,
    *,
    row: TableRow | None = None,
    labels: str = "",
    headings: str = "",
) -> Window:
    labelled = f"{labels}\n{text}"
    return Window(
        parts,
        text,
        terms=content_terms(labelled),
        numbers=numbers(f"{headings}\n{labelled}"),
        marks=calendar_marks(labelled),
        negations=count_negations(text),
        source_words=whole.words,
        mentions=whole.folded,
        names=None if called is None else folded_words(text) | called,
        row=row,
    )

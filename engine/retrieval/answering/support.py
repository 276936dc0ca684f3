"""Whether a passage supports a claim: one or two sentences of it must say the same.

A window of the passage supports a claim if
  - it has at least `MIN_COVERAGE` of the claim's content words and a cosine of at least `MIN_SIMILARITY`,
  - it has every number of the claim, and the passage has every identifier of it,
  - it negates if and only if the claim does.

The words keep similar sentences about other things apart, the vectors keep apart what happens to share
words, and the two rules catch what neither sees: `42` instead of `28`, `is not` instead of `is`. No rule
understands a text: "A calls B" supports "B calls A". `benchmarks/retrieval_answers.py` measures them.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.retrieval.answering.sentences import sentence_spans
from engine.retrieval.answering.source import Source
from engine.retrieval.answering.terms import content_terms, identifiers, numbers, plain_words

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts to unit vectors, [texts, dimensions]; a long text may be cut."""

MIN_COVERAGE = 0.65
MIN_SIMILARITY = 0.60
MIN_TERMS = 2
"""A claim with fewer content words ("Yes.", "It is:") says nothing that could be looked up."""

_MAX_WINDOW = 600
_MAX_WINDOWS = 96
_MAX_CLOSE = 8
_HEADING = re.compile(r"#{1,6} |={3,}|-{3,}")
_NEGATION = re.compile(
    r"\b(?:not|no|never|cannot|without|none|neither|nor|nothing)\b|n[’']t\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Support:
    """The part of a source that supports a claim.

    Attributes:
        n: number of the source.
        start: offset of its first character in the source's text.
        end: offset behind its last character.
        score: coverage plus similarity; comparable between the sources of one claim.
    """

    n: int
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class _Window:
    """A part of a source that is compared with claims; equal only to itself."""

    source: Source
    start: int
    end: int
    terms: frozenset[str]
    numbers: frozenset[str]
    negations: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def is_readable(self) -> bool:
        """Whether it can be shown alone: it begins with no heading and lies within one paragraph."""
        return not _HEADING.match(self.text) and "\n\n" not in self.text

    def coverage(self, terms: frozenset[str]) -> float:
        return len(terms & self.terms) / max(1, len(terms))

    def support(self, score: float) -> Support:
        return Support(self.source.n, self.start, self.end, score)


class SupportJudge:
    """Looks for the support of claims in some sources. Not thread-safe.

    Words, numbers and negations select a few windows; vectors are computed for those only, and once.
    """

    def __init__(self, sources: Sequence[Source], embed: Embed) -> None:
        self.sources = tuple(sources)
        self._embed = embed
        self._windows = [_windows(source) for source in self.sources]
        self._words = [plain_words(f"{source.text} {_names(source)}") for source in self.sources]
        self._vectors: dict[_Window, NDArray[np.float32]] = {}

    def is_checkable(self, claim: str) -> bool:
        """Whether the claim says enough to be looked up; what only announces something does not."""
        return not claim.rstrip().endswith(":") and len(content_terms(claim)) >= MIN_TERMS

    def supports(self, claim: str) -> list[Support]:
        """The best window of each source that supports the claim, best source first."""
        terms, figures = content_terms(claim), numbers(claim)
        names, negations = identifiers(claim), len(_NEGATION.findall(claim))
        near = [
            (window, coverage)
            for windows, words in zip(self._windows, self._words, strict=True)
            if terms and names <= words
            for window in windows
            if (coverage := window.coverage(terms)) >= MIN_COVERAGE
            and figures <= window.numbers
            and _same_sign(negations, window.negations, coverage)
        ]
        similarities = self._similarities(claim, [window for window, _ in near])
        return _best_of_each(
            window.support(coverage + similarity)
            for (window, coverage), similarity in zip(near, similarities, strict=True)
            if similarity >= MIN_SIMILARITY
        )

    def closest(self, question: str) -> list[Support]:
        """The one or two sentences of each source that are closest to a question, best source first."""
        terms = content_terms(question)
        near = [
            window
            for windows in self._windows
            for window in sorted(
                (one for one in windows if one.is_readable),
                key=lambda one: -one.coverage(terms),
            )[:_MAX_CLOSE]
        ]
        return _best_of_each(
            window.support(window.coverage(terms) + similarity)
            for window, similarity in zip(near, self._similarities(question, near), strict=True)
        )

    def _similarities(self, text: str, windows: Sequence[_Window]) -> list[float]:
        """The cosine of the text with each window."""
        if not windows:
            return []
        new = [window for window in windows if window not in self._vectors]
        vectors = self._embed([text, *(window.text for window in new)])
        self._vectors.update(zip(new, vectors[1:], strict=True))
        return [float(self._vectors[window] @ vectors[0]) for window in windows]


def _best_of_each(supports: Iterable[Support]) -> list[Support]:
    """The best support of each source, best first."""
    best: dict[int, Support] = {}
    for one in supports:
        if one.n not in best or one.score > best[one.n].score:
            best[one.n] = one
    return sorted(best.values(), key=lambda one: -one.score)


def _windows(source: Source) -> list[_Window]:
    """Each sentence, and each two neighbours that are short enough to be read as one statement."""
    text = source.text
    spans = [(start, end) for start, end in sentence_spans(text) if plain_words(text[start:end])]
    pairs = [
        (first[0], second[1])
        for first, second in pairwise(spans)
        if second[1] - first[0] <= _MAX_WINDOW
    ]
    return [_window(source, *span) for span in spans[:_MAX_WINDOWS] + pairs[:_MAX_WINDOWS]]


def _window(source: Source, start: int, end: int) -> _Window:
    part = source.text[start:end]
    negations = len(_NEGATION.findall(part))
    return _Window(source, start, end, content_terms(part), numbers(part), negations)


def _same_sign(claim: int, window: int, coverage: float) -> bool:
    """Whether both negate or neither; of nearly equal texts, whether equally often."""
    if bool(claim) != bool(window):
        return False
    return coverage < 0.9 or (claim - window) % 2 == 0


def _names(source: Source) -> str:
    passage = source.passage
    return " ".join((passage.file, passage.title or "", *passage.heading_path))

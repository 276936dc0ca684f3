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
from collections.abc import Callable, Sequence
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


@dataclass(frozen=True, slots=True)
class _Window:
    start: int
    end: int
    terms: frozenset[str]
    numbers: frozenset[str]
    negations: int


class SupportJudge:
    """Looks for the support of claims in some sources.

    Vectors of the sources are computed when the first claim is judged, about 100 short texts per source. Not
    thread-safe.
    """

    def __init__(self, sources: Sequence[Source], embed: Embed) -> None:
        self.sources = tuple(sources)
        self._embed = embed
        self._windows = [_windows(source.text) for source in self.sources]
        self._words = [plain_words(f"{source.text} {_names(source)}") for source in self.sources]
        self._vectors: list[NDArray[np.float32]] | None = None

    def is_checkable(self, claim: str) -> bool:
        """Whether the claim says enough to be looked up; what only announces something does not."""
        return not claim.rstrip().endswith(":") and len(content_terms(claim)) >= MIN_TERMS

    def supports(self, claim: str) -> list[Support]:
        """The best window of each source that supports the claim, best source first."""
        terms, figures = content_terms(claim), numbers(claim)
        names, negations = identifiers(claim), len(_NEGATION.findall(claim))
        if not terms:
            return []
        near = [
            [
                (window, at, coverage)
                for at, window in enumerate(windows)
                if (coverage := len(terms & window.terms) / len(terms)) >= MIN_COVERAGE
                and figures <= window.numbers
                and _same_sign(negations, window.negations, coverage)
            ]
            if names <= words
            else []
            for windows, words in zip(self._windows, self._words, strict=True)
        ]
        if not any(near):
            return []
        vector = self._embed([claim])[0]
        found = []
        for source, candidates, vectors in zip(
            self.sources, near, self._window_vectors(), strict=True
        ):
            best = max(
                (
                    Support(source.n, window.start, window.end, coverage + similarity)
                    for window, at, coverage in candidates
                    if (similarity := float(vectors[at] @ vector)) >= MIN_SIMILARITY
                ),
                key=lambda one: one.score,
                default=None,
            )
            if best is not None:
                found.append(best)
        return sorted(found, key=lambda one: -one.score)

    def closest(self, question: str) -> list[Support]:
        """The one or two sentences of each source that are closest to a question, best source first."""
        vector = self._embed([question])[0]
        terms = content_terms(question)
        found = []
        for source, windows, vectors in zip(
            self.sources, self._windows, self._window_vectors(), strict=True
        ):
            scored = [
                (float(similarity) + len(terms & window.terms) / max(1, len(terms)), window)
                for window, similarity in zip(windows, vectors @ vector, strict=True)
                if not _HEADING.match(source.text, window.start)
            ]
            if scored:
                score, window = max(scored, key=lambda one: one[0])
                found.append(Support(source.n, window.start, window.end, score))
        return sorted(found, key=lambda one: -one.score)

    def _window_vectors(self) -> list[NDArray[np.float32]]:
        if self._vectors is None:
            texts = [
                source.text[window.start : window.end]
                for source, windows in zip(self.sources, self._windows, strict=True)
                for window in windows
            ]
            vectors = self._embed(texts) if texts else np.zeros((0, 1), np.float32)
            ends = np.cumsum([len(windows) for windows in self._windows])
            self._vectors = np.split(vectors, ends[:-1]) if self.sources else []
        return self._vectors


def _windows(text: str) -> list[_Window]:
    """Each sentence, and each two neighbours that are short enough to be read as one statement."""
    spans = [(start, end) for start, end in sentence_spans(text) if plain_words(text[start:end])]
    pairs = [
        (first[0], second[1])
        for first, second in pairwise(spans)
        if second[1] - first[0] <= _MAX_WINDOW and "\n\n" not in text[first[1] : second[0]]
    ]
    return [_window(text, *span) for span in spans[:_MAX_WINDOWS] + pairs[:_MAX_WINDOWS]]


def _window(text: str, start: int, end: int) -> _Window:
    part = text[start:end]
    negations = len(_NEGATION.findall(part))
    return _Window(start, end, content_terms(part), numbers(part), negations)


def _same_sign(claim: int, window: int, coverage: float) -> bool:
    """Whether both negate or neither; of nearly equal texts, whether equally often."""
    if bool(claim) != bool(window):
        return False
    return coverage < 0.9 or (claim - window) % 2 == 0


def _names(source: Source) -> str:
    passage = source.passage
    return " ".join((passage.file, passage.title or "", *passage.heading_path))

"""Relevance of passages: BM25 for a query, TF-IDF vectors for the similarity of two texts.

BM25: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from agents.text.words import terms

_K1 = 1.2
_B = 0.75
Vector = Mapping[str, float]


class PassageIndex:
    """An index of passages. Building is linear in their words; a query in those of the matching passages."""

    def __init__(self, passages: Sequence[str]) -> None:
        self._counts = [Counter(terms(passage)) for passage in passages]
        self._lengths = [sum(counts.values()) for counts in self._counts]
        self._mean = max(1.0, sum(self._lengths) / max(1, len(passages)))
        self._postings: dict[str, list[int]] = {}
        for number, counts in enumerate(self._counts):
            for term in counts:
                self._postings.setdefault(term, []).append(number)

    def idf(self, term: str) -> float:
        """Inverse document frequency: at least 0, 0 for a term that no passage has."""
        having = len(self._postings.get(term, ()))
        return math.log(1 + (len(self._counts) - having + 0.5) / (having + 0.5)) if having else 0.0

    def search(self, query: str, limit: int) -> list[tuple[int, float]]:
        """Numbers and scores of the best passages, best first; those without a common term are left out."""
        scores: dict[int, float] = {}
        for term in dict.fromkeys(terms(query)):
            idf = self.idf(term)
            for number in self._postings.get(term, ()):
                count = self._counts[number][term]
                norm = _K1 * (1 - _B + _B * self._lengths[number] / self._mean)
                scores[number] = scores.get(number, 0.0) + idf * count * (_K1 + 1) / (count + norm)
        return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:limit]

    def coverage(self, query: str, number: int) -> float:
        """Share of the query's terms, weighted by rarity, that a passage has; unknown terms count fully."""
        rarest = math.log(1 + (len(self._counts) + 0.5) / 0.5)
        # 1 is added: in a small index all terms are common, and sharing one still means something.
        weights = {term: 1 + (self.idf(term) or rarest) for term in terms(query)}
        total = sum(weights.values())
        shared = sum(w for term, w in weights.items() if term in self._counts[number])
        return shared / total if total else 0.0


def tfidf_vectors(texts: Sequence[str]) -> list[Vector]:
    """One unit vector a text, over its terms; empty for a text without terms."""
    counted = [Counter(terms(text)) for text in texts]
    frequency = Counter(term for counts in counted for term in counts)
    vectors: list[Vector] = []
    for counts in counted:
        weights = {
            term: (1 + math.log(count)) * math.log(1 + len(texts) / frequency[term])
            for term, count in counts.items()
        }
        norm = math.sqrt(sum(weight * weight for weight in weights.values()))
        vectors.append({term: weight / norm for term, weight in weights.items()} if norm else {})
    return vectors


def cosine(one: Vector, other: Vector) -> float:
    """Similarity of two unit vectors, in [0, 1] for TF-IDF vectors."""
    if len(other) < len(one):
        one, other = other, one
    return sum(weight * other[term] for term, weight in one.items() if term in other)


def jaccard(one: str, other: str, *, size: int = 3) -> float:
    """Share of common runs of `size` terms: 1 for texts of the same words in the same order."""
    left, right = _shingles(one, size), _shingles(other, size)
    union = left | right
    return len(left & right) / len(union) if union else 0.0


def _shingles(text: str, size: int) -> set[tuple[str, ...]]:
    found = terms(text)
    return (
        {tuple(found[i : i + size]) for i in range(max(1, len(found) - size + 1))}
        if found
        else set()
    )

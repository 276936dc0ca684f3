"""TextRank: the importance of sentences from their similarity to the others.

Mihalcea and Tarau, "TextRank: Bringing Order into Texts" (2004), over TF-IDF cosine instead of word overlap.
"""

from collections.abc import Sequence

from agents.text.relevance import Vector, cosine, tfidf_vectors

_DAMPING = 0.85
_ITERATIONS = 50
_TOLERANCE = 1e-6
MAX_SENTENCES = 600
"""The similarity matrix has its square in entries; later sentences of a longer text get the rank 0."""


def textrank(sentences: Sequence[str]) -> list[float]:
    """Ranks that sum to 1 over the first `MAX_SENTENCES`; equal ranks where nothing is similar."""
    ranked = sentences[:MAX_SENTENCES]
    if not ranked:
        return []
    links = _links(tfidf_vectors(ranked))
    totals = [sum(row.values()) for row in links]
    count = len(ranked)
    ranks = [1 / count] * count
    for _ in range(_ITERATIONS):
        dangling = sum(rank for rank, total in zip(ranks, totals, strict=True) if not total)
        base = (1 - _DAMPING + _DAMPING * dangling) / count
        following = [base] * count
        for source, row in enumerate(links):
            for target, weight in row.items():
                following[target] += _DAMPING * ranks[source] * weight / totals[source]
        change = sum(abs(new - old) for new, old in zip(following, ranks, strict=True))
        ranks = following
        if change < _TOLERANCE:
            break
    return ranks + [0.0] * (len(sentences) - count)


def _links(vectors: Sequence[Vector]) -> list[dict[int, float]]:
    links: list[dict[int, float]] = [{} for _ in vectors]
    for i, vector in enumerate(vectors):
        for j in range(i + 1, len(vectors)):
            weight = cosine(vector, vectors[j])
            if weight > 0:
                links[i][j] = links[j][i] = weight
    return links

"""Searches several collections of a library at once, with one query or several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.retrieval.api.passage import Passage
from engine.retrieval.library.collection import Collection
from engine.retrieval.store.filters import Where

RANK_CONSTANT = 60
"""Of reciprocal rank fusion: higher values bring the ranks nearer to each other."""


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage, where it was found, and the greatest cosine of it and a query, from 0 to 1."""

    collection: Collection
    passage: Passage
    similarity: float


def search_across(
    collections: Mapping[Collection, Where | None], queries: Sequence[str], *, k: int
) -> list[FoundPassage]:
    """The passages that fit best, best first; at most `k` of each collection and query.

    Scores of different collections or queries cannot be compared, so ranks are: a passage that is among the
    first of several results comes first.

    Args:
        collections: where to search, and the filter of each; all of one library.
        queries: what to search for.
        k: the largest number of passages of one search.

    Raises:
        InvalidRequest: a filter is malformed.
        ModelError: the embedding model is not installed, or another one than a collection's.
    """
    found: dict[int, FoundPassage] = {}  # by chunk id, which is unique in a library
    scores: dict[int, float] = {}
    for query in queries:
        for collection, where in collections.items():
            for one in collection.search(query, k=k, where=where):
                before = found[one.chunk_id].similarity if one.chunk_id in found else 0.0
                similarity = min(1.0, max(one.dense or 0.0, before))
                found[one.chunk_id] = FoundPassage(collection, one, similarity)
                scores[one.chunk_id] = scores.get(one.chunk_id, 0.0) + 1 / (
                    RANK_CONSTANT + one.rank
                )
    return sorted(found.values(), key=lambda one: -scores[one.passage.chunk_id])


def mentions_across(collections: Mapping[Collection, Where | None], words: str) -> bool:
    """Whether a document of a collection has one of the words; arguments as `search_across`."""
    return any(one.mentions(words, where=where) for one, where in collections.items())

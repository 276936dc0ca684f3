"""Searches several collections of a library at once, with one query or several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from engine.retrieval.api.passage import Passage
from engine.retrieval.library.collection import Collection
from engine.retrieval.store.filters import Where

RANK_CONSTANT = 60
"""Of reciprocal rank fusion: higher values bring the ranks nearer to each other."""


Order = Literal["rank", "score"]


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage that was found.

    Attributes:
        collection: where it was found.
        passage: as the search found it that ranks it best.
        score: from 0 to 1, the greatest of any query: the cosine, or the score of words and meaning together
            where that is higher, as for identifiers.
    """

    collection: Collection
    passage: Passage
    score: float


def search_across(
    collections: Mapping[Collection, Where | None],
    queries: Sequence[str],
    *,
    k: int,
    order: Order = "rank",
) -> list[FoundPassage]:
    """The passages that fit best, best first; at most `k` of each collection and query.

    Args:
        collections: where to search, and the filter of each; all of one library.
        queries: what to search for.
        k: the largest number of passages of one search.
        order: "rank" has those first that are among the first of several results: the places are comparable
            where scores of collections are not. "score" has those first whose score is highest.

    Raises:
        InvalidRequest: a filter is malformed.
        ModelError: the embedding model is not installed, or another one than a collection's.
    """
    found: dict[int, FoundPassage] = {}  # by chunk id, which is unique in a library
    ranks: dict[int, float] = {}
    for query in queries:
        for collection, where in collections.items():
            for one in collection.search(query, k=k, where=where):
                now = FoundPassage(collection, one, min(1.0, max(0.0, one.dense or 0.0, one.score)))
                before = found.get(one.chunk_id, now)
                best = now if one.rank < before.passage.rank else before
                found[one.chunk_id] = replace(best, score=max(now.score, before.score))
                ranks[one.chunk_id] = ranks.get(one.chunk_id, 0.0) + 1 / (RANK_CONSTANT + one.rank)
    if order == "score":
        return sorted(found.values(), key=lambda one: -one.score)
    return sorted(found.values(), key=lambda one: -ranks[one.passage.chunk_id])


def mentions_across(collections: Mapping[Collection, Where | None], words: str) -> bool:
    """Whether a document of a collection has one of the words; arguments as `search_across`."""
    return any(one.mentions(words, where=where) for one, where in collections.items())

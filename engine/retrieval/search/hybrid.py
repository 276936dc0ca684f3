"""Searches a collection: by words, by meaning, or both, joined by reciprocal rank fusion."""

from dataclasses import replace

from engine.retrieval.api.passage import Mode, Passage
from engine.retrieval.search.fusion import reciprocal_rank_fusion
from engine.retrieval.store.collection_index import CollectionIndex
from engine.retrieval.store.filters import Where

_CANDIDATES = 64


def search(
    index: CollectionIndex, query: str, *, k: int, mode: Mode, where: Where | None = None
) -> list[Passage]:
    """The passages that fit a query best, best first.

    Args:
        index: the collection.
        query: words or a sentence.
        k: the largest number of passages.
        mode: by words, by meaning, or both.
        where: only passages of documents that this filter matches.
    """
    wanted = max(k, _CANDIDATES)
    lexical = dict(index.lexical(query, wanted, where)) if mode != "dense" else {}
    dense = _dense(index, query, wanted, where) if mode != "lexical" else {}
    if mode == "hybrid":
        scores = dict(reciprocal_rank_fusion([list(lexical), list(dense)])[:k])
    else:
        scores = dict(list((lexical or dense).items())[:k])
    return [
        replace(
            one,
            score=scores[one.chunk_id],
            dense=dense.get(one.chunk_id),
            lexical=lexical.get(one.chunk_id),
        )
        for one in index.passages(list(scores))
    ]


def _dense(index: CollectionIndex, query: str, k: int, where: Where | None) -> dict[int, float]:
    slots = index.slots(where)
    if index.vectors is None or not slots.allowed.any():
        return {}
    found, scores = index.vectors.search(index.embed([query]), k, allowed=slots.allowed)
    return {
        int(slots.chunk_ids[slot]): float(score)
        for slot, score in zip(found[0], scores[0], strict=True)
        if slot >= 0
    }

"""Searches a collection: by words, by meaning, or both, joined by a weighted sum.

Filters are applied before anything is scored. Passages that repeat a better one are moved back by maximal
marginal relevance. docs/retrieval.md has what each part adds.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.api.embeddings import Embeddings
from engine.api.errors import InvalidRequest
from engine.retrieval.api.passage import Mode, Passage
from engine.retrieval.search.diversity import select_diverse
from engine.retrieval.search.fusion import weighted_sum
from engine.retrieval.store.collection_index import CollectionIndex
from engine.retrieval.store.filters import Where
from engine.retrieval.store.lexical_search import LexicalMatches
from engine.retrieval.store.slots import Slots
from engine.retrieval.store.word_forms import plain_form

CANDIDATES = 100
"""Least number of passages of each ranking that are joined."""

RELEVANCE_WEIGHT = 0.95
"""Weight of relevance against novelty: a copy of a better passage moves back by some places."""


def search(
    index: CollectionIndex, query: str, *, k: int, mode: Mode = "hybrid", where: Where | None = None
) -> list[Passage]:
    """The passages that fit a query best, best first. All but lexical ones have their cosine to the query.

    Args:
        index: the collection.
        query: words or a sentence; any text is valid.
        k: the largest number of passages.
        mode: by words, by meaning, or both.
        where: only passages of documents that this filter matches.

    Raises:
        InvalidRequest: the query is empty or the filter is malformed.
    """
    if not query.strip():
        raise InvalidRequest("The query is empty.", param="query")
    wanted = max(k, CANDIDATES)
    vectors = _QueryVectors(index, query, where)
    lexical: dict[int, float] = {}
    dense: dict[int, float] = {}
    if mode == "dense":
        ranked = dense = vectors.nearest(wanted)
    elif mode == "lexical":
        ranked = lexical = dict(index.lexical(query, wanted, where))
    else:
        nearest, matches = _both(index, vectors, query, wanted, where)
        lexical = dict(matches.scores)
        dense, embedded = vectors.read([*lexical, *(nearest.keys() - lexical)])
        fused = dict(weighted_sum(lexical, matches.ideal, dense))
        rows = {one: row for row, one in enumerate(dense)}
        ranked = _diverse(fused, embedded[[rows[one] for one in fused]], k) if fused else lexical
    chunk_ids = list(ranked)
    passages = index.passages(chunk_ids[:k])
    return [
        replace(
            one,
            rank=rank,
            score=ranked[one.chunk_id],
            dense=dense.get(one.chunk_id),
            lexical=lexical.get(one.chunk_id),
        )
        for rank, one in enumerate(passages, start=1)
    ]


def _both(
    index: CollectionIndex, vectors: "_QueryVectors", query: str, k: int, where: Where | None
) -> tuple[dict[int, float], LexicalMatches]:
    """Search by meaning on another thread while this one searches by words; both release the GIL.

    The other thread must not read the database: every thread that does has a connection until the end.
    """
    if not vectors.open():
        return {}, index.lexical_matches(query, k, where)
    vectors.begin()
    with ThreadPoolExecutor(1, "pravaha-nearest") as beside:
        nearest = beside.submit(vectors.nearest, k)
        matches = index.lexical_matches(query, k, where)
        return nearest.result(), matches


def _diverse(scores: dict[int, float], embedded: NDArray[np.float32], k: int) -> dict[int, float]:
    """The best `k` of the scores, copies of a better passage moved back."""
    chunk_ids = list(scores)
    relevance = np.fromiter(scores.values(), np.float32, len(scores))
    order = select_diverse(relevance, embedded, k, weight=RELEVANCE_WEIGHT)
    return {chunk_ids[at]: scores[chunk_ids[at]] for at in order}


class _QueryVectors:
    """The vectors of a collection, seen from one query. The query is embedded once, when it is needed."""

    def __init__(self, index: CollectionIndex, query: str, where: Where | None) -> None:
        self._index, self._text, self._where = index, query, where
        self._vector: Future[Embeddings] | None = None
        self._slots: Slots | None = None

    def open(self) -> bool:
        """Read from the database what the other methods need; whether there is any vector to search."""
        if self._slots is None and self._index.vectors is not None:
            self._slots = self._index.slots(self._where)
        return self._slots is not None and bool(self._slots.allowed.any())

    def begin(self) -> Future[Embeddings]:
        """Have the query embedded, which this does not wait for; also reads the database."""
        if self._vector is None:
            self._vector = self._index.submit([plain_form(self._text).strip() or self._text])
        return self._vector

    def nearest(self, k: int) -> dict[int, float]:
        """The chunks of highest cosine, best first."""
        if not self.open() or self._index.vectors is None or self._slots is None:
            return {}
        slots = self._slots
        found, scores = self._index.vectors.search(self._embedded(), k, allowed=slots.allowed)
        return {
            int(slots.chunk_ids[slot]): float(score)
            for slot, score in zip(found[0], scores[0], strict=True)
            if slot >= 0
        }

    def read(self, chunk_ids: Sequence[int]) -> tuple[dict[int, float], NDArray[np.float32]]:
        """Cosines by chunk and vectors [chunks, dimensions]; chunks without a vector are left out."""
        if not self.open() or self._index.vectors is None or self._slots is None or not chunk_ids:
            return {}, np.zeros((0, 1), np.float32)
        slots = self._slots
        rows = np.flatnonzero(np.isin(slots.chunk_ids, np.array(chunk_ids, np.int64)))
        at = {int(slots.chunk_ids[row]): int(row) for row in rows}
        known = [one for one in chunk_ids if one in at]
        vectors = self._index.vectors.read(np.array([at[one] for one in known], np.int64))
        cosines = vectors @ self._embedded()[0]
        return dict(zip(known, map(float, cosines), strict=True)), vectors

    def _embedded(self) -> NDArray[np.float32]:
        return self.begin().result().vectors

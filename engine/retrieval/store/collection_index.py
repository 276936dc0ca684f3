"""`CollectionIndex`: what a search reads of one collection."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.api.embeddings import Embeddings
from engine.retrieval.api.passage import Passage
from engine.retrieval.store.filters import Where
from engine.retrieval.store.lexical_search import LexicalMatches
from engine.retrieval.store.slots import Slots
from engine.retrieval.store.store import Store


class SearchableVectors(Protocol):
    """What a search needs of a `VectorIndex`; slot i is the chunk `Slots.chunk_ids[i]`."""

    def search(
        self, queries: NDArray[np.float32], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """[queries, k] slots and scores, best first; slot -1 where fewer than k are allowed."""

    def read(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """[slots, dimensions] vectors."""


@dataclass(frozen=True, slots=True)
class CollectionIndex:
    """One collection, for `engine.retrieval.search`.

    Attributes:
        store: the database.
        collection_id: the collection.
        vectors: its vectors; None while it has no chunk.
        live: the slots of these vectors; None without vectors.
        submit: starts to embed texts as the chunks were; does not wait.
    """

    store: Store
    collection_id: int
    vectors: SearchableVectors | None
    live: Slots | None
    submit: Callable[[Sequence[str]], Future[Embeddings]]

    def lexical(self, query: str, k: int, where: Where | None = None) -> list[tuple[int, float]]:
        """Chunk ids and BM25, best first."""
        return self.lexical_matches(query, k, where).scores

    def lexical_matches(self, query: str, k: int, where: Where | None = None) -> LexicalMatches:
        """See `Store.lexical`."""
        return self.store.lexical(self.collection_id, query, k, where)

    def slots(self, where: Where | None = None) -> Slots:
        """The rows of `vectors` that a search may return.

        Args:
            where: only chunks of documents that this filter matches.
        """
        if self.live is None:
            return self.store.slots(self.collection_id, where)
        if where is None:
            return self.live
        return self.store.slots_within(self.live, self.collection_id, where)

    def passages(self, chunk_ids: Sequence[int]) -> list[Passage]:
        """See `Store.passages`."""
        return self.store.passages(chunk_ids)

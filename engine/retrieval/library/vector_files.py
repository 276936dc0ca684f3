"""`VectorFiles`: the vector files of a library that are open for reading."""

import threading

from engine.retrieval.store.collection_vectors import lost_vectors, open_vectors
from engine.retrieval.store.errors import RetrievalStoreError
from engine.retrieval.store.records import CollectionRecord
from engine.retrieval.store.slots import Slots
from engine.retrieval.store.store import Store
from engine.retrieval.vectors.vector_index import VectorIndex


class VectorFiles:
    """Opens each vector file once. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._files: dict[int, tuple[int, VectorIndex]] = {}

    def get(self, record: CollectionRecord) -> tuple[VectorIndex, Slots] | None:
        """The vectors of a collection and its slots, which fit each other; None if it has no vector yet.

        A file that was rewritten since is dropped; searches in it end normally, then it is closed.

        Raises:
            RetrievalStoreError: they are missing or damaged.
        """
        if record.dimensions is None:
            return None
        if record.vectors_lost:
            raise lost_vectors(record, "not all of them are computed")
        while True:
            slots = self._store.slots(record.id)
            try:
                return self._open(record, slots.rewrites), slots
            except RetrievalStoreError:
                if self._store.slots(record.id).rewrites == slots.rewrites:
                    raise
                # Another process has rewritten the vectors and deleted the file in between.

    def close(self, collection_id: int | None = None) -> None:
        """Close the file of one collection, or all; searches that run end normally."""
        with self._lock:
            for one in list(self._files) if collection_id is None else [collection_id]:
                _, file = self._files.pop(one, (0, None))
                if file is not None:
                    file.close()

    def _open(self, record: CollectionRecord, rewrites: int) -> VectorIndex:
        with self._lock:
            known = self._files.get(record.id)
            if known is None or known[0] < rewrites:
                known = rewrites, open_vectors(self._store, record, rewrites=rewrites)
                self._files[record.id] = known
            if known[0] == rewrites:
                return known[1]
        return open_vectors(self._store, record, rewrites=rewrites)

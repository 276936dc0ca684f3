"""`VectorFiles`: the vector files of a library that are open for reading."""

import threading

from engine.retrieval.indexing.collection_writer import open_vectors
from engine.retrieval.store.records import CollectionRecord
from engine.retrieval.store.store import Store
from engine.retrieval.vectors.vector_file import VectorFile


class VectorFiles:
    """Opens each vector file once. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._files: dict[int, VectorFile] = {}

    def get(self, record: CollectionRecord) -> VectorFile | None:
        """The vector file of a collection; None if it has no vector yet.

        Raises:
            RetrievalStoreError: it is missing or damaged.
        """
        if record.dimensions is None:
            return None
        with self._lock:
            if record.id not in self._files:
                self._files[record.id] = open_vectors(self._store.vector_path(record.id), record)
            return self._files[record.id]

    def close(self, collection_id: int | None = None) -> None:
        """Close the file of one collection, or all; searches that run end normally."""
        with self._lock:
            for one in list(self._files) if collection_id is None else [collection_id]:
                file = self._files.pop(one, None)
                if file is not None:
                    file.close()

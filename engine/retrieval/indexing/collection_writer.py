"""`CollectionWriter`: the one writer of a collection's rows and vectors, which commit together."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from engine.retrieval.api.chunk import Chunk
from engine.retrieval.store.errors import store_errors
from engine.retrieval.store.new_document import NewDocument
from engine.retrieval.store.plain_vector_file import PlainVectorFile
from engine.retrieval.store.records import CollectionRecord
from engine.retrieval.store.store import Store
from engine.retrieval.store.store_writer import StoreWriter

log = logging.getLogger(__name__)


class CollectionWriter:
    """Writes to one collection. For one thread; use `opened`."""

    def __init__(self, rows: StoreWriter, store: Store, record: CollectionRecord) -> None:
        self.rows = rows
        self.record = record
        self._path = store.vector_path(record.id)
        self._vectors: PlainVectorFile | None = None
        self._slots = record.slots
        self._dimensions = record.dimensions
        self._document_id: int | None = None

    @classmethod
    @contextmanager
    def opened(cls, store: Store, name: str) -> "Iterator[CollectionWriter]":
        """The writer of a collection; what was not committed at the end is undone.

        Raises:
            UnknownCollection: there is no such collection.
            LibraryBusy: there is another writer.
            RetrievalStoreError: the files cannot be used.
        """
        store.collection(name)  # before the database is created by the lock
        with StoreWriter.open(store.directory) as rows:
            writer = cls(rows, store, store.collection(name))
            try:
                writer._recover()
                yield writer
            finally:
                if writer._vectors is not None:
                    writer._vectors.close()

    def add(
        self,
        document: NewDocument,
        chunks: Sequence[Chunk],
        vectors: NDArray[np.float32],
        *,
        more: bool,
    ) -> None:
        """Add a document, or its next chunks.

        Args:
            document: the document.
            chunks: its next chunks.
            vectors: [chunks, dimensions].
            more: whether further chunks of this document follow in the next call.
        """
        if self._document_id is None:
            self._document_id = self.rows.begin_document(
                self.record.id, document, first_slot=self._slots
            )
        if len(chunks):
            self._append(vectors)
            self.rows.add_chunks(self._document_id, chunks)
        if not more:
            self.rows.finish_document(self._document_id)
            self._document_id = None

    def add_failed(self, document: NewDocument) -> None:
        """Record a file that cannot be read, in place of the document of its path."""
        self.rows.add_failed(self.record.id, document)

    def commit(self) -> None:
        """Make everything durable that was added or removed."""
        if self._vectors is not None:
            self._vectors.sync()
        self.rows.commit(self.record.id, slots=self._slots, dimensions=self._dimensions)

    def purge(self) -> bool:
        """Remove the bytes of deleted documents from all files, after `commit`; see `StoreWriter.purge`."""
        erasures = self.rows.erasures(self.record.id)
        if not erasures:
            return True
        for slots in erasures:
            self._file().clear(slots)
        self._file().sync()
        return self.rows.purge(self.record.id)

    def _append(self, vectors: NDArray[np.float32]) -> None:
        if self._dimensions is None:
            self._dimensions = vectors.shape[1]
            self._vectors = PlainVectorFile.create(
                self._path, self._dimensions, self.record.vector_type
            )
        slots = self._file().append(vectors)
        if slots.start != self._slots:
            raise RuntimeError(f"vectors were appended at {slots.start} instead of {self._slots}")
        self._slots = slots.stop

    def _file(self) -> PlainVectorFile:
        if self._vectors is None:
            self._vectors = PlainVectorFile.open(self._path)
        return self._vectors

    def _recover(self) -> None:
        """Drop what a crash has left behind."""
        with store_errors(self._path):
            if self._dimensions is None:
                self._path.unlink(missing_ok=True)
                return
            self._file().truncate(self._slots)
        if self.rows.erasures(self.record.id):
            self.purge()

"""`CollectionWriter`: the one writer of a collection's rows and vectors, which commit together.

Vectors become durable before the commit of the rows that refer to them, and are zeroed only after the commit
that deletes those rows. So a crash at any moment leaves rows with their vectors, and at most vectors
without rows, which the next writer drops.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.api.error_text import first_line
from engine.retrieval.api.chunk import Chunk
from engine.retrieval.store.errors import RetrievalStoreError, store_errors
from engine.retrieval.store.new_document import NewDocument
from engine.retrieval.store.records import CollectionRecord
from engine.retrieval.store.store import Store
from engine.retrieval.store.store_writer import StoreWriter
from engine.retrieval.vectors.errors import DamagedVectors
from engine.retrieval.vectors.vector_file import VectorFile


class CollectionWriter:
    """Writes to one collection. For one thread; use `opened`.

    Attributes:
        rows: the database.
        record: the collection as it was when the writer was opened.
    """

    def __init__(self, rows: StoreWriter, store: Store, record: CollectionRecord) -> None:
        self.rows = rows
        self.record = record
        self._path = store.vector_path(record.id)
        self._vectors: VectorFile | None = None
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
            RetrievalStoreError: the files cannot be used, or the disk is full.
        """
        store.collection(name)  # else the lock would create a library
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
        if chunks:
            self._append(vectors)
            self.rows.add_chunks(self._document_id, chunks)
        if not more:
            self.rows.finish_document(self._document_id)
            self._document_id = None

    def add_failed(self, document: NewDocument) -> None:
        """Record a file that cannot be read, in place of the document of its path."""
        self.rows.add_failed(self.record.id, document)

    def stored_slots(self, document: NewDocument, chunks: Sequence[Chunk]) -> dict[int, int]:
        """Slots of the chunks whose very text is stored for a former version or a copy of the file.

        Returns:
            Slots by the index of the chunk.
        """
        texts: Mapping[str, int] = self.rows.stored_texts(
            self.record.id, document.path, document.content_hash
        )
        if not texts:
            return {}
        return {at: texts[one.text] for at, one in enumerate(chunks) if one.text in texts}

    def read_vectors(self, slots: Sequence[int]) -> NDArray[np.float32]:
        """Stored vectors: [slots, dimensions]."""
        return self._file().read(np.array(slots, np.int64))

    def commit(self) -> None:
        """Make everything durable that was added or removed."""
        if self._vectors is not None:
            self._vectors.sync()
        self.rows.commit(self.record.id, slots=self._slots, dimensions=self._dimensions)

    def purge(self) -> bool:
        """Remove the bytes of deleted documents from all files, after `commit`; see `StoreWriter.purge`."""
        erasures = self.rows.erasures(self.record.id)
        if not erasures and not self.rows.purge_pending:
            return True
        if erasures:
            file = self._file()
            for slots in erasures:
                file.clear(np.arange(slots.start, slots.stop))
            file.sync()
        return self.rows.purge(self.record.id)

    def _append(self, vectors: NDArray[np.float32]) -> None:
        if self._dimensions is None:
            self._dimensions = vectors.shape[1]
            self._vectors = VectorFile.create(self._path, self._dimensions, self.record.vector_type)
        slots = self._file().append(vectors)
        if slots.start != self._slots:
            raise RuntimeError(f"vectors were appended at {slots.start} instead of {self._slots}")
        self._slots = slots.stop

    def _file(self) -> VectorFile:
        if self._vectors is None:
            self._vectors = open_vectors(self._path, self.record)
        return self._vectors

    def _recover(self) -> None:
        """Drop what a crash has left behind."""
        self.rows.mark_stale(self.record.id)
        with store_errors(self._path):
            if self._dimensions is None:
                self._path.unlink(missing_ok=True)
                return
            file = self._file()
            if file.rows < self._slots:
                raise _damaged(
                    self.record, f"{self._path} has {file.rows} vectors, not {self._slots}"
                )
            file.truncate(self._slots)
        if self.rows.erasures(self.record.id):
            self.purge()


def open_vectors(path: Path, record: CollectionRecord) -> VectorFile:
    """The vector file of a collection, which has vectors.

    Raises:
        RetrievalStoreError: it is missing or damaged.
    """
    try:
        return VectorFile.open(path)
    except (OSError, DamagedVectors) as error:
        raise _damaged(record, first_line(error)) from error


def _damaged(record: CollectionRecord, reason: str) -> RetrievalStoreError:
    return RetrievalStoreError(
        f"The vectors of {record.name} cannot be read ({reason}): remove the collection and add its "
        "documents again."
    )

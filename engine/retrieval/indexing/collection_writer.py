"""`CollectionWriter`: the one writer of a collection's rows and vectors, which commit together.

Vectors become durable before the commit of the rows that refer to them, and are zeroed only after the commit
that deletes those rows. So a crash at any moment leaves rows with their vectors, and at most vectors
without rows, which the next writer drops.

Dead rows beyond `MAX_DEAD_SHARE` are removed by copying the live ones to a new file, to which the database
switches in one commit, together with the slots of all documents.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from engine.retrieval.api.chunk import Chunk
from engine.retrieval.store.collection_vectors import (
    create_vectors,
    delete_unused_files,
    delete_unused_tables,
    lost_vectors,
    open_vectors,
)
from engine.retrieval.store.errors import RetrievalStoreError, is_disk_full, store_errors
from engine.retrieval.store.new_document import NewDocument
from engine.retrieval.store.records import CollectionRecord
from engine.retrieval.store.store import Store
from engine.retrieval.store.store_writer import StoreWriter
from engine.retrieval.store.stored_texts import StoredTexts
from engine.retrieval.vectors.vector_index import VectorIndex

MAX_DEAD_SHARE = 0.25
"""Beyond this share of dead rows a deletion rewrites the vectors: at most three are copied for a dead one."""

MIN_DEAD_SLOTS = 1024
"""Fewer dead rows are left: they take less than a megabyte."""

_COPIED_ROWS = 16_384


class CollectionWriter:
    """Writes to one collection. For one thread; use `opened`.

    Attributes:
        rows: the database.
        record: the collection as it was when the writer was opened.
    """

    def __init__(self, rows: StoreWriter, store: Store, record: CollectionRecord) -> None:
        self.rows = rows
        self.record = record
        self._store = store
        self._rewrites = record.rewrites
        self._vectors: VectorIndex | None = None
        self._slots = record.slots
        self._dimensions = record.dimensions
        self._document_id: int | None = None

    @classmethod
    @contextmanager
    def opened(
        cls, store: Store, name: str, *, usable: bool = True
    ) -> "Iterator[CollectionWriter]":
        """The writer of a collection; what was not committed at the end is undone.

        Args:
            store: the database.
            name: the collection.
            usable: whether its vectors must be usable; else `replace_lost` is to be called first.

        Raises:
            UnknownCollection: there is no such collection.
            LibraryBusy: there is another writer.
            RetrievalStoreError: the files cannot be used, or the disk is full.
        """
        store.collection(name)  # else the lock would create a library
        with StoreWriter.open(store.directory) as rows:
            writer = cls(rows, store, store.collection(name))
            try:
                writer._recover(usable=usable)
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
        """Record a file that cannot be read, in place of the document of its path.

        What `add` has stored of it, with `more`, is deleted.
        """
        self._document_id = None
        self.rows.add_failed(self.record.id, document)

    def stored_texts(self, document: NewDocument) -> StoredTexts | None:
        """The texts whose vectors are stored for a former version or a copy of the file; None if none are."""
        return self.rows.stored_texts(self.record.id, document.path, document.content_hash)

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
            file.clear(np.concatenate([np.arange(one.start, one.stop) for one in erasures]))
            file.sync()
            self._compact_if_sparse()
        return self.rows.purge(self.record.id)

    def compact(self) -> int:
        """Remove the dead rows of the vectors, after `commit` and after they were zeroed.

        Returns:
            How many there were.

        Raises:
            OSError: the disk is full; nothing has changed.
        """
        places = np.array(self.rows.vector_ranges(self.record.id), np.int64).reshape(-1, 3)
        ids, firsts, counts = places.T
        ends = np.cumsum(counts)
        dead = self._slots - int(counts.sum())
        if not dead:
            return 0
        old = self._file()
        live = np.repeat(firsts - (ends - counts), counts) + np.arange(int(counts.sum()))
        new = create_vectors(
            self._store,
            self.record,
            rewrites=self._rewrites + 1,
            dimensions=self._dimensions or 1,
        )
        try:
            for at in range(0, len(live), _COPIED_ROWS):
                new.append_copies(old, live[at : at + _COPIED_ROWS])
            new.sync()
        except BaseException:
            new.close()
            delete_unused_files(self._store)
            raise
        moved = zip(ids.tolist(), (ends - counts).tolist(), strict=True)
        self._switch(new, lost=False, first_slots=dict(moved))
        return dead

    def maintain(self) -> None:
        """Do what makes later searches fast, after `commit`."""
        if self._dimensions is not None:
            ranges = self.rows.vector_ranges(self.record.id)
            self._file().maintain(sum(count for _, _, count in ranges))

    def replace_lost(self) -> VectorIndex:
        """The vectors; if they are unusable, others in which every row is zero. `finish_restoring` follows.

        Documents that were not complete are deleted: their vectors would be taken over by the next run.

        Raises:
            OSError: the disk is full.
        """
        self.rows.remove_stale(self.record.id)
        self.commit()
        try:
            if self._file().rows >= self._slots:
                return self._file()
            self._file().close()
        except RetrievalStoreError:
            pass
        dimensions = self._dimensions or 1
        new = create_vectors(
            self._store, self.record, rewrites=self._rewrites + 1, dimensions=dimensions
        )
        for at in range(0, self._slots, _COPIED_ROWS):
            rows = min(_COPIED_ROWS, self._slots - at)
            new.append(np.zeros((rows, dimensions), np.float32))
        new.sync()
        self._switch(new, lost=True, first_slots={})
        return new

    def finish_restoring(self) -> None:
        """All vectors were computed anew and are durable."""
        self.rows.set_vectors_lost(self.record.id, lost=False)
        self.commit()

    def _compact_if_sparse(self) -> None:
        live = sum(count for _, _, count in self.rows.vector_ranges(self.record.id))
        dead = self._slots - live
        if dead < MIN_DEAD_SLOTS or dead <= MAX_DEAD_SHARE * self._slots:
            return
        try:
            self.compact()
        except OSError as error:
            if not is_disk_full(error):
                raise
            # The deletion itself is done. The next one tries again.

    def _switch(self, new: VectorIndex, *, lost: bool, first_slots: Mapping[int, int]) -> None:
        """Commit that `new` holds the vectors, and delete the old file."""
        self.rows.switch_vectors(self.record.id, first_slots, lost=lost)
        if self._vectors is not None:
            self._vectors.close()
        self._vectors, self._slots, self._rewrites = new, new.rows, self._rewrites + 1
        self.commit()
        delete_unused_files(
            self._store
        )  # a table is dropped by the next writer: searches may be in it

    def _append(self, vectors: NDArray[np.float32]) -> None:
        if self._dimensions is None:
            self._dimensions = vectors.shape[1]
            self._vectors = create_vectors(
                self._store, self.record, rewrites=self._rewrites, dimensions=self._dimensions
            )
        slots = self._file().append(vectors)
        if slots.start != self._slots:
            raise RuntimeError(f"vectors were appended at {slots.start} instead of {self._slots}")
        self._slots = slots.stop

    def _file(self) -> VectorIndex:
        if self._vectors is None:
            self._vectors = open_vectors(self._store, self.record, rewrites=self._rewrites)
        return self._vectors

    def _recover(self, *, usable: bool) -> None:
        """Drop what a crash has left behind."""
        self.rows.mark_stale(self.record.id)
        delete_unused_files(self._store)
        delete_unused_tables(self.record)
        if self._dimensions is None or not usable:
            return
        if self.record.vectors_lost:
            raise lost_vectors(self.record, "not all of them are computed")
        with store_errors(self._store.path):
            file = self._file()
            if file.rows < self._slots:
                raise lost_vectors(self.record, f"there are {file.rows} vectors, not {self._slots}")
            file.truncate(self._slots)
        if self.rows.erasures(self.record.id):
            self.purge()

"""`StoreWriter`: the one writer of a library. Holds a lock that the kernel releases when the process dies.

Vectors are appended to the vector file first and made durable, then the database commits the rows that
refer to them. A crash between the two leaves rows of the vector file that no document owns; the next
writer truncates them.
"""

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path

import orjson

from engine.api.errors import InvalidRequest
from engine.files.file_lock import try_hold
from engine.files.sqlite_file import BUSY_MS
from engine.retrieval.api.chunk import Chunk
from engine.retrieval.api.passage import AttributeValue
from engine.retrieval.store.database import open_for_writing
from engine.retrieval.store.embedded_text import EMBEDDED_TEXT
from engine.retrieval.store.errors import LibraryBusy, store_errors
from engine.retrieval.store.filters import FILE_KEY, attribute_kind
from engine.retrieval.store.new_document import NewDocument
from engine.retrieval.store.records import Source
from engine.retrieval.store.scripts import unspaced_kind
from engine.retrieval.store.store import DATABASE
from engine.retrieval.store.stored_texts import StoredTexts
from engine.retrieval.store.word_index import (
    check_indexes,
    create_indexes,
    drop_indexes,
    index_chunks,
    optimize_indexes,
    rebuild_indexes,
    unindex_chunks,
)

_LOCK = "writer.lock"
_PURGE_BUSY_MS = 500
"""How long queries of other processes are waited for before the log is truncated."""


class StoreWriter:
    """Writes documents. Every method but `commit`, `rollback` and `purge` joins the open transaction.

    For one thread.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    @contextmanager
    def open(cls, directory: Path) -> "Iterator[StoreWriter]":
        """The writer of a library, whose directory is created if it does not exist.

        What was not committed at the end of the block is undone.

        Raises:
            LibraryBusy: there is another writer.
            RetrievalStoreError: the database cannot be used.
        """
        path = directory / DATABASE
        with ExitStack() as stack:
            stack.enter_context(store_errors(path))
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not stack.enter_context(try_hold(directory / _LOCK)):
                raise LibraryBusy(
                    f"Another process is adding to or deleting from {directory}: try again when it is done."
                )
            connection = open_for_writing(path)
            stack.callback(connection.close)
            writer = cls(connection, path)
            stack.callback(writer.rollback)
            yield writer

    def create_collection(
        self,
        name: str,
        *,
        model: str,
        vector_type: str,
        vector_store: str,
        dsn_env: str | None,
        vector_table: str | None,
    ) -> int:
        """Create a collection; returns its id. The arguments are attributes of `CollectionRecord`.

        Raises:
            InvalidRequest: there is one of this name.
        """
        self._begin()
        try:
            cursor = self._connection.execute(
                "INSERT INTO collection (name, model, vector_type, created, vector_store, dsn_env, "
                "vector_table) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (name, model, vector_type, time.time(), vector_store, dsn_env, vector_table),
            )
        except sqlite3.IntegrityError as error:
            raise InvalidRequest(f"There is a collection {name} already.", param="name") from error
        collection_id = int(cursor.lastrowid or 0)
        create_indexes(self._connection, collection_id)
        return collection_id

    def remove_collection(self, collection_id: int) -> None:
        """Delete a collection with its documents."""
        self._begin()
        drop_indexes(self._connection, collection_id)
        for first, end in self._chunk_ranges(collection_id):
            self._connection.execute("DELETE FROM chunk WHERE id >= ? AND id < ?", (first, end))
        self._connection.execute("DELETE FROM collection WHERE id = ?", (collection_id,))

    def add_source(self, collection_id: int, source: Source) -> None:
        """Remember what the user asked to add; replaces the entry of the same pattern."""
        self._begin()
        self.remove_source(collection_id, source.pattern)
        self._connection.execute(
            "INSERT INTO source (collection_id, pattern, exclude, attributes, removed, mounts) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (
                collection_id, source.pattern, json.dumps(source.exclude), json.dumps(source.attributes),
                json.dumps(source.removed), json.dumps(source.mounts),
            ),
        )  # fmt: skip

    def remove_source(self, collection_id: int, pattern: str) -> None:
        """Forget what was asked to be added."""
        self._begin()
        self._connection.execute(
            "DELETE FROM source WHERE collection_id = ? AND pattern = ?", (collection_id, pattern)
        )

    def set_mounts(self, collection_id: int, pattern: str, mounts: Sequence[str]) -> None:
        """Remember the mount points of a source."""
        self._begin()
        self._connection.execute(
            "UPDATE source SET mounts = ? WHERE collection_id = ? AND pattern = ?",
            (json.dumps(list(mounts)), collection_id, pattern),
        )

    def exclude_from_source(self, collection_id: int, source: Source, path: str) -> None:
        """Keep a removed file or folder of a source from being added again by a refresh."""
        self._begin()
        self._connection.execute(
            "UPDATE source SET removed = ? WHERE collection_id = ? AND pattern = ?",
            (json.dumps(sorted({*source.removed, path})), collection_id, source.pattern),
        )

    def mark_stale(self, collection_id: int) -> None:
        """Mark the documents that a crash has left partial, within a transaction of its own."""
        self._connection.execute(
            "UPDATE document SET status = 'stale' WHERE collection_id = ? AND status = 'partial'",
            (collection_id,),
        )

    def remove_stale(self, collection_id: int) -> None:
        """Delete what former runs have left partial."""
        self._begin()
        self._delete("collection_id = ? AND status = 'stale'", (collection_id,))

    def stored_texts(self, collection_id: int, path: str, content_hash: str) -> StoredTexts | None:
        """Texts whose vectors are stored for a former version of a file, or for a copy of it."""
        select = (
            "SELECT first_chunk, first_slot, chunks FROM document WHERE collection_id = ? "
            "AND status IN ('ready', 'stale') AND chunks > 0 AND "
        )
        # Two selections: for one with OR the planner would read the whole collection.
        ranges = self._connection.execute(
            f"{select} path = ? UNION {select} content_hash = ?",
            (collection_id, path, collection_id, content_hash),
        ).fetchall()
        if not ranges:
            return None
        rows = (
            self._connection.execute(
                f"SELECT {EMBEDDED_TEXT}, id, id + ? FROM chunk WHERE id >= ? AND id < ?",
                (first_slot - first_chunk, first_chunk, first_chunk + count),
            )
            for first_chunk, first_slot, count in ranges
        )
        return StoredTexts(self._connection, chain.from_iterable(rows))

    def begin_document(self, collection_id: int, document: NewDocument, *, first_slot: int) -> int:
        """Store a document without chunks, which is not found before `finish_document`; returns its id."""
        self._begin()
        cursor = self._connection.execute(
            "INSERT INTO document (collection_id, path, status, content_hash, size, mtime_ns, media_type, "
            "title, spans_of, encoding, text, reason, added, first_chunk, first_slot) "
            "SELECT ?, ?, 'partial', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, value, ? FROM counter "
            "WHERE name = 'next_chunk'",
            (
                collection_id, document.path, document.content_hash, document.size, document.mtime_ns,
                document.media_type, document.title, document.spans_of, document.encoding, document.text,
                document.reason, time.time(), first_slot,
            ),
        )  # fmt: skip
        document_id = int(cursor.lastrowid or 0)
        self._set_attributes(document_id, document.attributes)
        return document_id

    def add_chunks(self, document_id: int, chunks: Sequence[Chunk]) -> None:
        """Append chunks to the document that was begun last; their vectors have the next slots."""
        self._begin()
        (first,) = self._connection.execute(
            "UPDATE counter SET value = value + ? WHERE name = 'next_chunk' RETURNING value - ?",
            (len(chunks), len(chunks)),
        ).fetchone()
        self._connection.executemany(
            "INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    number, document_id, one.start, one.end, one.section_start, one.section_end,
                    one.tokens, one.line, one.page, orjson.dumps(one.heading_path).decode(),
                    int(unspaced_kind(one.text)), one.text, one.in_table,
                )
                for number, one in enumerate(chunks, first)
            ],
        )  # fmt: skip
        self._connection.execute(
            "UPDATE document SET chunks = chunks + ? WHERE id = ?", (len(chunks), document_id)
        )

    def finish_document(self, document_id: int) -> None:
        """Replace the former document of the same path; from the commit on this one is found."""
        self._begin()
        collection_id, path, first, count = self._connection.execute(
            "SELECT collection_id, path, first_chunk, chunks FROM document WHERE id = ?",
            (document_id,),
        ).fetchone()
        self._delete(
            "collection_id = ? AND path = ? AND id <> ?", (collection_id, path, document_id)
        )
        self._connection.execute(
            "UPDATE document SET status = 'ready' WHERE id = ?", (document_id,)
        )
        index_chunks(self._connection, collection_id, first, first + count)

    def add_failed(self, collection_id: int, document: NewDocument) -> None:
        """Record a file that cannot be read, in place of the former document of its path."""
        self._begin()
        self._delete("collection_id = ? AND path = ?", (collection_id, document.path))
        cursor = self._connection.execute(
            "INSERT INTO document (collection_id, path, status, reason, content_hash, size, mtime_ns, added) "
            "VALUES (?, ?, 'failed', ?, ?, ?, ?, ?)",
            (
                collection_id, document.path, document.reason, document.content_hash, document.size,
                document.mtime_ns, time.time(),
            ),
        )  # fmt: skip
        self._set_attributes(int(cursor.lastrowid or 0), document.attributes)

    def remove_documents(self, document_ids: Sequence[int]) -> None:
        """Delete documents with their chunks."""
        self._begin()
        for document_id in document_ids:
            self._delete("id = ?", (document_id,))

    def set_attributes(self, document_id: int, attributes: Mapping[str, AttributeValue]) -> None:
        """Replace the attributes of a document."""
        self._begin()
        self._connection.execute("DELETE FROM attribute WHERE document_id = ?", (document_id,))
        self._set_attributes(document_id, attributes)

    def commit(self, collection_id: int, *, slots: int, dimensions: int | None) -> None:
        """Commit; the vectors of `slots` rows must be durable."""
        if not self._connection.in_transaction:
            return
        self._connection.execute(
            "UPDATE collection SET slots = ?, dimensions = ?, generation = generation + 1 WHERE id = ?",
            (slots, dimensions, collection_id),
        )
        self._connection.execute("COMMIT")

    def rollback(self) -> None:
        """Undo what was not committed."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def check_indexes(self, collection_id: int) -> bool:
        """Whether the word indexes fit the chunks; reads everything."""
        try:
            check_indexes(self._connection, collection_id)
        except sqlite3.DatabaseError:
            return False
        return True

    def rebuild_indexes(self, collection_id: int) -> None:
        """Build the word indexes anew."""
        self._begin()
        rebuild_indexes(self._connection, collection_id)

    def erasures(self, collection_id: int) -> list[range]:
        """Slots of deleted documents whose vectors may still be in the vector file."""
        rows = self._connection.execute(
            "SELECT first_slot, slots FROM erasure WHERE collection_id = ?", (collection_id,)
        ).fetchall()
        return [range(first, first + count) for first, count in rows]

    def vector_ranges(self, collection_id: int) -> list[tuple[int, int, int]]:
        """Id, first slot and number of chunks of all documents, incomplete ones too, by slot."""
        return self._connection.execute(
            "SELECT id, first_slot, chunks FROM document WHERE collection_id = ? AND chunks > 0 "
            "ORDER BY first_slot",
            (collection_id,),
        ).fetchall()

    def switch_vectors(
        self, collection_id: int, first_slots: Mapping[int, int], *, lost: bool
    ) -> None:
        """The vectors are in the file of the next number, where documents begin at other slots.

        Args:
            collection_id: the collection.
            first_slots: by document; the others stay where they are.
            lost: whether vectors are missing in it.
        """
        self._begin()
        self._connection.executemany(
            "UPDATE document SET first_slot = ? WHERE id = ?",
            [(slot, document_id) for document_id, slot in first_slots.items()],
        )
        self._connection.execute(
            "UPDATE collection SET rewrites = rewrites + 1 WHERE id = ?", (collection_id,)
        )
        self.set_vectors_lost(collection_id, lost=lost)
        # The erasures name slots of the old file; what they were for in the database is still to be done.
        self._connection.execute("DELETE FROM erasure WHERE collection_id = ?", (collection_id,))
        self._set_purge_pending(True)

    def set_vectors_lost(self, collection_id: int, *, lost: bool) -> None:
        """Remember whether vectors are missing."""
        self._begin()
        self._connection.execute(
            "UPDATE collection SET vectors_lost = ? WHERE id = ?", (lost, collection_id)
        )

    def purge(self, collection_id: int | None) -> bool:
        """Remove the bytes of what was deleted from the database's files, after a commit.

        The vectors of `erasures` must have been zeroed durably. Deletion in a full-text index leaves the
        words in older segments until they are merged, and the log keeps old pages until it is truncated.

        Args:
            collection_id: a collection whose documents were deleted; None if it was removed itself.

        Returns:
            Whether it could be done; a query of another process prevents it, then the next deletion does it.
        """
        self._begin()
        if collection_id is not None:
            optimize_indexes(self._connection, collection_id)
            self._connection.execute(
                "DELETE FROM erasure WHERE collection_id = ?", (collection_id,)
            )
        self._set_purge_pending(True)
        self._connection.execute("COMMIT")
        self._connection.execute(f"PRAGMA busy_timeout = {_PURGE_BUSY_MS}")
        busy, _, _ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        self._connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        if not busy:
            self._set_purge_pending(False)
        return not busy

    @property
    def purge_pending(self) -> bool:
        """Whether a purge could not be completed."""
        (pending,) = self._connection.execute(
            "SELECT value FROM counter WHERE name = 'purge_pending'"
        ).fetchone()
        return bool(pending)

    def _set_purge_pending(self, pending: bool) -> None:
        self._connection.execute(
            "UPDATE counter SET value = ? WHERE name = 'purge_pending'", (int(pending),)
        )

    def _delete(self, condition: str, parameters: Sequence[object]) -> None:
        rows = self._connection.execute(
            "SELECT id, collection_id, status, first_chunk, first_slot, chunks FROM document "
            f"WHERE {condition}",
            parameters,
        ).fetchall()
        for document_id, collection_id, status, first_chunk, first_slot, count in rows:
            chunks = (first_chunk, first_chunk + count)
            if count and status == "ready":  # the chunks of partial documents are not indexed yet
                unindex_chunks(self._connection, collection_id, *chunks)
            self._connection.execute("DELETE FROM chunk WHERE id >= ? AND id < ?", chunks)
            self._connection.execute("DELETE FROM document WHERE id = ?", (document_id,))
            if count:
                self._connection.execute(
                    "INSERT INTO erasure VALUES (?, ?, ?)", (collection_id, first_slot, count)
                )

    def _chunk_ranges(self, collection_id: int) -> list[tuple[int, int]]:
        rows: list[tuple[int, int]] = self._connection.execute(
            "SELECT first_chunk, first_chunk + chunks FROM document WHERE collection_id = ?",
            (collection_id,),
        ).fetchall()
        return rows

    def _set_attributes(self, document_id: int, attributes: Mapping[str, AttributeValue]) -> None:
        self._connection.executemany(
            "INSERT INTO attribute (document_id, key, kind, value) VALUES (?, ?, ?, ?)",
            [(document_id, key, *attribute_kind(value)) for key, value in attributes.items()],
        )

    def _begin(self) -> None:
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")


def check_attributes(attributes: Mapping[str, AttributeValue]) -> None:
    """Check attributes before anything is stored.

    Raises:
        InvalidRequest: a key or a value cannot be stored.
    """
    for key, value in attributes.items():
        if not key or key == FILE_KEY:
            raise InvalidRequest(
                f"An attribute cannot be named {key!r}: `{FILE_KEY}` is the document's path.",
                param="attributes",
            )
        attribute_kind(value)

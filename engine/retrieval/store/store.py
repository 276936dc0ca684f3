"""`Store`: reads the database of collections. Thread-safe; any number of processes may read.

Each thread has a connection of its own, and each call reads one committed state. What a search needs of
every chunk of a collection is kept in memory (24 bytes a chunk) until a commit changes the collection.
"""

import json
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from engine.retrieval.api.errors import UnknownCollection, UnknownDocument
from engine.retrieval.api.passage import AttributeValue, Passage
from engine.retrieval.store.database import open_for_reading
from engine.retrieval.store.embedded_text import EMBEDDED_TEXT
from engine.retrieval.store.errors import store_errors
from engine.retrieval.store.filters import Where, document_condition
from engine.retrieval.store.lexical_search import LexicalMatches, lexical_search
from engine.retrieval.store.records import CollectionRecord, Counts, DocumentRecord, Source
from engine.retrieval.store.slots import Slots, slots_of

DATABASE = "retrieval.db"
FILES = "files"

_COLLECTION = (
    "SELECT id, name, model, vector_type, dimensions, slots, generation, created, rewrites, vectors_lost, "
    "vector_store, dsn_env, vector_table FROM collection"
)
_DOCUMENT = (
    "SELECT id, path, status, reason, content_hash, size, mtime_ns, media_type, title, spans_of, encoding, "
    "added, first_chunk, first_slot, chunks FROM document"
)
_PASSAGE = (
    "SELECT chunk.id, document.id, document.path, document.title, chunk.start, chunk.end, "
    "document.spans_of, chunk.text, chunk.tokens, chunk.headings, chunk.section_start, "
    "chunk.section_end, chunk.page, chunk.line, chunk.in_table FROM chunk "
    "JOIN document ON document.id = chunk.document_id AND document.status = 'ready'"
)


class Store:
    """Read access to the database in a directory, which need not exist yet."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / DATABASE
        self._local = threading.local()
        self._lock = threading.Lock()  # guards the two below
        self._connections: list[sqlite3.Connection] = []
        self._slots: dict[int, Slots] = {}

    def close(self) -> None:
        """Close the connections of all threads; the store must not be used afterwards."""
        with self._lock:
            connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()

    def vector_path(self, collection_id: int, rewrites: int) -> Path:
        """The vector file of a collection after so many rewrites."""
        return self.directory / f"{collection_id:d}{f'-{rewrites:d}' if rewrites else ''}.vectors"

    def files_path(self, collection_id: int) -> Path:
        """The folder of documents that are in no file of the user's."""
        return self.directory / FILES / str(collection_id)

    def keep_file(self, collection_id: int, name: str, data: bytes) -> Path:
        """Write such a document, all or nothing; returns its file.

        Raises:
            RetrievalStoreError: the disk is full.
        """
        path = self.files_path(collection_id) / name
        with store_errors(path), _new_file(path.with_name(f".{name}.new")) as new:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new.write_bytes(data)
            new.rename(path)
        return path

    def forget_file(self, collection_id: int, path: str) -> None:
        """Delete such documents: one, or all of a folder; others are left alone."""
        folder = self.files_path(collection_id)
        if folder in (Path(path), *Path(path).parents):
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                Path(path).unlink(missing_ok=True)

    def collections(self) -> list[CollectionRecord]:
        """All collections, by name."""
        if not self.path.exists():
            return []
        with self._reading() as connection:
            rows = connection.execute(f"{_COLLECTION} ORDER BY name").fetchall()
        return [CollectionRecord(*row) for row in rows]

    def collection(self, name: str) -> CollectionRecord:
        """A collection by its name.

        Raises:
            UnknownCollection: there is none.
        """
        for record in self.collections():
            if record.name == name:
                return record
        raise UnknownCollection(
            f"There is no collection {name}: create it with `pravaha rag create {name}`."
        )

    def documents(self, collection_id: int, where: Where | None = None) -> list[DocumentRecord]:
        """The ready and failed documents of a collection, by path."""
        condition, parameters = _matching(where)
        with self._reading() as connection:
            rows = connection.execute(
                f"{_DOCUMENT} WHERE collection_id = ? AND status IN ('ready', 'failed') AND {condition} "
                "ORDER BY path",
                (collection_id, *parameters),
            ).fetchall()
            attributes = _attributes(connection, [row[0] for row in rows])
        return [
            replace(DocumentRecord(*row), attributes=attributes.get(row[0], {})) for row in rows
        ]

    def document(self, document_id: int) -> DocumentRecord:
        """A ready document by its id.

        Raises:
            UnknownDocument: there is none.
        """
        with self._reading() as connection:
            row = connection.execute(
                f"{_DOCUMENT} WHERE id = ? AND status = 'ready'", (document_id,)
            ).fetchone()
            attributes = _attributes(connection, [document_id])
        if row is None:
            raise UnknownDocument(f"There is no document {document_id}.")
        return replace(DocumentRecord(*row), attributes=attributes.get(document_id, {}))

    def extracted_bytes(self, document_id: int, start: int, end: int) -> bytes | None:
        """A span of the UTF-8 of an extracted text; None if the document's spans refer to its file."""
        with self._reading() as connection:
            row = connection.execute(
                "SELECT substr(CAST(text AS BLOB), ? + 1, ? - ?) FROM document "
                "WHERE id = ? AND text IS NOT NULL",
                (start, end, start, document_id),
            ).fetchone()
        return None if row is None else row[0]

    def chunk_texts(
        self, document: DocumentRecord, start: int, end: int
    ) -> list[tuple[int, int, str]]:
        """Start, end and text of the document's chunks that overlap a span, in order."""
        with self._reading() as connection:
            return connection.execute(
                "SELECT start, end, text FROM chunk WHERE id >= ? AND id < ? AND start < ? AND end > ? "
                "ORDER BY start",
                (document.first_chunk, document.first_chunk + document.chunks, end, start),
            ).fetchall()

    def counts(self, collection_id: int) -> Counts:
        """How much a collection holds."""
        with self._reading() as connection:
            row = connection.execute(
                "SELECT count(*) FILTER (WHERE status = 'ready'), count(*) FILTER (WHERE status = 'failed'), "
                "coalesce(sum(chunks) FILTER (WHERE status = 'ready'), 0), "
                "coalesce(sum(size) FILTER (WHERE status = 'ready'), 0) "
                "FROM document WHERE collection_id = ?",
                (collection_id,),
            ).fetchone()
        return Counts(*row)

    def sources(self, collection_id: int) -> list[Source]:
        """What was added to a collection, in that order."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT pattern, exclude, attributes, removed, mounts FROM source "
                "WHERE collection_id = ? ORDER BY id",
                (collection_id,),
            ).fetchall()
        return [
            Source(
                pattern,
                tuple(json.loads(exclude)),
                json.loads(attributes),
                tuple(json.loads(removed)),
                tuple(json.loads(mounts)),
            )
            for pattern, exclude, attributes, removed, mounts in rows
        ]

    def lexical(
        self, collection_id: int, query: str, k: int, where: Where | None = None
    ) -> LexicalMatches:
        """Chunks that have a word of the query, ranked by BM25.

        Args:
            collection_id: the collection.
            query: a text; no character of it is an operator.
            k: the largest number of chunks.
            where: only chunks of documents that this filter matches.
        """
        condition, parameters = (None, []) if where is None else document_condition(where)
        with self._reading() as connection:
            return lexical_search(connection, collection_id, query, k, condition, parameters)

    def texts(self, chunk_ids: Sequence[int]) -> list[str]:
        """What was embedded of chunks that exist, in the order of the ids."""
        with self._reading() as connection:
            found = dict(
                connection.execute(
                    f"SELECT id, {EMBEDDED_TEXT} FROM chunk WHERE id IN (SELECT value FROM json_each(?))",
                    (json.dumps(list(map(int, chunk_ids))),),
                ).fetchall()
            )
        return [found[int(one)] for one in chunk_ids]

    def chunk_counts(self, document_ids: Sequence[int]) -> dict[int, int]:
        """How many chunks are stored of documents; reads all of their rows."""
        with self._reading() as connection:
            return dict(
                connection.execute(
                    "SELECT document.id, count(*) FROM document JOIN chunk "
                    "ON chunk.id >= first_chunk AND chunk.id < first_chunk + chunks "
                    "AND chunk.document_id = document.id "
                    "WHERE document.id IN (SELECT value FROM json_each(?)) GROUP BY document.id",
                    (json.dumps(list(document_ids)),),
                ).fetchall()
            )

    def slots(self, collection_id: int, where: Where | None = None) -> Slots:
        """The rows of the collection's vector file that a search may return.

        Args:
            collection_id: the collection.
            where: only chunks of documents that this filter matches.
        """
        with self._reading() as connection:
            found = self._current_slots(connection, collection_id)
        return found if where is None else self.slots_within(found, collection_id, where)

    def slots_within(self, slots: Slots, collection_id: int, where: Where) -> Slots:
        """The same slots, of which a search may return only those of documents that a filter matches."""
        condition, parameters = _matching(where)
        with self._reading() as connection:
            rows = connection.execute(
                f"SELECT id FROM document WHERE collection_id = ? AND {condition}",
                (collection_id, *parameters),
            ).fetchall()
        return slots.within(np.array([row[0] for row in rows], np.int64))

    def passages(
        self, chunk_ids: Sequence[int], *, collection_id: int | None = None
    ) -> list[Passage]:
        """The chunks with these ids, in their order, ranked from 1; deleted ones are left out.

        Args:
            chunk_ids: the ids.
            collection_id: only chunks of this collection.
        """
        with self._reading() as connection:
            rows = {
                row[0]: row
                for row in connection.execute(
                    f"{_PASSAGE} WHERE chunk.id IN (SELECT value FROM json_each(?)) "
                    "AND document.collection_id = coalesce(?, document.collection_id)",
                    (json.dumps(list(map(int, chunk_ids))), collection_id),
                )
            }
            attributes = _attributes(connection, [row[1] for row in rows.values()])
        found = [rows[one] for one in chunk_ids if one in rows]
        return [
            _passage(row, rank, attributes.get(row[1], {})) for rank, row in enumerate(found, 1)
        ]

    def _current_slots(self, connection: sqlite3.Connection, collection_id: int) -> Slots:
        row = connection.execute(
            "SELECT generation, rewrites, slots FROM collection WHERE id = ?", (collection_id,)
        ).fetchone()
        if row is None:
            raise UnknownCollection("The collection was removed.")
        generation, rewrites, rows = row
        with self._lock:
            known = self._slots.get(collection_id)
        if known is not None and known.generation == generation:
            return known
        ranges = connection.execute(
            "SELECT id, first_slot, first_chunk, chunks FROM document "
            "WHERE collection_id = ? AND status = 'ready' AND chunks > 0",
            (collection_id,),
        ).fetchall()
        built = slots_of(generation, rewrites, rows, np.array(ranges, np.int64).reshape(-1, 4))
        with self._lock:
            self._slots[collection_id] = built
        return built

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """This thread's connection, within a transaction that sees one committed state."""
        with store_errors(self.path):
            connection = getattr(self._local, "connection", None)
            if connection is None:
                connection = self._local.connection = open_for_reading(self.path)
                with self._lock:
                    self._connections.append(connection)
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT")


@contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    """A file that is removed if the block fails."""
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _matching(where: Where | None) -> tuple[str, list[object]]:
    return ("1", []) if where is None else document_condition(where)


def _attributes(
    connection: sqlite3.Connection, document_ids: list[int]
) -> dict[int, dict[str, AttributeValue]]:
    found: dict[int, dict[str, AttributeValue]] = {}
    rows = connection.execute(
        "SELECT document_id, key, kind, value FROM attribute "
        "WHERE document_id IN (SELECT value FROM json_each(?))",
        (json.dumps(document_ids),),
    )
    for document_id, key, kind, value in rows:
        found.setdefault(document_id, {})[key] = bool(value) if kind == "bool" else value
    return found


def _passage(row: tuple[Any, ...], rank: int, attributes: dict[str, AttributeValue]) -> Passage:
    (chunk_id, document_id, path, title, start, end, spans_of, text, tokens, headings, *rest) = row
    section_start, section_end, page, line, in_table = rest
    return Passage(
        chunk_id, document_id, path, title, start, end, spans_of, text, tokens,
        tuple(json.loads(headings)), section_start, section_end, page, line,
        rank=rank, score=0.0, attributes=attributes, in_table=bool(in_table),
    )  # fmt: skip

"""`Catalogue`: the files and vector stores of the API.

It says what there is; the library holds what can be searched. A change is committed here first, and then the
library follows (`IndexingThread`).

All methods may be called from any thread. Each takes one short transaction: call them off the event loop.
"""

import sqlite3
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from app.server.retrieval.database import CatalogueDatabase
from app.server.retrieval.errors import NoSuchObject, RetrievalError, StoreExpired
from app.server.retrieval.paging import Page, PageRequest
from app.server.retrieval.records import (
    DAY_S,
    AttributeValue,
    FileBatch,
    FileCounts,
    FileState,
    StoreFile,
    UploadedFile,
    VectorStore,
)
from app.server.retrieval.wanted_contents import (
    FILE_COLUMNS,
    FILE_OF_STORE,
    LIVE_FILE,
    Gone,
    delete_files,
)

ACTIVITY_S = 60
"""`last_active_at` is at most so many seconds old while a vector store is in use."""
MAX_STORE_FILES = 10_000
"""Files in a vector store, as with OpenAI."""

_STORE_COLUMNS = "id, name, description, metadata, created_at, last_active_at, expires_days, state"
_STORE_FILE_COLUMNS = (
    "store_id, file_id, state, created_at, attributes, error_code, error, usage_bytes, batch_id"
)
_COUNTS = (
    "total(state = 'in_progress'), total(state = 'completed'), total(state = 'failed'), "
    "total(state = 'cancelled'), total(usage_bytes)"
)


@dataclass(frozen=True, slots=True)
class NewStoreFile:
    """A file to add to a vector store."""

    file_id: str
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SearchableFile:
    """A file of a vector store that a search may return."""

    file: UploadedFile
    attributes: dict[str, AttributeValue]


class Catalogue:
    """Files, vector stores, the files in them, and batches of those."""

    def __init__(self, database: CatalogueDatabase, *, clock: Callable[[], float]) -> None:
        """Read and write a database; `clock` returns Unix time in seconds."""
        self._database, self._clock = database, clock

    # Files.

    def add_file(self, file: UploadedFile) -> None:
        """Enter a file whose bytes are in place."""
        values = (
            file.id,
            file.filename,
            file.stored_as,
            file.purpose,
            file.size,
            file.created_at,
            file.expires_at,
        )
        with self._database.transaction() as db:
            db.execute(
                f"INSERT INTO file ({FILE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                values,
            )

    def file(self, file_id: str) -> UploadedFile:
        """A file.

        Raises:
            NoSuchObject: there is none.
        """
        row = self._database.row(
            f"SELECT {FILE_COLUMNS} FROM file WHERE id = ? AND {LIVE_FILE}",  # noqa: S608
            (file_id, self._now()),
        )
        if row is None:
            raise NoSuchObject("file", file_id)
        return UploadedFile(*row)

    def files(self, page: PageRequest, *, purpose: str | None = None) -> Page[UploadedFile]:
        """A page of the files, all or those of one purpose."""
        where = LIVE_FILE
        values: list[object] = [self._now()]
        if purpose is not None:
            where, values = f"{where} AND purpose = ?", [*values, purpose]
        rows = self._database.page("file", FILE_COLUMNS, where, values, page)
        return Page(tuple(UploadedFile(*row) for row in rows.items), rows.has_more)

    def stored_names(self) -> set[str]:
        """`stored_as` of every file."""
        return {row[0] for row in self._database.rows("SELECT stored_as FROM file")}

    def delete_file(self, file_id: str) -> Gone:
        """Delete a file here and from every vector store.

        Raises:
            NoSuchObject: there is none.
        """
        with self._database.transaction():
            return delete_files(self._database, [self.file(file_id)])

    # Vector stores.

    def create_store(
        self,
        *,
        name: str,
        description: str | None,
        metadata: Mapping[str, str],
        expires_days: int | None,
        files: Sequence[NewStoreFile] = (),
    ) -> VectorStore:
        """Create a vector store with files, which are then indexed.

        Raises:
            NoSuchObject: there is no such file.
        """
        store_id, now = f"vs_{uuid.uuid4().hex}", self._now()
        with self._database.transaction() as db:
            db.execute(
                "INSERT INTO vector_store (id, name, description, metadata, created_at, "
                "last_active_at, expires_days) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (store_id, name, description, _dump(metadata), now, now, expires_days),
            )
            self._add_store_files(db, store_id, files, batch_id=None)
            return self.store(store_id)

    def store(self, store_id: str) -> VectorStore:
        """A vector store.

        Raises:
            NoSuchObject: there is none.
        """
        row = self._database.row(
            f"SELECT {_STORE_COLUMNS} FROM vector_store WHERE id = ?",  # noqa: S608
            (store_id,),
        )
        if row is None:
            raise NoSuchObject("vector store", store_id)
        return self._store_from_row(row)

    def stores(self, page: PageRequest) -> Page[VectorStore]:
        """A page of the vector stores."""
        rows = self._database.page("vector_store", _STORE_COLUMNS, "1", (), page)
        return Page(tuple(self._store_from_row(row) for row in rows.items), rows.has_more)

    def modify_store(self, store_id: str, changes: Mapping[str, Any]) -> VectorStore:
        """Change `name`, `metadata` or `expires_days` of a vector store.

        Raises:
            NoSuchObject: there is none.
            StoreExpired: it has expired.
        """
        values = dict(changes)
        if "metadata" in values:
            values["metadata"] = _dump(values["metadata"])
        with self._database.transaction() as db:
            self.touch_store(store_id)
            for column in ("name", "metadata", "expires_days"):
                if column not in values:
                    continue
                value = values[column]
                db.execute(f"UPDATE vector_store SET {column} = ? WHERE id = ?", (value, store_id))  # noqa: S608
            return self.store(store_id)

    def touch_store(self, store_id: str) -> None:
        """Note that a vector store is in use, which puts its expiry off.

        Raises:
            NoSuchObject: there is none.
            StoreExpired: it has expired.
        """
        with self._database.transaction() as db:
            if self.store(store_id).expired:
                raise StoreExpired(f"The vector store {store_id!r} has expired; create a new one.")
            now = self._now()
            db.execute(  # not at every search: a commit waits for the disk
                "UPDATE vector_store SET last_active_at = ? WHERE id = ? AND last_active_at <= ?",
                (now, store_id, now - ACTIVITY_S),
            )

    def delete_store(self, store_id: str) -> None:
        """Delete a vector store.

        Raises:
            NoSuchObject: there is none.
        """
        with self._database.transaction() as db:
            self.store(store_id)
            db.execute("DELETE FROM vector_store WHERE id = ?", (store_id,))

    # Files in vector stores.

    def add_store_files(self, store_id: str, files: Sequence[NewStoreFile]) -> list[StoreFile]:
        """Add files, which are then indexed; one that is there already is indexed again.

        Raises:
            NoSuchObject: there is no such vector store or file.
            StoreExpired: the vector store has expired.
            RetrievalError: the vector store would have too many files.
        """
        with self._database.transaction() as db:
            self.touch_store(store_id)
            self._add_store_files(db, store_id, files, batch_id=None)
            return [self.store_file(store_id, one.file_id) for one in files]

    def store_file(self, store_id: str, file_id: str) -> StoreFile:
        """A file in a vector store.

        Raises:
            NoSuchObject: there is no such vector store, or the file is not in it.
        """
        self.store(store_id)
        row = self._database.row(
            f"SELECT {_STORE_FILE_COLUMNS} FROM store_file "  # noqa: S608
            "WHERE store_id = ? AND file_id = ?",
            (store_id, file_id),
        )
        if row is None:
            raise NoSuchObject("file", file_id, within=f"the vector store {store_id!r}")
        return _store_file_from_row(row)

    def store_files(
        self,
        store_id: str,
        page: PageRequest,
        *,
        state: FileState | None = None,
        batch_id: str | None = None,
    ) -> Page[StoreFile]:
        """A page of the files of a vector store, all or those in a state or of a batch.

        Raises:
            NoSuchObject: there is no such vector store or batch.
        """
        self.store(store_id)
        where, values = "store_id = ?", [store_id]
        if batch_id is not None:
            self.batch(store_id, batch_id)
            where, values = f"{where} AND batch_id = ?", [*values, batch_id]
        if state is not None:
            where, values = f"{where} AND state = ?", [*values, state]
        rows = self._database.page(
            "store_file", _STORE_FILE_COLUMNS, where, values, page, id_column="file_id"
        )
        return Page(tuple(map(_store_file_from_row, rows.items)), rows.has_more)

    def searchable_files(self, store_id: str, file_ids: Sequence[str]) -> dict[str, SearchableFile]:
        """Those of the files that are indexed in a vector store, by their ids."""
        rows = self._database.rows(
            f"SELECT attributes, {FILE_OF_STORE} FROM store_file "  # noqa: S608
            "JOIN file ON file.id = file_id WHERE store_id = ? AND state = 'completed' "
            f"AND {LIVE_FILE} AND file_id IN (SELECT value FROM json_each(?))",
            (store_id, self._now(), orjson.dumps(list(file_ids)).decode()),
        )
        found = [SearchableFile(UploadedFile(*row[1:]), orjson.loads(row[0])) for row in rows]
        return {one.file.id: one for one in found}

    def set_attributes(
        self, store_id: str, file_id: str, attributes: Mapping[str, AttributeValue]
    ) -> StoreFile:
        """Replace the attributes of a file in a vector store.

        Raises:
            NoSuchObject: there is no such vector store, or the file is not in it.
            StoreExpired: the vector store has expired.
        """
        with self._database.transaction() as db:
            self.touch_store(store_id)
            self.store_file(store_id, file_id)
            db.execute(
                "UPDATE store_file SET attributes = ? WHERE store_id = ? AND file_id = ?",
                (_dump(attributes), store_id, file_id),
            )
            return self.store_file(store_id, file_id)

    def remove_store_file(self, store_id: str, file_id: str) -> None:
        """Remove a file from a vector store.

        Raises:
            NoSuchObject: there is no such vector store, or the file is not in it.
            StoreExpired: the vector store has expired.
        """
        with self._database.transaction() as db:
            self.touch_store(store_id)
            self.store_file(store_id, file_id)
            db.execute(
                "DELETE FROM store_file WHERE store_id = ? AND file_id = ?", (store_id, file_id)
            )

    # Batches.

    def create_batch(self, store_id: str, files: Sequence[NewStoreFile]) -> FileBatch:
        """Add files as one batch.

        Raises:
            NoSuchObject, StoreExpired, RetrievalError: as `add_store_files`.
        """
        batch_id = f"vsfb_{uuid.uuid4().hex}"
        with self._database.transaction() as db:
            self.touch_store(store_id)
            db.execute(
                "INSERT INTO file_batch (id, store_id, created_at) VALUES (?, ?, ?)",
                (batch_id, store_id, self._now()),
            )
            self._add_store_files(db, store_id, files, batch_id=batch_id)
            return self.batch(store_id, batch_id)

    def batch(self, store_id: str, batch_id: str) -> FileBatch:
        """A batch.

        Raises:
            NoSuchObject: there is no such vector store or batch.
        """
        self.store(store_id)
        row = self._database.row(
            "SELECT id, store_id, created_at, cancelled FROM file_batch WHERE store_id = ? AND id = ?",
            (store_id, batch_id),
        )
        if row is None:
            raise NoSuchObject("file batch", batch_id, within=f"the vector store {store_id!r}")
        counts, _ = self._counts("batch_id", batch_id)
        return FileBatch(row[0], row[1], row[2], bool(row[3]), counts)

    def cancel_batch(self, store_id: str, batch_id: str) -> FileBatch:
        """Cancel the files of a batch that are not indexed yet; no effect on the others.

        Raises:
            NoSuchObject: there is no such vector store or batch.
        """
        with self._database.transaction() as db:
            if self.batch(store_id, batch_id).state == "in_progress":
                db.execute("UPDATE file_batch SET cancelled = 1 WHERE id = ?", (batch_id,))
                db.execute(
                    "UPDATE store_file SET state = 'cancelled' "
                    "WHERE batch_id = ? AND state = 'in_progress'",
                    (batch_id,),
                )
            return self.batch(store_id, batch_id)

    # Within.

    def _now(self) -> int:
        return int(self._clock())

    def _counts(self, column: str, value: str) -> tuple[FileCounts, int]:
        """Files of a vector store or a batch by state, and the bytes that they take."""
        row = self._database.row(
            f"SELECT {_COUNTS} FROM store_file WHERE {column} = ?",  # noqa: S608
            (value,),
        )
        *counts, usage = map(int, row)
        return FileCounts(*counts), usage

    def _store_from_row(self, row: Sequence[Any]) -> VectorStore:
        store_id, name, description, metadata, created, active, days, state = row
        expired = state != "open" or (days is not None and active + days * DAY_S <= self._now())
        counts, usage = (FileCounts(), 0) if expired else self._counts("store_id", store_id)
        return VectorStore(
            id=store_id,
            name=name,
            description=description,
            metadata=orjson.loads(metadata),
            created_at=created,
            last_active_at=active,
            expires_days=days,
            expired=expired,
            counts=counts,
            usage_bytes=usage,
        )

    def _add_store_files(
        self,
        db: sqlite3.Connection,
        store_id: str,
        files: Sequence[NewStoreFile],
        *,
        batch_id: str | None,
    ) -> None:
        for one in files:
            self.file(one.file_id)
            key = (store_id, one.file_id)
            db.execute("DELETE FROM store_file WHERE store_id = ? AND file_id = ?", key)
            db.execute(
                "INSERT INTO store_file (store_id, file_id, state, attributes, created_at, batch_id) "
                "VALUES (?, ?, 'in_progress', ?, ?, ?)",
                (*key, _dump(one.attributes), self._now(), batch_id),
            )
        if self._counts("store_id", store_id)[0].total > MAX_STORE_FILES:
            raise RetrievalError(f"A vector store holds at most {MAX_STORE_FILES} files.")


def _store_file_from_row(row: Sequence[Any]) -> StoreFile:
    store_id, file_id, state, created, attributes, code, error, usage, batch_id = row
    return StoreFile(
        store_id=store_id,
        file_id=file_id,
        state=state,
        created_at=created,
        attributes=orjson.loads(attributes),
        error_code=code,
        error=error,
        usage_bytes=usage,
        batch_id=batch_id,
    )


def _dump(value: Mapping[str, Any]) -> str:
    return orjson.dumps(dict(value)).decode()

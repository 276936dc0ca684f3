"""`Catalogue`: the files and vector stores of the API, in one SQLite database.

It says what there is; collections hold what can be searched. A change is committed here first and
reaches the collections by `next_work`. An object that is being deleted is invisible to every method but
that one.

All methods may be called from any thread. Each takes one short transaction under one lock: call them off
the event loop.
"""

import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from app.server.retrieval.errors import (
    BeingChanged,
    InvalidCursor,
    NoSuchObject,
    RetrievalError,
    RetrievalUnavailable,
    StoreExpired,
)
from app.server.retrieval.paging import Page, PageRequest
from app.server.retrieval.records import (
    DAY_S,
    AttributeValue,
    ErrorCode,
    FileBatch,
    FileCounts,
    FileState,
    StoreFile,
    UploadedFile,
    VectorStore,
)
from app.server.retrieval.work import (
    EraseFile,
    EraseStore,
    IndexFile,
    RemoveStoreFile,
    SetAttributes,
    Work,
)

SCHEMA_VERSION = 1
MAX_STORE_FILES = 10_000
"""Files in a vector store, as with OpenAI."""

_FILE_COLUMNS = "id, filename, stored_as, purpose, size, created_at, expires_at"
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
    """The database, created if it is missing."""

    def __init__(self, path: Path, *, clock: Callable[[], float]) -> None:
        """Open it.

        Args:
            path: the database; its folder exists.
            clock: Unix time in seconds.

        Raises:
            RetrievalUnavailable: it cannot be opened, or a newer version wrote it.
        """
        self._clock = clock
        self._lock = threading.RLock()
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._prepare()
        except sqlite3.Error as error:
            raise RetrievalUnavailable(
                f"The catalogue {path} cannot be opened: {error}."
            ) from error

    def close(self) -> None:
        """Close the database; no method may be called afterwards."""
        with self._lock:
            self._connection.close()

    # Files.

    def add_file(self, file: UploadedFile) -> None:
        """Enter a file whose bytes are in place."""
        with self._transaction() as db:
            db.execute(
                f"INSERT INTO file ({_FILE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                (
                    file.id,
                    file.filename,
                    file.stored_as,
                    file.purpose,
                    file.size,
                    file.created_at,
                    file.expires_at,
                ),
            )

    def file(self, file_id: str) -> UploadedFile:
        """A file.

        Raises:
            NoSuchObject: there is none.
        """
        row = self._one(
            f"SELECT {_FILE_COLUMNS} FROM file WHERE id = ? AND {_VISIBLE_FILE}",  # noqa: S608
            (file_id, self._now()),
        )
        if row is None:
            raise NoSuchObject("file", file_id)
        return UploadedFile(*row)

    def files(self, page: PageRequest, *, purpose: str | None = None) -> Page[UploadedFile]:
        """A page of the files, all or those of one purpose."""
        where, values = _VISIBLE_FILE, [self._now()]
        if purpose is not None:
            where, values = f"{where} AND purpose = ?", [*values, purpose]
        rows = self._page("file", "id", _FILE_COLUMNS, where, values, page)
        return Page(tuple(UploadedFile(*row) for row in rows.items), rows.has_more)

    def stored_names(self) -> set[str]:
        """`stored_as` of every file, also of those being deleted."""
        with self._lock:
            rows = self._connection.execute("SELECT stored_as FROM file").fetchall()
        return {row[0] for row in rows}

    def delete_file(self, file_id: str) -> None:
        """Make a file invisible here and in every vector store; the rest is work.

        Raises:
            NoSuchObject: there is none.
        """
        with self._transaction() as db:
            self.file(file_id)
            _delete_files(db, "id = ?", (file_id,))

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
        with self._transaction() as db:
            db.execute(
                "INSERT INTO vector_store (id, name, description, metadata, created_at, "
                "last_active_at, expires_days) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (store_id, name, description, _dumps(metadata), now, now, expires_days),
            )
            self._add_store_files(db, store_id, files, batch_id=None)
            return self.store(store_id)

    def store(self, store_id: str) -> VectorStore:
        """A vector store.

        Raises:
            NoSuchObject: there is none.
        """
        self._expire_stores()
        row = self._one(
            f"SELECT {_STORE_COLUMNS} FROM vector_store WHERE id = ? AND {_VISIBLE_STORE}",  # noqa: S608
            (store_id,),
        )
        if row is None:
            raise NoSuchObject("vector store", store_id)
        return self._store_from_row(row)

    def open_store(self, store_id: str) -> VectorStore:
        """A vector store that can be searched and changed.

        Raises:
            NoSuchObject: there is none.
            StoreExpired: it has expired.
        """
        store = self.store(store_id)
        if store.expired:
            raise StoreExpired(f"The vector store {store_id!r} has expired; create a new one.")
        return store

    def stores(self, page: PageRequest) -> Page[VectorStore]:
        """A page of the vector stores."""
        self._expire_stores()
        rows = self._page("vector_store", "id", _STORE_COLUMNS, _VISIBLE_STORE, (), page)
        return Page(tuple(self._store_from_row(row) for row in rows.items), rows.has_more)

    def modify_store(self, store_id: str, changes: Mapping[str, Any]) -> VectorStore:
        """Change `name`, `metadata` or `expires_days` of a vector store that has not expired.

        Raises:
            NoSuchObject: there is none.
            StoreExpired: it has expired.
        """
        values = dict(changes)
        if "metadata" in values:
            values["metadata"] = _dumps(values["metadata"])
        with self._transaction() as db:
            self.open_store(store_id)
            for column, value in values.items():
                if column not in ("name", "metadata", "expires_days"):
                    raise ValueError(column)
                db.execute(f"UPDATE vector_store SET {column} = ? WHERE id = ?", (value, store_id))  # noqa: S608
            return self.touch_store(store_id)

    def touch_store(self, store_id: str) -> VectorStore:
        """Note that a vector store is in use, which puts its expiry off; the store.

        Raises:
            NoSuchObject: there is none.
            StoreExpired: it has expired.
        """
        with self._transaction() as db:
            self.open_store(store_id)
            db.execute(
                "UPDATE vector_store SET last_active_at = ? WHERE id = ?", (self._now(), store_id)
            )
            return self.store(store_id)

    def delete_store(self, store_id: str) -> None:
        """Make a vector store invisible; its contents are work.

        Raises:
            NoSuchObject: there is none.
        """
        with self._transaction() as db:
            self.store(store_id)
            db.execute("UPDATE vector_store SET state = 'deleting' WHERE id = ?", (store_id,))

    # Files in vector stores.

    def add_store_files(self, store_id: str, files: Sequence[NewStoreFile]) -> list[StoreFile]:
        """Add files, which are then indexed; one that is there already is indexed again.

        Raises:
            NoSuchObject: there is no such vector store or file.
            StoreExpired: the vector store has expired.
            RetrievalError: the vector store would have too many files.
        """
        with self._transaction() as db:
            self.touch_store(store_id)
            self._add_store_files(db, store_id, files, batch_id=None)
            return [self.store_file(store_id, one.file_id) for one in files]

    def store_file(self, store_id: str, file_id: str) -> StoreFile:
        """A file in a vector store.

        Raises:
            NoSuchObject: there is no such vector store, or the file is not in it.
        """
        self.store(store_id)
        row = self._one(
            f"SELECT {_STORE_FILE_COLUMNS} FROM store_file "  # noqa: S608
            f"WHERE store_id = ? AND file_id = ? AND {_VISIBLE_STORE_FILE}",
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
            NoSuchObject: there is no such vector store.
        """
        self.store(store_id)
        where, values = f"store_id = ? AND {_VISIBLE_STORE_FILE}", [store_id]
        for column, value in (("state", state), ("batch_id", batch_id)):
            if value is not None:
                where, values = f"{where} AND {column} = ?", [*values, value]
        rows = self._page("store_file", "file_id", _STORE_FILE_COLUMNS, where, values, page)
        return Page(tuple(map(_store_file_from_row, rows.items)), rows.has_more)

    def searchable_files(self, store_id: str, file_ids: Sequence[str]) -> dict[str, SearchableFile]:
        """Those of the files that are in a vector store and not being deleted, by their ids."""
        marks = ", ".join("?" * len(file_ids))
        columns = ", ".join(f"file.{column}" for column in _FILE_COLUMNS.split(", "))
        with self._lock:
            rows = self._connection.execute(
                f"SELECT attributes, {columns} FROM store_file JOIN file ON file.id = file_id "  # noqa: S608
                f"WHERE store_id = ? AND state = 'completed' AND {_VISIBLE_FILE} "
                f"AND file_id IN ({marks})",
                [store_id, self._now(), *file_ids],
            ).fetchall()
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
        with self._transaction() as db:
            self.touch_store(store_id)
            self.store_file(store_id, file_id)
            db.execute(
                "UPDATE store_file SET attributes = ?, stale_attributes = 1 "
                "WHERE store_id = ? AND file_id = ?",
                (_dumps(attributes), store_id, file_id),
            )
            return self.store_file(store_id, file_id)

    def remove_store_file(self, store_id: str, file_id: str) -> None:
        """Make a file invisible in a vector store; the rest is work.

        Raises:
            NoSuchObject: there is no such vector store, or the file is not in it.
            StoreExpired: the vector store has expired.
        """
        with self._transaction() as db:
            self.touch_store(store_id)
            self.store_file(store_id, file_id)
            db.execute(
                "UPDATE store_file SET state = 'deleting' WHERE store_id = ? AND file_id = ?",
                (store_id, file_id),
            )

    # Batches.

    def create_batch(self, store_id: str, files: Sequence[NewStoreFile]) -> FileBatch:
        """Add files as one batch.

        Raises:
            As `add_store_files`.
        """
        batch_id = f"vsfb_{uuid.uuid4().hex}"
        with self._transaction() as db:
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
        row = self._one(
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
        with self._transaction() as db:
            if self.batch(store_id, batch_id).state == "in_progress":
                db.execute("UPDATE file_batch SET cancelled = 1 WHERE id = ?", (batch_id,))
                db.execute(
                    "UPDATE store_file SET state = 'cancelled' "
                    "WHERE batch_id = ? AND state = 'in_progress'",
                    (batch_id,),
                )
            return self.batch(store_id, batch_id)

    # Work.

    def next_work(self) -> Work | None:
        """What is to be done next: deletions, then attributes, then the file that waits longest."""
        self._expire_stores()
        self._expire_files()
        with self._lock:
            for find in (
                self._next_erased_store,
                self._next_removal,
                self._next_erased_file,
                self._next_attributes,
                self._next_index,
            ):
                work = find()
                if work is not None:
                    return work
        return None

    def next_expiry(self) -> float | None:
        """Unix time at which something expires next; None if nothing does."""
        row = self._one(
            "SELECT min(due) FROM ("
            "SELECT expires_at AS due FROM file WHERE NOT deleting UNION ALL "
            f"SELECT last_active_at + expires_days * {DAY_S} FROM vector_store "  # noqa: S608
            "WHERE state = 'open')",
            (),
        )
        return None if row is None else row[0]

    def is_wanted(self, work: IndexFile) -> bool:
        """Whether a file is still to be indexed, and nothing is to be deleted before it."""
        with self._lock:
            row = self._one(
                "SELECT 1 FROM store_file JOIN vector_store ON vector_store.id = store_id "
                "WHERE store_id = ? AND file_id = ? AND store_file.state = 'in_progress' "
                "AND vector_store.state = 'open'",
                (work.store_id, work.file.id),
            )
            return row is not None and self._next_erasure() is None

    def done(self, work: Work, *, usage_bytes: int = 0) -> bool:
        """Note that a piece of work is done.

        Args:
            work: the work.
            usage_bytes: bytes that an indexed file takes.

        Returns:
            Whether it was still wanted: a file may have been cancelled while it was indexed.
        """
        with self._transaction() as db:
            before = db.total_changes
            match work:
                case RemoveStoreFile(store_id, file):
                    db.execute(
                        "DELETE FROM store_file WHERE store_id = ? AND file_id = ? "
                        "AND state = 'deleting'",
                        (store_id, file.id),
                    )
                case EraseFile(file):
                    db.execute("DELETE FROM file WHERE id = ? AND deleting", (file.id,))
                case EraseStore(store_id, True):
                    db.execute("DELETE FROM store_file WHERE store_id = ?", (store_id,))
                    db.execute("DELETE FROM file_batch WHERE store_id = ?", (store_id,))
                    db.execute(
                        "UPDATE vector_store SET state = 'expired' "
                        "WHERE id = ? AND state = 'expiring'",
                        (store_id,),
                    )
                case EraseStore(store_id, False):
                    db.execute(
                        "DELETE FROM vector_store WHERE id = ? AND state = 'deleting'", (store_id,)
                    )
                case SetAttributes(store_id, file, attributes):
                    db.execute(
                        "UPDATE store_file SET stale_attributes = 0 "
                        "WHERE store_id = ? AND file_id = ? AND attributes = ?",
                        (store_id, file.id, _dumps(attributes)),
                    )
                case IndexFile(store_id, file, attributes):
                    db.execute(
                        "UPDATE store_file SET state = 'completed', usage_bytes = ?, "
                        "stale_attributes = (attributes != ?) "
                        "WHERE store_id = ? AND file_id = ? AND state = 'in_progress'",
                        (usage_bytes, _dumps(attributes), store_id, file.id),
                    )
            wanted = db.total_changes > before
        if not isinstance(work, IndexFile | SetAttributes):
            self._truncate_log()
        return wanted

    def failed(self, work: IndexFile, code: ErrorCode, reason: str) -> None:
        """Note that a file cannot be indexed."""
        with self._transaction() as db:
            db.execute(
                "UPDATE store_file SET state = 'failed', error_code = ?, error = ? "
                "WHERE store_id = ? AND file_id = ? AND state = 'in_progress'",
                (code, reason, work.store_id, work.file.id),
            )

    def is_pending(self, kind: str, *ids: str) -> bool:
        """Whether a deletion or new attributes are not carried out yet.

        Args:
            kind: `file`, `store` or `store_file`.
            *ids: of the object.
        """
        statement = {
            "file": "SELECT 1 FROM file WHERE id = ? AND deleting",
            "store": "SELECT 1 FROM vector_store WHERE id = ? AND state IN ('deleting', 'expiring')",
            "store_file": "SELECT 1 FROM store_file WHERE store_id = ? AND file_id = ? "
            "AND (state = 'deleting' OR (state = 'completed' AND stale_attributes))",
        }[kind]
        return self._one(statement, ids) is not None

    # Within.

    def _prepare(self) -> None:
        db = self._connection
        # A deleted name is overwritten, here and in the log (`_truncate_log`).
        for pragma in (
            "journal_mode = WAL",
            "synchronous = FULL",
            "foreign_keys = ON",
            "secure_delete = ON",
        ):
            db.execute(f"PRAGMA {pragma}")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise RetrievalUnavailable(
                f"The catalogue of files was written by a newer Pravāha (schema {version}; this "
                f"version reads {SCHEMA_VERSION})."
            )
        if version < SCHEMA_VERSION:
            script = Path(__file__).with_name("schema.sql").read_text()
            db.executescript(f"BEGIN; {script} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction; nested ones join it."""
        with self._lock:
            db = self._connection
            if db.in_transaction:
                yield db
                return
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    def _truncate_log(self) -> None:
        with self._lock:
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _now(self) -> int:
        return int(self._clock())

    def _one(self, statement: str, values: Sequence[Any]) -> Any:
        with self._lock:
            return self._connection.execute(statement, values).fetchone()

    def _page(
        self,
        table: str,
        id_column: str,
        columns: str,
        where: str,
        values: Sequence[Any],
        page: PageRequest,
    ) -> Page[Any]:
        """Rows of a table, in the order of their creation."""
        # A page with only an end is read backwards from there.
        backwards = page.before is not None and page.after is None
        descending = (page.order == "desc") != backwards
        with self._lock:
            bounds, numbers = "", []
            for name, cursor in (("after", page.after), ("before", page.before)):
                if cursor is None:
                    continue
                row = self._one(
                    f"SELECT number FROM {table} WHERE {where} AND {id_column} = ?",  # noqa: S608
                    [*values, cursor],
                )
                if row is None:
                    raise InvalidCursor(name, cursor)  # type: ignore[arg-type]
                sign = ">" if (name == "after") == (page.order == "asc") else "<"
                bounds += f" AND number {sign} ?"
                numbers.append(row[0])
            rows = self._connection.execute(
                f"SELECT {columns} FROM {table} WHERE {where}{bounds} "  # noqa: S608
                f"ORDER BY number {'DESC' if descending else 'ASC'} LIMIT ?",
                [*values, *numbers, page.limit + 1],
            ).fetchall()
        has_more = len(rows) > page.limit
        rows = rows[: page.limit]
        return Page(tuple(reversed(rows)) if backwards else tuple(rows), has_more)

    def _counts(self, column: str, value: str) -> tuple[FileCounts, int]:
        """Files of a vector store or a batch by state, and the bytes that they take."""
        row = self._one(
            f"SELECT {_COUNTS} FROM store_file WHERE {column} = ? AND {_VISIBLE_STORE_FILE}",  # noqa: S608
            (value,),
        )
        *counts, usage = map(int, row)
        return FileCounts(*counts), usage

    def _store_from_row(self, row: Sequence[Any]) -> VectorStore:
        store_id, name, description, metadata, created, active, days, state = row
        expired = state != "open"
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
            if self.is_pending("store_file", store_id, one.file_id):
                raise BeingChanged(
                    f"The file {one.file_id!r} is being changed in this vector store; try again."
                )
            db.execute(
                "DELETE FROM store_file WHERE store_id = ? AND file_id = ?", (store_id, one.file_id)
            )
            db.execute(
                "INSERT INTO store_file (store_id, file_id, state, attributes, created_at, batch_id) "
                "VALUES (?, ?, 'in_progress', ?, ?, ?)",
                (store_id, one.file_id, _dumps(one.attributes), self._now(), batch_id),
            )
        if self._counts("store_id", store_id)[0].total > MAX_STORE_FILES:
            raise RetrievalError(f"A vector store holds at most {MAX_STORE_FILES} files.")

    def _expire_stores(self) -> None:
        with self._lock:
            self._connection.execute(
                "UPDATE vector_store SET state = 'expiring' WHERE state = 'open' "
                f"AND last_active_at + expires_days * {DAY_S} <= ?",  # noqa: S608
                (self._now(),),
            )

    def _expire_files(self) -> None:
        with self._transaction() as db:
            _delete_files(db, "expires_at <= ? AND NOT deleting", (self._now(),))

    def _next_erasure(self) -> Work | None:
        return self._next_erased_store() or self._next_removal() or self._next_erased_file()

    def _next_erased_store(self) -> EraseStore | None:
        row = self._one(
            "SELECT id, state = 'expiring' FROM vector_store "
            "WHERE state IN ('deleting', 'expiring') ORDER BY number LIMIT 1",
            (),
        )
        return None if row is None else EraseStore(row[0], bool(row[1]))

    def _next_removal(self) -> RemoveStoreFile | None:
        row = self._next_store_file("store_file.state = 'deleting'")
        return None if row is None else RemoveStoreFile(row[0], UploadedFile(*row[2:]))

    def _next_erased_file(self) -> EraseFile | None:
        row = self._one(
            f"SELECT {_FILE_COLUMNS} FROM file WHERE deleting "  # noqa: S608
            "AND NOT EXISTS (SELECT 1 FROM store_file WHERE file_id = file.id) "
            "ORDER BY number LIMIT 1",
            (),
        )
        return None if row is None else EraseFile(UploadedFile(*row))

    def _next_attributes(self) -> SetAttributes | None:
        row = self._next_store_file("store_file.state = 'completed' AND stale_attributes")
        if row is None:
            return None
        return SetAttributes(row[0], UploadedFile(*row[2:]), orjson.loads(row[1]))

    def _next_index(self) -> IndexFile | None:
        row = self._next_store_file("store_file.state = 'in_progress'")
        if row is None:
            return None
        return IndexFile(row[0], UploadedFile(*row[2:]), orjson.loads(row[1]))

    def _next_store_file(self, where: str) -> Any:
        columns = ", ".join(f"file.{column}" for column in _FILE_COLUMNS.split(", "))
        return self._one(
            f"SELECT store_id, attributes, {columns} FROM store_file "  # noqa: S608
            "JOIN file ON file.id = file_id JOIN vector_store ON vector_store.id = store_id "
            f"WHERE {where} AND vector_store.state = 'open' ORDER BY store_file.number LIMIT 1",
            (),
        )


_VISIBLE_FILE = "NOT deleting AND (expires_at IS NULL OR expires_at > ?)"
_VISIBLE_STORE = "state != 'deleting'"
_VISIBLE_STORE_FILE = "state != 'deleting'"


def _delete_files(db: sqlite3.Connection, where: str, values: Sequence[Any]) -> None:
    """Mark files as being deleted, here and in every vector store."""
    db.execute(
        "UPDATE store_file SET state = 'deleting' "
        f"WHERE file_id IN (SELECT id FROM file WHERE {where})",  # noqa: S608
        values,
    )
    db.execute(f"UPDATE file SET deleting = 1 WHERE {where}", values)  # noqa: S608


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


def _dumps(value: Mapping[str, Any]) -> str:
    return orjson.dumps(dict(value), option=orjson.OPT_SORT_KEYS).decode()

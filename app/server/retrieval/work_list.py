"""`WorkList`: what the catalogue says that disk and collections do not yet, and what was done of it."""

from collections.abc import Callable, Iterator
from typing import Any

import orjson

from app.server.retrieval.database import CatalogueDatabase
from app.server.retrieval.records import DAY_S, ErrorCode, UploadedFile
from app.server.retrieval.rows import FILE_COLUMNS, dump_object, prefixed
from app.server.retrieval.work import (
    EraseFile,
    EraseStore,
    IndexFile,
    RemoveStoreFile,
    SetAttributes,
    Work,
)

_BATCH = 100

_NEXT_EXPIRY = (
    "SELECT min(due) FROM (SELECT expires_at AS due FROM file WHERE NOT deleting "
    "UNION ALL SELECT last_active_at + expires_days * ? FROM vector_store WHERE state = 'open')"
)
_PENDING = {
    "file": "SELECT 1 FROM file WHERE id = ? AND deleting",
    "store": "SELECT 1 FROM vector_store WHERE id = ? AND state IN ('deleting', 'expiring')",
    "store_file": "SELECT 1 FROM store_file WHERE store_id = ? AND file_id = ? "
    "AND (state = 'deleting' OR (state = 'completed' AND stale_attributes))",
}


class WorkList:
    """The work in a catalogue. Thread-safe."""

    def __init__(self, database: CatalogueDatabase, *, clock: Callable[[], float]) -> None:
        self._database, self._clock = database, clock

    def pending(self) -> Iterator[Work]:
        """What is to be done: deletions, then attributes, then files in the order in which they wait.

        What cannot be done now may be passed over; at most 100 pieces of a kind are listed.
        """
        expire(self._database, int(self._clock()))
        yield from self._erasures()
        for row in self._store_files("store_file.state = 'completed' AND stale_attributes"):
            yield SetAttributes(row[0], UploadedFile(*row[2:]), orjson.loads(row[1]))
        for row in self._store_files("store_file.state = 'in_progress'"):
            yield IndexFile(row[0], UploadedFile(*row[2:]), orjson.loads(row[1]))

    def is_wanted(self, work: IndexFile) -> bool:
        """Whether a file is still to be indexed."""
        return (
            self._database.row(
                "SELECT 1 FROM store_file JOIN vector_store ON vector_store.id = store_id "
                "WHERE store_id = ? AND file_id = ? AND store_file.state = 'in_progress' "
                "AND vector_store.state = 'open'",
                (work.store_id, work.file.id),
            )
            is not None
        )

    def has_erasures(self) -> bool:
        """Whether something is to be deleted."""
        return next(self._erasures(), None) is not None

    def is_pending(self, kind: str, *ids: str) -> bool:
        """Whether a deletion or new attributes are not carried out yet.

        Args:
            kind: `file`, `store` or `store_file`.
            *ids: of the object.
        """
        return self._database.row(_PENDING[kind], ids) is not None

    def next_expiry(self) -> float | None:
        """Unix time at which something expires next; None if nothing does."""
        (due,) = self._database.row(_NEXT_EXPIRY, (DAY_S,))
        return due  # type: ignore[no-any-return]

    def done(self, work: Work, *, usage_bytes: int = 0) -> bool:
        """Note that a piece of work is done.

        Args:
            work: the work.
            usage_bytes: bytes that an indexed file takes.

        Returns:
            Whether it was still wanted: a file may have been cancelled while it was indexed.
        """
        with self._database.transaction() as db:
            before = db.total_changes
            for statement, values in _statements(work, usage_bytes):
                db.execute(statement, values)
            wanted = db.total_changes > before
        if not isinstance(work, IndexFile | SetAttributes):
            self._database.truncate_log()
        return wanted

    def failed(self, work: IndexFile, code: ErrorCode, reason: str) -> None:
        """Note that a file cannot be indexed."""
        with self._database.transaction() as db:
            db.execute(
                "UPDATE store_file SET state = 'failed', error_code = ?, error = ? "
                "WHERE store_id = ? AND file_id = ? AND state = 'in_progress'",
                (code, reason, work.store_id, work.file.id),
            )

    def _erasures(self) -> Iterator[Work]:
        for store_id, keep in self._database.rows(
            "SELECT id, state = 'expiring' FROM vector_store "
            "WHERE state IN ('deleting', 'expiring') ORDER BY number LIMIT ?",
            (_BATCH,),
        ):
            yield EraseStore(store_id, bool(keep))
        for row in self._store_files("store_file.state = 'deleting'"):
            yield RemoveStoreFile(row[0], UploadedFile(*row[2:]))
        for row in self._database.rows(
            f"SELECT {FILE_COLUMNS} FROM file WHERE deleting "  # noqa: S608
            "AND NOT EXISTS (SELECT 1 FROM store_file WHERE file_id = file.id) "
            f"ORDER BY number LIMIT {_BATCH}"
        ):
            yield EraseFile(UploadedFile(*row))

    def _store_files(self, where: str) -> list[Any]:
        """Store, attributes and file of the files in open vector stores."""
        return self._database.rows(
            f"SELECT store_id, attributes, {prefixed('file', FILE_COLUMNS)} FROM store_file "  # noqa: S608
            "JOIN file ON file.id = file_id JOIN vector_store ON vector_store.id = store_id "
            f"WHERE {where} AND vector_store.state = 'open' "
            f"ORDER BY store_file.number LIMIT {_BATCH}"
        )


def expire(database: CatalogueDatabase, now: int) -> None:
    """Make what has expired invisible; its contents are work."""
    with database.transaction() as db:
        db.execute(
            "UPDATE vector_store SET state = 'expiring' WHERE state = 'open' "
            "AND last_active_at + expires_days * ? <= ?",
            (DAY_S, now),
        )
        due = [row[0] for row in database.rows(
            "SELECT id FROM file WHERE expires_at <= ? AND NOT deleting", (now,)
        )]  # fmt: skip
        for file_id in due:
            mark_deleting(database, file_id)


def mark_deleting(database: CatalogueDatabase, file_id: str) -> None:
    """Make a file invisible, here and in every vector store."""
    with database.transaction() as db:
        db.execute("UPDATE store_file SET state = 'deleting' WHERE file_id = ?", (file_id,))
        db.execute("UPDATE file SET deleting = 1 WHERE id = ?", (file_id,))


def _statements(work: Work, usage_bytes: int) -> list[tuple[str, tuple[Any, ...]]]:
    match work:
        case RemoveStoreFile(store_id, file):
            return [
                (
                    "DELETE FROM store_file WHERE store_id = ? AND file_id = ? AND state = 'deleting'",
                    (store_id, file.id),
                )
            ]
        case EraseFile(file):
            return [("DELETE FROM file WHERE id = ? AND deleting", (file.id,))]
        case EraseStore(store_id, keep=True):
            return [
                ("DELETE FROM store_file WHERE store_id = ?", (store_id,)),
                ("DELETE FROM file_batch WHERE store_id = ?", (store_id,)),
                (
                    "UPDATE vector_store SET state = 'expired' WHERE id = ? AND state = 'expiring'",
                    (store_id,),
                ),
            ]
        case EraseStore(store_id):
            return [("DELETE FROM vector_store WHERE id = ? AND state = 'deleting'", (store_id,))]
        case SetAttributes(store_id, file, attributes):
            return [
                (
                    "UPDATE store_file SET stale_attributes = 0 "
                    "WHERE store_id = ? AND file_id = ? AND attributes = ?",
                    (store_id, file.id, dump_object(attributes)),
                )
            ]
        case IndexFile(store_id, file, attributes):
            return [
                (
                    "UPDATE store_file SET state = 'completed', usage_bytes = ?, "
                    "stale_attributes = (attributes != ?) "
                    "WHERE store_id = ? AND file_id = ? AND state = 'in_progress'",
                    (usage_bytes, dump_object(attributes), store_id, file.id),
                )
            ]

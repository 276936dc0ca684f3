"""`WantedContents`: what the library is to hold by the catalogue, and what became of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson

from app.server.retrieval.database import CatalogueDatabase
from app.server.retrieval.records import DAY_S, AttributeValue, ErrorCode, UploadedFile

FILE_COLUMNS = "id, filename, stored_as, purpose, size, created_at, expires_at"
"""In the order of `UploadedFile`."""
FILE_OF_STORE = ", ".join(f"file.{column}" for column in FILE_COLUMNS.split(", "))
LIVE_FILE = "(expires_at IS NULL OR expires_at > ?)"
"""Whether a file is there, at a time."""
_DUE = "state = 'open' AND last_active_at + expires_days * ? <= ?"
"""Whether a vector store is to expire, by the seconds of a day and the time."""
_WAITING_LIMIT = 100


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """A file that is to be indexed."""

    store_id: str
    file: UploadedFile
    attributes: dict[str, AttributeValue]


@dataclass(frozen=True, slots=True)
class Gone:
    """What left the catalogue: files, and what of vector stores; the library has it still.

    Attributes:
        names: `stored_as` of the files.
        store_ids: the vector stores that have fewer files now, or have expired.
    """

    names: tuple[str, ...] = ()
    store_ids: tuple[str, ...] = ()


class WantedContents:
    """Thread-safe; every method takes one short transaction."""

    def __init__(self, database: CatalogueDatabase, *, clock: Callable[[], float]) -> None:
        """Read and write the catalogue's database; `clock` returns Unix time in seconds."""
        self._database, self._clock = database, clock

    def of_store(self, store_id: str) -> dict[str, dict[str, AttributeValue]] | None:
        """Attributes of the files that a vector store's collection may hold, by their `stored_as`.

        None if there is no such vector store, or it has expired.
        """
        if (
            self._database.row(
                "SELECT 1 FROM vector_store WHERE id = ? AND state = 'open'", (store_id,)
            )
            is None
        ):
            return None
        rows = self._database.rows(
            "SELECT stored_as, attributes FROM store_file JOIN file ON file.id = file_id "
            "WHERE store_id = ? AND state IN ('in_progress', 'completed')",
            (store_id,),
        )
        return {name: orjson.loads(attributes) for name, attributes in rows}

    def waiting(self) -> list[WaitingFile]:
        """The files that are to be indexed, first come first; at most 100."""
        rows = self._database.rows(
            f"SELECT store_id, attributes, {FILE_OF_STORE} FROM store_file "  # noqa: S608
            "JOIN file ON file.id = file_id JOIN vector_store ON vector_store.id = store_id "
            "WHERE store_file.state = 'in_progress' AND vector_store.state = 'open' "
            "ORDER BY store_file.number LIMIT ?",
            (_WAITING_LIMIT,),
        )
        return [WaitingFile(row[0], UploadedFile(*row[2:]), orjson.loads(row[1])) for row in rows]

    def is_waiting(self, store_id: str, file_id: str) -> bool:
        """Whether a file is still to be indexed."""
        return (
            self._database.row(
                "SELECT 1 FROM store_file WHERE store_id = ? AND file_id = ? AND state = 'in_progress'",
                (store_id, file_id),
            )
            is not None
        )

    def note_indexed(self, store_id: str, file_id: str, usage_bytes: int) -> bool:
        """Note that a file is indexed; whether that was still wanted."""
        return self._end_waiting(
            store_id, file_id, "state = 'completed', usage_bytes = ?", (usage_bytes,)
        )

    def note_failed(self, store_id: str, file_id: str, code: ErrorCode, reason: str) -> None:
        """Note that a file cannot be indexed."""
        self._end_waiting(
            store_id, file_id, "state = 'failed', error_code = ?, error = ?", (code, reason)
        )

    def expire(self) -> Gone:
        """Delete what has expired."""
        now = int(self._clock())
        with self._database.transaction() as db:
            due = self._database.rows(f"SELECT id FROM vector_store WHERE {_DUE}", (DAY_S, now))  # noqa: S608
            for (store_id,) in due:
                db.execute("UPDATE vector_store SET state = 'expired' WHERE id = ?", (store_id,))
                db.execute("DELETE FROM store_file WHERE store_id = ?", (store_id,))
                db.execute("DELETE FROM file_batch WHERE store_id = ?", (store_id,))
            rows = self._database.rows(
                f"SELECT {FILE_COLUMNS} FROM file WHERE NOT {LIVE_FILE}",  # noqa: S608
                (now,),
            )
            gone = delete_files(self._database, [UploadedFile(*row) for row in rows])
        return Gone(gone.names, tuple(dict.fromkeys([*(one for (one,) in due), *gone.store_ids])))

    def next_expiry(self) -> float | None:
        """Unix time at which something expires next; None if nothing does."""
        (due,) = self._database.row(
            "SELECT min(due) FROM (SELECT expires_at AS due FROM file UNION ALL "
            "SELECT last_active_at + expires_days * ? FROM vector_store WHERE state = 'open')",
            (DAY_S,),
        )
        return due  # type: ignore[no-any-return]

    def forget_deleted(self) -> None:
        """Remove the bytes of what was deleted from the database's files."""
        self._database.truncate_log()

    def _end_waiting(
        self, store_id: str, file_id: str, changes: str, values: tuple[object, ...]
    ) -> bool:
        with self._database.transaction() as db:
            done = db.execute(
                f"UPDATE store_file SET {changes} "  # noqa: S608
                "WHERE store_id = ? AND file_id = ? AND state = 'in_progress'",
                (*values, store_id, file_id),
            )
        return done.rowcount > 0


def delete_files(database: CatalogueDatabase, files: Sequence[UploadedFile]) -> Gone:
    """Delete files, here and from every vector store."""
    store_ids: dict[str, None] = {}
    with database.transaction() as db:
        for file in files:
            rows = database.rows("SELECT store_id FROM store_file WHERE file_id = ?", (file.id,))
            store_ids |= dict.fromkeys(row[0] for row in rows)
            db.execute("DELETE FROM store_file WHERE file_id = ?", (file.id,))
            db.execute("DELETE FROM file WHERE id = ?", (file.id,))
    return Gone(tuple(one.stored_as for one in files), tuple(store_ids))

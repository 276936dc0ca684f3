"""`CatalogueDatabase`: the catalogue's SQLite connection: transactions under one lock, and pages of rows.

What is deleted is overwritten with zeros, in the file and, by `truncate_log`, in the write-ahead log. All
methods may be called from any thread.
"""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from app.server.retrieval.errors import InvalidCursor, RetrievalUnavailable
from app.server.retrieval.paging import Page, PageRequest
from engine.files.sqlite_file import create_sqlite_file, transaction

SCHEMA_VERSION = 2


class CatalogueDatabase:
    """The database, created if it is missing."""

    def __init__(self, path: Path) -> None:
        """Open it.

        Raises:
            RetrievalUnavailable: it cannot be opened, or a newer version wrote it.
        """
        self._lock = threading.RLock()
        try:
            self._connection = create_sqlite_file(path, any_thread=True)
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            raise RetrievalUnavailable(
                f"The catalogue {path} cannot be opened: {error}."
            ) from error

    def close(self) -> None:
        """Close it; no method may be called afterwards."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction, undone by an exception; a nested one joins it."""
        with self._lock, transaction(self._connection) as db:
            yield db

    def row(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """The first row, or None."""
        with self._lock:
            return self._connection.execute(statement, values).fetchone()

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows."""
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def page(
        self,
        table: str,
        columns: str,
        where: str,
        values: Sequence[Any],
        page: PageRequest,
        *,
        id_column: str = "id",
    ) -> Page[Any]:
        """Rows of a table, in the order of their `number`.

        Args:
            table: the table.
            columns: what to read.
            where: condition on the rows.
            values: parameters of the condition.
            page: which of them.
            id_column: the column that `after` and `before` name.

        Raises:
            InvalidCursor: there is no such row.
        """
        # A page with only an end is read backwards from there.
        backwards = page.before is not None and page.after is None
        descending = (page.order == "desc") != backwards
        with self._lock:
            bounds, numbers = "", []
            for name, cursor in _cursors(page):
                row = self.row(
                    f"SELECT number FROM {table} WHERE {where} AND {id_column} = ?",  # noqa: S608
                    [*values, cursor],
                )
                if row is None:
                    raise InvalidCursor(name, cursor)
                bounds += (
                    f" AND number {'>' if (name == 'after') == (page.order == 'asc') else '<'} ?"
                )
                numbers.append(row[0])
            rows = self.rows(
                f"SELECT {columns} FROM {table} WHERE {where}{bounds} "  # noqa: S608
                f"ORDER BY number {'DESC' if descending else 'ASC'} LIMIT ?",
                [*values, *numbers, page.limit + 1],
            )
        has_more = len(rows) > page.limit
        rows = rows[: page.limit]
        return Page(tuple(reversed(rows)) if backwards else tuple(rows), has_more)

    def truncate_log(self) -> None:
        """Remove old pages from the write-ahead log."""
        with self._lock:
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _prepare(self) -> None:
        (version,) = self.row("PRAGMA user_version")
        if version > SCHEMA_VERSION:
            raise RetrievalUnavailable(
                f"The catalogue of files was written by a newer Pravāha (schema {version}; this "
                f"version reads {SCHEMA_VERSION})."
            )
        if version < SCHEMA_VERSION:
            name = "schema.sql" if version == 0 else "schema_from_1.sql"
            script = Path(__file__).with_name(name).read_text()
            self._connection.executescript(
                f"BEGIN; {script} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
            )


def _cursors(page: PageRequest) -> Iterator[tuple[Literal["after", "before"], str]]:
    if page.after is not None:
        yield "after", page.after
    if page.before is not None:
        yield "before", page.before

"""`ReadConnections`: what the store reads from: the file, or a copy in memory after a start on a full disk.

The copy (`memory_copy.py`) is left for good once the file took a write.
"""

import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from engine.conversations.storage.database_connection import DatabaseConnection
from engine.conversations.storage.memory_copy import MemoryCopy


class ReadConnections:
    """The connections that only read. Used by the thread of the store, except what `separate` returns.

    Args:
        path: the database.
        leases: directory of the lease files.
        copy: read instead of the file, until the first write succeeds; None for none.
        first_write: the first write to the file.

    Attributes:
        on_copy_left: called when the copy was left, before it is closed: nothing may read it afterwards.
    """

    def __init__(
        self, path: Path, leases: Path, copy: MemoryCopy | None, first_write: "Future[Any]"
    ) -> None:
        self._path = path
        self._leases = leases
        self._first_write = first_write
        self._copy = copy
        self._copied = None if copy is None else copy.connect()
        self._file = DatabaseConnection(path, leases)
        self.on_copy_left: Callable[[], None] = lambda: None

    def current(self) -> sqlite3.Connection:
        """The connection to read from now. Not to be kept."""
        self.leave_copy()
        return self._file.current() if self._copied is None else self._copied

    def execute(self, query: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Run a query on the current connection."""
        return self.current().execute(query, parameters)

    def separate(self) -> Callable[[], sqlite3.Connection]:
        """What opens a connection for another thread, which calls it before each use."""
        if self._copy is not None:
            return self._copy.connect
        return DatabaseConnection(self._path, self._leases).current

    @property
    def from_copy(self) -> bool:
        """Whether the copy is read at present."""
        return self._copied is not None

    def leave_copy(self) -> None:
        """Read the file from now on, if it took a write since it was copied."""
        if self._copy is not None and _succeeded(self._first_write):
            left = self._copied, self._copy
            self._copied = self._copy = None
            self.on_copy_left()
            _close(*left)

    def close(self) -> None:
        """Close them. Idempotent."""
        _close(self._copied, self._copy)
        self._copied = self._copy = None
        self._file.close()


def _close(copied: sqlite3.Connection | None, copy: MemoryCopy | None) -> None:
    if copied is not None and copy is not None:
        copied.close()
        copy.close()


def _succeeded(future: "Future[Any]") -> bool:
    return future.done() and future.exception() is None

"""`DatabaseConnection`: a connection that notices when its file was removed or replaced.

SQLite goes on with a file that has lost its name: everything committed to it would vanish when the process
ends, without an error. So the name is looked up before each use, which costs one `stat`. The connection of
the writer puts a removed file back: it can still read everything that was committed. Other connections
follow to the new file. Only one process at a time puts a file back.
"""

import logging
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from engine.conversations.storage import lease

_BUSY_MS = 5000

log = logging.getLogger(__name__)


def connect(path: Path) -> sqlite3.Connection:
    """Open an existing database.

    Raises:
        sqlite3.OperationalError: the file does not exist or cannot be opened.
    """
    uri = f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_BUSY_MS / 1000)
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error:
        connection.close()  # a connection that is only dropped keeps its files open until a collection
        raise
    return connection


class DatabaseConnection:
    """One connection, for one thread.

    Args:
        path: the database.
        leases: directory of the lease that the process takes while it puts the file back.
        on_restored: called after a removed file was put back. Without it a removed file is left to the
            connection that has one.
        open_file: opens the file, which it may have to create first; None takes `connect`.
    """

    def __init__(
        self,
        path: Path,
        leases: Path,
        *,
        on_restored: Callable[[], None] | None = None,
        open_file: Callable[[Path], sqlite3.Connection] | None = None,
    ) -> None:
        self._path = path
        self._open_file = open_file
        self._leases = leases
        self._on_restored = on_restored
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None

    def current(self) -> sqlite3.Connection:
        """The connection to the file that has the name now.

        Raises:
            sqlite3.OperationalError: the file cannot be opened, or not be put back at present.
        """
        found = self._find()
        if found is None and self._connection is not None:
            if self._on_restored is None:
                return self._connection
            self._restore(self._connection)
            found = self._find()
        if self._connection is None or found != self._identity:
            self.close()
            self._connection = (self._open_file or connect)(self._path)
            self._identity = self._find()
        return self._connection

    def discard(self) -> None:
        """Close after an error, so that the next use opens the file anew; not the last access to it."""
        if self._find() is not None:
            self.close()

    def close(self) -> None:
        """Close the connection; `current` opens another one."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _find(self) -> tuple[int, int] | None:
        """Device and inode of the file; None if there is none."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _restore(self, connection: sqlite3.Connection) -> None:
        """Write everything that was committed to a new file of the old name."""
        try:
            turn = lease.Lease(self._leases, "restore")
        except OSError as error:
            raise self._not_restored(error) from error
        try:
            if self._find() is None:  # else another process has put it back
                self._copy(connection)
        except (OSError, sqlite3.Error) as error:
            raise self._not_restored(error) from error
        finally:
            turn.release()
        log.warning("the conversation database was removed and is written again")
        if self._on_restored is not None:
            self._on_restored()

    def _copy(self, connection: sqlite3.Connection) -> None:
        copy = self._path.with_name(self._path.name + ".restored")
        try:
            os.close(os.open(copy, os.O_CREAT | os.O_TRUNC | os.O_RDWR | os.O_CLOEXEC, 0o600))
            with closing(connect(copy)) as target:
                connection.backup(target)
            # A journal of the removed file would be read as one of the new file.
            for suffix in ("-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
            copy.rename(self._path)
        finally:
            for suffix in ("", "-wal", "-shm"):
                copy.with_name(copy.name + suffix).unlink(missing_ok=True)

    @staticmethod
    def _not_restored(error: Exception) -> sqlite3.OperationalError:
        return sqlite3.OperationalError(
            f"the file was removed and cannot be written again: {error}"
        )

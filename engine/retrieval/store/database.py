"""Opens the retrieval database: write-ahead log, so that readers never wait for the writer.

`synchronous = FULL`: what is committed survives kill -9 and a loss of power. Deleted rows are overwritten
with zeros (`secure_delete`).
"""

import sqlite3
from pathlib import Path

from engine.files.private_file import create_private_file
from engine.retrieval.store.errors import RetrievalStoreError
from engine.retrieval.store.migrations import check_version, is_current, migrate

BUSY_MS = 10_000
"""How long a lock of another connection is waited for."""
_CACHE_KIB = 64 * 1024


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Open the database; it is created with mode 0600 if it does not exist.

    Raises:
        RetrievalStoreError: it cannot be opened, or was written by a newer version.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        create_private_file(path)
        connection = _connect(path)
    except (OSError, sqlite3.Error) as error:
        raise RetrievalStoreError(f"The database {path} cannot be opened: {error}.") from error
    try:
        for pragma in (
            "journal_mode = WAL",
            "synchronous = FULL",
            "secure_delete = ON",
            "foreign_keys = ON",
        ):
            connection.execute(f"PRAGMA {pragma}")
        migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Open an existing database for queries only; one of an older version is migrated.

    Raises:
        RetrievalStoreError: it cannot be opened, or was written by a newer version.
    """
    try:
        # A read-only connection could not open a database that needs recovery.
        connection = _connect(path)
    except sqlite3.Error as error:
        raise RetrievalStoreError(f"The database {path} cannot be opened: {error}.") from error
    try:
        check_version(connection, path)
        if not is_current(connection):
            open_for_writing(path).close()
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(
        uri, uri=True, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False
    )
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return connection

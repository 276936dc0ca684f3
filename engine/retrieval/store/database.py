"""Opens the retrieval database for its writer, or for one of its readers, which never wait for it."""

import sqlite3
from pathlib import Path

from engine.files.sqlite_file import create_sqlite_file, open_sqlite_file
from engine.retrieval.store.errors import RetrievalStoreError
from engine.retrieval.store.migrations import check_version, is_current, migrate
from engine.retrieval.store.word_index import use_word_forms

_CACHE_KIB = 64 * 1024


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Open the database; it is created with mode 0600 if it does not exist.

    Raises:
        RetrievalStoreError: it cannot be opened, or was written by a newer version.
    """
    try:
        connection = create_sqlite_file(path, any_thread=True)
    except (OSError, sqlite3.Error) as error:
        raise RetrievalStoreError(f"The database {path} cannot be opened: {error}.") from error
    try:
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        use_word_forms(connection)
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
        connection = open_sqlite_file(path, any_thread=True)
    except sqlite3.Error as error:
        raise RetrievalStoreError(f"The database {path} cannot be opened: {error}.") from error
    try:
        check_version(connection, path)
        if not is_current(connection):
            open_for_writing(path).close()
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        use_word_forms(connection)
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
    except BaseException:
        connection.close()
        raise
    return connection

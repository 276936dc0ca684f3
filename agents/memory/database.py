"""The memory's database: its schema, how it is opened, and how deleted text leaves the file.

The index tables hold current versions only.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from engine.api.errors import PravahaError
from engine.files.sqlite_file import create_sqlite_file

SCHEMA_VERSION = 1

_SCHEMA = """
CREATE TABLE entry (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    current INTEGER NOT NULL,
    kind TEXT NOT NULL,
    scope TEXT NOT NULL,
    owner TEXT NOT NULL,
    path TEXT NOT NULL,
    text TEXT NOT NULL,
    digest TEXT NOT NULL,
    origin TEXT NOT NULL,
    taint TEXT NOT NULL,
    importance REAL NOT NULL,
    created REAL NOT NULL,
    redacted INTEGER NOT NULL DEFAULT 0,
    data TEXT NOT NULL DEFAULT '{}',
    UNIQUE (id, version)
);
CREATE INDEX entry_scope ON entry (scope, owner, kind, current);
CREATE INDEX entry_digest ON entry (digest);
CREATE VIRTUAL TABLE words USING fts5 (path, text, tokenize = 'unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE trigrams USING fts5 (path, text, tokenize = 'trigram');
CREATE TABLE vector (
    number INTEGER PRIMARY KEY REFERENCES entry (number) ON DELETE CASCADE,
    model TEXT NOT NULL,
    vector BLOB NOT NULL
);
"""
INDEXES = ("words", "trigrams")


class MemoryStoreError(PravahaError):
    """The memory's database cannot be used."""


def open_database(path: Path) -> sqlite3.Connection:
    """Open the database; it is created with mode 0600 if it does not exist.

    Raises:
        MemoryStoreError: it cannot be opened, or was written by a newer version.
    """
    try:
        connection = create_sqlite_file(path, any_thread=True)
    except (OSError, sqlite3.Error) as error:
        raise MemoryStoreError(f"The memory {path} cannot be opened: {error}.") from error
    try:
        _migrate(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise MemoryStoreError(f"The memory {path} cannot be used: {error}.") from error
    except MemoryStoreError:
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            raise MemoryStoreError(f"The memory {path} was written by a newer version of Pravāha.")
        if version == 0:
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def purge(connection: sqlite3.Connection) -> bool:
    """Remove the bytes of deleted text from the files; outside of a transaction.

    Deletion in a full-text index leaves the words in older segments until they are merged, and the
    write-ahead log keeps old pages until it is truncated.

    Returns:
        Whether it could be done; another process that uses the database at the moment prevents it.
    """
    try:
        return _purge(connection)
    except sqlite3.OperationalError:  # locked: the next deletion does it
        return False


def _purge(connection: sqlite3.Connection) -> bool:
    for index in INDEXES:
        # The names are constants of this module.
        connection.execute(f"INSERT INTO {index} ({index}) VALUES ('optimize')")  # noqa: S608
    connection.execute("VACUUM")
    with closing(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")) as cursor:
        busy, _, _ = cursor.fetchone()
    return not busy

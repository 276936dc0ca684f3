"""Opens SQLite databases that keep what was committed and that only the user can read.

What these databases have in common: mode 0600 in a folder of mode 0700, explicit transactions, foreign keys,
`synchronous = FULL` (a commit survives kill -9 and a loss of power), overwriting of deleted rows
(`secure_delete`), and a bounded wait for the locks of others.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from engine.files.private_file import create_private_file

BUSY_MS = 10_000
"""How long a lock of another connection is waited for."""


def create_sqlite_file(
    path: Path, *, journal: Literal["wal", "delete"] = "wal", any_thread: bool = False
) -> sqlite3.Connection:
    """Open a database, which is created if it does not exist.

    Args:
        path: the database; its folder is created, too.
        journal: "wal", so that readers never wait for the writer; or "delete", which leaves no copy of
            deleted rows in a log.
        any_thread: whether threads other than this one use the connection; the caller serializes them.

    Raises:
        OSError: the file or its folder cannot be created.
        sqlite3.Error: it is no database, or cannot be used.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    create_private_file(path)
    path.chmod(0o600)
    connection = open_sqlite_file(path, any_thread=any_thread)
    try:
        connection.execute(f"PRAGMA journal_mode = {journal}")
    except BaseException:
        connection.close()
        raise
    return connection


def open_sqlite_file(path: Path, *, any_thread: bool = False) -> sqlite3.Connection:
    """Open an existing database. Nothing is created, and the journal stays as it is.

    Args:
        path: the database.
        any_thread: as in `create_sqlite_file`.

    Raises:
        sqlite3.Error: there is none, or it cannot be used.
    """
    # A connection with mode=ro could not open a database that needs recovery.
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=BUSY_MS / 1000,
        isolation_level=None,
        check_same_thread=not any_thread,
    )
    try:
        for pragma in ("synchronous = FULL", "secure_delete = ON", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()  # one that is only dropped keeps its files open until a collection
        raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """One transaction that writes, undone by an exception; a nested one joins it.

    Raises:
        sqlite3.Error: the database cannot be used.
    """
    if connection.in_transaction:
        yield connection
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")

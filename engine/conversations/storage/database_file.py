"""The file of the conversation database: created, checked, migrated, and set aside if it is damaged."""

import sqlite3
import time
from pathlib import Path

from engine.conversations.storage.database_connection import connect
from engine.conversations.storage.migrations import migrate
from engine.files.private_file import create_private_file


def prepare(path: Path, *, check: bool) -> None:
    """Create folder (0700) and file (0600) if missing, set WAL mode and migrate the schema.

    Args:
        path: the database.
        check: look for damage, which reads the whole file.

    Raises:
        OSError: folder or file cannot be created.
        sqlite3.Error: the file cannot be opened or written (`OperationalError`), or is damaged.
        StoreError: the schema is newer than supported.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    create_private_file(path)
    path.chmod(0o600)
    connection = connect(path)
    try:
        if check:
            problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if problem != "ok":
                raise sqlite3.DatabaseError(problem)
        connection.execute("PRAGMA journal_mode = WAL")
        migrate(connection, path)
        connection.execute("SELECT count(*) FROM (SELECT 1 FROM tree LIMIT 1)").fetchone()
    finally:
        connection.close()


def prepare_and_connect(path: Path) -> sqlite3.Connection:
    """A connection to a file that could not be prepared before.

    Raises:
        sqlite3.Error: it still cannot.
    """
    try:
        prepare(path, check=False)
    except OSError as error:
        raise sqlite3.OperationalError(str(error)) from error
    return connect(path)


def set_aside(path: Path, error: sqlite3.Error) -> str:
    """Rename a damaged database and its WAL files; returns the notice for the user."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    aside = path.with_name(f"{path.stem}.damaged-{stamp}{path.suffix}")
    for suffix in ("", "-wal", "-shm"):
        companion = path.with_name(path.name + suffix)
        if companion.exists():
            companion.rename(aside.with_name(aside.name + suffix))
    return (
        f"The conversation database was damaged ({error}): it was renamed to {aside}, and a new one "
        "was created."
    )

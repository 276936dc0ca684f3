"""Migrations of the retrieval database, whose schema version is `PRAGMA user_version`."""

import sqlite3
from importlib.resources import files
from pathlib import Path

from engine.files.sql_script import schema_version, statements_of
from engine.retrieval.store.errors import RetrievalStoreError

_SCRIPTS = ("schema.sql", "schema_2.sql", "schema_3.sql", "schema_4.sql")
"""Script i migrates from version i to i + 1."""


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Migrate the database to the newest schema, all or nothing.

    Raises:
        RetrievalStoreError: the schema is newer than this version supports.
    """
    check_version(connection, path)
    if schema_version(connection) == len(_SCRIPTS):
        return
    connection.execute(
        "BEGIN IMMEDIATE"
    )  # another process may have migrated: read the version again
    try:
        for number in range(schema_version(connection), len(_SCRIPTS)):
            for statement in statements_of(_script(number)):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(_SCRIPTS)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Check that this version can read the database.

    Raises:
        RetrievalStoreError: the schema is newer.
    """
    version = schema_version(connection)
    if version > len(_SCRIPTS):
        raise RetrievalStoreError(
            f"The database {path} was written by a newer Pravāha (schema {version}; this version "
            f"supports up to {len(_SCRIPTS)}): install that version, or set PRAVAHA_DATA_DIR to another "
            "folder."
        )


def is_current(connection: sqlite3.Connection) -> bool:
    """Whether the database has the newest schema that this version supports."""
    return schema_version(connection) == len(_SCRIPTS)


def _script(number: int) -> str:
    folder = files("engine.retrieval.store")
    return folder.joinpath(_SCRIPTS[number]).read_text(encoding="utf-8")

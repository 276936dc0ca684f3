"""Migrations of the conversation database, whose schema version is `PRAGMA user_version`."""

import sqlite3
from importlib.resources import files
from pathlib import Path

from engine.conversations.errors import StoreError
from engine.files.sql_script import schema_version, statements_of

_SCRIPTS = (
    "schema.sql", "schema_2.sql", "schema_3.sql", "schema_4.sql", "schema_5.sql", "schema_6.sql",
    "schema_7.sql", "schema_8.sql",
)  # fmt: skip


def _migrations() -> tuple[str, ...]:
    """Scripts in order: script i migrates from version i to i + 1."""
    folder = files("engine.conversations.storage")
    return tuple(folder.joinpath(name).read_text(encoding="utf-8") for name in _SCRIPTS)


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Migrate the database to the newest schema, each version in one transaction.

    Raises:
        StoreError: the schema is newer than this version supports.
    """
    scripts = _migrations()
    newest = len(scripts)
    version = schema_version(connection)
    if version > newest:
        raise StoreError(
            f"The database {path} was written by a newer Pravāha (schema {version}; this version "
            f"supports up to {newest}): install that version, or set PRAVAHA_DATA_DIR to another folder."
        )
    while version < newest:
        # Read again inside the transaction, because another process may be migrating.
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = schema_version(connection)
            if version < newest:
                for statement in statements_of(scripts[version]):
                    connection.execute(statement)
                version += 1
                connection.execute(f"PRAGMA user_version = {version}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

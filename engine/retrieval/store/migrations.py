"""Migrations of the retrieval database, whose schema version is `PRAGMA user_version`."""

import sqlite3
from importlib.resources import files
from pathlib import Path

from engine.files.sql_script import schema_version, statements_of
from engine.retrieval.store.errors import RetrievalStoreError
from engine.retrieval.store.scripts import unspaced_kind
from engine.retrieval.store.word_index import create_indexes, drop_indexes, rebuild_indexes

_SCRIPTS = ("schema.sql", "schema_2.sql", "schema_3.sql", "schema_4.sql")
"""Script i migrates from version i to i + 1."""

_VERSION = len(_SCRIPTS) + 1
"""The last step builds the word indexes anew, from the forms in which words are compared (`word_forms`)."""


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Migrate the database to the newest schema, all or nothing.

    Cost: of the step to version 5 about 0.07 ms of processor time a chunk, since all words are indexed again.

    Args:
        connection: has the function of `use_word_forms`.
        path: its file.

    Raises:
        RetrievalStoreError: the schema is newer than this version supports.
    """
    check_version(connection, path)
    if is_current(connection):
        return
    connection.execute(
        "BEGIN IMMEDIATE"
    )  # another process may have migrated: read the version again
    try:
        for number in range(schema_version(connection), len(_SCRIPTS)):
            for statement in statements_of(_script(number)):
                connection.execute(statement)
        if schema_version(connection) < _VERSION:
            _index_again(connection)
        connection.execute(f"PRAGMA user_version = {_VERSION}")
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
    if version > _VERSION:
        raise RetrievalStoreError(
            f"The database {path} was written by a newer Pravāha (schema {version}; this version "
            f"supports up to {_VERSION}): install that version, or set PRAVAHA_DATA_DIR to another "
            "folder."
        )


def is_current(connection: sqlite3.Connection) -> bool:
    """Whether the database has the newest schema that this version supports."""
    return schema_version(connection) == _VERSION


def _index_again(connection: sqlite3.Connection) -> None:
    """Build the word indexes of all collections anew."""
    connection.create_function("unspaced_kind", 1, unspaced_kind, deterministic=True)
    connection.execute(
        "UPDATE chunk SET unspaced = unspaced_kind(text) WHERE unspaced <> unspaced_kind(text)"
    )
    for (collection_id,) in connection.execute("SELECT id FROM collection").fetchall():
        drop_indexes(connection, collection_id)
        create_indexes(connection, collection_id)
        rebuild_indexes(connection, collection_id)


def _script(number: int) -> str:
    folder = files("engine.retrieval.store")
    return folder.joinpath(_SCRIPTS[number]).read_text(encoding="utf-8")

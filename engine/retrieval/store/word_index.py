"""The full-text indexes of a collection: FTS5 tables over its chunks.

Each collection has its own, so that the weight of a word depends on this collection only, and removing a
collection costs nothing for the others. Words are split by `unicode61` with combining marks as parts of
words: without them every vowel sign of Devanagari would end a word.
"""

import sqlite3
from collections.abc import Iterator

_COLUMNS = "text, headings"


def words_table(collection_id: int) -> str:
    """Name of the word index."""
    return f"words_{collection_id:d}"


def _content(collection_id: int) -> str:
    return f"content_{collection_id:d}"


def create_indexes(connection: sqlite3.Connection, collection_id: int) -> None:
    """Create the indexes of a new collection, within the transaction."""
    connection.execute(
        f"CREATE VIEW {_content(collection_id)} AS SELECT chunk.id AS id, chunk.text AS text, "
        "chunk.headings AS headings FROM chunk JOIN document ON document.id = chunk.document_id "
        f"WHERE document.collection_id = {collection_id:d} AND document.status = 'ready'"
    )
    connection.execute(
        f"CREATE VIRTUAL TABLE {words_table(collection_id)} USING fts5 ({_COLUMNS}, "
        f"content = '{_content(collection_id)}', content_rowid = 'id', "
        "tokenize = \"unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'\")"
    )


def drop_indexes(connection: sqlite3.Connection, collection_id: int) -> None:
    """Drop the indexes of a collection, within the transaction."""
    for table in _tables(collection_id):
        connection.execute(f"DROP TABLE {table}")
    connection.execute(f"DROP VIEW {_content(collection_id)}")


def index_chunks(connection: sqlite3.Connection, collection_id: int, first: int, end: int) -> None:
    """Add the stored chunks `first .. end` to the indexes."""
    for table in _tables(collection_id):
        connection.execute(
            f"INSERT INTO {table} (rowid, {_COLUMNS}) "
            f"SELECT id, {_COLUMNS} FROM chunk WHERE id >= ? AND id < ?",
            (first, end),
        )


def unindex_chunks(
    connection: sqlite3.Connection, collection_id: int, first: int, end: int
) -> None:
    """Take the chunks `first .. end` out of the indexes; they must still be stored."""
    for table in _tables(collection_id):
        connection.execute(
            f"INSERT INTO {table} ({table}, rowid, {_COLUMNS}) "
            f"SELECT 'delete', id, {_COLUMNS} FROM chunk WHERE id >= ? AND id < ?",
            (first, end),
        )


def optimize_indexes(connection: sqlite3.Connection, collection_id: int) -> None:
    """Merge the indexes' segments: deleted words leave the file, and queries get faster."""
    for table in _tables(collection_id):
        connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")


def _tables(collection_id: int) -> Iterator[str]:
    yield words_table(collection_id)

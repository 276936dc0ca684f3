"""The full-text indexes of a collection: FTS5 tables over its chunks.

Each collection has its own, so that the weight of a word depends on this collection only, and removing a
collection costs nothing for the others.

- `words`: words by `unicode61`, with combining marks as parts of words: without them every vowel sign of
  Devanagari would end a word.
- `grams`: trigrams of the chunks that have a script without spaces (`scripts.py`). Indexing every chunk by
  trigrams would cost six times what the words cost, and three times their room.

Both hold the texts' `search_form`, a function that `use_word_forms` gives each connection. The stored texts
stay as they are.
"""

import sqlite3

from engine.retrieval.store.word_forms import search_form

_TABLES = {
    "words": (
        "text, headings",
        "\"unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'\"",
        "1",
    ),
    "grams": ("text", "'trigram'", "chunk.unspaced"),
}
"""Columns, tokenizer, and which chunks are in the index."""


def use_word_forms(connection: sqlite3.Connection) -> None:
    """Give a connection the function that the indexes call."""
    connection.execute("PRAGMA trusted_schema = ON")  # else a view may not call it
    connection.create_function("search_form", 1, search_form, deterministic=True)


def words_table(collection_id: int) -> str:
    """Name of the word index."""
    return f"words_{collection_id:d}"


def grams_table(collection_id: int) -> str:
    """Name of the trigram index."""
    return f"grams_{collection_id:d}"


def create_indexes(connection: sqlite3.Connection, collection_id: int) -> None:
    """Create the indexes of a new collection, within the transaction."""
    for kind, (columns, tokenizer, condition) in _TABLES.items():
        content = f"{kind}_content_{collection_id:d}"
        connection.execute(
            f"CREATE VIEW {content} AS SELECT chunk.id AS id, {_forms_of(columns)} FROM chunk "
            "JOIN document ON document.id = chunk.document_id "
            f"WHERE document.collection_id = {collection_id:d} AND document.status = 'ready' "
            f"AND {condition}"
        )
        connection.execute(
            f"CREATE VIRTUAL TABLE {kind}_{collection_id:d} USING fts5 ({columns}, "
            f"content = '{content}', content_rowid = 'id', tokenize = {tokenizer})"
        )


def drop_indexes(connection: sqlite3.Connection, collection_id: int) -> None:
    """Drop the indexes of a collection, within the transaction."""
    for kind in _TABLES:
        connection.execute(f"DROP TABLE {kind}_{collection_id:d}")
        connection.execute(f"DROP VIEW {kind}_content_{collection_id:d}")


def index_chunks(connection: sqlite3.Connection, collection_id: int, first: int, end: int) -> None:
    """Add the stored chunks `first .. end` to the indexes."""
    for kind, (columns, _, condition) in _TABLES.items():
        connection.execute(
            f"INSERT INTO {kind}_{collection_id:d} (rowid, {columns}) "
            f"SELECT id, {_forms_of(columns)} FROM chunk WHERE id >= ? AND id < ? AND {condition}",
            (first, end),
        )


def unindex_chunks(
    connection: sqlite3.Connection, collection_id: int, first: int, end: int
) -> None:
    """Take the chunks `first .. end` out of the indexes; they must still be stored."""
    for kind, (columns, _, condition) in _TABLES.items():
        table = f"{kind}_{collection_id:d}"
        connection.execute(
            f"INSERT INTO {table} ({table}, rowid, {columns}) "
            f"SELECT 'delete', id, {_forms_of(columns)} FROM chunk WHERE id >= ? AND id < ? AND {condition}",
            (first, end),
        )


def optimize_indexes(connection: sqlite3.Connection, collection_id: int) -> None:
    """Merge the indexes' segments: deleted words leave the file, and queries get faster."""
    for kind in _TABLES:
        table = f"{kind}_{collection_id:d}"
        connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")


def check_indexes(connection: sqlite3.Connection, collection_id: int) -> None:
    """Compare the indexes with the chunks; reads everything.

    Raises:
        sqlite3.DatabaseError: they differ.
    """
    for kind in _TABLES:
        table = f"{kind}_{collection_id:d}"
        connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")


def rebuild_indexes(connection: sqlite3.Connection, collection_id: int) -> None:
    """Build the indexes anew from the chunks, within the transaction."""
    for kind in _TABLES:
        table = f"{kind}_{collection_id:d}"
        connection.execute(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")


def _forms_of(columns: str) -> str:
    """What is indexed of the columns of a chunk."""
    return ", ".join(f"search_form(chunk.{one}) AS {one}" for one in columns.split(", "))

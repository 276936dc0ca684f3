"""A library of an older version is migrated by whoever opens it first, reader or writer."""

import sqlite3

import pytest

from engine.retrieval.library.library import Library
from tests.fakes.word_embedder import WordEmbedder

_ADDED = {
    "collection": ["rewrites", "vectors_lost", "vector_store", "dsn_env", "vector_table"],
    "source": ["mounts"],
    "chunk": ["in_table"],
}
"""Columns of later versions."""

_FORMER_INDEXES = """
DROP TABLE words_1;
DROP VIEW words_content_1;
DROP TABLE grams_1;
DROP VIEW grams_content_1;
CREATE VIEW words_content_1 AS SELECT chunk.id AS id, chunk.text AS text, chunk.headings AS headings
    FROM chunk JOIN document ON document.id = chunk.document_id
    WHERE document.collection_id = 1 AND document.status = 'ready' AND 1;
CREATE VIRTUAL TABLE words_1 USING fts5 (text, headings, content = 'words_content_1', content_rowid = 'id',
    tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'");
CREATE VIEW grams_content_1 AS SELECT chunk.id AS id, chunk.text AS text FROM chunk
    JOIN document ON document.id = chunk.document_id
    WHERE document.collection_id = 1 AND document.status = 'ready' AND chunk.unspaced;
CREATE VIRTUAL TABLE grams_1 USING fts5 (text, content = 'grams_content_1', content_rowid = 'id',
    tokenize = 'trigram');
UPDATE chunk SET unspaced = 0;
INSERT INTO words_1 (words_1) VALUES ('rebuild');
INSERT INTO grams_1 (grams_1) VALUES ('rebuild');
"""
"""The word indexes up to version 3, which held the texts as they are."""


@pytest.fixture
def directory(tmp_path):
    """A library as the first version has left it."""
    (tmp_path / "a.txt").write_text("The quokka is small. Its ﬁle is KX\u20114471. 朝のｺｰﾋｰ")
    with Library(tmp_path / "retrieval", WordEmbedder()) as library:
        library.create("docs").add([tmp_path / "a.txt"])
    connection = sqlite3.connect(tmp_path / "retrieval" / "retrieval.db")
    connection.executescript(_FORMER_INDEXES)
    for table, columns in _ADDED.items():
        for column in columns:
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    return tmp_path / "retrieval"


def test_a_search_migrates(directory):
    with Library(directory, WordEmbedder()) as library:
        collection = library.open("docs")
        assert collection.search("quokka", k=1)[0].file.endswith("a.txt")
        assert collection.refresh().unchanged == 1


def test_a_writer_migrates(directory):
    with Library(directory, WordEmbedder()) as library:
        library.create("other")
        assert library.open("docs").doctor().damage == []


def test_tables_of_former_versions_are_read_again(tmp_path):
    files = [tmp_path / name for name in ("a.csv", "a.txt")]
    for file in files:
        file.write_text("Fruit,Price\nApple,2\n")
    with Library(tmp_path / "retrieval", WordEmbedder()) as library:
        library.create("docs").add(files)
    connection = sqlite3.connect(tmp_path / "retrieval" / "retrieval.db")
    connection.execute("ALTER TABLE chunk DROP COLUMN in_table")
    connection.execute("PRAGMA user_version = 3")
    connection.close()

    with Library(tmp_path / "retrieval", WordEmbedder()) as library:
        report = library.open("docs").refresh()

    assert (report.updated, report.unchanged) == (1, 1)


def test_the_words_of_documents_of_older_versions_are_found_in_any_spelling(directory):
    with Library(directory, WordEmbedder()) as library:
        collection = library.open("docs")
        for word in ("file", "KX4471", "コーヒー", "quokka"):
            assert collection.mentions(word), word
        assert collection.doctor().damage == []
        (one,) = collection.documents()
        assert collection.remove(one.path) == 1
        assert not collection.mentions("file KX4471 コーヒー quokka")
        assert collection.doctor().damage == []

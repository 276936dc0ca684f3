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


@pytest.fixture
def directory(tmp_path):
    """A library as the first version has left it."""
    (tmp_path / "a.txt").write_text("The quokka is small.")
    with Library(tmp_path / "retrieval", WordEmbedder()) as library:
        library.create("docs").add([tmp_path / "a.txt"])
    connection = sqlite3.connect(tmp_path / "retrieval" / "retrieval.db")
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

"""The doctor finds what is broken, and what is out of date."""

import sqlite3

import pytest

from engine.retrieval.store.errors import RetrievalStoreError
from engine.retrieval.vectors.header import HEADER_BYTES


@pytest.fixture
def database(tmp_path):
    connection = sqlite3.connect(tmp_path / "retrieval" / "retrieval.db", isolation_level=None)
    yield connection
    connection.close()


@pytest.fixture
def filled(collection, folder):
    collection.add([folder])
    return collection


def test_a_sound_collection(filled):
    report = filled.doctor()

    assert (report.damage, report.outdated, report.unreadable) == ([], [], [])
    assert (report.documents, report.dead_slots) == (2, 0)
    assert report.chunks == filled.counts.chunks


def test_outdated_and_unreadable_files_are_no_damage(filled, folder):
    (folder / "animals.md").write_text("changed")
    (folder / "bad.txt").write_bytes(b"\0\1\2" * 40)
    filled.add([folder / "bad.txt"])

    report = filled.doctor()

    assert report.outdated == [str(folder / "animals.md")]
    assert [one.path for one in report.unreadable] == [str(folder / "bad.txt")]
    assert report.damage == []


def test_a_damaged_word_index_is_built_anew(filled, database):
    database.execute("INSERT INTO words_1 (words_1) VALUES ('delete-all')")
    assert filled.search("quokka", mode="lexical") == []

    assert filled.doctor().damage == ["The word indexes were damaged: they were built anew."]

    assert filled.search("quokka", mode="lexical")
    assert filled.doctor().damage == []


def test_missing_chunks_are_found(filled, folder, database):
    database.execute(
        "DELETE FROM chunk WHERE document_id = (SELECT id FROM document ORDER BY path LIMIT 1)"
    )

    assert any("animals.md lacks chunks" in one for one in filled.doctor().damage)


def test_damaged_vectors_are_counted(filled, tmp_path):
    with (tmp_path / "retrieval" / "1.vectors").open("r+b") as file:
        file.seek(HEADER_BYTES)
        file.write(bytes(128))

    assert filled.doctor().damage == [
        "1 vectors are damaged: remove the collection and add its documents again."
    ]


def test_a_missing_vector_file_is_found(filled, tmp_path):
    (tmp_path / "retrieval" / "1.vectors").unlink()

    (damage,) = filled.doctor().damage
    assert damage.startswith("The vectors of docs cannot be read (")


def test_a_search_and_a_refresh_say_that_vectors_are_missing(filled, tmp_path, library, folder):
    (tmp_path / "retrieval" / "1.vectors").unlink()
    library._vectors.close()

    for call in (lambda: filled.search("quokka"), filled.refresh):
        with pytest.raises(RetrievalStoreError, match="remove the collection and add"):
            call()
    assert filled.search("quokka", mode="lexical")
    library.remove("docs")


def test_deleted_vectors_are_counted(filled, folder):
    filled.remove(folder / "animals.md")

    report = filled.doctor()
    assert (report.damage, report.documents) == ([], 1)
    assert report.dead_slots > 0

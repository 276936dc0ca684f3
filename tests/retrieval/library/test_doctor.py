"""The doctor finds what is broken, and what is out of date."""

import os
import sqlite3

import pytest

from engine.retrieval.indexing import vector_restoring
from engine.retrieval.store.errors import RetrievalStoreError
from engine.retrieval.vectors.header import HEADER_BYTES
from engine.retrieval.vectors.vector_file import VectorFile


@pytest.fixture
def database(tmp_path):
    connection = sqlite3.connect(tmp_path / "retrieval" / "retrieval.db", isolation_level=None)
    yield connection
    connection.close()


@pytest.fixture
def vector_file(tmp_path):
    return tmp_path / "retrieval" / "1.vectors"


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

    report = filled.doctor()
    assert (report.damage, report.lost_vectors) == (["1 vectors are damaged."], 1)


def delete(path):
    path.unlink()


def shorten(path):
    os.truncate(path, HEADER_BYTES + 8)


def spoil(path):
    path.write_bytes(bytes(4096))


def of_another_collection(path):
    path.unlink()
    VectorFile.create(path, 8, "int8").close()


@pytest.mark.parametrize("damage", [delete, shorten, spoil, of_another_collection])
def test_lost_vectors_are_computed_anew(filled, vector_file, library, embedder, damage):
    before = filled.search("quokka heron", k=9)
    damage(vector_file)
    library._vectors.close()

    for call in (lambda: filled.search("quokka"), filled.refresh):
        with pytest.raises(RetrievalStoreError, match="`pravaha rag doctor docs` computes them"):
            call()
    assert filled.search("quokka", mode="lexical")
    report = filled.doctor()
    assert report.damage[0].startswith("The vectors of docs cannot be read (")
    assert report.lost_vectors == filled.counts.chunks

    embedder.texts.clear()
    assert filled.restore_vectors() == report.lost_vectors == len(embedder.texts)

    assert filled.search("quokka heron", k=9) == before
    assert filled.doctor().damage == []
    assert filled.refresh().unchanged == 2
    assert vectors_files(vector_file) == ["1-1.vectors"]


def test_a_damaged_vector_alone_is_computed_anew(filled, vector_file, embedder):
    before = filled.search("quokka heron", k=9)
    with vector_file.open("r+b") as file:
        file.seek(HEADER_BYTES)
        file.write(bytes(128))
    embedder.texts.clear()

    assert filled.restore_vectors() == 1

    assert len(embedder.texts) == 1
    assert filled.search("quokka heron", k=9) == before
    assert vectors_files(vector_file) == ["1.vectors"]


def test_an_interrupted_restoration_goes_on(filled, folder, vector_file, embedder, monkeypatch):
    monkeypatch.setattr(vector_restoring, "BATCH_CHUNKS", 1)
    (folder / "more.md").write_text(
        "\n\n".join(f"# Part {n}\n\n" + f"word{n} " * 150 for n in range(9))
    )
    filled.add([folder])
    vector_file.unlink()
    total = filled.counts.chunks
    steps = []

    done = filled.restore_vectors(progress=steps.append, cancelled=lambda: len(steps) > 2)

    assert 2 < done < total
    assert [one.chunks for one in steps] == list(range(1, done + 1))
    with pytest.raises(RetrievalStoreError, match="not all of them are computed"):
        filled.search("quokka")
    with pytest.raises(RetrievalStoreError, match="not all of them are computed"):
        filled.refresh()
    embedder.texts.clear()
    assert filled.restore_vectors() == total - done == len(embedder.texts)
    assert filled.doctor().damage == []
    assert filled.refresh().unchanged == 3


def test_a_lost_collection_can_be_removed(filled, vector_file, library):
    vector_file.unlink()
    library.remove("docs")
    assert library.collections() == []


def test_deleted_vectors_leave_the_file(filled, folder, vector_file):
    filled.remove(folder / "animals.md")
    before = filled.search("chef", k=9)

    report = filled.doctor()

    assert (report.damage, report.documents) == ([], 1)
    assert report.dead_slots > 0
    assert report.vector_bytes == HEADER_BYTES + 128
    assert filled.doctor().dead_slots == 0
    assert filled.search("chef", k=9) == before
    assert vectors_files(vector_file) == ["1-1.vectors"]


def vectors_files(path):
    return [one.name for one in path.parent.glob("*.vectors")]

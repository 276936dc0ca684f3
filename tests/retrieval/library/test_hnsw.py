"""Collections with an HNSW index: searches, deletion, rewriting and crashes."""

import numpy as np
import pytest

from engine.api.errors import InvalidRequest
from engine.retrieval.indexing import collection_writer
from engine.retrieval.library import vector_index_choice
from engine.retrieval.library.library import Library
from engine.retrieval.store.store_writer import StoreWriter
from engine.retrieval.vectors import hnsw_vectors
from engine.retrieval.vectors.hnsw_vectors import HnswVectors
from tests.fakes.word_embedder import WordEmbedder, embed

pytest.importorskip("usearch", reason="the extra `hnsw` is not installed")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(hnsw_vectors, "MIN_INDEXED_ROWS", 20)
    monkeypatch.setattr(collection_writer, "MIN_DEAD_SLOTS", 4)


@pytest.fixture
def docs(library, folder):
    for n in range(60):
        (folder / f"{n:02}.txt").write_text(
            f"number{n} of sixty, about word{n % 9} and word{n % 7}.\n"
        )
    docs = library.create("docs", vector_store="hnsw")
    docs.add([folder])
    return docs


def names_of(tmp_path):
    return sorted(one.name for one in (tmp_path / "retrieval").iterdir() if one.name[0].isdigit())


def check_searches(docs):
    index = docs.index()
    for query in ("word3 number12", "quokka", "sixty"):
        vector = docs.embed([query])
        found = index.vectors.search(vector, 10, allowed=index.slots().allowed)
        exact = index.vectors.file.search(vector, 10, allowed=index.slots().allowed)
        np.testing.assert_array_equal(found[1], exact[1])
    assert docs.doctor().damage == []


def test_it_is_built_used_and_kept(tmp_path, library, docs):
    assert names_of(tmp_path) == ["1.hnsw", "1.hnsw.json", "1.vectors"]
    assert docs.index().vectors.indexed_rows == docs.record.slots
    check_searches(docs)
    with Library(tmp_path / "retrieval", WordEmbedder()) as other:
        assert other.open("docs").index().vectors.indexed_rows == docs.record.slots


def test_deleted_documents_leave_every_file(tmp_path, docs, folder):
    (folder / "secret.txt").write_text("The xylophonist hides marigolds.")
    docs.refresh()
    for n in range(60, 70):  # enough for the index to be extended
        (folder / f"{n:02}.txt").write_text(f"number{n}.\n")
    docs.refresh()
    stored = embed("The xylophonist hides marigolds.").astype(np.float16).tobytes()
    assert stored in (tmp_path / "retrieval" / "1.hnsw").read_bytes()
    (folder / "secret.txt").unlink()

    assert docs.refresh().purged

    files = [one for one in (tmp_path / "retrieval").iterdir() if one.is_file()]
    data = b"".join(one.read_bytes() for one in files)
    assert stored not in data
    check_searches(docs)


def test_rewriting_builds_the_index_anew(tmp_path, docs, folder):
    for n in range(25):
        (folder / f"{n:02}.txt").unlink()
    docs.refresh()
    assert names_of(tmp_path) == ["1-1.hnsw", "1-1.hnsw.json", "1-1.vectors"]
    assert docs.index().vectors.indexed_rows == docs.record.slots
    check_searches(docs)


@pytest.mark.parametrize("moment", ["save", "commit"])
def test_a_death_costs_the_index_at_most(tmp_path, docs, folder, monkeypatch, moment):
    class Killed(BaseException):
        pass

    def die(*_, **__):
        raise Killed

    for n in range(60, 80):
        (folder / f"{n:02}.txt").write_text(f"number{n} comes later.\n")
    with monkeypatch.context() as patch:
        if moment == "save":
            patch.setattr("engine.retrieval.vectors.hnsw_vectors._sync", die)
        else:
            patch.setattr(StoreWriter, "commit", die)
        with pytest.raises(Killed):
            docs.refresh()
    check_searches(docs)

    docs.refresh()

    assert names_of(tmp_path) == ["1.hnsw", "1.hnsw.json", "1.vectors"]
    check_searches(docs)
    assert docs.index().vectors.indexed_rows == docs.record.slots == 82


def test_a_collection_gets_an_index_by_itself_when_it_is_large(library, folder, monkeypatch):
    monkeypatch.setattr("engine.retrieval.store.collection_vectors.MIN_ROWS", 30)
    docs = library.create("auto")
    docs.add([folder])
    assert docs.index().vectors.indexed_rows == 0
    for n in range(40):
        (folder / f"{n:02}.txt").write_text(f"number{n}.\n")
    docs.refresh()
    assert docs.index().vectors.indexed_rows == docs.record.slots
    exact = library.create("exact", vector_store="exact")
    exact.add([folder])
    assert not isinstance(exact.index().vectors, HnswVectors)


def test_a_removed_collection_leaves_no_index(tmp_path, library, docs):
    library.remove("docs")
    assert names_of(tmp_path) == []


def test_without_usearch_it_is_refused(library, monkeypatch):
    monkeypatch.setattr(vector_index_choice, "is_available", lambda: False)
    with pytest.raises(InvalidRequest, match=r"pip install 'pravaha\[hnsw\]'"):
        library.create("docs", vector_store="hnsw")

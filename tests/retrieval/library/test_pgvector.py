"""Collections whose vectors are in a real PostgreSQL server with pgvector."""

import numpy as np
import pytest

from engine.api.errors import InvalidRequest
from engine.retrieval.indexing import collection_writer
from engine.retrieval.library.library import Library
from engine.retrieval.store.errors import RetrievalStoreError
from engine.retrieval.store.store_writer import StoreWriter
from engine.retrieval.vectors.errors import VectorIndexUnavailable
from engine.retrieval.vectors.postgres_address import postgres_address
from engine.retrieval.vectors.postgres_vectors import PostgresVectors, drop_table, tables_of
from engine.retrieval.vectors.vector_file import VectorFile
from tests.fakes import postgres_server
from tests.fakes.word_embedder import WordEmbedder, embed

pytest.importorskip("pg8000", reason="the extra `pgvector` is not installed")

_REASON = postgres_server.missing()
pytestmark = pytest.mark.skipif(_REASON is not None, reason=str(_REASON))


@pytest.fixture(scope="module")
def server():
    with postgres_server.postgres_server() as running:
        yield running


@pytest.fixture
def address(server, monkeypatch):
    monkeypatch.setenv("TEST_DSN", server[0])
    return postgres_address("TEST_DSN")


@pytest.fixture
def docs(library, folder, address, monkeypatch):
    """A collection of twenty documents beside those of the folder, and an equal one in a file."""
    monkeypatch.setattr(collection_writer, "MIN_DEAD_SLOTS", 4)
    for n in range(20):
        (folder / f"{n:02}.txt").write_text(f"number{n} of twenty.\n")
    docs = library.create("docs", vector_store="pgvector", dsn_env="TEST_DSN")
    docs.add([folder])
    library.create("file", vector_store="exact").add([folder])
    return docs


def results(collection, query, **options):
    return [
        (one.file, one.start, round(one.score, 4))
        for one in collection.search(query, k=30, **options)
    ]


def test_searches_find_what_a_file_finds(library, docs, folder):
    file = library.open("file")
    for query in ("number3 of twenty", "quokka", "chef"):
        for mode in ("dense", "hybrid"):
            assert results(docs, query, mode=mode) == results(file, query, mode=mode)
        where = {
            "type": "in",
            "key": "file",
            "value": [str(folder / "03.txt"), str(folder / "05.txt")],
        }
        found = results(docs, query, mode="dense", where=where)
        assert len(found) == 2
        assert found == results(file, query, mode="dense", where=where)
    assert docs.doctor().damage == []
    assert docs.refresh().unchanged == 22


def test_nothing_of_the_address_is_stored(tmp_path, server, docs):
    data = b"".join(one.read_bytes() for one in (tmp_path / "retrieval").iterdir())
    assert b"TEST_DSN" in data
    assert b"postgresql:" not in data
    assert not list((tmp_path / "retrieval").glob("1*.vectors"))


def test_deleted_vectors_leave_the_table(server, address, docs, folder):
    table = f"{docs.record.vector_table}_0"
    secret = "The xylophonist Zebediah hides 7431 marigolds beneath the bandstand."
    stored = embed(secret).astype("<f2").tobytes()
    (folder / "secret.txt").write_text(secret)
    docs.refresh()

    def bytes_of_tables() -> bytes:
        checkpoint(address)
        return b"".join(
            one.read_bytes() for one in (server[1] / "base").rglob("*") if one.is_file()
        )

    assert stored in bytes_of_tables()
    (folder / "secret.txt").unlink()

    assert docs.refresh().purged

    assert stored not in bytes_of_tables()
    assert tables_of(address, docs.record.vector_table) == [table]
    assert len(docs.search("twenty", k=50, mode="dense")) == docs.counts.chunks


def checkpoint(address):
    from engine.retrieval.vectors.postgres_vectors import _once

    _once(address, "CHECKPOINT", ())


def test_dead_rows_are_removed_and_readers_follow(library, address, docs, folder):
    with Library(library._store.directory, WordEmbedder()) as other:
        reader = other.open("docs")
        began = reader.index()
        for n in range(10):
            (folder / f"{n:02}.txt").unlink()
        docs.refresh()
        assert (docs.record.rewrites, docs.record.slots) == (1, docs.counts.chunks)
        slots, _ = began.vectors.search(
            docs.embed(["number15 of twenty."]), 1, allowed=began.slots().allowed
        )
        assert began.passages([int(began.slots().chunk_ids[slots[0, 0]])])[0].file.endswith(
            "15.txt"
        )
        assert reader.search("number15 of twenty.", k=1)[0].file.endswith("15.txt")
    library.open("file").refresh()
    assert results(docs, "number15", mode="dense") == results(
        library.open("file"), "number15", mode="dense"
    )
    docs.refresh()  # the next writer drops the old table
    assert tables_of(address, docs.record.vector_table) == [f"{docs.record.vector_table}_1"]


def test_a_death_before_the_commit_leaves_rows_that_are_dropped(docs, address, folder, monkeypatch):
    class Killed(BaseException):
        pass

    def die(*_, **__):
        raise Killed

    (folder / "new.txt").write_text("An okapi hides.\n")
    before = docs.record.slots
    with monkeypatch.context() as patch:
        patch.setattr(StoreWriter, "commit", die)
        with pytest.raises(Killed):
            docs.refresh()
    table = f"{docs.record.vector_table}_0"
    with PostgresVectors.open(address, table, dimensions=64, dtype="f16") as vectors:
        assert vectors.rows == before + 1

    assert docs.refresh().added == 1

    with PostgresVectors.open(address, table, dimensions=64, dtype="f16") as vectors:
        assert vectors.rows == docs.record.slots == before + 1
    assert docs.search("okapi", k=1)[0].file.endswith("new.txt")


def test_a_lost_table_is_computed_anew(library, address, docs):
    drop_table(address, f"{docs.record.vector_table}_0")
    library._vectors.close()
    with pytest.raises(RetrievalStoreError, match="has no table"):
        docs.search("quokka")
    assert docs.doctor().lost_vectors == docs.counts.chunks
    assert docs.restore_vectors() == docs.counts.chunks
    assert results(docs, "quokka number3") == results(library.open("file"), "quokka number3")


def test_a_removed_collection_leaves_no_table(library, address, docs):
    prefix = docs.record.vector_table
    library.remove("docs")
    assert tables_of(address, prefix) == []


def test_a_server_that_is_away_is_said_and_searches_by_words_go_on(library, docs, monkeypatch):
    library._vectors.close()
    monkeypatch.setenv("TEST_DSN", "postgresql://me:secret@127.0.0.1:1/x")
    for call in (lambda: docs.search("quokka"), docs.refresh, lambda: library.remove("docs")):
        with pytest.raises(
            VectorIndexUnavailable, match=r"x at 127\.0\.0\.1 cannot be used"
        ) as caught:
            call()
        assert "secret" not in str(caught.value)
    assert docs.search("quokka", mode="lexical")
    monkeypatch.delenv("TEST_DSN")
    with pytest.raises(VectorIndexUnavailable, match="TEST_DSN is not set"):
        docs.search("quokka")


def test_a_connection_that_was_closed_is_opened_again(address, docs):
    assert docs.search("quokka", mode="dense")
    from engine.retrieval.vectors.postgres_vectors import _once

    _once(
        address,
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
        "WHERE application_name = 'pravaha' AND pid <> pg_backend_pid()",
        (),
    )
    with pytest.raises(VectorIndexUnavailable):
        docs.search("quokka", mode="dense")
    assert docs.search("quokka", mode="dense")


@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_the_store_does_what_a_file_does(tmp_path, address, dtype):
    """The same operations on both, with the same answers."""
    random = np.random.default_rng(3)
    rows = random.standard_normal((40, 24)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    allowed = random.random(36) < 0.6
    with (
        PostgresVectors.create(address, "contract_0", dimensions=24, dtype=dtype) as table,
        PostgresVectors.create(address, "contract_1", dimensions=24, dtype=dtype) as copy,
        VectorFile.create(tmp_path / "v", 24, dtype) as file,
        VectorFile.create(tmp_path / "w", 24, dtype) as file_copy,
    ):
        for store in (table, file):
            assert store.append(rows[:30]) == range(30)
            assert store.append(rows[30:]) == range(30, 40)
            store.sync()
            store.clear(np.array([3, 39]))
            store.write(np.array([7]), rows[:1])
            store.sync()
            store.truncate(36)
            store.maintain(35)
            assert store.rows == 36
        at = np.array([5, 3, 35, 7, 0])
        np.testing.assert_array_equal(table.read(at), file.read(at))
        for mask in (None, allowed):
            slots, scores = table.search(rows[:4], 9, allowed=mask)
            expected = file.search(rows[:4], 9, allowed=mask)
            assert (slots == expected[0]).all()
            np.testing.assert_allclose(scores, expected[1], atol=1e-6)
        few = np.zeros(36, np.bool_)
        few[4] = True
        assert table.search(rows[:1], 3, allowed=few)[0].tolist() == [[4, -1, -1]]
        assert copy.append_copies(table, at) == file_copy.append_copies(file, at) == range(5)
        copy.sync()
        np.testing.assert_array_equal(copy.read(np.arange(5)), file_copy.read(np.arange(5)))
        for wrong in (rows[:, :5], np.full((1, 24), np.nan, np.float32)):
            with pytest.raises(InvalidRequest):
                table.append(wrong)
        table.append(rows[:1])  # never synced
    with PostgresVectors.open(address, "contract_0", dimensions=24, dtype=dtype) as table:
        assert table.rows == 36


def test_wrong_choices_are_refused(library, address):
    for options, message in (
        ({"vector_store": "pgvector"}, "needs the name of the environment variable"),
        ({"vector_store": "pgvector", "dsn_env": "TEST_DSN", "vector_type": "int8"}, "not int8"),
        ({"vector_store": "exact", "dsn_env": "TEST_DSN"}, "Only pgvector has a database address"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            library.create("wrong", **options)
    assert library.collections() == []

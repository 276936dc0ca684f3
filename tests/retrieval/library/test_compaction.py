"""Dead rows leave the vector file, without a reader or a citation noticing, and whatever kills the writer."""

import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from engine.retrieval.indexing import collection_writer
from engine.retrieval.indexing.collection_writer import CollectionWriter
from engine.retrieval.library.library import Library
from engine.retrieval.store.store import Store
from engine.retrieval.store.store_writer import StoreWriter
from tests.fakes.full_disk import full_disk
from tests.fakes.word_embedder import WordEmbedder, embed

_ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def few_dead_rows(monkeypatch):
    monkeypatch.setattr(collection_writer, "MIN_DEAD_SLOTS", 4)
    monkeypatch.setattr(collection_writer, "_COPIED_ROWS", 3)


@pytest.fixture
def many(collection, folder):
    """One chunk in each of twenty documents."""
    for one in folder.iterdir():
        one.unlink()
    for n in range(20):
        (folder / f"{n:02}.txt").write_text(f"number{n} of twenty.\n")
    collection.add([folder])
    return folder


def files_of(tmp_path: Path) -> list[str]:
    return sorted(one.name for one in (tmp_path / "retrieval").glob("*.vectors"))


def check_vectors(collection) -> None:
    """Whether each chunk has the vector of its text."""
    index = collection.index()
    slots = index.slots()
    live = np.flatnonzero(slots.allowed)
    assert len(live) == collection.counts.chunks
    texts = index.store.texts(slots.chunk_ids[live].tolist())
    expected = np.stack([embed(one) for one in texts])
    np.testing.assert_allclose(index.vectors.read(live), expected, atol=1e-3)


def remove(folder: Path, numbers: range) -> None:
    for n in numbers:
        (folder / f"{n:02}.txt").unlink()


def test_a_deletion_beyond_the_share_rewrites_the_file(tmp_path, collection, many):
    remove(many, range(4))
    collection.refresh()
    assert files_of(tmp_path) == ["1.vectors"]  # 4 of 20 rows are few
    remove(many, range(4, 8))
    before = collection.search("number9 number17", k=12)
    cited = {one.chunk_id: collection.passage(one.chunk_id) for one in before}
    assert collection.search("number5", k=1, mode="dense")

    assert collection.refresh().removed == 4

    assert files_of(tmp_path) == ["1-1.vectors"]
    record = collection.record
    assert (record.slots, record.rewrites) == (12, 1)
    for chunk_id, passage in cited.items():
        number = int(Path(passage.file).stem)
        assert (collection.passage(chunk_id) is None) == (number < 8)
    assert {Path(one.file).name for one in collection.search("twenty", k=50, mode="dense")} == {
        f"{n:02}.txt" for n in range(8, 20)
    }
    assert collection.doctor().damage == []
    (many / "new.txt").write_text("number99 comes later.\n")
    assert collection.refresh().added == 1
    assert collection.search("number99", k=1, mode="lexical")[0].file.endswith("new.txt")
    check_vectors(collection)


@pytest.mark.parametrize("vector_type", ["f16", "int8", "f32"])
def test_copies_are_the_same_bit_for_bit(library, many, vector_type):
    collection = library.create("other", vector_type=vector_type)
    collection.add([many])
    before = collection.search("number3 number15 twenty", k=30, mode="dense")
    remove(many, range(6, 12))

    collection.refresh()

    assert collection.record.rewrites == 1
    after = collection.search("number3 number15 twenty", k=30, mode="dense")
    kept = {one.chunk_id: one.score for one in before}
    assert after
    assert all(kept[one.chunk_id] == one.score for one in after)


def test_nothing_of_the_deleted_is_left(tmp_path, collection, many):
    stored = [embed(f"number{n} of twenty.").astype(np.float16).tobytes() for n in range(20)]
    vectors = set(stored[:8]) - set(stored[8:])  # the embedder gives some texts the same vector
    assert vectors
    remove(many, range(8))
    assert collection.refresh().purged
    data = b"".join(one.read_bytes() for one in (tmp_path / "retrieval").iterdir())
    assert not [one for one in vectors if one in data]
    assert b"number5" not in data


def test_everything_can_be_deleted(collection, many):
    remove(many, range(20))
    (many / "one.txt").write_text("alone.\n")
    collection.refresh()
    assert collection.record.slots == 1  # the new document came before the deletion
    collection.remove(many)
    assert collection.search("alone") == []
    assert collection.doctor().damage == []


def test_a_search_that_began_before_sees_what_it_began_with(library, collection, many):
    index = collection.index()
    query = collection.embed(["number15 of twenty."])
    remove(many, range(10))
    collection.refresh()
    assert collection.record.rewrites == 1
    with Library(library._store.directory, WordEmbedder()) as other:
        other.open("docs").search("number15")

    slots = index.slots()
    found, scores = index.vectors.search(query, 1, allowed=slots.allowed)

    assert len(slots.allowed) == 20
    assert scores[0, 0] > 0.99
    (passage,) = index.passages([int(slots.chunk_ids[found[0, 0]])])
    assert passage.text == "number15 of twenty."
    assert index.passages([int(slots.chunk_ids[2])]) == []  # deleted; no other text is in its place
    assert collection.search("number15", k=1)[0].file.endswith("15.txt")


def test_another_process_notices_the_new_file(library, collection, many, tmp_path):
    with Library(tmp_path / "retrieval", WordEmbedder()) as reader:
        opened = reader.open("docs")
        assert opened.search("number15", k=1, mode="dense")[0].file.endswith("15.txt")
        remove(many, range(10))
        collection.refresh()
        for n in range(10, 20):
            assert opened.search(f"number{n}", k=1, mode="dense")[0].file.endswith(f"{n}.txt")


def test_a_rewrite_between_slots_and_opening_is_noticed(collection, many, library, monkeypatch):
    """The reader learns of file 0, the writer deletes it, then the reader opens it."""
    library._vectors.close()
    original = Store.slots
    calls = []

    def slots(self, *arguments):
        found = original(self, *arguments)
        if not calls:
            calls.append(1)
            remove(many, range(10))
            with Library(self.directory, WordEmbedder()) as writer:
                writer.open("docs").refresh()
        return found

    monkeypatch.setattr(Store, "slots", slots)
    assert collection.search("number15", k=1, mode="dense")[0].file.endswith("15.txt")
    assert calls


def test_a_document_that_was_not_complete_keeps_its_vectors(collection, many, embedder):
    with CollectionWriter.opened(collection._store, "docs") as writer:
        writer.rows._connection.execute(
            "UPDATE document SET status = 'partial' WHERE path LIKE '%19.txt'"
        )
    for n in range(8):
        collection.remove(many / f"{n:02}.txt")
        (many / f"{n:02}.txt").unlink()
    assert collection.record.rewrites == 1
    embedder.texts.clear()

    report = collection.add([many])

    assert (report.added, embedder.texts) == (1, [])
    check_vectors(collection)


def test_a_full_disk_puts_the_rewriting_off(tmp_path, collection, many, monkeypatch):
    from engine.retrieval.vectors.vector_file import VectorFile

    append = VectorFile.append_copies

    def without_room(self, *arguments):
        with full_disk(tmp_path / "nothing"):
            return append(self, *arguments)

    monkeypatch.setattr(collection_writer, "_COPIED_ROWS", 1000)
    remove(many, range(10))
    (many / "wide.txt").write_text("word " * 100_000)  # its vectors do not fit into what is left
    collection.add([many])
    with monkeypatch.context() as patch:
        patch.setattr(VectorFile, "append_copies", without_room)
        report = collection.refresh()
    assert (report.removed, report.purged) == (10, True)
    assert collection.record.rewrites == 0
    assert files_of(tmp_path) == ["1.vectors"]
    assert collection.search("number15", k=1, mode="lexical")


class Killed(BaseException):
    pass


@pytest.mark.parametrize("moment", ["append_copies", "switch", "commit", "unlink"])
def test_a_death_at_each_moment_loses_nothing(tmp_path, collection, many, monkeypatch, moment):
    remove(many, range(10))

    def die(*_, **__):
        raise Killed

    with monkeypatch.context() as patch:
        if moment == "append_copies":
            patch.setattr("engine.retrieval.vectors.vector_file.VectorFile.append_copies", die)
            patch.setattr(Path, "unlink", lambda self, missing_ok=False: None)
        elif moment == "switch":
            patch.setattr(StoreWriter, "switch_vectors", die)
        elif moment == "commit":
            patch.setattr(StoreWriter, "set_vectors_lost", die)
        else:
            patch.setattr(Path, "unlink", die)
        with pytest.raises(Killed):
            collection.refresh()

    for n in range(10, 20):
        assert collection.search(f"number{n}", k=1, mode="dense")[0].file.endswith(f"{n}.txt")
    collection.refresh()
    assert collection.doctor().damage == []
    assert files_of(tmp_path) == ["1-1.vectors"]
    assert collection.record.slots == 10


def test_files_of_a_removed_collection_are_deleted_after_a_death(
    tmp_path, library, collection, monkeypatch
):
    collection.add_text(b"kept by the library", "note.txt")
    other = library.create("other")
    with monkeypatch.context() as patch:
        patch.setattr("engine.retrieval.library.library.delete_unused_files", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            library.remove("docs")
    assert files_of(tmp_path) == ["1.vectors"]

    other.refresh()

    assert files_of(tmp_path) == []
    assert list((tmp_path / "retrieval" / "files").iterdir()) == []


def check_kills(tmp_path: Path, kills: int, seed: int) -> None:
    """Kill a process that deletes and rewrites all the time; what is left always is one whole state."""
    moments = random.Random(seed)
    library, folder = tmp_path / "killed", tmp_path / "churned"
    folder.mkdir()
    with Library(library, WordEmbedder()) as opened:
        opened.create("docs")
    for _ in range(kills):
        with subprocess.Popen(
            [sys.executable, "-m", "tests.retrieval.library.churn_process", library, folder],
            cwd=_ROOT,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(moments.uniform(0.05, 0.5))
            process.kill()
        with Library(library, WordEmbedder()) as opened:
            collection = opened.open("docs")
            if collection.counts.chunks:
                check_vectors(collection)
    with Library(library, WordEmbedder()) as opened:
        assert opened.open("docs").record.rewrites  # else nothing was tried
        assert opened.open("docs").doctor().damage == []
    assert len(list(library.glob("*.vectors"))) == 1


def test_a_few_kills(tmp_path):
    check_kills(tmp_path, 3, seed=4)


@pytest.mark.soak
def test_fifty_kills(tmp_path):
    check_kills(tmp_path, 50, seed=6)

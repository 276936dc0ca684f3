"""Deleted means gone from every index and from the bytes of every file."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from tests.fakes.word_embedder import embed

_SECRET = "The xylophonist Zebediah hides 7431 marigolds beneath Kraków 北京烤鸭 हिन्दी."
_TRACES = [
    "xylophonist",
    "Zebediah",
    "marigolds",
    "7431",
    "Kraków",
    "krakow",
    "北京烤",
    "烤鸭",
    "हिन्दी",
]


@pytest.fixture
def secret(collection, folder) -> Path:
    path = folder / "Secretfilename.txt"
    path.write_text(_SECRET)
    for n in range(30):  # so that the secret shares pages and segments with others
        (folder / f"filler{n}.md").write_text(f"# Filler {n}\n\n" + f"common{n} words " * 200)
    collection.add([folder])
    return path


def stored_bytes(tmp_path: Path) -> bytes:
    files = [one for one in (tmp_path / "retrieval").rglob("*") if one.is_file()]
    assert files
    return b"".join(one.read_bytes() for one in files)


def traces(tmp_path: Path) -> list[str]:
    data = stored_bytes(tmp_path)
    found = [one for one in _TRACES if one.encode() in data]
    vector = embed(_SECRET).astype(np.float16).tobytes()
    return found + (["vector"] if vector in data else [])


def test_the_traces_are_there_before(tmp_path, secret):
    assert {"xylophonist", "Zebediah", "Kraków", "vector"} <= set(traces(tmp_path))


def test_a_removed_document_leaves_no_byte(tmp_path, collection, secret):
    collection.remove(secret)

    assert traces(tmp_path) == []
    assert collection.search("xylophonist", mode="lexical") == []
    assert collection.search("北京烤鸭", mode="lexical") == []
    assert collection.search("common3", k=1, mode="lexical")


def test_a_vanished_document_leaves_no_byte(tmp_path, collection, secret):
    secret.unlink()

    report = collection.refresh()

    assert (report.removed, report.purged) == (1, True)
    assert traces(tmp_path) == []
    assert b"Secretfilename" not in stored_bytes(tmp_path)


def test_a_former_version_leaves_no_byte(tmp_path, collection, secret):
    secret.write_text("Nothing of note.")
    collection.refresh()

    assert traces(tmp_path) == []


def test_a_removed_collection_leaves_no_byte(tmp_path, library, collection, secret):
    library.create("other")

    assert library.remove("docs")

    assert traces(tmp_path) == []
    assert b"common3" not in stored_bytes(tmp_path)
    assert [one.name for one in library.collections()] == ["other"]


def test_vectors_that_a_crash_left_are_zeroed_by_the_next_writer(
    tmp_path, collection, secret, monkeypatch
):
    from engine.retrieval.indexing.collection_writer import CollectionWriter

    class Killed(BaseException):
        pass

    def die(self):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(CollectionWriter, "purge", die)
        with pytest.raises(Killed):
            collection.remove(secret)
    assert "vector" in traces(tmp_path)

    collection.refresh()

    assert traces(tmp_path) == []


def test_a_search_elsewhere_delays_the_deletion_of_bytes(tmp_path, library, collection, secret):
    reader = sqlite3.connect(tmp_path / "retrieval" / "retrieval.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM chunk").fetchone()
    reader.execute("PRAGMA busy_timeout = 0")
    try:
        secret.unlink()
        assert not collection.refresh().purged
    finally:
        reader.close()

    assert library.purge()
    assert traces(tmp_path) == []

"""One writer, and readers in other threads and processes."""

import itertools
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from engine.retrieval.library.library import Library
from engine.retrieval.store.errors import LibraryBusy, RetrievalStoreError
from engine.retrieval.store.store_writer import StoreWriter
from tests.fakes.full_disk import full_disk
from tests.fakes.word_embedder import WordEmbedder
from tests.retrieval.library.test_crash import write_documents

_ROOT = Path(__file__).parents[3]


def test_there_is_one_writer(library, collection, folder):
    with StoreWriter.open(library._store.directory):
        with pytest.raises(LibraryBusy, match="try again when it is done"):
            collection.add([folder])
        with pytest.raises(LibraryBusy):
            library.create("other")
        assert collection.search("quokka") == []  # readers do not wait

    assert collection.add([folder]).added == 2


def test_a_reader_sees_whole_documents_while_another_process_writes(library, collection, tmp_path):
    folder = tmp_path / "many"
    write_documents(folder, "first")
    seen = set()
    modes = itertools.cycle(("lexical", "lexical", "lexical", "hybrid"))
    with subprocess.Popen(
        [
            sys.executable, "-m", "tests.retrieval.library.index_process",
            tmp_path / "retrieval", folder, "step",
        ],
        cwd=_ROOT,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        while process.poll() is None:
            ready = {one.path: one for one in collection.documents()}
            seen.add(len(ready))
            for one in collection.search("number word3 of part 7", k=9, mode=next(modes)):
                assert Path(one.file).read_bytes()[one.start : one.end].decode() == one.text
            counts = collection.counts
            assert counts.documents >= len(ready)
            with suppress(BrokenPipeError):
                process.stdin.write(b"\n")
        assert process.returncode == 0
    assert len(collection.documents()) == 63
    assert len(seen) > 2  # it was read in the middle, too


def test_threads_search_while_one_refreshes(collection, folder):
    collection.add([folder])
    stop = threading.Event()
    errors = []

    def read():
        try:
            while not stop.is_set():
                for one in collection.search("quokka heron chef version", k=20):
                    assert one.text
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for one in threads:
        one.start()
    for n in range(10):
        (folder / "animals.md").write_text(f"# Animals\n\nThe quokka, version {n}.\n")
        assert collection.refresh().updated == 1
    stop.set()
    for one in threads:
        one.join()
    assert errors == []
    assert collection.search("version 9", k=1, mode="lexical")[0].text.endswith("version 9.")


def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path, collection, folder):
    collection.add([folder])
    large = folder / "large.md"
    large.write_text("\n\n".join(f"# Part {n}\n\n" + f"word{n} " * 300 for n in range(200)))

    with (
        full_disk(tmp_path / "retrieval" / "retrieval.db"),
        pytest.raises(RetrievalStoreError, match="no room left on the disk"),
    ):
        collection.refresh()

    assert collection.search("quokka", k=1, mode="lexical")
    assert collection.refresh().added == 1
    assert collection.doctor().damage == []


def test_a_newer_database_is_refused(tmp_path, library, collection):
    import sqlite3

    database = tmp_path / "retrieval" / "retrieval.db"
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA user_version = 99")
    connection.close()

    with Library(tmp_path / "retrieval", WordEmbedder()) as other:
        with pytest.raises(RetrievalStoreError, match="newer Pravāha"):
            other.collections()
        with pytest.raises(RetrievalStoreError, match="newer Pravāha"):
            other.create("two")


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "retrieval.db").write_bytes(b"no database at all" * 100)
    with (
        Library(tmp_path, WordEmbedder()) as library,
        pytest.raises(RetrievalStoreError, match="file is not a database"),
    ):
        library.collections()


def test_another_process_that_closes_the_database_leaves_the_log_to_this_one(
    tmp_path, collection, folder
):
    """Closing a second descriptor of the file would drop this process's locks on it.

    The other process would take itself for the last one, and delete the log that this one writes to.
    """
    collection.add([folder])
    assert collection.search("quokka")  # a connection for reading is open from here on
    (folder / "animals.md").write_text("An okapi.")
    collection.refresh()
    database = tmp_path / "retrieval" / "retrieval.db"

    subprocess.run(
        [
            sys.executable, "-c",
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); "
            "c.execute('SELECT count(*) FROM chunk').fetchone(); c.close()",
            database,
        ],
        check=True,
    )  # fmt: skip

    assert database.with_name("retrieval.db-wal").exists()
    (folder / "animals.md").write_text("A dodo.")
    collection.refresh()
    assert collection.search("dodo", mode="lexical")
    assert collection.doctor().damage == []

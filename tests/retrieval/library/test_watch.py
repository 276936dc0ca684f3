"""`Collection.watch`: changes are found while it runs."""

import queue
import shutil
import threading

import pytest

from engine.retrieval.library.library import Library
from engine.retrieval.store.store_writer import StoreWriter
from tests.fakes.word_embedder import WordEmbedder

_LIMIT_S = 60  # only ends a hang


@pytest.fixture
def watched(collection, folder):
    """The collection, its folder, and the reports of a watch that has begun."""
    collection.add([folder])
    (folder / "köche.txt").write_text("changed before the watch")
    reports: queue.Queue[object] = queue.Queue()
    stop = threading.Event()

    def watch():
        try:
            collection.watch(stop, on_report=reports.put)
        except BaseException as error:
            reports.put(error)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        first = reports.get(timeout=_LIMIT_S)
        assert first.updated == 1
        yield collection, folder, reports
    finally:
        stop.set()
        thread.join()


def test_new_changed_and_deleted_files_are_noticed(watched):
    collection, folder, reports = watched

    (folder / "new").mkdir()
    (folder / "new" / "pangolin.txt").write_text("A pangolin rolls up.")
    assert reports.get(timeout=_LIMIT_S).added == 1
    assert collection.search("pangolin", mode="lexical")

    (folder / "new" / "pangolin.txt").unlink()
    assert reports.get(timeout=_LIMIT_S).removed == 1
    assert not collection.search("pangolin", mode="lexical")


def test_changes_wait_for_another_writer(watched, library):
    _, folder, reports = watched

    with StoreWriter.open(library._store.directory):
        (folder / "late.txt").write_text("An okapi hides.")
        with pytest.raises(queue.Empty):
            reports.get(timeout=1.5)

    assert reports.get(timeout=_LIMIT_S).added == 1


def test_a_folder_that_another_process_adds_is_watched(watched, library, tmp_path):
    _, folder, reports = watched
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    (other_folder / "a.txt").write_text("An ibis wades.")
    with Library(library._store.directory, WordEmbedder()) as other:
        assert other.open("docs").add([other_folder]).added == 1
    # The watch learns of the folder within a second; what changes before that is noticed then.
    (other_folder / "b.txt").write_text("An okapi hides.")

    assert reports.get(timeout=_LIMIT_S).added == 1
    (other_folder / "c.txt").write_text("A dodo.")
    assert reports.get(timeout=_LIMIT_S).added == 1
    (folder / "d.txt").write_text("An emu.")
    assert reports.get(timeout=_LIMIT_S).added == 1


def test_a_folder_that_vanishes_is_named_once_and_its_documents_kept(watched, tmp_path):
    collection, folder, reports = watched
    folder.rename(tmp_path / "elsewhere")
    report = reports.get(timeout=_LIMIT_S)
    assert [(one.folder, one.documents) for one in report.unreachable] == [(str(folder), 2)]
    assert len(collection.documents()) == 2

    (tmp_path / "elsewhere" / "new.txt").write_text("An okapi hides.")
    (tmp_path / "elsewhere").rename(folder)
    report = reports.get(timeout=_LIMIT_S)
    assert report.unreachable == []
    while not report.added:  # the folder is back, then it is looked through again
        report = reports.get(timeout=_LIMIT_S)
    assert collection.search("okapi", mode="lexical")


def test_a_folder_that_is_deleted_and_made_again_is_followed(watched):
    collection, folder, reports = watched
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "new.txt").write_text("An okapi hides.")
    _until(reports, lambda: collection.search("okapi", mode="lexical"))
    (folder / "newer.txt").write_text("A pangolin rolls up.")
    _until(reports, lambda: collection.search("pangolin", mode="lexical"))
    (folder / "new.txt").unlink()
    _until(reports, lambda: not collection.search("okapi", mode="lexical"))


def _until(reports, is_so):
    """Wait for reports until something is so."""
    while not is_so():
        report = reports.get(timeout=_LIMIT_S)
        assert not isinstance(report, BaseException), report

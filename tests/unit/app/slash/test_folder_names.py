import threading

from app.slash.folder_names import MAX_READS, FolderNames, list_folder


def test_a_folder_that_does_not_answer_holds_nobody_up():
    goes_on, read = threading.Event(), threading.Event()

    def slow(folder):
        assert goes_on.wait(30)
        return ("a", "b/")

    names = FolderNames(read.set, read=slow)
    assert names("share") == ()
    assert names.reading
    goes_on.set()
    assert read.wait(30)
    assert names("share") == ("a", "b/")


def test_only_a_few_folders_are_waited_for():
    goes_on, began = threading.Event(), []

    def slow(folder):
        began.append(folder)
        goes_on.wait(30)
        return ()

    names = FolderNames(lambda: None, read=slow)
    for number in range(20):
        names(f"dead{number}")
        names(f"dead{number}")  # is not read twice
    goes_on.set()
    assert len(began) <= MAX_READS


def test_a_folder_is_read_again_when_it_is_not_fresh():
    now, found, reads = [0.0], [("a",)], threading.Semaphore(0)
    names = FolderNames(reads.release, read=lambda folder: found[0], clock=lambda: now[0])
    names("x")
    assert reads.acquire(timeout=30)
    found[0] = ("a", "b")
    assert names("x") == ("a",)
    now[0] = 10.0
    assert names("x") == ("a",)  # as it was, until it is read
    assert reads.acquire(timeout=30)
    assert names("x") == ("a", "b")


def test_folders_are_marked(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "a").touch()
    assert list_folder(str(tmp_path)) == ("a", "b/")
    assert list_folder(str(tmp_path / "missing")) == list_folder("\0") == ()

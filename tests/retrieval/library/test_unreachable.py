"""A refresh keeps the documents of folders that cannot be reached."""

import os
import shutil

import pytest

from engine.retrieval.indexing.report import Unreachable


@pytest.fixture
def filled(collection, folder):
    collection.add([folder])
    return collection


def names(collection):
    return [os.path.basename(one.path) for one in collection.documents()]


def test_documents_of_a_folder_that_has_vanished_are_kept(filled, folder, tmp_path):
    folder.rename(tmp_path / "elsewhere")

    report = filled.refresh()

    assert report.removed == 0
    assert report.unreachable == [Unreachable(str(folder), 2)]
    assert filled.search("quokka")

    (tmp_path / "elsewhere").rename(folder)
    report = filled.refresh()
    assert (report.unchanged, report.unreachable) == (2, [])


def test_they_can_be_removed(filled, folder):
    shutil.rmtree(folder)

    assert filled.remove(folder) == 2
    assert filled.refresh().unreachable == []
    assert names(filled) == []


def test_deleted_files_and_folders_are_not_kept(filled, folder):
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "sub" / "deep" / "a.txt").write_text("An ibis.")
    filled.refresh()
    shutil.rmtree(folder / "sub")

    assert filled.refresh().removed == 1

    for one in folder.iterdir():
        one.unlink()
    report = filled.refresh()
    assert (report.removed, report.unreachable) == (2, [])


def test_a_deleted_file_that_was_named_itself_is_not_kept(collection, folder):
    collection.add([folder / "animals.md"])
    (folder / "animals.md").unlink()
    assert collection.refresh().removed == 1


def test_a_named_file_in_a_vanished_folder_is_kept(collection, folder, tmp_path):
    collection.add([folder / "animals.md", str(tmp_path / "fol*" / "*.txt")])
    folder.rename(tmp_path / "elsewhere")

    report = collection.refresh()

    # What a pattern finds below its fixed part is known to be gone.
    assert report.unreachable == [Unreachable(str(folder), 1)]
    assert names(collection) == ["animals.md"]


@pytest.mark.parametrize("mounted", ["folder", "folder/drive"])
def test_documents_of_a_drive_that_is_not_mounted_are_kept(
    collection, folder, tmp_path, monkeypatch, mounted
):
    (folder / "drive").mkdir()
    (folder / "drive" / "a.txt").write_text("An ibis.")
    mounts = {str(tmp_path / mounted)}
    monkeypatch.setattr(os.path, "ismount", lambda path: path == "/" or path in mounts)
    collection.add([folder])
    documents = names(collection)
    mounts.clear()  # unmounting leaves the empty folder
    for one in sorted((tmp_path / mounted).rglob("*"), reverse=True):
        one.rmdir() if one.is_dir() else one.unlink()

    for _ in range(2):
        report = collection.refresh()
        assert report.removed == 0
        assert [one.folder for one in report.unreachable] == [str(tmp_path / mounted)]
        assert names(collection) == documents

    # Mounted again, without the files: these were deleted.
    mounts.add(str(tmp_path / mounted))
    (tmp_path / mounted / "other.txt").write_text("An emu.")
    report = collection.refresh()
    assert (report.unreachable, report.added) == ([], 1)
    assert report.removed == len(documents) - len(names(collection)) + 1


def test_documents_of_a_folder_that_cannot_be_read_are_kept(filled, folder, monkeypatch):
    (folder / "sub").mkdir()
    (folder / "sub" / "a.txt").write_text("An ibis.")
    filled.refresh()
    (folder / "sub" / "a.txt").unlink()
    scandir = os.scandir

    def refusing(path):
        if str(path) == str(folder / "sub"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)

    report = filled.refresh()

    assert report.unreachable == [Unreachable(str(folder / "sub"), 1)]
    monkeypatch.undo()
    assert filled.refresh().removed == 1

"""`watch_changes`: folders that are replaced, and changes that fall between two looks at them."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from engine.retrieval.indexing import watching
from engine.retrieval.indexing.watching import watch_changes
from engine.retrieval.store.records import Source

_WAKE_MS = 50
_GROUPS = 400  # so long each, if nothing changes


@pytest.fixture(autouse=True)
def looks_often(monkeypatch):
    monkeypatch.setattr(watching, "_WAKE_MS", _WAKE_MS)


def test_a_folder_that_is_back_when_it_is_looked_for_again_counts_as_changed(tmp_path):
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    folder.mkdir()
    looks = 0

    def sources() -> list[Source]:
        nonlocal looks
        looks += elsewhere.exists()
        if looks == 2:  # the first look found that it had vanished
            elsewhere.rename(folder)
            looks = 3
        return [Source(str(folder))]

    with closing(watch_changes(sources, threading.Event())) as groups:
        next(groups)  # from here on, changes are noticed
        folder.rename(elsewhere)
        assert _arrives(groups, folder)
        assert _arrives(groups, folder)
        (folder / "new.txt").write_text("An okapi hides.")
        assert _arrives(groups, folder / "new.txt")


def deleted_and_made(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def deleted_and_made_with_content(folder: Path) -> None:
    shutil.rmtree(folder)
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a.txt").write_text("A dodo.")


def parent_deleted_and_made(folder: Path) -> None:
    shutil.rmtree(folder.parent)
    folder.mkdir(parents=True)


def parent_renamed_and_made(folder: Path) -> None:
    folder.parent.rename(folder.parent.with_name("old parent"))
    folder.mkdir(parents=True)


def replaced_by_another(folder: Path) -> None:
    other = folder.with_name("other")
    other.mkdir()
    (other / "b.txt").write_text("An emu.")
    folder.rename(folder.with_name("old"))
    other.rename(folder)


def replaced_by_a_link(folder: Path) -> None:
    other = folder.with_name("other")
    other.mkdir()
    shutil.rmtree(folder)
    folder.symlink_to(other)


@pytest.mark.parametrize(
    "replaced",
    [
        deleted_and_made, deleted_and_made_with_content, parent_deleted_and_made, parent_renamed_and_made,
        replaced_by_another, replaced_by_a_link,
    ],
)  # fmt: skip
def test_a_folder_in_the_place_of_a_watched_one_is_watched(tmp_path, replaced):
    folder = tmp_path / "parent" / "folder"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("An okapi hides.")
    with closing(watch_changes(lambda: [Source(str(folder))], threading.Event())) as groups:
        next(groups)
        replaced(folder)
        assert _arrives(groups, folder)
        next(groups)  # of the new watch
        (folder / "new.txt").write_text("A pangolin rolls up.")
        assert _arrives(groups, folder / "new.txt")
        deleted_and_made(folder.resolve())
        assert _arrives(groups, folder)
        next(groups)
        (folder / "newer.txt").write_text("A dodo.")
        assert _arrives(groups, folder / "newer.txt")


def test_a_link_that_is_switched_is_followed(tmp_path):
    one, two, link = tmp_path / "one", tmp_path / "two", tmp_path / "current"
    for folder in (one, two):
        (folder / "docs").mkdir(parents=True)
    link.symlink_to(one)
    watched = link / "docs"
    with closing(watch_changes(lambda: [Source(str(watched))], threading.Event())) as groups:
        next(groups)
        (tmp_path / "next").symlink_to(two)
        (tmp_path / "next").rename(link)
        assert _arrives(groups, watched)
        next(groups)
        (two / "docs" / "new.txt").write_text("An ibis wades.")
        assert _arrives(groups, watched / "new.txt")


def test_a_folder_that_stays_away_is_watched_when_it_comes_back(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with closing(watch_changes(lambda: [Source(str(folder))], threading.Event())) as groups:
        next(groups)
        shutil.rmtree(folder)
        assert _arrives(groups, folder)
        while folder in map(Path, next(groups)):
            pass  # it is known to be away
        folder.mkdir()
        assert _arrives(groups, folder)
        (folder / "new.txt").write_text("A dodo.")
        assert _arrives(groups, folder / "new.txt")


def test_a_folder_that_vanishes_before_it_is_watched_ends_nothing(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    watch = watching.watchfiles.watch

    def late(*paths: str, **options: object):
        if folder.exists():
            folder.rmdir()
        return watch(*paths, **options)

    monkeypatch.setattr(watching.watchfiles, "watch", late)
    with closing(watch_changes(lambda: [Source(str(folder))], threading.Event())) as groups:
        assert _arrives(groups, folder)
        monkeypatch.setattr(watching.watchfiles, "watch", watch)
        folder.mkdir()
        assert _arrives(groups, folder)
        (folder / "new.txt").write_text("A dodo.")
        assert _arrives(groups, folder / "new.txt")


def test_a_folder_that_can_be_read_again_is_watched_again(tmp_path):
    folder = tmp_path / "folder"
    inner = folder / "inner"
    inner.mkdir(parents=True)
    with closing(watch_changes(lambda: [Source(str(folder))], threading.Event())) as groups:
        next(groups)
        inner.chmod(0o000)
        assert _arrives(groups, inner)
        next(groups)  # of the new watch
        inner.chmod(0o755)
        assert _arrives(groups, inner)
        next(groups)
        (inner / "new.txt").write_text("A dodo.")
        assert _arrives(groups, inner / "new.txt")


def _arrives(groups: Iterator[frozenset[str]], path: Path) -> bool:
    return any(str(path) in group for group in islice(groups, _GROUPS))

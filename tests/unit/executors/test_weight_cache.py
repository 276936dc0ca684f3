import fcntl
import os
import shutil
import time

import pytest

from engine.executors import weight_cache
from engine.executors.weight_cache import WeightCache
from engine.models import source_identity

MIB = 1 << 20


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "weights"


def entry(folder, name, *, size=MIB, used_at):
    """A file like one of packed weights; damaged, which does not matter for its size and age."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.packed"
    with path.open("wb") as file:
        file.truncate(size)
    os.utime(path, (used_at, used_at))
    return path


def names(cache):
    return [found.path.stem for found in cache.entries()]


def test_entries_are_listed_by_their_last_use(folder):
    cache = WeightCache(folder, 10 * MIB)
    assert cache.entries() == []
    for name, used_at in (("old", 1), ("new", 3), ("middle", 2)):
        entry(folder, name, used_at=used_at)
    assert names(cache) == ["new", "middle", "old"]
    assert {found.size for found in cache.entries()} == {MIB}


def test_room_is_made_by_removing_what_was_used_least_recently(folder):
    cache = WeightCache(folder, 4 * MIB)
    for age, name in enumerate(("oldest", "older", "newer", "newest")):
        entry(folder, name, used_at=age)
    assert cache.make_room(folder / "next.packed", 2 * MIB)
    assert names(cache) == ["newest", "newer"]


def test_a_file_that_is_replaced_takes_no_room_beside_itself(folder):
    cache = WeightCache(folder, 2 * MIB)
    target = entry(folder, "target", used_at=1)
    entry(folder, "other", used_at=2)
    assert cache.make_room(target, MIB)
    assert names(cache) == ["other", "target"]


def test_what_is_larger_than_the_limit_removes_nothing(folder):
    cache = WeightCache(folder, 4 * MIB)
    entry(folder, "other", used_at=1)
    assert not cache.make_room(folder / "next.packed", 4 * MIB + 1)
    assert names(cache) == ["other"]


def test_disk_space_is_left_free(folder, monkeypatch, caplog):
    cache = WeightCache(folder, 100 * MIB)
    free = [weight_cache.SPARE_BYTES + MIB // 2]
    total = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: total._replace(free=free[0]))
    for age, name in enumerate(("old", "new")):
        entry(folder, name, used_at=age)
    assert cache.make_room(folder / "next.packed", MIB)
    assert names(cache) == ["new"]
    free[0] = MIB
    assert not cache.make_room(folder / "next.packed", MIB)
    assert "free" in caplog.text


def test_leftovers_of_killed_processes_are_removed_and_those_of_living_ones_kept(folder):
    cache = WeightCache(folder, 4 * MIB)
    abandoned = entry(folder, "abandoned", used_at=1).rename(folder / "abandoned.packed.part")
    living = entry(folder, "living", used_at=1).rename(folder / "living.packed.part")
    with living.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert cache.make_room(folder / "next.packed", MIB)
        assert not abandoned.exists()
        assert living.exists()
    assert cache.clear() == 0  # only finished files count
    assert not living.exists()


def test_clearing_removes_everything_and_says_how_much(folder):
    cache = WeightCache(folder, 4 * MIB)
    kept = entry(folder, "one", used_at=1)
    entry(folder, "two", used_at=2)
    with kept.open("rb") as opened:  # in use
        assert cache.clear() == 2 * MIB
        assert len(opened.read()) == MIB
    assert cache.entries() == []


def test_a_shortage_says_what_to_do_and_removes_nothing(folder, monkeypatch):
    cache = WeightCache(folder, 4 * MIB)
    entry(folder, "other", used_at=1)
    target = folder / "next.packed"
    assert cache.shortage(target, 4 * MIB) == ""
    assert cache.shortage(target, 5 * MIB) == (
        "they take 5 MiB, and --weight-cache-bytes is 4 MiB: raise it"
    )
    total = shutil.disk_usage("/")
    free = weight_cache.SPARE_BYTES + 2 * MIB
    monkeypatch.setattr(shutil, "disk_usage", lambda path: total._replace(free=free))
    assert cache.shortage(target, 3 * MIB) == ""  # in the place of the other one
    assert cache.shortage(target, 4 * MIB) == (
        f"they take 4 MiB, and {folder} has 2,050 MiB free, of which 2,048 MiB stay free: free disk space, "
        "or set another folder (PRAVAHA_CACHE_DIR)"
    )
    assert names(cache) == ["other"]


def test_a_folder_that_cannot_be_made_is_a_shortage(folder):
    folder.write_text("a file")
    cache = WeightCache(folder / "weights", 4 * MIB)
    assert f"{folder} cannot be written" in cache.shortage(None, MIB)
    assert not cache.make_room(folder / "weights" / "next.packed", MIB)


def test_a_location_waits_for_files_that_changed_just_now(folder, tmp_path, monkeypatch):
    model = tmp_path / "model.gguf"
    model.write_bytes(b"GGUF")
    cache = WeightCache(folder, 4 * MIB)
    assert cache.location(model, [model]) is None
    waited = []

    def sleep(seconds):
        waited.append(seconds)
        monkeypatch.setattr(source_identity, "SETTLE_S", 0.0)

    monkeypatch.setattr(time, "sleep", sleep)
    location = cache.location(model, [model], settled=True)
    assert location is not None
    assert location[0] == folder
    assert waited == [2.0]

import os

import pytest

from engine.models.source_identity import SETTLE_S, source_identity


@pytest.fixture
def paths(tmp_path):
    found = [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]
    for path in found:
        path.write_bytes(os.urandom(100_000))
    return found


def identity(paths, *, age_s=SETTLE_S + 60):
    """The identity as seen `age_s` after the last change."""
    changed = max(path.stat().st_ctime_ns for path in paths)
    return source_identity(paths, now_ns=lambda: changed + int(age_s * 1e9))


def overwrite(path):
    """Other bytes after the first 64 KiB, with the same inode, size and time of modification."""
    times = path.stat()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert (path.stat().st_mtime_ns, path.stat().st_size) == (times.st_mtime_ns, times.st_size)


def replace(path):
    """The same bytes in another file."""
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


def touch(path):
    os.utime(path, ns=(1, 1))


def shorten(path):
    os.truncate(path, 99_999)


def test_it_is_the_same_as_long_as_nothing_changes(paths):
    assert identity(paths) == identity(paths)
    assert len(identity(paths)) == 32


@pytest.mark.parametrize("change", [overwrite, replace, touch, shorten])
@pytest.mark.parametrize("which", [0, 1])
def test_every_change_of_a_file_changes_it(paths, change, which):
    before = identity(paths)
    change(paths[which])
    assert identity(paths) != before


def test_it_depends_on_the_files_and_their_order(paths):
    assert len({identity(paths), identity(paths[::-1]), identity(paths[:1])}) == 3


def test_there_is_none_while_a_change_might_leave_the_same_times(paths):
    assert identity(paths, age_s=SETTLE_S - 0.1) is None
    assert identity(paths, age_s=-60) is None  # the clock was set back
    assert identity(paths, age_s=SETTLE_S) is not None


def test_a_missing_file_is_an_error(paths, tmp_path):
    with pytest.raises(FileNotFoundError):
        source_identity([tmp_path / "missing", *paths])

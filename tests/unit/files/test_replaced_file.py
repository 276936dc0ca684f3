"""`replace_file`: the old or the new contents, with the mode that was asked for."""

import os
import stat

import pytest

from engine.files.replaced_file import replace_file


def test_a_new_file_is_the_users_alone(tmp_path):
    file = tmp_path / "one"
    replace_file(file, b"new")
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_file_is_replaced_with_the_mode(tmp_path):
    file = tmp_path / "one"
    file.write_bytes(b"old and longer")
    replace_file(file, b"new", 0o644)
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [file]


def test_a_failure_leaves_the_old_contents_and_nothing_else(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    file = tmp_path / "one"
    file.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_the_longest_name_leaves_room_for_that_of_the_part(tmp_path):
    file = tmp_path / ("n" * 255)
    replace_file(file, b"new")
    assert file.read_bytes() == b"new"

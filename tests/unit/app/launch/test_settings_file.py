"""A client's settings on disk: written with a backup, and put back byte for byte."""

import json
import os
import stat

import pytest

from app.launch.errors import SettingsError
from app.launch.settings_file import SettingsFile

BEFORE = b'# mine\r\nname = "\xc3\xa4"  \n\n'


@pytest.fixture
def path(tmp_path):
    return tmp_path / "home" / ".codex" / "config.toml"


@pytest.fixture
def file(tmp_path, path):
    return SettingsFile("codex", path, tmp_path / "data" / "launch")


def with_file(path, data=BEFORE, mode=0o640):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)


def test_a_new_file_is_written_for_the_user_alone_and_removed_again(file, path):
    assert (file.read(), file.text()) == (None, "")
    file.write("a = 1\n", before=None)
    assert path.read_text() == "a = 1\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert file.undo() == path
    assert not path.exists()


def test_a_file_is_put_back_byte_for_byte(file, path):
    with_file(path)
    file.write("a = 1\n", before=BEFORE)
    assert path.read_text() == "a = 1\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert file.backup.read_bytes() == BEFORE
    file.undo()
    assert path.read_bytes() == BEFORE
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert not file.backup.exists()
    with pytest.raises(SettingsError, match="nothing to undo"):
        file.undo()


def test_a_second_change_keeps_the_first_backup(file, path):
    with_file(path)
    file.write("a = 1\n", before=BEFORE)
    file.write("a = 2\n", before=b"a = 1\n")
    file.undo()
    assert path.read_bytes() == BEFORE


def test_a_change_after_somebody_elses_keeps_theirs(file, path):
    with_file(path)
    file.write("a = 1\n", before=BEFORE)
    path.write_bytes(b"theirs\n")
    file.write("a = 2\n", before=b"theirs\n")
    file.undo()
    assert path.read_bytes() == b"theirs\n"


def test_the_backup_of_a_change_that_cannot_be_undone_any_more_stays(file, path, tmp_path):
    with_file(path)
    file.write("a = 1\n", before=BEFORE)
    path.write_bytes(b"a = 1\ntheirs\n")
    file.write("a = 2\n", before=b"a = 1\ntheirs\n")
    assert file.backup.with_name("codex.backup.1").read_bytes() == BEFORE
    other = SettingsFile("codex", tmp_path / "other.toml", file.backup.parent)  # CODEX_HOME changed
    other.write("a = 3\n", before=None)
    assert file.backup.with_name("codex.backup.2").read_bytes() == b"a = 1\ntheirs\n"


@pytest.mark.parametrize("change", ["edited", "removed"])
def test_a_file_that_was_changed_since_is_not_put_back(file, path, change):
    with_file(path)
    file.write("a = 1\n", before=BEFORE)
    if change == "edited":
        path.write_text("a = 1\nb = 2\n")
    else:
        path.unlink()
    with pytest.raises(SettingsError, match="was changed since") as error:
        file.undo()
    assert str(file.backup) in str(error.value)
    assert file.backup.read_bytes() == BEFORE
    assert change == "removed" or path.read_text() == "a = 1\nb = 2\n"


def test_a_link_stays_a_link(file, path, tmp_path):
    target = tmp_path / "dotfiles" / "codex.toml"
    with_file(target)
    path.parent.mkdir(parents=True)
    path.symlink_to(target)
    file.write("a = 1\n", before=BEFORE)
    assert path.is_symlink()
    assert target.read_text() == "a = 1\n"
    file.undo()
    assert path.is_symlink()
    assert target.read_bytes() == BEFORE


def test_a_link_to_nothing_is_refused(file, path):
    path.parent.mkdir(parents=True)
    path.symlink_to("nowhere")
    with pytest.raises(SettingsError, match="link to a file that does not exist"):
        file.read()


def test_a_file_that_changes_while_it_is_asked_about_is_not_written(file, path):
    with_file(path)
    path.write_bytes(b"new\n")
    with pytest.raises(SettingsError, match="changed meanwhile"):
        file.write("a = 1\n", before=BEFORE)
    assert path.read_bytes() == b"new\n"
    assert file.written() is None


def test_what_is_no_text_file_is_refused(file, path):
    path.mkdir(parents=True)
    with pytest.raises(SettingsError, match="is no file"):
        file.read()
    path.rmdir()
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="no text in UTF-8"):
        file.text()
    with path.open("wb") as large:
        large.truncate(5 * 1024 * 1024)
    with pytest.raises(SettingsError, match="larger than"):
        file.read()


def test_a_folder_that_cannot_be_written_is_said(file, path, monkeypatch):
    with_file(path)

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SettingsError, match="No space left"):
        file.write("a = 1\n", before=BEFORE)
    assert path.read_bytes() == BEFORE
    assert os.listdir(path.parent) == ["config.toml"]


def test_a_kill_between_the_note_and_the_file_loses_nothing(file, path, monkeypatch):
    with_file(path)
    file.write("a = 1\n", before=BEFORE)
    path.write_bytes(BEFORE)  # as if the kill had come before the file was replaced
    with pytest.raises(SettingsError, match="was changed since"):
        file.undo()
    file.write("a = 1\n", before=BEFORE)
    file.undo()
    assert path.read_bytes() == BEFORE


@pytest.mark.parametrize(
    "note", [b"", b"{", b"[]", b'{"path": 3}', json.dumps({"path": "x"}).encode()]
)
def test_a_damaged_note_is_said(file, path, note):
    with_file(path)
    file.write("a = 1\n", before=BEFORE)
    file.backup.with_name("codex.json").write_bytes(note)
    with pytest.raises(SettingsError, match="is damaged") as error:
        file.undo()
    assert str(file.backup) in str(error.value)
    assert path.read_text() == "a = 1\n"

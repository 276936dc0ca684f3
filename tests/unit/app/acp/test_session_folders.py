"""The folders of sessions, kept beside the conversations."""

from pathlib import Path

import pytest

from app.acp import session_folders
from app.acp.session_folders import SessionFolders


def test_the_last_used_conversation_is_the_last(tmp_path):
    folders = SessionFolders(tmp_path / "data" / "sessions.json")
    assert folders.all() == {}
    folders.remember("a", Path("/one"))
    folders.remember("b", Path("/two"))
    folders.remember("a", Path("/three"))
    assert list(SessionFolders(tmp_path / "data" / "sessions.json").all().items()) == [
        ("b", "/two"), ("a", "/three"),
    ]  # fmt: skip


def test_the_oldest_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(session_folders, "MAX_KNOWN", 2)
    folders = SessionFolders(tmp_path / "sessions.json")
    for name in "abc":
        folders.remember(name, Path("/") / name)
    assert list(folders.all()) == ["b", "c"]


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", '{"a": 3}', "\ud800".encode("utf-8", "surrogatepass")]
)
def test_a_damaged_file_counts_as_empty(tmp_path, text):
    path = tmp_path / "sessions.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    folders = SessionFolders(path)
    assert folders.all() == {}
    folders.remember("a", Path("/one"))
    assert folders.all() == {"a": "/one"}


def test_a_file_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    folders = SessionFolders(tmp_path / "file" / "sessions.json")
    folders.remember("a", Path("/one"))
    assert not (tmp_path / "file").is_dir()

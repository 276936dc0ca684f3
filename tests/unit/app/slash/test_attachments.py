import pytest

from app.slash.attachments import attach_files, complete_path, mention
from engine.api.errors import InvalidRequest


def attached(text, length=1000):
    return attach_files(text, count=len, length=length)


def test_a_file_is_appended_in_a_fence_that_its_text_cannot_close(tmp_path):
    file = tmp_path / "a.md"
    file.write_text("one\n````\ntwo\n")
    assert attached(f"see @{file} and @{file}") == (
        f"see @{file} and @{file}\n\na.md:\n`````\none\n````\ntwo\n`````"
    )


def test_other_words_with_an_at_sign_stay(tmp_path):
    for text in ("mail me@example.com", "@nobody hello", f"@{tmp_path}", "@", "@\0"):
        assert attached(text) == text


def test_a_name_with_spaces_is_quoted(tmp_path):
    file = tmp_path / "a b.txt"
    file.write_text("text")
    assert attached(mention(str(file))).endswith("a b.txt:\n```\ntext\n```")
    with pytest.raises(InvalidRequest, match="There is no file"):
        attached('@"not there"')


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\xff\xfe", "not a text in UTF-8"),
        (b"a\0b", "not a text file"),
        (b"x" * 1000, "1000 tokens"),
    ],
)
def test_what_cannot_be_attached_is_refused(tmp_path, data, why):
    file = tmp_path / "a.bin"
    file.write_bytes(data)
    with pytest.raises(InvalidRequest, match=why):
        attached(f"@{file}")


def test_paths_are_completed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.md").touch()
    (tmp_path / "news").mkdir()
    (tmp_path / ".hidden").touch()
    (tmp_path / "bad\x1bname").touch()
    assert complete_path("see @") == ["see @news/", "see @notes.md"]
    assert complete_path("see @no") == ["see @notes.md"]
    assert complete_path(f"@{tmp_path}/n") == [f"@{tmp_path}/news/", f"@{tmp_path}/notes.md"]
    assert complete_path("mail me@no") == complete_path("see @notes.md more") == []

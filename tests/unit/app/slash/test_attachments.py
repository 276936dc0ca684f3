import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.slash.attachments import (
    AttachedText,
    attach_files,
    check_fits,
    mention,
    split_attached,
    unread_files,
    with_texts_of,
)
from engine.api.errors import InvalidRequest
from engine.retrieval.parsing.attached_text import attached_text
from engine.retrieval.parsing.document_reader import FileText


def attached(text):
    """The message with its files, read as plain text."""
    files = {path: FileText(path.name, path.read_text()) for path in unread_files(text)}
    return attach_files(text, files)


def test_a_file_is_appended_in_a_fence_that_its_text_cannot_close(tmp_path):
    file = tmp_path / "a.md"
    file.write_text("one\n````\ntwo\n")
    assert attached(f"see @{file} and @{file}") == (
        f"see @{file} and @{file}\n\na.md:\n`````\none\n````\ntwo\n`````"
    )


def test_other_words_with_an_at_sign_stay(tmp_path):
    for text in ("mail me@example.com", "@nobody hello", f"@{tmp_path}", "@", "@\0"):
        assert attached(text) == text


def test_a_name_in_code_names_nothing(tmp_path):
    file = tmp_path / "a.md"
    file.write_text("text")
    for text in (f"run `@{file}`", f"```\n@{file}\n```"):
        assert attached(text) == text


def test_punctuation_behind_a_name_is_not_part_of_it(tmp_path):
    file = tmp_path / "a.md"
    file.write_text("text")
    for end in (".", ",", "?", ").", ";"):
        assert unread_files(f"see (@{file}{end}") == [file]
    dotted = tmp_path / "a.md."
    dotted.write_text("another")
    assert unread_files(f"see @{dotted}") == [dotted]


@pytest.mark.parametrize(
    "behind", [":12", ":10-20", "#L3", "'s title", "’s title", ",@nobody", "—and", "…", "):"]
)
def test_what_is_written_behind_a_name_is_no_part_of_it(tmp_path, behind):
    file = tmp_path / "a.md"
    file.write_text("text")
    message = f"see @{file}{behind}"
    assert unread_files(message) == [file]
    assert split_attached(attached(message)) == (message, (AttachedText("a.md", "text"),))


def test_neighbouring_names_need_no_space(tmp_path):
    files = [tmp_path / "a.md", tmp_path / "b.md"]
    for one in files:
        one.write_text("text")
    assert unread_files(f"@{files[0]},@{files[1]}") == files


def test_a_name_with_spaces_is_quoted(tmp_path):
    file = tmp_path / "a b.txt"
    file.write_text("text")
    assert attached(mention(str(file))).endswith("a b.txt:\n```\ntext\n```")
    with pytest.raises(InvalidRequest, match="There is no file"):
        attached('@"not there"')


def test_too_many_files_are_refused(tmp_path):
    for number in range(40):
        (tmp_path / f"{number}.txt").write_text("x")
    with pytest.raises(InvalidRequest, match="names 40 files; at most 32 are read"):
        unread_files(" ".join(f"@{tmp_path}/{number}.txt" for number in range(40)))


def test_a_file_that_is_longer_than_the_context_says_what_it_needs_and_what_is_free():
    with pytest.raises(InvalidRequest) as refused:
        check_fits("a.pdf", "x" * 9000, len, 8192, 7000)
    assert str(refused.value).startswith(
        "a.pdf has 9,000 tokens, and the context of the model 8,192, of which 7,000 are free: attach a part"
    )
    check_fits("a.pdf", "x" * 9000, len, 0)


def sent(text, *files):
    return "\n\n".join([text, *(f"{name}:\n```\n{body}\n```" for name, body in files)])


def test_a_message_is_split_into_what_was_typed_and_its_files():
    message = sent("see @a.md and @x/b.pdf.", ("a.md", "one\n\ntwo"), ("b.pdf (12 pages)", "three"))
    assert split_attached(message) == (
        "see @a.md and @x/b.pdf.",
        (AttachedText("a.md", "one\n\ntwo"), AttachedText("b.pdf", "three", 12)),
    )


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        sent("Explain", ("main.py", "x")),  # typed by the user: no @ names it
        sent("see @a.md", ("a.md", "x")) + "\n\nand this",
        "see @a.md\n\na.md:\n```\nopen",
    ],
)
def test_what_the_user_has_written_is_no_file(text):
    assert split_attached(text) == (text, ())


def test_code_that_was_typed_before_a_file_belongs_to_the_message():
    message = sent(sent("compare @a.md with", ("mine.md", "x")), ("a.md", "y"))
    typed, files = split_attached(message)
    assert typed.endswith("mine.md:\n```\nx\n```")
    assert files == (AttachedText("a.md", "y"),)


def test_a_changed_message_keeps_the_files_that_it_still_names():
    before = sent("see @a.md @b.md", ("a.md", "one"), ("b.md", "two"))
    assert with_texts_of("only @b.md", before) == sent("only @b.md", ("b.md", "two"))
    assert with_texts_of("none", before) == "none"


@given(st.text("a`\n: @.(1 pages)~", max_size=200), st.integers(0, 3))
def test_a_file_of_any_text_is_found_again(text, pages):
    body = text.rstrip() or "x"
    message = attach_files_of("see @/x/a.md", FileText("a.md", body, pages))
    assert split_attached(message) == ("see @/x/a.md", (AttachedText("a.md", body, pages),))


def attach_files_of(text, file):
    """The message with one file, though none is on the disk."""
    before = sent("@a.md", ("a.md", "x"))
    assert split_attached(before)[1]
    return f"{text}\n\n{attached_text(file)}"

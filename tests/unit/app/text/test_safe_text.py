"""The gate for hostile text, whole and in pieces."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.text.safe_text import HOLD_LIMIT, SafeStream, safe_line, safe_text

FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
PIECES = st.sampled_from(
    ["\x1b", "[", "]", "2J", "31m", "52;c;", "P", "_", "^", "X", "\\", "\x07", "\x9b", "\x9d", "\x9c",
     "\x90", "\x98", "c", "(", "B", " ", "\n", "\r", "\t", "\x85", "\u2028", "\u202e", "\u2066", "a",
     "日", "é", "👍", "\ud800", "\x00", "\x7f"]
)  # fmt: skip
HOSTILE = st.lists(st.one_of(PIECES, st.text(max_size=3)), max_size=30).map("".join)


@given(HOSTILE)
def test_no_terminal_escape_remains(text):
    assert not FORBIDDEN.search(safe_text(text))


@given(HOSTILE)
def test_it_is_idempotent(text):
    once = safe_text(text)
    assert safe_text(once) == once


@given(st.lists(HOSTILE, max_size=6), st.integers(1, 5))
@example(["\r\x1b\n"], 1)
@example(["\r\x1b[31m\n"], 6)
def test_pieces_give_what_the_whole_gives(pieces, size):
    text = "".join(pieces)
    stream = SafeStream()
    shown = [stream.feed(text[start : start + size]) for start in range(0, len(text), size)]
    assert not any(FORBIDDEN.search(piece) for piece in shown)
    assert "".join(shown) + stream.flush() == safe_text(text)


@given(st.text(alphabet=st.characters(exclude_categories=("Cc", "Cs", "Cf", "Zl", "Zp"))))
def test_harmless_text_is_untouched(text):
    assert safe_text(text) == text


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a\x1b[2Jb", "ab"),
        ("a\x1b[38;5;1mb", "ab"),
        ("a\x1b]52;c;aGk=\x07b", "ab"),
        ("a\x1b]8;;http://x\x1b\\b", "ab"),
        ("a\x9b2Jb", "ab"),
        ("a\x1bPq\x1b\\b", "ab"),
        ("a\x1b]0;never ended\nb", "a\nb"),
        ("a\x1bcb", "ab"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("a\tb\x00c\x7f", "a\tbc"),
    ],
)
def test_examples(text, safe):
    assert safe_text(text) == safe


def test_an_endless_sequence_holds_back_no_more_than_its_limit():
    stream = SafeStream()
    stream.feed("\x1b]0;")
    for _ in range(HOLD_LIMIT // 64 + 2):
        stream.feed("x" * 64)
    assert "visible" in stream.feed("\x07visible")


def test_a_line_is_one_line():
    assert safe_line(" a\n\tb \x1b[31mc ") == "a b c"

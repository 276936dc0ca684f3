"""Texts side by side: equal lines beside each other, differences, where they part, hostile text."""

import pytest

from app.tui.glyphs import ASCII, UNICODE
from app.tui.view.compare_lines import (
    DIFFERENT,
    PARTS,
    AlignedRows,
    CompareColumn,
    Parting,
    align_rows,
    build_column_head,
    build_compare_head,
    part_at_token,
    part_at_word,
)
from app.tui.view.spans import plain, width


def aligned(*texts, cells=40):
    return align_rows(texts, part_at_word(texts), cells)


def rows(found: AlignedRows, column):
    return plain(found.columns[column]).split("\n")


def styled(found, column, style):
    return [
        span.text.strip() for line in found.columns[column] for span in line if span.style == style
    ]


def test_equal_texts_have_no_difference():
    found = aligned("one\ntwo", "one\ntwo")
    assert (found.differences, found.parting) == ((), None)
    assert rows(found, 0) == rows(found, 1) == ["one", "two"]


def test_different_words_are_highlighted_and_the_first_is_where_they_part():
    found = aligned("the river is very long", "the river was quite long")
    assert styled(found, 0, PARTS) == ["is"]
    assert styled(found, 1, PARTS) == ["was"]
    assert styled(found, 0, DIFFERENT) == ["very"]
    assert styled(found, 1, DIFFERENT) == ["quite"]
    assert (found.differences, found.parting) == ((0,), 0)


def test_lines_that_all_texts_have_are_beside_each_other():
    found = aligned("short\n\nthe same end", "a much longer first line\n\nthe same end", cells=10)
    first, second = rows(found, 0), rows(found, 1)
    assert len(first) == len(second) == found.height
    assert first.index("the same") == second.index("the same")


def test_three_texts_are_compared_with_the_first():
    found = aligned("a b c", "a b d", "a x c")
    assert styled(found, 0, PARTS) == ["b"]
    assert styled(found, 0, DIFFERENT) == ["c"]
    assert styled(found, 1, DIFFERENT) == ["d"]
    assert styled(found, 2, PARTS) == ["x"]


def test_a_text_that_only_continues_differs_from_its_end_on():
    found = aligned("one two", "one two three")
    assert styled(found, 1, PARTS) == ["three"]
    assert found.differences == (0,)


def test_each_difference_is_found_once():
    found = aligned("a\nb\nc\nd\ne", "a\nX\nc\nY Z\ne")
    assert found.differences == (1, 3)


def test_indentation_is_kept():
    found = aligned("def f():\n    return 1", "def f():\n    return 2")
    assert rows(found, 0)[1] == "    return 1"


@pytest.mark.parametrize("cells", [1, 2, 5, 13, 40])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("日本語の文章です", "日本語の文です"),
        ("x" * 200, "y" * 200),
        ("नमस्ते प्रवाह 👨‍👩‍👧 🇮🇳", "नमस्ते नदी 👨‍👩‍👧"),
        ("\x1b]52;c;aGk=\x07safe \x1b[2J text", "safe \x9b31m other\r\x00"),
        ("", "something"),
        ("", ""),
        ("\n\n\n", "\n"),
        ("\tone\n \n  two  ", "    one\n\n  two"),
    ],
)
def test_wide_and_hostile_text_stays_within_its_column(one, other, cells):
    found = aligned(one, other, cells=cells)
    assert len(found.columns[0]) == len(found.columns[1])
    for column in found.columns:
        assert all(width(line) <= max(2, cells) for line in column)
        assert not any(
            ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for line in column for s in line for c in s.text
        )


def test_ten_thousand_words_keep_every_word():
    one = " ".join(f"word{index}" for index in range(10_000))
    other = one.replace("word5000 ", "changed ")
    found = aligned(one, other, cells=30)
    assert " ".join(rows(found, 1)).split() == other.split()
    assert styled(found, 1, PARTS) == ["changed"]


def test_answers_part_at_the_first_different_token():
    one, other = ((1, 2, 3), ("the ", "riv", "er")), ((1, 2, 4), ("the ", "riv", "et"))
    assert part_at_token([one, other]) == Parting(3, "token", (7, 7))
    assert part_at_token([one, one]).number is None
    assert part_at_token([one, ((1, 2), ("the ", "riv"))]).number == 3


def test_the_word_that_holds_the_first_different_token_is_marked():
    texts = ["the river flows", "the rivet flows"]
    found = align_rows(texts, Parting(3, "token", (7, 7)), 40)
    assert styled(found, 0, PARTS) == ["river"]
    assert styled(found, 1, PARTS) == ["rivet"]


def test_texts_part_at_a_word_by_number():
    assert part_at_word(["a  b c", "a b d"]).number == 3
    assert part_at_word(["a b", "a b "]).number is None


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_the_heads_name_the_figures(glyphs):
    column = CompareColumn("a", "model\x1b[2J", "text", "2/3", 128, 3.207, 94_000)
    head = plain(build_column_head(column, 2, glyphs, 40, selected=True, open=True))
    for words in ("2 ", "model", "2/3", "128 tokens", "ppl 3.21", "TTFT 94 ms"):
        assert words in head
    assert "\x1b" not in head
    found = aligned("a b", "a c")
    line = build_compare_head(Parting(17, "token", (0, 0)), found, 0, 0, 60)
    assert plain([line]).split("  ")[0] == "part at token 17"
    assert "difference 1 of 1" in plain([line])
    same = build_compare_head(Parting(None, "word", ()), aligned("a", "a"), None, 0, 60)
    assert "the same text" in plain([same])

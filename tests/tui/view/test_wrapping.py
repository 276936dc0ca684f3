"""Wrapping by cells: wide characters, long words, and the end of a text alone."""

import pytest
from rich.cells import cell_len

from app.tui.view.wrapping import last_rows, wrap_cells

TEXTS = [
    "",
    "one two three four five six seven",
    "    indented code\n\tand a tab\n\nafter an empty line",
    "日本語の長い文章は単語の間に空白がありません。" * 3,
    "नमस्ते प्रवाह 👨‍👩‍👧 🇮🇳 e\u0301te\u0301",
    "x" * 100,
    "a  b   c    d",
]


def test_rows_break_between_words():
    assert wrap_cells("the river is long", 9) == ["the river", "is long"]


def test_a_word_that_is_too_long_is_broken():
    assert wrap_cells("ab" + "x" * 10, 5) == ["abxxx", "xxxxx", "xx"]


def test_double_width_characters_are_never_halved():
    assert wrap_cells("日本語", 5) == ["日本", "語"]


def test_line_breaks_and_indentation_are_kept():
    assert wrap_cells("if x:\n    y()\n", 20) == ["if x:", "    y()", ""]


@pytest.mark.parametrize("cells", [3, 7, 20, 80])
@pytest.mark.parametrize("text", TEXTS)
def test_no_row_is_too_wide_and_no_character_is_lost(text, cells):
    rows = wrap_cells(text, cells)
    assert all(cell_len(row) <= cells for row in rows)
    assert "".join("".join(rows).split()) == "".join(text.split())


@pytest.mark.parametrize("text", TEXTS)
def test_the_last_rows_of_a_short_text_are_those_of_the_whole(text):
    assert last_rows(text, 20, 50) == wrap_cells(text, 20)


def test_the_last_rows_of_a_long_text_are_its_end():
    text = " ".join(f"word{number}" for number in range(10_000))
    rows = last_rows(text, 30, 5)
    assert len(rows) == 5
    assert text.endswith(" ".join(rows))
    assert last_rows(text, 30, 0) == []


def test_only_the_end_of_a_long_text_is_wrapped():
    class Counted(str):
        longest = 0

        def replace(self, *args):
            Counted.longest = max(Counted.longest, len(self))
            return str(self).replace(*args)

        def __getitem__(self, key):
            return Counted(str(self)[key])

        def rstrip(self, *args):
            return Counted(str(self).rstrip(*args))

    last_rows(Counted("word " * 100_000), 30, 5)
    assert 0 < Counted.longest < 1000

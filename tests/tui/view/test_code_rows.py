"""Lines of code in rows: nothing is lost, and no row is too long."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from app.tui.view.code_rows import code_rows

LETTERS = st.sampled_from("ab \t日本🙂é\u0301👨\u200d👩🇮🇳क\u094dष")


def drawn(line, cells):
    return [
        "".join(" " * one.blanks or line[one.start : one.end] for one in row)
        for row in code_rows(line, cells)
    ]


def test_a_line_is_cut_anywhere_and_keeps_its_blanks():
    assert drawn("    return  value", 8) == ["    retu", "rn  valu", "e"]
    assert drawn("", 8) == [""]
    assert drawn("12345678", 8) == ["12345678"]


def test_wide_characters_and_graphemes_are_not_cut():
    assert drawn("日本語", 5) == ["日本", "語"]
    assert drawn("ae\u0301i", 2) == ["ae\u0301", "i"]


def test_tabs_reach_to_the_next_stop():
    assert drawn("a\tb", 20) == ["a   b"]
    assert drawn("\tif x:\t# y", 12) == ["    if x:   ", "# y"]


@given(st.text(LETTERS, max_size=60), st.integers(4, 20))
def test_the_rows_are_the_line(line, cells):
    pieces = [piece for row in code_rows(line, cells) for piece in row]
    assert "".join(line[piece.start : piece.end] for piece in pieces) == line
    assert all(cell_len(row) <= cells for row in drawn(line, cells))

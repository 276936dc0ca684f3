"""Lines of a file: untouched ones keep every byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.api.errors import InvalidTask
from agents.edits.source_lines import SourceLines, Splice

TEXTS = st.lists(
    st.sampled_from(["a", " ", "\t", "\n", "\r\n", "\r", "\x0c", "\u2028", "é", "\ufeff"]),
    max_size=30,
).map("".join)


@given(TEXTS, st.booleans())
def test_without_splices_every_byte_stays(text, bom):
    data = (("\ufeff" if bom else "") + text).encode()
    assert SourceLines(data).spliced([]) == data


@given(TEXTS, st.integers(0, 30), st.integers(0, 30), st.lists(st.just("new"), max_size=3))
def test_lines_beside_a_splice_stay(text, start, length, new):
    source = SourceLines(text.encode())
    start = min(start, len(source.lines))
    end = min(start + length, len(source.lines))
    after = SourceLines(source.spliced([Splice(start, end, tuple(new))]))
    wanted = [*source.lines[:start], *new, *source.lines[end:]]
    assert [one for one in after.lines if one] == [one for one in wanted if one]


def test_new_lines_get_the_usual_end_of_the_file():
    source = SourceLines(b"a\r\nb\r\nc\n")
    assert source.spliced([Splice(1, 1, ("x",))]) == b"a\r\nx\r\nb\r\nc\n"
    assert SourceLines(b"a\nb").spliced([Splice(2, 2, ("c",))]) == b"a\nb\nc"
    assert SourceLines(b"").spliced([Splice(0, 0, ("a",))]) == b"a\n"


@pytest.mark.parametrize("data", [b"\xff", b"a\x00b"])
def test_what_is_no_text_is_refused(data):
    with pytest.raises(InvalidTask, match=r"f.py is not"):
        SourceLines(data, "f.py")


def test_overlapping_splices_are_our_mistake():
    with pytest.raises(ValueError, match="overlap"):
        SourceLines(b"a\nb\n").spliced([Splice(0, 2, ()), Splice(1, 2, ())])

"""The widths of a table's columns."""

from hypothesis import given
from hypothesis import strategies as st

from app.tui.view.column_widths import WORD_CELLS, column_widths


def test_columns_that_fit_get_what_they_need():
    assert column_widths([5, 20], [5, 8], 60) == [5, 20]


def test_a_long_word_leaves_its_neighbours_their_words():
    assert column_widths([10, 90, 12], [10, 90, 12], 60) == [10, 38, 12]


def test_columns_that_need_more_share_what_is_left():
    assert column_widths([4, 90, 80], [4, 9, 9], 44) == [4, 20, 20]


def test_columns_without_room_are_not_side_by_side():
    assert column_widths([30] * 6, [11] * 6, 60) is None
    assert column_widths([1, 1], [1, 1], -2) is None


@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), min_size=1, max_size=12),
    st.integers(-20, 200),
)
def test_widths_fit_and_no_short_word_is_broken(columns, room):
    needed = [max(column) for column in columns]
    words = [min(column) for column in columns]
    widths = column_widths(needed, words, room)
    if widths is None:
        return
    assert sum(widths) <= room
    for width, need, word in zip(widths, needed, words, strict=True):
        assert min(word, WORD_CELLS) <= width <= need

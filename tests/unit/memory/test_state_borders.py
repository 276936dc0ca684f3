"""Where checkpoints of a prompt are made."""

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from engine.memory.state_borders import MAX_MESSAGES, borders_between

borders = partial(borders_between, block_size=32, interval=1024)


def test_the_last_block_border_before_the_end():
    assert borders(0, 100) == [96]
    assert borders(0, 97) == [96]
    assert borders(0, 96) == [64]  # the last token is computed after it


def test_a_prompt_within_a_block_has_none():
    assert borders(0, 32) == []
    assert borders(96, 100) == []


def test_every_interval():
    assert borders(0, 3000) == [1024, 2048, 2976]
    assert borders(2048, 3000) == [2976]


def test_before_the_last_messages():
    assert borders(0, 1000, messages=[0, 1, 100, 300, 301, 640]) == [96, 288, 640, 992]


def test_only_the_last_messages_and_none_close_to_another():
    assert borders(0, 1000, messages=range(0, 1000, 40)) == [832, 896, 960]
    assert len(borders(0, 1000, messages=range(1000))) == MAX_MESSAGES


def test_the_end_needs_none_close_to_the_last_message():
    """The generation prompt begins in the block before the last border."""
    assert borders(0, 998, messages=[990]) == [960]


def test_where_the_prompt_leaves_what_others_had():
    assert borders(0, 1000, shared=500) == [480, 992]
    assert borders(480, 1000, shared=500) == [992]
    assert borders(0, 1000, shared=960) == [992]


@given(
    start=st.integers(0, 40),
    length=st.integers(1, 900),
    size=st.integers(1, 33),
    interval=st.integers(1, 8),
    messages=st.lists(st.integers(0, 1000)),
    shared=st.integers(0, 1000),
)
def test_borders_are_ascending_whole_blocks_of_the_prompt(
    start, length, size, interval, messages, shared
):
    start *= size
    end = start + length
    found = borders_between(
        start,
        end,
        block_size=size,
        interval=interval * size,
        messages=sorted(messages),
        shared=shared,
    )
    assert found == sorted(set(found))
    assert all(start < border < end and border % size == 0 for border in found)
    inside = range(start + size, end, size)
    assert {border for border in inside if border % (interval * size) == 0} <= set(found)
    assert bool(found) == bool(inside)
    near = [border for border in found if end - 1 - border < 3 * size]
    assert near or not found  # an equal prompt computes less than three blocks

"""Detection of answers that repeat themselves without end."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.text.repetition import MAX_PERIOD, MIN_REPEATS, MIN_TOKENS, RepetitionDetector


def fed(tokens, chunk=1):
    """How many tokens were read when the loop was found, or None."""
    detector = RepetitionDetector()
    for start in range(0, len(tokens), chunk):
        if detector.feed(tokens[start : start + chunk]):
            return start + chunk
    return None


@settings(max_examples=60)
@given(
    before=st.lists(st.integers(0, 50_000), max_size=300),
    period=st.lists(st.integers(0, 50_000), min_size=1, max_size=MAX_PERIOD),
    chunk=st.integers(1, 40),
)
def test_a_loop_is_found_soon_after_it_has_the_length_of_one(before, period, chunk):
    looped = before + period * (2 * MIN_TOKENS + MIN_REPEATS + 2)
    found = fed(looped, chunk)
    needed = max(MIN_TOKENS, MIN_REPEATS * len(period))
    assert found is not None
    assert found <= len(before) + needed + 16 + 2 * chunk


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_text_without_a_loop_passes(chunk):
    rng = np.random.default_rng(1)
    assert fed(rng.integers(0, 1000, 5000).tolist(), chunk) is None
    counting = [token for number in range(600) for token in (7, 8, number, 9)]
    assert fed(counting, chunk) is None


def test_a_short_repetition_passes():
    row = [5, 6, 7, 8]
    table = row * (MIN_TOKENS // len(row) - 1)
    assert fed([1, 2, 3, *table, 4, 9, *table, 10]) is None


def test_what_was_found_stays_found():
    detector = RepetitionDetector()
    assert detector.feed([3] * 200)
    assert detector.feed([1, 2, 3])

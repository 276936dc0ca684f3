"""The common prefix of token ids, against a naive model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.common_prefix import common_prefix

ids = st.lists(st.integers(0, 2), max_size=12)


@given(ids, ids)
def test_it_is_the_longest_one(one, other):
    found = common_prefix(np.array(one, np.int32), np.array(other, np.int32))
    lengths = range(min(len(one), len(other)) + 1)
    assert found == max(length for length in lengths if one[:length] == other[:length])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [([1, 2, 3], [1, 2, 4, 5], 2), ([1, 2], [1, 2, 3], 2), ([], [1], 0)],
)
def test_it_ends_where_one_differs_or_ends(one, other, expected):
    assert common_prefix(np.array(one, np.int32), np.array(other, np.int32)) == expected

"""The common prefix of token ids, against a naive model."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.text.common_prefix import common_prefix

ids = st.lists(st.integers(0, 2), max_size=12)


@given(ids, ids)
def test_it_is_the_longest_one(one, other):
    found = common_prefix(np.array(one, np.int32), np.array(other, np.int32))
    lengths = range(min(len(one), len(other)) + 1)
    assert found == max(length for length in lengths if one[:length] == other[:length])

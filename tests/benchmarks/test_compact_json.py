"""`benchmarks/compact_json.py`: the layout of result files."""

import json

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.compact_json import WIDTH, compact_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=60),
    lambda inner: (
        st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=9), inner, max_size=5)
    ),
    max_leaves=40,
)


@given(VALUES)
def test_the_text_has_the_value(value):
    assert json.loads(compact_json(value)) == value


def test_a_record_is_a_line():
    records = [{"name": f"engine {one}", "seconds": [0.25] * 15} for one in range(3)]
    lines = compact_json({"date": "2026-11-26", "records": records}).splitlines()
    assert lines == [
        "{",
        ' "date": "2026-11-26",',
        ' "records": [',
        *(f"  {json.dumps(one)}{',' if one != records[-1] else ''}" for one in records),
        " ]",
        "}",
    ]


def test_a_long_array_fills_its_lines():
    lines = compact_json({"seconds": [0.125] * 200}).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert len(lines) == 14

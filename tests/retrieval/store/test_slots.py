import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.retrieval.store.slots import slots_of


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), max_size=8), st.randoms())
def test_slots_are_those_of_the_documents(sizes, random):
    """A plain loop over documents, with gaps of deleted rows between, in any order."""
    rows, chunk, ranges = 0, 100, []
    expected = {}
    for number, (count, gap) in enumerate(sizes):
        rows += gap
        ranges.append((number, rows, chunk, count))
        for at in range(count):
            expected[rows + at] = (chunk + at, number)
        rows, chunk = rows + count, chunk + count + gap
    random.shuffle(ranges)

    slots = slots_of(3, 0, rows, np.array(ranges, np.int64).reshape(-1, 4))

    assert slots.chunk_ids.tolist() == [expected.get(row, (-1, -1))[0] for row in range(rows)]
    assert slots.document_ids.tolist() == [expected.get(row, (-1, -1))[1] for row in range(rows)]
    assert slots.allowed.tolist() == [row in expected for row in range(rows)]

    wanted = slots.within(np.array([0, 2], np.int64))
    assert wanted.allowed.tolist() == [
        expected.get(row, (-1, -1))[1] in (0, 2) for row in range(rows)
    ]

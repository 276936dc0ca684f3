"""The sequence breakers of running rows."""

import numpy as np

from engine.batch.breaker_rows import BreakerRows
from engine.executors.base import SAMPLING_DTYPE
from engine.text.sequence_breakers import MAX_BREAKER_TAIL, SequenceBreakers


def breakers(*marks):
    """One pattern for each mark, which identifies it."""
    heads = np.array([[mark] for mark in marks], np.uint32).reshape(len(marks), 1)
    return SequenceBreakers(heads, np.full((len(marks), MAX_BREAKER_TAIL), -1, np.int32))


def marks_of(rows, sampling, row):
    first, count = sampling["first_breaker"][row], sampling["num_breakers"][row]
    return rows.heads[first : first + count, 0].tolist()


def test_every_row_finds_its_own_breakers_while_others_come_and_go():
    sampling = np.zeros(4, SAMPLING_DTYPE)
    rows = BreakerRows(sampling)
    shared, own, late = breakers(1, 2), breakers(3), breakers(4, 5, 6)
    rows.place(0, shared)
    rows.place(1, own)
    rows.place(2, shared)
    assert len(rows.heads) == len(rows.tails) == 3  # equal breakers are stored once
    assert [marks_of(rows, sampling, row) for row in (0, 1, 2)] == [[1, 2], [3], [1, 2]]
    rows.release(0)
    rows.release(1)
    rows.place(3, late)
    assert len(rows.heads) == 5  # those of row 1 are gone
    assert [marks_of(rows, sampling, row) for row in (2, 3)] == [[1, 2], [4, 5, 6]]
    rows.release(2)
    rows.release(3)
    rows.place(0, own)
    assert marks_of(rows, sampling, 0) == [3]


def test_a_row_without_patterns_has_none():
    sampling = np.zeros(2, SAMPLING_DTYPE)
    rows = BreakerRows(sampling)
    rows.place(0, breakers())
    rows.place(1, breakers(7))
    assert marks_of(rows, sampling, 0) == []
    assert marks_of(rows, sampling, 1) == [7]

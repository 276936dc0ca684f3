"""Request records: their fields, and the queue's columns against a plain list of dicts."""

import math
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from engine.batch.request_queue import RequestQueue
from engine.batch.request_record import REQUEST_DTYPE, WaitingColumns, request_record
from engine.runtime.intake import make_sequence
from engine.runtime.loading import open_with_headers
from tests.fakes.toy_engine import ask, toy_config
from tests.fakes.toy_executor import toy_model

OPENED = open_with_headers(toy_config(), lambda _: toy_model())
NAMES = REQUEST_DTYPE.names

seconds = st.floats(0.0, 1e9)
int32s = st.integers(-(2**31), 2**31 - 1)
counts = st.integers(0, 2**31 - 1)
records = st.fixed_dictionaries(
    {
        "arrival": st.integers(0, 2**63 - 1),
        "priority": int32s,
        "service_class": st.integers(0, 2),
        "queued_at": seconds,
        "deadline": st.one_of(seconds, st.just(math.inf)),
        "num_pending_tokens": counts,
        "cached_tokens_hint": counts,
        "max_new_tokens": counts,
        "has_first_token": st.booleans(),
        "may_be_held": st.booleans(),
        "held": st.booleans(),
    }
)


def as_dicts(columns):
    """The records of columns, as a list of dicts."""
    lists = [getattr(columns, name).tolist() for name in NAMES]
    return [dict(zip(NAMES, values, strict=True)) for values in zip(*lists, strict=True)]


def new_sequence(prompt, *, priority=0, deadline_ms=None, **params):
    request = replace(
        ask(prompt, **params), priority=priority, deadline_ms=deadline_ms, service_class="agent"
    )
    return make_sequence(request, OPENED, now=5.0, draw_seed=lambda: 7)[0]


def sequence_of(fields):
    sequence = new_sequence(
        [1] * fields.get("length", 1),
        priority=fields["priority"],
        deadline_ms=fields.get("deadline_ms"),
    )
    sequence.record["arrival"] = fields["arrival"]
    return sequence


def test_a_new_record_holds_what_was_given_and_zeros():
    record = request_record(
        queued_at=12.5, priority=-3, service_class=2, deadline=13.25, arrival=2**40
    )
    assert record.shape == ()
    assert record.dtype == REQUEST_DTYPE
    assert {name: record[name].item() for name in NAMES} == {
        "arrival": 2**40,
        "priority": -3,
        "service_class": 2,
        "queued_at": 12.5,
        "deadline": 13.25,
        "num_pending_tokens": 0,
        "cached_tokens_hint": 0,
        "max_new_tokens": 0,
        "has_first_token": False,
        "may_be_held": False,
        "held": False,
    }


def test_a_record_without_a_deadline_has_an_infinite_one():
    record = request_record(queued_at=1.0)
    assert record["deadline"] == math.inf
    assert record["priority"] == 0


@given(priority=st.integers(-100, 99), deadline_ms=st.one_of(st.none(), st.floats(1.0, 1e6)))
def test_the_fields_of_a_request_reach_the_columns_of_the_queue(priority, deadline_ms):
    sequence = new_sequence([1, 2, 3], priority=priority, deadline_ms=deadline_ms, max_tokens=7)
    sequence.record["arrival"] = 9
    sequence.record["cached_tokens_hint"] = 1
    queue = RequestQueue(limit=1)
    queue.put(sequence)
    assert as_dicts(queue.columns()) == [
        {
            "arrival": 9,
            "priority": priority,
            "service_class": 1,
            "queued_at": 5.0,
            "deadline": math.inf if deadline_ms is None else 5.0 + deadline_ms / 1000,
            "num_pending_tokens": 2,
            "cached_tokens_hint": 1,
            "max_new_tokens": 7,
            "has_first_token": False,
            "may_be_held": False,
            "held": False,
        }
    ]


@given(st.lists(records, max_size=20))
def test_columns_are_the_fields_of_the_records(dicts):
    array = np.zeros(len(dicts), REQUEST_DTYPE)
    for index, fields in enumerate(dicts):
        for name, value in fields.items():
            array[index][name] = value
    columns = WaitingColumns.of(array)
    assert len(columns) == len(dicts)
    assert as_dicts(columns) == dicts


def test_columns_are_views_of_the_records():
    array = np.zeros(3, REQUEST_DTYPE)
    columns = WaitingColumns.of(array)
    array["priority"][1] = 4
    assert columns.priority.tolist() == [0, 4, 0]


def test_columns_read_before_the_queue_grows_keep_their_values():
    queue = RequestQueue(limit=200)
    for arrival in range(64):
        queue.put(sequence_of({"arrival": arrival, "priority": -arrival}))
    before = queue.columns()
    for arrival in range(64, 200):
        queue.put(sequence_of({"arrival": arrival, "priority": -arrival}))
    after = queue.columns()
    assert before.arrival.tolist() == [-one for one in before.priority.tolist()] == [*range(64)]
    assert after.arrival.tolist() == [-one for one in after.priority.tolist()] == [*range(200)]


@settings(max_examples=40)
@given(st.data())
def test_columns_stay_aligned_while_the_queue_grows_and_shrinks(data):
    """Against a list of dicts that removes as the queue does: the last takes the free index."""
    queue, expected = RequestQueue(limit=1000), []
    arrivals = 0
    for _ in range(data.draw(st.integers(1, 8), "rounds")):
        for _ in range(data.draw(st.integers(0, 60), "puts")):  # beyond the initial capacity of 64
            fields = {
                "arrival": arrivals,
                "priority": (arrivals * 7) % 13 - 6,
                "deadline_ms": None if arrivals % 3 else 1000.0 * (arrivals + 1),
                "length": arrivals % 5 + 1,
            }
            arrivals += 1
            queue.put(sequence_of(fields))
            expected.append(fields)
        for _ in range(data.draw(st.integers(0, min(len(expected), 40)), "pops")):
            index = data.draw(st.integers(0, len(expected) - 1), "index")
            assert queue.pop(index).arrival == expected[index]["arrival"]
            last = expected.pop()
            if index < len(expected):
                expected[index] = last
        columns = queue.columns()
        assert columns.arrival.tolist() == [one["arrival"] for one in expected]
        assert columns.priority.tolist() == [one["priority"] for one in expected]
        assert columns.num_pending_tokens.tolist() == [one["length"] for one in expected]
        assert columns.deadline.tolist() == [
            math.inf if one["deadline_ms"] is None else 5.0 + one["deadline_ms"] / 1000
            for one in expected
        ]
        assert [queue.at(index).queue_index for index in range(len(queue))] == [
            *range(len(expected))
        ]

"""`KeptEvents`: the numbers of a stream's events, and which of them are kept."""

import pytest

from app.server.process.kept_events import KEPT_BYTES, KeptEvents
from app.server.wire.errors import ApiError


def kept(*sizes):
    """Events of some sizes; each has its number as its first byte."""
    events = KeptEvents()
    for number, size in enumerate(sizes):
        events.add(bytes([number]).ljust(size))
    return events


def test_small_events_are_all_kept():
    events = kept(1, 1, 1)
    assert (events.first, events.count) == (0, 3)
    assert [events[number][0] for number in range(3)] == [0, 1, 2]
    events.check(0)


def test_the_oldest_are_dropped_and_the_others_keep_their_numbers():
    events = kept(KEPT_BYTES // 2, KEPT_BYTES // 2, KEPT_BYTES // 2, 1)
    assert (events.first, events.count) == (2, 4)
    assert [events[number][0] for number in range(2, 4)] == [2, 3]


def test_the_newest_is_kept_however_large_it_is():
    events = kept(1, KEPT_BYTES + 1)
    assert (events.first, events.count) == (1, 2)
    assert events[1][0] == 1


def test_reading_on_at_a_dropped_event_is_refused():
    events = kept(1, KEPT_BYTES + 1)
    events.check(1)
    events.check(2)
    with pytest.raises(ApiError) as refused:
        events.check(0)
    assert (refused.value.status_code, refused.value.code) == (410, "events_dropped")

"""The ring of events: numbered, bounded, and followed by several readers."""

from hypothesis import given
from hypothesis import strategies as st

from engine.api.event_ring import EventBatch, EventRing
from engine.api.events import BlocksEvicted, EventBus, RequestQueued


def event(number):
    return BlocksEvicted(float(number), number, 0)


def ring_of(count, capacity=8):
    ring = EventRing(capacity)
    for number in range(count):
        ring.append(event(number))
    return ring


def test_a_reader_gets_each_event_once():
    ring = ring_of(2)
    first = ring.since(0)
    ring.append(event(2))
    assert first == EventBatch((event(0), event(1)), 2)
    assert ring.since(first.next) == EventBatch((event(2),), 3)
    assert ring.since(3) == EventBatch((), 3)


def test_a_slow_reader_learns_how_many_events_it_missed():
    batch = ring_of(20, capacity=8).since(5)
    assert batch.missed == 7
    assert batch.events[0] == event(12)
    assert batch.next == 20


def test_a_number_of_another_ring_starts_with_the_oldest_event():
    assert ring_of(3).since(100) == ring_of(3).since(0)


def test_skipped_events_count_as_missed():
    ring = ring_of(2)
    ring.skip(5)
    ring.append(event(7))
    assert ring.since(2) == EventBatch((event(7),), 8, missed=5)


def test_a_ring_follows_every_type_of_event():
    bus, ring = EventBus(), EventRing()
    ring.follow(bus)
    queued = RequestQueued(1.0, "r", 3)
    bus.publish(queued)
    bus.publish(event(1))
    assert ring.since(0).events == (queued, event(1))


@given(st.lists(st.one_of(st.just("append"), st.just("read")), max_size=60), st.integers(1, 9))
def test_a_reader_sees_or_misses_every_event(actions, capacity):
    ring, at, seen, appended = EventRing(capacity), 0, 0, 0
    for action in actions:
        if action == "append":
            ring.append(event(appended))
            appended += 1
        else:
            batch = ring.since(at)
            assert [one.blocks for one in batch.events] == list(
                range(at + batch.missed, batch.next)
            )
            seen += batch.missed + len(batch.events)
            at = batch.next
    batch = ring.since(at)
    assert seen + batch.missed + len(batch.events) == appended


def test_joined_batches_are_what_one_reader_of_all_sees():
    ring = ring_of(3)
    first = ring.since(0)
    for number in range(3, 6):
        ring.append(event(number))
    batches = [first, ring.since(2), ring.since(5)]
    assert EventBatch.joined(batches, 1) == ring.since(1)
    assert EventBatch.joined(batches, 6) == EventBatch((), 6)
    assert EventBatch.joined([], 0) == EventBatch((), 0)
    late = EventBatch((event(8),), 9)
    assert EventBatch.joined([late], 5) == EventBatch((event(8),), 9, missed=3)

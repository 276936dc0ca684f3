"""Ids that increase."""

from engine.conversations.ulid import UlidFactory


def test_ulids_increase_when_the_clock_does_not():
    times = iter([1.0, 1.0, 0.5, 2.0])
    factory = UlidFactory(clock=lambda: next(times), random_bits=lambda _: 2**80 - 1)
    made = [factory() for _ in range(4)]
    assert made == sorted(made)
    assert len(set(made)) == 4
    assert all(len(one) == 26 for one in made)

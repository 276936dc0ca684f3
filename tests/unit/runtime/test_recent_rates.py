from types import SimpleNamespace

import pytest

from engine.api.snapshot import EngineSnapshot, EngineState, Rates
from engine.runtime.recent_rates import RecentRates


def published(*, running=0):
    return EngineSnapshot(1, 0.0, EngineState.READY, None, running=running)


@pytest.fixture
def counters():
    """What the counters say, changed by the tests, and how fresh it was asked for."""

    def rates(now, *, fresh):
        counters.asked.append(fresh)
        return Rates(decode_tokens_per_second=counters.speed, itl_p50=counters.percentile)

    counters = SimpleNamespace(speed=8.0, percentile=0.25, asked=[], rates=rates)
    counters.tokens_per_second = lambda now: (0.0, counters.speed)
    return counters


@pytest.fixture
def rates(counters):
    return RecentRates(counters, lambda: 1.0)


def test_an_idle_engines_speeds_are_those_of_now(rates, counters):
    snapshot = published()
    assert rates.apply(snapshot).rates.decode_tokens_per_second == 8.0
    counters.speed = 3.0
    shown = rates.apply(snapshot)
    assert (shown.rates.decode_tokens_per_second, shown.rates.itl_p50) == (3.0, 0.25)
    assert counters.asked == [True]


def test_nothing_new_is_made_while_nothing_changes(rates):
    snapshot = published()
    assert rates.apply(snapshot) is rates.apply(snapshot)


def test_another_snapshot_begins_anew(rates, counters):
    rates.apply(published())
    counters.speed, counters.percentile = 2.0, 0.5
    shown = rates.apply(published())
    assert (shown.rates.decode_tokens_per_second, shown.rates.itl_p50) == (2.0, 0.5)


def test_a_busy_engines_rates_are_those_of_the_first_look(rates, counters):
    snapshot = published(running=1)
    first = rates.apply(snapshot)
    counters.speed = 3.0
    assert rates.apply(snapshot) is first
    assert counters.asked == [False]

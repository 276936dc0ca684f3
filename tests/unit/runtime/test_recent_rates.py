from types import SimpleNamespace

import pytest

from engine.api.snapshot import EngineSnapshot, EngineState, Rates
from engine.runtime.recent_rates import RecentRates


def published(*, running=0):
    return EngineSnapshot(1, 0.0, EngineState.READY, None, running=running)


@pytest.fixture
def counters():
    """Counters with values set by the tests; `asked` records the `fresh` arguments."""

    def rates(now, *, fresh):
        counters.asked.append(fresh)
        return Rates(decode_tokens_per_second=counters.speed, itl_p50=counters.percentile)

    counters = SimpleNamespace(speed=8.0, percentile=0.25, asked=[], rates=rates)
    counters.tokens_per_second = lambda now: (0.0, counters.speed)
    return counters


@pytest.fixture
def rates(counters):
    return RecentRates(counters, lambda: 1.0)


def test_the_throughput_of_an_idle_engine_is_current(rates, counters):
    snapshot = published()
    assert rates.apply(snapshot).rates.decode_tokens_per_second == 8.0
    counters.speed = 3.0
    shown = rates.apply(snapshot)
    assert (shown.rates.decode_tokens_per_second, shown.rates.itl_p50) == (3.0, 0.25)
    assert counters.asked == [True]


def test_the_same_snapshot_is_returned_while_nothing_changes(rates):
    snapshot = published()
    assert rates.apply(snapshot) is rates.apply(snapshot)


def test_rates_are_recomputed_for_a_new_snapshot(rates, counters):
    rates.apply(published())
    counters.speed, counters.percentile = 2.0, 0.5
    shown = rates.apply(published())
    assert (shown.rates.decode_tokens_per_second, shown.rates.itl_p50) == (2.0, 0.5)


def test_rates_of_a_busy_engine_are_those_of_the_first_read(rates, counters):
    snapshot = published(running=1)
    first = rates.apply(snapshot)
    counters.speed = 3.0
    assert rates.apply(snapshot) is first
    assert counters.asked == [False]

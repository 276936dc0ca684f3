from types import SimpleNamespace

import pytest

from engine.decaying_rates import DecayingRates
from engine.snapshot import EngineSnapshot, EngineState, Rates


def published(*, running=0, prefill=0.0, decode=8.0):
    rates = Rates(prefill_tokens_per_second=prefill, decode_tokens_per_second=decode)
    return EngineSnapshot(1, 0.0, EngineState.READY, None, running=running, rates=rates)


@pytest.fixture
def speeds():
    """What the counters say, changed by the tests."""
    return [(0.0, 8.0)]


@pytest.fixture
def decaying(speeds):
    counters = SimpleNamespace(tokens_per_second=lambda now: speeds[0])
    return DecayingRates(counters, lambda: 1.0)


def test_an_idle_engines_speeds_are_those_of_now(decaying, speeds):
    snapshot = published()
    speeds[0] = (0.0, 3.0)
    shown = decaying.apply(snapshot)
    assert shown.rates.decode_tokens_per_second == 3.0
    assert snapshot.rates.decode_tokens_per_second == 8.0
    speeds[0] = (0.0, 0.0)
    assert decaying.apply(snapshot).rates.decode_tokens_per_second == 0.0


def test_nothing_new_is_made_while_nothing_changes(decaying, speeds):
    snapshot = published()
    speeds[0] = (0.0, 3.0)
    assert decaying.apply(snapshot) is decaying.apply(snapshot)


def test_another_snapshot_begins_anew(decaying, speeds):
    speeds[0] = (0.0, 3.0)
    decaying.apply(published())
    other = published(prefill=2.0)
    assert decaying.apply(other).rates.prefill_tokens_per_second == 0.0


@pytest.mark.parametrize("snapshot", [published(running=1), published(decode=0.0)])
def test_a_busy_or_a_resting_engine_publishes_what_is_so(decaying, snapshot):
    assert decaying.apply(snapshot) is snapshot

"""Histograms, windows and percentiles."""

import numpy as np
import pytest

from engine.observability.counters import EngineCounters, StepRecord
from engine.observability.histogram import Histogram
from engine.observability.rates import WINDOW_S, RateWindow, RecentSamples


def test_bounds_are_inclusive_and_nothing_is_lost():
    histogram = Histogram((1.0, 2.0, 4.0))
    histogram.observe_all(np.array([0.5, 1.0, 1.5, 4.0, 5.0]))
    histogram.observe(2.0)
    state = histogram.state()
    assert state.counts.tolist() == [2, 2, 1, 1]
    assert state.count == 6
    assert state.total == 14.0


def test_a_state_does_not_change_with_its_histogram():
    histogram = Histogram((1.0,))
    state = histogram.state()
    histogram.observe(0.5)
    assert state.count == 0


def test_rates_cover_two_seconds():
    window = RateWindow()
    for tenth in range(30):
        window.add(50 + tenth * 0.1 + 0.01, prefill=10, decode=2)
    prefill, decode = window.rates(50 + 2.95)
    assert (prefill, decode) == (20 * 10 / WINDOW_S, 20 * 2 / WINDOW_S)


def test_rates_fall_to_zero_without_steps():
    window = RateWindow()
    window.add(10.0, 0, 100)
    assert window.rates(10.5) == (0, 50)
    assert window.rates(12.3) == (0, 0)


def test_slots_of_long_ago_do_not_come_back():
    window = RateWindow()
    window.add(10.0, 0, 100)
    window.add(12.1, 0, 2)  # the same slot, one round later
    assert window.rates(12.15) == (0, 1)


def test_percentiles_of_the_latest_samples():
    samples = RecentSamples()
    assert samples.percentiles() == (None, None)
    samples.add(np.full(600, 9.0))
    samples.add(np.arange(1, 513, dtype=float))
    median, high = samples.percentiles()
    assert median == 256.5
    assert 480 < high < 490


def test_percentiles_before_the_ring_is_full():
    samples = RecentSamples()
    samples.add(np.array([1.0, 2.0, 3.0]))
    assert samples.percentiles()[0] == 2.0


@pytest.mark.parametrize("steps", [1, 63, 64, 65, 200])
def test_readers_see_the_samples_of_every_step(steps):
    counters, inter_token_latencies = EngineCounters(), 0.001 * np.arange(1.0, 1 + steps)
    for number, interval in enumerate(inter_token_latencies):
        counters.record_step(
            1.0,
            StepRecord(
                seconds=0.01,
                predicted_seconds=None,
                prefill_tokens=0,
                decode_tokens=2,
                new_prompt_tokens=number % 2,
                generated=2,
                first_tokens=np.full(number % 2, 0.5),
                inter_token_latencies=np.full(2, interval).tobytes(),
            ),
        )
        assert counters.totals().generation_tokens == 2 * (number + 1)
    state = counters.state()
    assert state.histograms["step_seconds"].count == steps
    assert state.histograms["iteration_tokens_total"].total == 2 * steps + steps // 2
    assert state.histograms["inter_token_latency_seconds"].count == 2 * steps
    assert state.histograms["inter_token_latency_seconds"].total == pytest.approx(
        2 * inter_token_latencies.sum()
    )
    assert state.histograms["time_to_first_token_seconds"].count == steps // 2
    rates = counters.rates(1.0, fresh=True)
    assert rates.itl_p50 == pytest.approx(np.median(inter_token_latencies))
    assert rates.ttft_p50 == (0.5 if steps > 1 else None)
    assert counters.state().histograms["step_seconds"].count == steps  # sorted in once

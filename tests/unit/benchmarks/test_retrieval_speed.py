"""`benchmarks/retrieval_speed.py`: rates, ratios and percentiles of measured times."""

import numpy as np
import pytest

from benchmarks.retrieval_speed import nearness, percentiles, rates, ratios


def taken(seconds, cpu_seconds):
    return {"seconds": seconds, "cpu_seconds": cpu_seconds}


def test_rates_are_of_the_fastest_and_the_median_run_and_of_the_least_cpu_time():
    found = rates(100, [taken(2.0, 3.0), taken(1.0, 2.0), taken(4.0, 2.5)], "texts/s")
    assert found == {
        "texts/s": {"best": 100.0, "median": 50.0, "per CPU second": 50.0},
        "runs": 3,
    }


def test_ratios_are_how_many_times_as_fast_ours_are_as_each_peer():
    found = ratios({"Pravāha f32": taken(2, 3), "Pravāha int8": taken(1, 1), "a peer": taken(6, 9)})
    assert found == {
        "Pravāha f32 / a peer": taken(3, 3),
        "Pravāha int8 / a peer": taken(6, 9),
    }


def test_nearness_is_the_cosine_of_equal_rows():
    reference = np.eye(2, 3, dtype=np.float32)
    found = nearness(np.array([[1, 0, 0], [0, 0.6, 0.8]], np.float32), reference)
    assert found["least cosine"] == pytest.approx(0.6)
    assert found["mean cosine"] == pytest.approx(0.8)


def test_percentiles_are_in_milliseconds():
    found = percentiles([0.001 * at for at in range(1, 102)])
    assert found["p50 ms"] == pytest.approx(51)
    assert found["p95 ms"] == pytest.approx(96)

"""`benchmarks/retrieval_speed.py`: rates, ratios and percentiles of measured times."""

import numpy as np
import pytest

from benchmarks.retrieval_speed import nearness, percentiles, rates, ratios


def test_rates_are_of_the_fastest_and_the_median_run():
    found = rates(100, [2.0, 1.0, 4.0], "texts/s")
    assert found == {"texts/s": {"best": 100.0, "median": 50.0}, "runs": 3}


def test_ratios_are_ours_over_each_peer():
    found = ratios({"Pravāha f32": 30.0, "Pravāha int8": 60.0, "a peer": 10.0})
    assert found == {"Pravāha f32 / a peer": 3.0, "Pravāha int8 / a peer": 6.0}


def test_nearness_is_the_cosine_of_equal_rows():
    reference = np.eye(2, 3, dtype=np.float32)
    found = nearness(np.array([[1, 0, 0], [0, 0.6, 0.8]], np.float32), reference)
    assert found["least cosine"] == pytest.approx(0.6)
    assert found["mean cosine"] == pytest.approx(0.8)


def test_percentiles_are_in_milliseconds():
    found = percentiles([0.001 * at for at in range(1, 102)])
    assert found["p50 ms"] == pytest.approx(51)
    assert found["p95 ms"] == pytest.approx(96)

"""`benchmarks/search_quality.py`: ranks and their figures."""

import math

import pytest

from benchmarks.known_items import KnownItem
from benchmarks.retrieval_quality import compared
from benchmarks.search_quality import DEPTH, Place, difference, figures, rank_of

ITEM = KnownItem("q", "gist", "f", 100, 200)
HIT, MISS = Place("f", 100, 200), Place("g", 100, 200)


def test_the_rank_is_that_of_the_first_relevant_result():
    assert rank_of(ITEM, [MISS, HIT, HIT]) == 2
    assert rank_of(ITEM, [MISS]) is None
    assert rank_of(ITEM, [MISS] * DEPTH + [HIT]) is None


def test_figures_are_means_over_the_queries():
    found = figures([1, 2, 6, None])
    assert found["hit@1"] == pytest.approx(1 / 4)
    assert found["hit@5"] == pytest.approx(2 / 4)
    assert found["nDCG@10"] == pytest.approx((1 + 1 / math.log2(3) + 1 / math.log2(7)) / 4)


def test_no_queries_have_no_figures():
    with pytest.raises(ValueError, match="no queries"):
        figures([])


def test_a_difference_has_an_interval_around_its_mean():
    apart = difference([1] * 30 + [None] * 10, [1] * 20 + [None] * 20)["hit@1"]
    assert apart["mean"] == pytest.approx(0.25)
    assert 0 < apart["low"] < 0.25 < apart["high"] < 0.5
    same = difference([1, None, 3], [1, None, 3])["nDCG@10"]
    assert (same["mean"], same["low"], same["high"]) == (0, 0, 0)


def test_our_modes_are_compared_with_the_best_peer_and_with_each_other():
    ranks = {
        "Pravāha, dense": [1, None],
        "Pravāha, hybrid": [1, 1],
        "weak, dense": [None, None],
        "strong, hybrid": [1, 2],
    }
    found = compared(ranks)
    assert found["best peer"] == "strong, hybrid"
    assert found["Pravāha, hybrid less strong, hybrid"]["hit@1"]["mean"] == pytest.approx(0.5)
    assert found["Pravāha, hybrid less Pravāha, dense"]["hit@1"]["mean"] == pytest.approx(0.5)

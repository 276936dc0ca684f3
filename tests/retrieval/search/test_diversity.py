import numpy as np

from engine.retrieval.search.diversity import select_diverse

RELEVANCE = np.array([1.0, 0.95, 0.6], np.float32)
VECTORS = np.array([[1, 0], [1, 0], [0, 1]], np.float32)  # the second repeats the first


def test_a_repeated_passage_comes_after_a_different_one():
    assert select_diverse(RELEVANCE, VECTORS, 2, weight=0.5) == [0, 2]


def test_full_weight_on_relevance_keeps_its_order():
    assert select_diverse(RELEVANCE, VECTORS, 3, weight=1.0) == [0, 1, 2]


def test_the_first_is_the_most_relevant_even_with_all_weight_on_novelty():
    assert select_diverse(RELEVANCE[::-1].copy(), VECTORS, 1, weight=0.0)[0] in (0, 1, 2)
    assert select_diverse(RELEVANCE, VECTORS, 3, weight=0.01)[0] == 0


def test_asks_for_more_than_there_are():
    assert sorted(select_diverse(RELEVANCE, VECTORS, 10, weight=0.5)) == [0, 1, 2]
    assert select_diverse(RELEVANCE[:0], VECTORS[:0], 3, weight=0.5) == []
    assert select_diverse(RELEVANCE, VECTORS, 0, weight=0.5) == []

import pytest

from engine.retrieval.search.fusion import weighted_sum


def test_a_score_is_the_found_share_of_the_query_and_the_cosine():
    fused = weighted_sum({1: 5.0}, 10.0, {1: 0.8}, weight=0.25)
    assert dict(fused) == {1: pytest.approx(0.25 * 0.5 + 0.75 * 0.8)}


def test_a_chunk_with_all_rare_words_wins_over_one_that_is_mediocre_in_both():
    fused = weighted_sum({1: 9.0, 2: 3.0}, 10.0, {1: 0.3, 2: 0.5, 3: 0.6})
    assert [one for one, _ in fused] == [1, 2, 3]


def test_the_meaning_decides_if_most_words_of_the_query_are_nowhere():
    fused = weighted_sum({1: 9.0, 2: 3.0}, 100.0, {1: 0.3, 2: 0.5, 3: 0.6})
    assert [one for one, _ in fused] == [3, 2, 1]


def test_a_query_without_words_is_ranked_by_the_meaning():
    assert weighted_sum({}, 0.0, {1: 0.2, 2: 0.4}) == [(2, 0.2), (1, 0.1)]


def test_an_opposite_meaning_counts_as_none():
    assert weighted_sum({1: 5.0}, 10.0, {1: -0.5, 2: -0.1}) == [(1, 0.25), (2, 0.0)]


def test_equal_scores_keep_their_order():
    assert [one for one, _ in weighted_sum({}, 0.0, {5: 0.5, 4: 0.5, 3: 0.5})] == [5, 4, 3]


def test_nothing_found_is_an_empty_result():
    assert weighted_sum({}, 0.0, {}) == []

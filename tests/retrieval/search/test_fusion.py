from engine.retrieval.search.fusion import reciprocal_rank_fusion


def test_an_id_high_in_both_rankings_wins():
    fused = reciprocal_rank_fusion([[1, 2, 3], [3, 2, 4]])
    assert [one for one, _ in fused] == [3, 2, 1, 4]
    assert dict(fused)[2] == 2 / 62


def test_scores_are_those_of_the_paper():
    assert reciprocal_rank_fusion([[7], [8, 7]]) == [(7, 1 / 61 + 1 / 62), (8, 1 / 61)]


def test_equal_scores_keep_the_order_of_occurrence():
    assert [one for one, _ in reciprocal_rank_fusion([[5], [4], [3]])] == [5, 4, 3]


def test_no_ranking_is_an_empty_result():
    assert reciprocal_rank_fusion([]) == []
    assert reciprocal_rank_fusion([[], []]) == []

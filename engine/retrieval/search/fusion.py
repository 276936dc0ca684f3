"""Reciprocal rank fusion: joins rankings whose scores are not comparable (Cormack et al. 2009)."""

from collections.abc import Sequence

RRF_K = 60
"""The constant of the paper: how slowly the weight of a rank falls."""


def reciprocal_rank_fusion(
    rankings: Sequence[Sequence[int]], *, k: int = RRF_K
) -> list[tuple[int, float]]:
    """Join rankings of ids into one.

    Args:
        rankings: ids, best first; an id occurs at most once in each.
        k: added to every rank.

    Returns:
        (id, score) pairs, best first; equal scores in the order in which the ids first occur, so that
        equal inputs have equal results.
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, one in enumerate(ranking, start=1):
            scores[one] = scores.get(one, 0.0) + 1.0 / (k + rank)
    return sorted(scores.items(), key=lambda item: -item[1])

"""Maximal marginal relevance: leaves out passages that repeat better ones (Carbonell, Goldstein 1998)."""

import numpy as np
from numpy.typing import NDArray


def select_diverse(
    relevance: NDArray[np.float32], vectors: NDArray[np.float32], k: int, *, weight: float
) -> list[int]:
    """Choose up to `k` candidates, each relevant and unlike the ones before it.

    Cost: O(k · candidates · dimensions).

    Args:
        relevance: [candidates], higher is better. Scaled here, so that the best has 1 and nothing has 0.
        vectors: [candidates, dimensions] of unit length.
        k: how many to choose.
        weight: in [0, 1], of relevance against novelty; 1 keeps the order of relevance.

    Returns:
        Indices of candidates in the order in which they were chosen. The first is the most relevant.
    """
    count = len(relevance)
    if count == 0 or k <= 0:
        return []
    best = float(relevance.max())
    scaled = relevance / best if best > 0 else np.ones(count, np.float32)
    likeness = np.zeros(count, np.float32)  # to the most similar one chosen
    left = np.ones(count, bool)
    chosen: list[int] = []
    for _ in range(min(k, count)):
        score = np.where(left, weight * scaled - (1 - weight) * likeness, -np.inf)
        one = int(score.argmax())
        chosen.append(one)
        left[one] = False
        np.maximum(likeness, vectors @ vectors[one], out=likeness)
    return chosen

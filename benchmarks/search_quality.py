"""Quality of ranked results: hit@k and nDCG@10 of known items, with paired bootstrap intervals."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.known_items import KnownItem

DEPTH = 10
"""Results that are looked at."""
RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Place:
    """The span of a result: bytes of a file, half-open."""

    file: str
    start: int
    end: int


def rank_of(item: KnownItem, results: Sequence[Place]) -> int | None:
    """The rank, from 1, of the first result with the item; None if the first `DEPTH` have it not."""
    for rank, place in enumerate(results[:DEPTH], 1):
        if item.found_in(place.file, place.start, place.end):
            return rank
    return None


def hit(rank: int | None, within: int) -> float:
    """1 if the item is among the first `within` results, else 0."""
    return float(rank is not None and rank <= within)


def gain(rank: int | None) -> float:
    """nDCG@10 with one relevant result: 1 / log2(1 + rank). Further chunks of the target add nothing."""
    return 0.0 if rank is None else 1 / math.log2(1 + rank)


def figures(ranks: Sequence[int | None]) -> dict[str, float]:
    """hit@1, hit@5 and nDCG@10, each a mean over the queries."""
    if not ranks:
        raise ValueError("there are no queries")
    return {
        "hit@1": float(np.mean([hit(rank, 1) for rank in ranks])),
        "hit@5": float(np.mean([hit(rank, 5) for rank in ranks])),
        "nDCG@10": float(np.mean([gain(rank) for rank in ranks])),
    }


def difference(
    ours: Sequence[int | None], theirs: Sequence[int | None]
) -> dict[str, dict[str, float]]:
    """Ours less theirs for each figure, with the 95 % interval of a paired bootstrap over the queries."""
    measures: Mapping[str, tuple[list[float], list[float]]] = {
        "hit@1": ([hit(rank, 1) for rank in ours], [hit(rank, 1) for rank in theirs]),
        "hit@5": ([hit(rank, 5) for rank in ours], [hit(rank, 5) for rank in theirs]),
        "nDCG@10": ([gain(rank) for rank in ours], [gain(rank) for rank in theirs]),
    }
    random = np.random.default_rng(0)
    samples = random.integers(0, len(ours), (RESAMPLES, len(ours)))
    compared = {}
    for name, (mine, other) in measures.items():
        apart = np.subtract(mine, other)
        low, high = np.percentile(apart[samples].mean(axis=1), (2.5, 97.5))
        compared[name] = {"mean": float(apart.mean()), "low": float(low), "high": float(high)}
    return compared

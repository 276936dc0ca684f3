"""Probabilities of options, from the log-probabilities of their labels.

A question with lettered options is asked in two orders, each one forward pass behind the shared prefix, and
the log-probabilities are averaged, because small models prefer certain letters and places. With contextual
calibration (Zhao et al. 2021, arXiv:2102.09690) those of the same question about an input without content
are subtracted.
"""

import math
from collections.abc import Sequence

LEAST_LOGPROB = -1000.0
"""A token that is masked has minus infinity, with which nothing can be computed."""
Scores = Sequence[Sequence[float]]
"""Per order of the options, one log-probability per option; the options are always in their own order."""


def orders(count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The two orders in which options are shown: as given, and reversed."""
    return tuple(range(count)), tuple(reversed(range(count)))


def option_probabilities(scores: Scores, empty: Scores | None = None) -> list[float]:
    """The probability of each option.

    Args:
        scores: of the question.
        empty: of the question about an input without content; None reads `scores` as they are.
    """
    adjusted = _mean(scores)
    if empty is not None:
        adjusted = [one - base for one, base in zip(adjusted, _mean(empty), strict=True)]
    top = max(adjusted)
    weights = [math.exp(one - top) for one in adjusted]
    total = sum(weights)
    return [weight / total for weight in weights]


def label_mass(scores: Scores) -> float:
    """The probability that a label follows at all, the mean over the orders."""
    return min(1.0, sum(math.exp(one) for order in scores for one in order) / len(scores))


def margin_of(probabilities: Sequence[float]) -> float:
    """The difference of the two highest probabilities."""
    best, next_best = sorted(probabilities, reverse=True)[:2]
    return best - next_best


def _mean(scores: Scores) -> list[float]:
    return [
        sum(max(one, LEAST_LOGPROB) for one in option) / len(scores)
        for option in zip(*scores, strict=True)
    ]

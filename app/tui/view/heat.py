"""Surprisal, −log2 p: how unlikely a token was, in bits; and its six steps in the heat map."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from engine.api.request import TopLogprob

BOUNDS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Bits at which the next step begins."""
STEPS = len(BOUNDS) + 1
SURPRISING_BITS = 2.0
"""Least surprisal of a token that `{` and `}` stop at: it had a probability of at most a quarter."""
PLAIN_STYLES = ("dim", "", "underline", "bold", "reverse", "reverse bold")
"""The steps on terminals without colour."""


@dataclass(frozen=True, slots=True)
class AnswerFigures:
    """The header of an answer.

    Attributes:
        perplexity: two to the power of the mean surprisal.
        lowest: index of the least likely token.
        lowest_share: its probability.
        entropy: mean entropy in bits over the tokens whose alternatives are stored, which count what is
            not among them as one alternative; None if no alternatives are stored.
    """

    perplexity: float
    lowest: int
    lowest_share: float
    entropy: float | None


def surprisal(logprob: float) -> float:
    """Bits of a natural logarithm; NaN stays NaN."""
    return max(0.0, -logprob / math.log(2)) if not math.isnan(logprob) else math.nan


def heat_step(bits: float) -> int | None:
    """The step, from 0; None if the surprisal is unknown."""
    return None if math.isnan(bits) else bisect_right(BOUNDS, bits)


def build_figures(
    logprobs: Sequence[float], topk: Sequence[tuple[TopLogprob, ...]]
) -> AnswerFigures | None:
    """The figures of an answer, of those tokens whose probability is known; None if there are none."""
    known = [at for at, logprob in enumerate(logprobs) if not math.isnan(logprob)]
    if not known:
        return None
    mean = sum(logprobs[at] for at in known) / len(known)
    lowest = min(known, key=lambda at: logprobs[at])
    entropies = [_entropy(one) for one in topk if one]
    return AnswerFigures(
        perplexity=math.exp(-mean),
        lowest=lowest,
        lowest_share=math.exp(logprobs[lowest]),
        entropy=sum(entropies) / len(entropies) if entropies else None,
    )


def surprising(bits: Sequence[float]) -> tuple[int, ...]:
    """Indices of the local maxima of at least `SURPRISING_BITS`; of equal neighbours, the first."""
    values = [-1.0 if math.isnan(one) else one for one in bits]
    around = [-1.0, *values, -1.0]
    return tuple(
        at
        for at, value in enumerate(values)
        if value >= SURPRISING_BITS and around[at] < value >= around[at + 2]
    )


def _entropy(alternatives: Sequence[TopLogprob]) -> float:
    shares = [math.exp(one.logprob) for one in alternatives]
    rest = 1.0 - sum(shares)
    return -sum(share * math.log2(share) for share in (*shares, rest) if share > 0)

"""The perplexity of an answer: the exponential of the mean surprisal of its tokens."""

import math
from collections.abc import Iterable


def perplexity(logprobs: Iterable[float]) -> float | None:
    """exp(−mean of the logprobs), unknown ones (NaN) left out; None if none is known."""
    known = [logprob for logprob in logprobs if not math.isnan(logprob)]
    if not known:
        return None
    # A token of probability 0 has an infinite surprisal, which no float exponential holds.
    return math.exp(min(-math.fsum(known) / len(known), _LARGEST))


_LARGEST = 700.0

"""Drafts for tests: continuations of a given accuracy."""

from collections.abc import Callable, Sequence

import numpy as np


def guesser(
    answer: Sequence[int], prompt_length: int, vocab: int, *, length: int, right: float, seed: int
) -> Callable[[Sequence[int]], list[int]]:
    """A function that drafts up to `length` tokens of `answer`, each right with probability `right`."""
    rng = np.random.default_rng(seed)

    def guess(known: Sequence[int]) -> list[int]:
        done = len(known) - prompt_length
        tokens = list(answer[done : done + int(rng.integers(0, length + 1))])
        return [
            token if rng.random() < right else int((token + 1 + rng.integers(0, 40)) % vocab)
            for token in tokens
        ]

    return guess

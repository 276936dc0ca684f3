"""Draft tokens for tests: correct, wrong, or correct up to some token."""

from collections.abc import Callable, Sequence

import numpy as np


def guesser(
    answer: Sequence[int], prompt_length: int, vocab: int, *, length: int, right: float, seed: int
) -> Callable[[Sequence[int]], list[int]]:
    """A function that drafts up to `length` tokens of `answer`, each correct with probability `right`."""
    rng = np.random.default_rng(seed)

    def propose(tokens: Sequence[int]) -> list[int]:
        done = len(tokens) - prompt_length
        draft = list(answer[done : done + int(rng.integers(0, length + 1))])
        return [
            token if rng.random() < right else int((token + 1 + rng.integers(0, 40)) % vocab)
            for token in draft
        ]

    return propose

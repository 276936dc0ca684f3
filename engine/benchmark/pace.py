"""`Pace`: predicts how long the columns of the self-benchmark take, from one prompt and one stream.

A decode step reads all weights once and computes one token per row, so with n rows it takes a step of one row
and the arithmetic of n - 1 tokens, which a prompt measures.
"""

from collections.abc import Sequence
from dataclasses import dataclass

MAX_REPEATS = 3
"""Runs of each column, of which the best counts, where they fit in `BUDGET_S`."""
BUDGET_S = 60.0
_WARM_TOKENS = 2


@dataclass(frozen=True, slots=True)
class Pace:
    """The speed of a model here.

    Attributes:
        prompt_tokens: length of the prompts of a batch.
        new_tokens: tokens that each stream of a batch generates.
        single_tokens: tokens that the single stream generates.
        prompt_s: seconds for one prompt.
        step_s: seconds for a decode step of one stream.
    """

    prompt_tokens: int
    new_tokens: int
    single_tokens: int
    prompt_s: float
    step_s: float

    def seconds(self, batches: Sequence[int], repeats: int, *, single: bool = True) -> float:
        """Predicted seconds for the columns, warm-up included."""
        total = repeats * self.single_tokens * self.step_s if single else 0.0
        return total + sum(self._batch(streams, repeats) for streams in batches)

    def repeats(self, batches: Sequence[int]) -> int:
        """How often each column may run within `BUDGET_S`; at least once, at most `MAX_REPEATS` times."""
        fitting = [n for n in range(1, MAX_REPEATS + 1) if self.seconds(batches, n) <= BUDGET_S]
        return max(fitting, default=1)

    def _batch(self, streams: int, repeats: int) -> float:
        prefill = streams * self.prompt_s
        step = self.step_s + (streams - 1) * self.prompt_s / self.prompt_tokens
        warm_up = prefill + _WARM_TOKENS * step
        return warm_up + repeats * (2 * prefill + self.new_tokens * step)

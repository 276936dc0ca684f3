"""Prompt logprobs: what the model thought of the tokens it was given.

A row's known tokens go through the model chunk by chunk anyway; for a row that asks, the step also
reports the log-probability of each chunk's next tokens. What comes back is kept beside the request,
so a preempted one does not score a token twice. Rows that do not ask pay nothing; the loops below
run over those that do.
"""

import numpy as np

from engine.api.request import PromptLogprobs, TopLogprob
from engine.executors.base import StepResult


class PromptScores:
    """Logprobs of one prompt's tokens, but the first. The engine's thread writes.

    Attributes:
        top: alternatives kept for each token.
        num_scored: how many are scored. Raised last: readers may read that many.
    """

    __slots__ = ("_logprobs", "_ranks", "_top_ids", "_top_logprobs", "num_scored", "top")

    def __init__(self, num_prompt: int, top: int) -> None:
        count = num_prompt - 1
        self.top = top
        self.num_scored = 0
        self._logprobs = np.zeros(count, np.float32)
        self._ranks = np.zeros(count, np.int32)
        self._top_ids = np.zeros((count, top), np.int32)
        self._top_logprobs = np.zeros((count, top), np.float32)

    @property
    def complete(self) -> bool:
        """Whether every token is scored."""
        return self.num_scored == len(self._logprobs)

    def record(self, result: StepResult, part: slice) -> bool:
        """Keep the next scores, `part` of a step's; False if one of them is not a number."""
        logprobs = result.score_logprobs[part]
        here = slice(self.num_scored, self.num_scored + len(logprobs))
        self._logprobs[here] = logprobs
        self._ranks[here] = result.score_ranks[part]
        self._top_ids[here] = result.score_top_ids[part, : self.top]
        self._top_logprobs[here] = result.score_top_logprobs[part, : self.top]
        self.num_scored = here.stop
        return not bool(np.isnan(logprobs).any())

    def result(self) -> PromptLogprobs:
        """What is known, for the caller. Any thread."""
        done = self.num_scored
        rows = zip(self._top_ids[:done].tolist(), self._top_logprobs[:done].tolist(), strict=True)
        return PromptLogprobs(
            logprobs=tuple(self._logprobs[:done].tolist()),
            ranks=tuple(self._ranks[:done].tolist()),
            top=tuple(tuple(map(TopLogprob, ids, logprobs)) for ids, logprobs in rows),
        )

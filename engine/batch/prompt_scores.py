"""`PromptScores`: logprobs of the tokens of one prompt.

Prefill computes every prompt token; for a request with `prompt_logprobs` the step also returns the
logprob of the token that follows each computed one. The scores belong to the request, not to its
row, so a preempted request scores no token twice. Other requests pay nothing.
"""

import numpy as np

from engine.api.request import PromptLogprobs, TopLogprob
from engine.executors.base import StepResult


class PromptScores:
    """Logprobs of the prompt tokens [1, num_prompt); the first token has none. Engine's thread writes.

    Attributes:
        top: alternatives stored for each token.
        num_scored: tokens scored so far. Raised last: readers may read that many.
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
        """Append the scores in `part` of a step's result; False if one of them is NaN."""
        logprobs = result.score_logprobs[part]
        here = slice(self.num_scored, self.num_scored + len(logprobs))
        self._logprobs[here] = logprobs
        self._ranks[here] = result.score_ranks[part]
        self._top_ids[here] = result.score_top_ids[part, : self.top]
        self._top_logprobs[here] = result.score_top_logprobs[part, : self.top]
        self.num_scored = here.stop
        return not bool(np.isnan(logprobs).any())

    def result(self) -> PromptLogprobs:
        """The scores so far. Any thread."""
        count = self.num_scored
        rows = zip(self._top_ids[:count].tolist(), self._top_logprobs[:count].tolist(), strict=True)
        return PromptLogprobs(
            logprobs=tuple(self._logprobs[:count].tolist()),
            ranks=tuple(self._ranks[:count].tolist()),
            top=tuple(tuple(map(TopLogprob, ids, logprobs)) for ids, logprobs in rows),
        )

"""`PromptScores`: logprobs of the tokens of one prompt.

Prefill computes every prompt token; for a request with `prompt_logprobs` the step also returns the
logprob of the token that follows each computed one. The scores belong to the request, not to its
row, so a preempted request scores no token twice. Other requests pay nothing.

Choices of one prompt share one `PromptScores`. One of them, the *scorer*, computes the scores; the
others wait until they are complete and then reuse the scorer's blocks. If the scorer loses its row,
the next choice that is admitted continues where it stopped.
"""

from typing import TYPE_CHECKING

import numpy as np

from engine.api.request import PromptLogprobs, TopLogprob
from engine.executors.base import StepResult

if TYPE_CHECKING:
    from engine.batch.sequence import Sequence


class PromptScores:
    """Logprobs of the prompt tokens [1, num_prompt); the first token has none. Engine's thread writes.

    Attributes:
        top: alternatives stored for each token.
        num_scored: tokens scored so far. Raised last: readers may read that many.
        scorer: the sequence that computes the scores, if it has a row; the only one with a row until
            they are complete.
    """

    __slots__ = (
        "_logprobs",
        "_ranks",
        "_result",
        "_top_ids",
        "_top_logprobs",
        "num_scored",
        "scorer",
        "top",
    )

    def __init__(self, num_prompt: int, top: int) -> None:
        count = num_prompt - 1
        self.top = top
        self.num_scored = 0
        self.scorer: Sequence | None = None
        self._result: PromptLogprobs | None = None
        self._logprobs = np.zeros(count, np.float32)
        self._ranks = np.zeros(count, np.int32)
        self._top_ids = np.zeros((count, top), np.int32)
        self._top_logprobs = np.zeros((count, top), np.float32)

    @property
    def complete(self) -> bool:
        """Whether every token is scored."""
        return self.num_scored == len(self._logprobs)

    def record(self, result: StepResult, part: slice) -> bool:
        """Append the scores in `part` of a step's result; if one of them is NaN, append none.

        Returns:
            Whether the scores were appended.
        """
        logprobs = result.score_logprobs[part]
        if np.isnan(logprobs).any():
            return False
        here = slice(self.num_scored, self.num_scored + len(logprobs))
        self._logprobs[here] = logprobs
        self._ranks[here] = result.score_ranks[part]
        self._top_ids[here] = result.score_top_ids[part, : self.top]
        self._top_logprobs[here] = result.score_top_logprobs[part, : self.top]
        self.num_scored = here.stop
        return True

    def result(self) -> PromptLogprobs | None:
        """The scores, or None until they are complete: one object for all readers. Any thread."""
        if not self.complete:
            return None
        if self._result is None:
            rows = zip(self._top_ids.tolist(), self._top_logprobs.tolist(), strict=True)
            self._result = PromptLogprobs(
                logprobs=tuple(self._logprobs.tolist()),
                ranks=tuple(self._ranks.tolist()),
                top=tuple(tuple(map(TopLogprob, ids, logprobs)) for ids, logprobs in rows),
            )
        return self._result

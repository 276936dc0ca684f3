"""`StepSampler`: samples and scores the rows of a step with the native sampler, from logits in numpy.

One call for each row, some tenths of a millisecond with a large vocabulary; a step of ONNX Runtime takes
much longer.
"""

import numpy as np
from numpy.typing import NDArray

from engine._core import RowSampler
from engine.api.errors import ExecutorError
from engine.executors.base import StepPlan, StepResult


class StepSampler:
    """Writes samples and scores into the result of one step."""

    def __init__(self, sampler: RowSampler, plan: StepPlan) -> None:
        """Sample rows of this plan; `sampler` is for the model's vocabulary."""
        drafts = plan.num_draft_tokens
        self._sampler = sampler
        self._plan = plan
        self._params = plan.sampling.view(np.uint8).reshape(len(plan.sampling), -1)
        self._num_drafts = drafts if drafts.size else np.zeros(len(plan.rows), np.int32)
        self._first_draft = np.cumsum(self._num_drafts) - self._num_drafts
        self.result = StepResult.empty(
            len(plan.rows),
            drafts=int(self._num_drafts.sum()),
            scores=len(plan.score_tokens),
            logprob_ids=len(plan.logprob_ids),
        )

    def sample(self, index: int, logits: NDArray[np.float32]) -> None:
        """Sample a row token by token, as long as each sample equals its next draft.

        Args:
            index: the row's batch index.
            logits: [1 + drafts, vocab], after its last token and after each draft; modified.

        Raises:
            ExecutorError: the plan is inconsistent.
        """
        plan, result = self._plan, self.result
        row, count = int(plan.rows[index]), int(self._num_drafts[index])
        listed = slice(*np.searchsorted(plan.logprob_rows, (row, row + 1)).tolist())
        first_draft = int(self._first_draft[index])
        end = int(plan.query_start[index + 1])
        drafts = plan.token_ids[end - count : end].tolist()
        try:
            if listed.stop > listed.start:
                ids, out = plan.logprob_ids[listed], result.token_id_logprobs[listed]
                self._sampler.logprobs_of(logits[0], ids, out)
            for nth in range(count + 1):
                is_last = nth == count
                known = int(plan.num_tokens[row]) + nth
                ids, logprobs = result.top_ids[index], result.top_logprobs[index]
                token, logprob = self._sample_one(index, row, known, logits[nth], ids, logprobs)
                if is_last or token != drafts[nth]:
                    result.sampled[index] = token
                    result.failed[index] = token < 0
                    result.logprobs[index] = logprob
                    return
                at = first_draft + nth
                result.accepted[index] += 1
                result.draft_logprobs[at] = logprob
                result.draft_top_ids[at] = ids
                result.draft_top_logprobs[at] = logprobs
        except ValueError as error:
            raise ExecutorError(str(error), entry=index) from error

    def _sample_one(
        self,
        index: int,
        row: int,
        num_tokens: int,
        logits: NDArray[np.float32],
        top_ids: NDArray[np.int32],
        top_logprobs: NDArray[np.float32],
    ) -> tuple[int, float]:
        plan = self._plan
        biases = slice(*np.searchsorted(plan.bias_rows, (row, row + 1)).tolist())
        masked = int(np.searchsorted(plan.mask_rows, index))
        has_mask = masked < len(plan.mask_rows) and plan.mask_rows[masked] == index
        return self._sampler.sample(
            logits,
            self._params[row],
            plan.token_table[row, :num_tokens],
            penalty_start=int(plan.penalty_start[row]),
            bias_ids=plan.bias_ids[biases],
            bias_values=plan.bias_values[biases],
            breaker_heads=plan.breaker_heads,
            breaker_tails=plan.breaker_tails,
            mask=plan.mask_bits[masked] if has_mask else None,
            top_ids=top_ids,
            top_logprobs=top_logprobs,
        )

    def score(self, at: int, logits: NDArray[np.float32]) -> None:
        """Score the plan's target `at` by the logits after its token, [vocab].

        Raises:
            ExecutorError: the plan is inconsistent.
        """
        plan, result = self._plan, self.result
        tops = int(plan.score_tops[at])
        try:
            logprob, rank = self._sampler.score(
                logits,
                int(plan.score_targets[at]),
                result.score_top_ids[at, :tops],
                result.score_top_logprobs[at, :tops],
            )
        except ValueError as error:
            raise ExecutorError(str(error)) from error
        result.score_logprobs[at] = logprob
        result.score_ranks[at] = rank

"""`WorkPredictor`: predicts the duration of requests from the step-time model and the current load."""

import numpy as np
from numpy.typing import NDArray

from engine.api.step_costs import StepLoad
from engine.batch.request_record import WaitingColumns
from engine.scheduler.step_time import StepTimeModel

_FIRST_ANSWER = 128.0
_ANSWER_KEEP = 0.95


class WorkPredictor:
    """Predicts for the policies, the batch former and `price`. Updated by the engine's thread.

    Attributes:
        model: the step-time model.
        mean_output_tokens: running mean of the output lengths of finished requests; the predicted
            output length of a request, bounded by its `max_new_tokens`.
    """

    def __init__(self, model: StepTimeModel | None = None, *, chunk: int) -> None:
        """Predict for prefill chunks of at most `chunk` tokens."""
        self.model = model or StepTimeModel()
        self.mean_output_tokens = _FIRST_ANSWER
        self._chunk = chunk
        self._concurrent_load = StepLoad(0, 0, 0)

    def note_output_length(self, tokens: int) -> None:
        """Record that a request finished with so many output tokens."""
        self.mean_output_tokens = (
            _ANSWER_KEEP * self.mean_output_tokens + (1 - _ANSWER_KEEP) * tokens
        )

    def note_step(self, decode_load: StepLoad, chunk: int) -> None:
        """Record the load of the decoding rows and the prefill chunk of the current step."""
        self._concurrent_load = decode_load
        self._chunk = max(1, chunk)

    def first_token_seconds(self, columns: WaitingColumns) -> NDArray[np.float64]:
        """[n] float64, predicted seconds to each request's first token if it ran next.

        Assumes the current decode load and prefill chunk. Zero before the step-time model is fitted,
        so that no deadline is considered infeasible without a measurement.
        """
        costs = self.model.costs
        if costs is None:
            return np.zeros(len(columns))
        concurrent = costs.seconds(self._concurrent_load)
        prefill = columns.num_pending_tokens.astype(np.float64)
        steps = np.ceil(prefill / self._chunk)
        own = prefill * (
            costs.prefill_token + costs.kv_token * (columns.cached_tokens_hint + prefill / 2)
        )
        return own + steps * concurrent

    @property
    def optimism_factor(self) -> float:
        """Factor ≥ 1 by which the machine may be faster than predicted, from the model's error."""
        return 1.0 + (self.model.error or 0.0)

    def job_seconds(self, columns: WaitingColumns) -> NDArray[np.float64]:
        """[n] float64, predicted seconds of compute for the rest of each request.

        Before the step-time model is fitted, the values are in prefill tokens; only their order counts.
        """
        costs, pending = self.model.costs, columns.num_pending_tokens
        output = np.minimum(columns.max_new_tokens, self.mean_output_tokens)
        if costs is None:
            return (
                pending + 4.0 * output
            )  # a decoded token costs about as much as four prefilled ones
        share = costs.constant / (self._concurrent_load.num_decode_rows + 1)
        context = columns.cached_tokens_hint + pending
        per_decode = costs.decode_row + share + costs.kv_token * context
        per_prefill = costs.prefill_token + costs.kv_token * (context - pending / 2)
        seconds: NDArray[np.float64] = pending * per_prefill + output * per_decode
        return seconds

    def prefill_seconds(self, tokens: int, *, cached: int) -> float | None:
        """Predicted seconds to prefill a prompt's last `tokens` tokens in an idle engine. Any thread.

        Args:
            tokens: tokens to compute.
            cached: tokens before them, whose KV exists.

        Returns:
            None before the step-time model is fitted.
        """
        costs = self.model.costs
        if costs is None:
            return None
        pairs = tokens * cached + tokens * (tokens + 1) // 2
        steps = -(-tokens // self._chunk)
        if tokens == 1:
            return costs.seconds(StepLoad(0, 1, pairs))
        return costs.seconds(StepLoad(tokens, 0, pairs)) + (steps - 1) * costs.constant

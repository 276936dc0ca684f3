"""`WorkPredictor`: how long requests will take, from the step-time model and what runs now."""

import numpy as np
from numpy.typing import NDArray

from engine.api.step_costs import StepLoad
from engine.batch.request_record import WaitingColumns
from engine.scheduler.step_time import StepTimeModel

_FIRST_ANSWER = 128.0
_ANSWER_KEEP = 0.95


class WorkPredictor:
    """Predicts for the policies, the batch former and `price`. Written by the engine's thread.

    Attributes:
        model: times of steps.
        answer_tokens: how long an answer is assumed to become, unless its request allows less: a
            running mean of the answers that ended.
    """

    def __init__(self, model: StepTimeModel | None = None, *, chunk: int) -> None:
        """Predict for steps of at most `chunk` tokens."""
        self.model = model or StepTimeModel()
        self.answer_tokens = _FIRST_ANSWER
        self._chunk = chunk
        self._concurrent_load = StepLoad(0, 0, 0)

    def note_answer(self, tokens: int) -> None:
        """An answer of so many tokens ended."""
        self.answer_tokens = _ANSWER_KEEP * self.answer_tokens + (1 - _ANSWER_KEEP) * tokens

    def note_step(self, decodes: StepLoad, chunk: int) -> None:
        """Steps now have these decodes, and prefills advance by `chunk` tokens beside them."""
        self._concurrent_load = decodes
        self._chunk = max(1, chunk)

    def first_token_seconds(self, columns: WaitingColumns) -> NDArray[np.float64]:
        """[n] float64, seconds from now to the first token of each if it were next.

        Beside today's decodes, a chunk a step. Zero while nothing is known of the machine, so that
        no deadline is called lost for a guess.
        """
        costs = self.model.costs
        if costs is None:
            return np.zeros(len(columns))
        beside = costs.seconds(self._concurrent_load)
        prefill = columns.num_pending_tokens.astype(np.float64)
        steps = np.ceil(prefill / self._chunk)
        own = prefill * (
            costs.prefill_token + costs.kv_token * (columns.cached_tokens_hint + prefill / 2)
        )
        return own + steps * beside

    @property
    def optimism_factor(self) -> float:
        """How much faster than predicted things may well go, as a factor of at least 1."""
        return 1.0 + (self.model.error or 0.0)

    def job_seconds(self, columns: WaitingColumns) -> NDArray[np.float64]:
        """[n] float64, what the rest of each request adds to the machine's work."""
        costs, pending = self.model.costs, columns.num_pending_tokens
        answer = np.minimum(columns.max_new_tokens, self.answer_tokens)
        if costs is None:
            return pending + 4.0 * answer  # in tokens: a decode costs as much as several prefilled
        share = costs.constant / (self._concurrent_load.num_decode_rows + 1)
        context = columns.cached_tokens_hint + pending
        per_decode = costs.decode_row + share + costs.kv_token * context
        per_prefill = costs.prefill_token + costs.kv_token * (context - pending / 2)
        seconds: NDArray[np.float64] = pending * per_prefill + answer * per_decode
        return seconds

    def prefill_seconds(self, tokens: int, *, cached: int) -> float | None:
        """Seconds to compute a prompt's last `tokens` tokens in an idle engine; any thread.

        None while nothing is known of the machine.
        """
        costs = self.model.costs
        if costs is None:
            return None
        pairs = tokens * cached + tokens * (tokens + 1) // 2
        steps = -(-tokens // self._chunk)
        if tokens == 1:
            return costs.seconds(StepLoad(0, 1, pairs))
        return costs.seconds(StepLoad(tokens, 0, pairs)) + (steps - 1) * costs.constant

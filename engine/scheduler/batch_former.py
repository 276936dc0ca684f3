"""`BatchFormer`: sets the token budget of a step.

Decodes are scheduled first, with one token each. The rest of the budget is the prefill chunk, which
determines how much prefills add to the inter-token latency of the decoding requests.
"""

from typing import Protocol

from engine.api.scheduling import Scheduling
from engine.api.step_costs import StepCosts, StepLoad
from engine.scheduler.work_predictor import WorkPredictor

MAX_CHUNK = 2**31 - 1
MIN_CHUNK = 16
"""Minimum prefill tokens per step, so that prefills progress if the target cannot be reached."""


MAX_STEP_S = 0.2
"""Predicted time of a step with prefills. A request that arrives waits for the running step first."""
MAX_FIXED_SHARE = 0.1
"""Share of a step's time that does not depend on the prefill chunk. Steps may last longer than
`MAX_STEP_S` to reach it: in smaller chunks, prefills of a slow model would mostly reread the weights."""


def max_chunk(costs: StepCosts, decode_load: StepLoad, context: int) -> int:
    """Prefill tokens of a step that is bounded by `MAX_STEP_S`, at least `MIN_CHUNK`.

    Args:
        costs: of the step-time model.
        decode_load: the load of the decoding rows.
        context: tokens already computed by the first prefill.
    """
    fixed = costs.seconds(decode_load)
    return _chunk_within(max(MAX_STEP_S, fixed / MAX_FIXED_SHARE) - fixed, costs, context)


LOWER_CLASS_STEP_S = 0.05
"""Predicted time of a step whose prefills all are of lower service classes than `interactive`."""
LOWER_CLASS_CHUNK = 192
"""Prefill tokens of such a step even if they take longer: about a chat's prompt, so that a chat that
arrives waits for the running step about half as long as for its own prefill, on a slow model too."""


def lower_class_chunk(costs: StepCosts | None, decode_load: StepLoad, context: int) -> int:
    """Prefill tokens of a step without interactive prefills; arguments as of `max_chunk`."""
    if costs is None:
        return LOWER_CLASS_CHUNK
    within = _chunk_within(LOWER_CLASS_STEP_S - costs.seconds(decode_load), costs, context)
    return max(within, LOWER_CLASS_CHUNK)


def _chunk_within(seconds: float, costs: StepCosts, context: int) -> int:
    """Prefill tokens that are predicted to take at most `seconds`, at least `MIN_CHUNK`."""
    each = costs.prefill_token + costs.kv_token * context
    if each <= 0:
        return MAX_CHUNK
    return int(min(max(seconds / each, MIN_CHUNK), MAX_CHUNK))


class BatchFormer(Protocol):
    """Bounds a step. Called by the engine's thread for steps that may prefill."""

    def budget(self, decode_load: StepLoad, context: int) -> int:
        """Tokens of the next step including the decodes; at most the token budget.

        Args:
            decode_load: the load of the decoding rows.
            context: tokens already computed by the first prefill.
        """
        ...


class FixedChunk:
    """Gives every step the same budget."""

    def __init__(self, token_budget: int) -> None:
        self._token_budget = token_budget

    def budget(self, decode_load: StepLoad, context: int) -> int:
        """The token budget."""
        return self._token_budget


class TimedChunk:
    """Schedules as many tokens as the step-time model predicts to fit into a target time.

    At most the token budget, for which the executor's buffers are sized. The whole token budget is
    used when no row decodes, since there is no inter-token latency to bound, and before the model
    is fitted.
    """

    def __init__(self, token_budget: int, target_s: float, work: WorkPredictor) -> None:
        self._token_budget = token_budget
        self._target_s = target_s
        self._work = work

    def budget(self, decode_load: StepLoad, context: int) -> int:
        """The decodes, and the prefill tokens that fit into the rest of the target time."""
        costs = self._work.model.costs
        if costs is None or decode_load.num_decode_rows == 0:
            return self._token_budget
        chunk = _chunk_within(self._target_s - costs.seconds(decode_load), costs, context)
        return min(decode_load.num_decode_rows + chunk, self._token_budget)


def make_batch_former(
    scheduling: Scheduling, work: WorkPredictor, *, token_budget: int
) -> BatchFormer:
    """The batch former that `scheduling` names."""
    match scheduling.batch_former:
        case "fixed":
            return FixedChunk(token_budget)
        case "timed":
            return TimedChunk(token_budget, scheduling.step_target_ms / 1000, work)

"""`BatchFormer`: how many tokens the next step may compute.

Decodes come first and take one token each. What is left is the chunk that prefills advance by, and
so what they add to the time between two tokens of everybody else.
"""

from typing import Protocol

from engine.api.scheduling import Scheduling
from engine.api.step_costs import StepLoad
from engine.scheduler.work_predictor import WorkPredictor

MIN_CHUNK = 16
"""Prefill tokens a step at least: a machine too slow for its target still makes progress."""


class BatchFormer(Protocol):
    """Bounds a step. Called by the engine's thread for steps that may prefill."""

    def budget(self, decodes: StepLoad, context: int) -> int:
        """Tokens of the next step, those of the decodes among them; at most the token budget.

        Args:
            decodes: the load of the rows that decode.
            context: tokens before the first prefill's next one.
        """
        ...


class FixedChunk:
    """Every step has the same budget."""

    def __init__(self, token_budget: int) -> None:
        self._token_budget = token_budget

    def budget(self, decodes: StepLoad, context: int) -> int:
        """The token budget."""
        return self._token_budget


class TimedChunk:
    """As many tokens as keep the step within a target time, by the step-time model.

    Never more than the token budget, for which the executor has its buffers.

    Without decodes there is nobody to keep waiting, and before the model is fitted nothing to go
    by: both take the whole token budget.
    """

    def __init__(self, token_budget: int, target_s: float, work: WorkPredictor) -> None:
        self._token_budget = token_budget
        self._target_s = target_s
        self._work = work

    def budget(self, decodes: StepLoad, context: int) -> int:
        """The decodes, and the prefill tokens for which time is left."""
        costs = self._work.model.costs
        if costs is None or decodes.num_decode_rows == 0:
            return self._token_budget
        left = self._target_s - costs.seconds(decodes)
        each = costs.prefill_token + costs.kv_token * context
        most = max(self._token_budget - decodes.num_decode_rows, 0)
        chunk = int(min(max(left / each, MIN_CHUNK), most)) if each > 0 else most
        return min(decodes.num_decode_rows + chunk, self._token_budget)


def make_batch_former(
    scheduling: Scheduling, work: WorkPredictor, *, token_budget: int
) -> BatchFormer:
    """The batch former that `scheduling` names."""
    match scheduling.batch_former:
        case "fixed":
            return FixedChunk(token_budget)
        case "timed":
            return TimedChunk(token_budget, scheduling.step_target_ms / 1000, work)

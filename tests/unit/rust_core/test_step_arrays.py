"""`StepArrays`: what the native executor keeps of a plan is checked when it takes it."""

from dataclasses import replace

import numpy as np
import pytest

from engine.executors.base import SAMPLING_DTYPE, StepPlan, StepResult
from engine.executors.native import _step_arrays


def one_row() -> StepPlan:
    def ints(*shape):
        return np.zeros(shape, np.int32)

    return StepPlan(
        rows=ints(1),
        query_start=np.array([0, 1], np.int32),
        token_ids=ints(1),
        positions=ints(1),
        needs_logits=np.ones(1, np.uint8),
        block_tables=ints(2, 4),
        token_table=ints(2, 64),
        num_tokens=ints(2),
        penalty_start=ints(2),
        sampling=np.zeros(2, SAMPLING_DTYPE),
        bias_rows=ints(0),
        bias_ids=ints(0),
        bias_values=np.zeros(0, np.float32),
    )


def test_a_plan_and_its_results_are_taken():
    _step_arrays(one_row(), StepResult.empty(1))


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": np.zeros(1, np.int64)},
        {"token_ids": np.zeros((1, 1), np.int32)},
        {"token_ids": np.zeros(4, np.int32)[::2]},
        {"token_table": np.zeros((64, 2), np.int32).T},
        {"positions": np.frombuffer(bytes(9), np.uint8)[1:].view(np.int32)},
    ],
    ids=["type", "dimensions", "gaps", "columns first", "odd address"],
)
def test_arrays_that_cannot_be_read_in_place_are_refused(changes):
    plan = replace(one_row(), **changes)
    with pytest.raises((TypeError, ValueError)):
        _step_arrays(plan, StepResult.empty(1))


def test_two_results_in_one_array_are_refused():
    result = StepResult.empty(1)
    with pytest.raises(Exception, match="borrowed"):
        _step_arrays(one_row(), replace(result, accepted=result.sampled))


def test_results_may_not_overwrite_the_plan():
    plan = one_row()
    with pytest.raises(Exception, match="borrowed"):
        _step_arrays(plan, replace(StepResult.empty(1), sampled=plan.rows))

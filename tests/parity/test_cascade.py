"""Cascade attention: rows that share a prefix's blocks have the same bits as with private copies."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.executors.base import SAMPLING_DTYPE, Executor, StepPlan
from tests.parity.loading import load_stepper

BLOCK, PREFIX, ROWS = 32, 96, 12


def plan(
    tokens: Sequence[Sequence[int]], firsts: Sequence[int], tables: Sequence[Sequence[int]]
) -> StepPlan:
    """A greedy step: `tokens[i]` from position `firsts[i]` on, over the blocks `tables[i]`."""
    rows, counts = len(tokens), [len(part) for part in tokens]
    block_tables = np.full((rows, 8), -1, np.int32)
    for row, table in enumerate(tables):
        block_tables[row, : len(table)] = table
    sampling = np.zeros(rows, SAMPLING_DTYPE)
    sampling["top_p"], sampling["repetition_penalty"], sampling["num_logprobs"] = 1.0, 1.0, 5
    ends = [first + count for first, count in zip(firsts, counts, strict=True)]
    return StepPlan(
        rows=np.arange(rows, dtype=np.int32),
        query_start=np.cumsum([0, *counts], dtype=np.int32),
        token_ids=np.array([token for part in tokens for token in part], np.int32),
        positions=np.concatenate(
            [np.arange(a, b, dtype=np.int32) for a, b in zip(firsts, ends, strict=True)]
        ),
        needs_logits=np.ones(rows, np.uint8),
        block_tables=block_tables,
        token_table=np.zeros((rows, 256), np.int32),
        num_tokens=np.array(ends, np.int32),
        penalty_start=np.array(ends, np.int32),
        sampling=sampling,
        bias_rows=np.zeros(0, np.int32),
        bias_ids=np.zeros(0, np.int32),
        bias_values=np.zeros(0, np.float32),
    )


def outcome(executor: Executor, step: StepPlan) -> list[bytes]:
    result = executor.execute(step)
    return [array.tobytes() for array in (result.sampled, result.logprobs, result.top_logprobs)]


@pytest.mark.parametrize("kv_dtype", ["f16", "int8"])
def test_cascade_attention_equals_plain_attention(demo_model: Path, kv_dtype: str) -> None:
    stepper = load_stepper(demo_model, kv_dtype=kv_dtype, rows=ROWS)  # type: ignore[arg-type]
    executor = stepper.executor
    rng = np.random.default_rng(5)
    prefix = rng.integers(17, 49000, PREFIX).tolist()
    shared = list(range(PREFIX // BLOCK))
    executor.execute(plan([prefix], [0], [shared]))
    # Half of the rows continue with one token, half with several, in private blocks.
    parts = [rng.integers(17, 49000, 1 + row % 2 * 7).tolist() for row in range(ROWS)]
    tails = [[100 + row] for row in range(ROWS)]
    together = plan(parts, [PREFIX] * ROWS, [shared + tail for tail in tails])
    copies = [[10 + row * 3 + i for i in shared] for row in range(ROWS)]
    for copy in copies:
        executor.copy_blocks(np.array(shared, np.int32), np.array(copy, np.int32))
    own = [copy + tail for copy, tail in zip(copies, tails, strict=True)]
    apart = replace(together, block_tables=plan(parts, [PREFIX] * ROWS, own).block_tables)
    expected = outcome(executor, apart)
    assert outcome(executor, together) == expected
    executor.close()

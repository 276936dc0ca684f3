"""What becomes of drafts: accepted tokens are kept, the blocks that rejected ones took are given back.

Accepted draft tokens stand where they belong already, in the row's table and in its KV blocks. Their
logprobs do not, and rejected ones may have taken blocks that nobody needs now.
"""

import numpy as np
from numpy.typing import NDArray

from engine.batch.rows import RowTable
from engine.executors.base import StepPlan, StepResult
from engine.memory.block_manager import BlockManager


def record_accepted(table: RowTable, plan: StepPlan, result: StepResult) -> None:
    """Write logprobs and alternatives of accepted draft tokens, where they were asked for."""
    if not table.logprob_rows:
        return
    counts = plan.num_draft_tokens
    place = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = np.flatnonzero(place < np.repeat(result.accepted, counts))
    if not kept.size:
        return
    rows = np.repeat(plan.rows, counts)[kept]
    at = table.num_tokens[rows] + place[kept].astype(np.int32)
    table.logprob_table[rows, at] = result.draft_logprobs[kept]
    if table.top_rows:
        table.top_logprobs.record(
            rows,
            at - table.num_prompt_tokens[rows],
            result.draft_top_ids[kept],
            result.draft_top_logprobs[kept],
        )


def release_unused(table: RowTable, blocks: BlockManager, rows: NDArray[np.int32]) -> None:
    """Give back blocks beyond what the rows have computed: drafts take nothing for longer than a step.

    Args:
        table: the rows' state.
        blocks: who holds which block.
        rows: rows whose drafts were rejected.
    """
    needed = (table.num_computed[rows] + (table.block_size - 1)) // table.block_size
    surplus = table.num_blocks[rows] > needed
    for row, keep in zip(rows[surplus].tolist(), needed[surplus].tolist(), strict=True):
        held = int(table.num_blocks[row])
        unused = table.block_tables[row, keep:held].copy()
        table.block_tables[row, keep:held] = -1
        table.num_blocks[row] = keep
        blocks.release(unused)

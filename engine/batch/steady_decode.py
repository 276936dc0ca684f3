"""`SteadyDecode`: a fixed set of rows that each decode one token per step.

Hot path: nearly all steps of a loaded engine are of this kind, and the executor is idle between two
of them. After a step the CPU caches hold weights, so a numpy call takes about 10 µs instead of 1 µs.
Therefore the plan is built once and updated in place, and tokens are appended in one native call
(`engine._core.SteadyRows`). All state is in the row table: any step may be planned or applied without
this class.
"""

import numpy as np
from numpy.typing import NDArray

from engine._core import SteadyRows
from engine.batch.rows import RowTable
from engine.executors.base import StepPlan

FilledBlocks = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]
"""Rows, and for each the first and past-the-last index of its full, unindexed blocks: [N] int32 each."""


class SteadyDecode:
    """The rows of one plan, valid until a row finishes, is preempted or is admitted.

    Attributes:
        rows: [R] int32, the plan's rows.
    """

    __slots__ = ("advance", "append_blocks", "look_up", "repeats", "rows", "take_drained")

    def __init__(self, table: RowTable, plan: StepPlan) -> None:
        """Continue a plan in which every row computes one token and samples the next.

        Its `token_ids` and `positions` are overwritten by later steps.
        """
        core = SteadyRows(
            plan.rows,
            plan.token_ids,
            plan.positions,
            token_table=table.token_table,
            block_tables=table.block_tables,
            num_tokens=table.num_tokens,
            num_computed=table.num_computed,
            num_blocks=table.num_blocks,
            num_indexed=table.num_indexed,
            max_total=table.max_total,
            stop_ids=table.stop_ids,
            last_token_at=table.last_token_at,
            drained=table.drained,
            block_size=table.block_size,
        )
        self.rows: NDArray[np.int32] = plan.rows
        self.look_up = core.look_up
        self.repeats = core.repeats
        self.append_blocks = core.append_blocks
        self.advance = core.advance
        self.take_drained = core.take_drained

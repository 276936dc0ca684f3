"""`SteadyDecode`: rows of which each decodes one token a step, while nobody comes or goes.

Hot: these are nearly all the steps of a loaded engine, and what lies between two of them is time in
which nothing is computed. A step leaves caches full of weights, so that a numpy call between two
costs ten microseconds and not one. So the rows' plan is made once and brought up to date in place,
and their tokens are appended in one call (`engine._core.SteadyRows`). It keeps no state that the
row table does not have: a step may be planned or applied without it at any time.
"""

import numpy as np
from numpy.typing import NDArray

from engine._core import SteadyRows
from engine.batch.rows import RowTable
from engine.executors.base import StepPlan

FilledBlocks = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]
"""Rows, and the half-open range of each one's blocks that are full and not indexed: [N] int32 each."""


class SteadyDecode:
    """The rows of one plan, for as long as they all run and nobody joins them.

    Attributes:
        rows: [R] int32, the plan's rows.
    """

    __slots__ = ("advance", "append_blocks", "look_up", "repeats", "rows", "take_drained")

    def __init__(self, table: RowTable, plan: StepPlan) -> None:
        """Go on from a plan of which every row computes one token and samples the next.

        Its `token_ids` and `positions` are overwritten from here on.
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

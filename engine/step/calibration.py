"""`Calibration`: dummy steps that give the step-time model its first observations.

They run one at a time while the engine is idle, in free rows and blocks. A step predicted to take
longer than `MAX_PROBE_S` is not run, so that a request that arrives meanwhile waits about that long at
most; on a slow machine the model learns the rest from real steps.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine.api.request import SamplingParams
from engine.batch.rows import RowTable
from engine.batch.sampling_validator import SamplingValidator
from engine.executors.base import Executor, StepPlan
from engine.memory.block_manager import BlockManager
from engine.scheduler.step_time import StepTimeModel, step_load

_log = logging.getLogger(__name__)

MAX_PROBE_S = 0.1


@dataclass(frozen=True, slots=True)
class Probe:
    """A dummy step.

    Attributes:
        rows: number of rows.
        tokens: tokens computed per row; 1 is a decode.
        context: tokens before them in each row.
        observed: whether the step-time model observes it; the first step touches cold memory.
    """

    rows: int
    tokens: int
    context: int = 0
    observed: bool = True


PROBES = (
    Probe(1, 1, 31, observed=False),
    Probe(1, 1, 31),
    Probe(4, 1, 31),
    Probe(1, 32),
    Probe(4, 1, 31),
    Probe(1, 64),
    Probe(1, 1, 31),
    Probe(1, 64),
)


class Calibration:
    """Runs each probe once. Engine's thread only."""

    def __init__(self, probes: tuple[Probe, ...] = PROBES) -> None:
        self._left = list(probes)

    @property
    def pending(self) -> bool:
        """Whether a probe is left."""
        return bool(self._left)

    def step(
        self,
        executor: Executor,
        table: RowTable,
        blocks: BlockManager,
        model: StepTimeModel,
        clock: Callable[[], float],
    ) -> None:
        """Run the next probe; no request may be running. Drops all probes if this one cannot run."""
        probe = self._left.pop(0)
        end = probe.context + probe.tokens
        needed = probe.rows * blocks.blocks_for(end)
        if (
            probe.rows > table.max_rows
            or end >= table.max_model_len
            or needed > blocks.num_unused  # do not evict cached blocks for a probe
        ):
            self._left.clear()
            return
        num_scheduled_tokens = np.full(probe.rows, probe.tokens, np.int32)
        load = step_load(
            num_scheduled_tokens,
            np.full(probe.rows, end, np.int32),
            int(num_scheduled_tokens.sum()),
        )
        expected = model.predict(load)
        if expected is not None and expected > MAX_PROBE_S:
            self._left.clear()
            return
        states = blocks.recurrent
        slots: list[int] = []
        if states is not None:
            borrowed = states.borrow(probe.rows)
            if borrowed is None:
                self._left.clear()
                return
            slots = borrowed
        taken = blocks.allocate(needed)
        try:
            plan = _plan(probe, table, taken.reshape(probe.rows, -1), slots)
            if blocks.windows is not None:
                plan = replace(plan, window_blocks=blocks.windows.of_block)
            began = clock()
            executor.execute(plan)
            if probe.observed:
                model.observe(load, clock() - began)
        except Exception:
            _log.exception("A calibration step failed.")
            self._left.clear()
        finally:
            blocks.discard(taken)
            if states is not None:
                states.give_back(slots)


def _plan(probe: Probe, table: RowTable, taken: NDArray[np.int32], slots: list[int]) -> StepPlan:
    """The plan of a probe, on tables of its own with the shapes of `table`.

    Args:
        probe: the dummy step.
        table: the engine's tables.
        taken: [rows, B] int32, blocks.
        slots: a state slot for each row; empty for a model without recurrent layers.
    """
    end = probe.context + probe.tokens
    rows = np.arange(probe.rows, dtype=np.int32)
    block_tables = np.full_like(table.block_tables, -1)
    block_tables[: probe.rows, : taken.shape[1]] = taken
    sampling = np.zeros_like(table.sampling)
    sampling[:] = SamplingValidator.pack(SamplingParams(temperature=0.0), 0)
    count = probe.rows * probe.tokens
    state_slots = np.full(table.max_rows if slots else 0, -1, np.int32)
    state_slots[: len(slots)] = slots
    return StepPlan(
        rows=rows,
        query_start=np.arange(0, count + 1, probe.tokens, dtype=np.int32),
        token_ids=np.zeros(count, np.int32),
        positions=np.tile(np.arange(probe.context, end, dtype=np.int32), probe.rows),
        needs_logits=np.ones(probe.rows, np.uint8),
        block_tables=block_tables,
        token_table=np.zeros(table.token_table.shape, np.int32),  # never written: takes no memory
        num_tokens=np.full(table.max_rows, end, np.int32),
        penalty_start=np.full(table.max_rows, end, np.int32),
        sampling=sampling,
        bias_rows=np.zeros(0, np.int32),
        bias_ids=np.zeros(0, np.int32),
        bias_values=np.zeros(0, np.float32),
        state_slots=state_slots,
    )

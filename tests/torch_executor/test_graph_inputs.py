"""The inputs of recorded decode steps: what they contain after steps of different sizes."""

from dataclasses import replace

import numpy as np
import torch

from engine.executors.torch.graph_inputs import GraphInputs
from engine.executors.torch.kv_pool import KvPool
from engine.executors.torch.self_check import chunk_plan
from engine.executors.torch.step_layout import build_layout
from engine.models.transformers_spec import KvLayer
from tests.torch_executor.loaded import BLOCK, DEVICE

ROWS, BLOCKS = 6, 5


def decode_plan(generator, rows):
    """A decode step of `rows` rows at random positions."""
    nothing = np.zeros(2, np.int64)
    template = chunk_plan(nothing, nothing, 0, np.zeros((2, 1), np.int32))
    return replace(
        template,
        rows=np.arange(rows, dtype=np.int32),
        query_start=np.arange(rows + 1, dtype=np.int32),
        token_ids=generator.integers(0, 99, rows).astype(np.int32),
        positions=generator.integers(0, BLOCK * BLOCKS, rows).astype(np.int32),
        needs_logits=np.ones(rows, np.uint8),
        block_tables=generator.integers(0, 40, (rows, BLOCKS)).astype(np.int32),
    )


def check(inputs, plan, layout):
    rows, width = layout.block_tables.shape
    assert inputs.ids.tolist() == [*plan.token_ids.tolist(), *[0] * (ROWS - rows)]
    assert inputs.positions.tolist() == [*plan.positions.tolist(), *[0] * (ROWS - rows)]
    assert inputs.slots.tolist() == [*layout.slots.tolist(), *[40 * BLOCK] * (ROWS - rows)]
    assert inputs.context_lens.tolist() == [*layout.context_lens.tolist(), *[1] * (ROWS - rows)]
    assert inputs.tables[:rows, :width].tolist() == layout.block_tables.tolist()
    assert inputs.tables[rows:, 0].tolist() == [40] * (ROWS - rows)


def test_steps_of_changing_sizes_and_tables():
    device = torch.device(DEVICE)
    layers = [KvLayer(1, 4, 4)]
    pool = KvPool(layers, num_blocks=40, block_size=BLOCK, dtype=torch.float32, device=device)
    inputs = GraphInputs(pool, max_rows=ROWS, max_blocks=BLOCKS, device=device)
    addresses = [inputs.ids.data_ptr(), inputs.tables.data_ptr()]
    generator = np.random.default_rng(0)
    for rows in (3, 3, 6, 1, 2, 5, 4, 6):
        plan = decode_plan(generator, rows)
        for _ in range(2):  # the tables of the second step are those of the first
            layout = build_layout(plan, block_size=BLOCK)
            inputs.fill(plan, layout)
            check(inputs, plan, layout)
            plan = replace(plan, token_ids=plan.token_ids + 1)
    assert [inputs.ids.data_ptr(), inputs.tables.data_ptr()] == addresses

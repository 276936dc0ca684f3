"""The native executor's blocks, read out of the pool and written back; and what is refused."""

import numpy as np
import pytest

from engine.errors import ExecutorError
from tests.parity.loading import load_stepper

NUM_BLOCKS = 16


@pytest.fixture(scope="module")
def executor(demo_model):
    loaded = load_stepper(demo_model, kv_dtype="f16", num_blocks=NUM_BLOCKS).executor
    yield loaded
    loaded.close()


def test_blocks_come_back_wherever_they_are_written(executor):
    data = np.random.default_rng(0).integers(0, 256, (3, executor.block_bytes), np.uint8)
    executor.write_blocks(np.array([5, 0, NUM_BLOCKS - 1], np.int32), data)
    out = np.zeros((2, executor.block_bytes), np.uint8)
    executor.read_blocks(np.array([NUM_BLOCKS - 1, 5], np.int32), out)
    assert (out == data[[2, 0]]).all()
    executor.copy_blocks(np.array([0], np.int32), np.array([7], np.int32))
    executor.read_blocks(np.array([7, 5], np.int32), out)
    assert (out == data[[1, 0]]).all()


def test_blocks_outside_the_pool_and_other_shapes_are_refused(executor):
    out = np.zeros((1, executor.block_bytes), np.uint8)
    for call in (executor.read_blocks, executor.write_blocks):
        for block in (-1, NUM_BLOCKS):
            with pytest.raises(ExecutorError, match=f"Block {block} cannot be copied"):
                call(np.array([block], np.int32), out)
        with pytest.raises(ExecutorError, match="2 blocks have"):
            call(np.array([1, 2], np.int32), out)
        with pytest.raises(ExecutorError):
            call(np.array([1], np.int32), out[:, 1:])

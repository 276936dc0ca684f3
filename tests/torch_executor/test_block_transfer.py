"""Blocks read out of the pool and written back, and what is refused."""

import numpy as np
import pytest

from engine.errors import ExecutorError
from tests.fakes.tiny_transformers import save_tiny, tiny_hf_model
from tests.torch_executor.loaded import NUM_BLOCKS, load_torch


@pytest.fixture(scope="module", params=["gpt2", "gemma3"])
def executor(request, tmp_path_factory):
    directory = save_tiny(tmp_path_factory.mktemp(request.param), tiny_hf_model(request.param))
    loaded = load_torch(directory)
    yield loaded
    loaded.close()


def test_blocks_come_back_wherever_they_are_written(executor):
    generator = np.random.default_rng(0)
    data = generator.integers(0, 100, (3, executor.block_bytes), np.uint8)
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
            with pytest.raises(ExecutorError, match="inside the KV pool"):
                call(np.array([block], np.int32), out)
        with pytest.raises(ExecutorError, match="blocks of"):
            call(np.array([1, 2], np.int32), out)
        with pytest.raises(ExecutorError, match="blocks of"):
            call(np.array([1], np.int32), out[:, 1:])

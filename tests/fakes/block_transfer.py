"""Checks of block copies that every executor must pass: out of the pool, into it and within it."""

from collections.abc import Callable

import numpy as np
import pytest

from engine.api.errors import ExecutorError
from engine.executors.base import Executor


def check_round_trip(executor: Executor, num_blocks: int, highest_byte: int = 256) -> None:
    """Bytes below `highest_byte` written to blocks are read back from them and from a copy."""
    generator = np.random.default_rng(0)
    data = generator.integers(0, highest_byte, (3, executor.block_bytes), np.uint8)
    executor.write_blocks(np.array([5, 0, num_blocks - 1], np.int32), data)
    out = np.zeros((2, executor.block_bytes), np.uint8)
    executor.read_blocks(np.array([num_blocks - 1, 5], np.int32), out)
    assert (out == data[[2, 0]]).all()
    executor.copy_blocks(np.array([0], np.int32), np.array([7], np.int32))
    executor.read_blocks(np.array([7, 5], np.int32), out)
    assert (out == data[[1, 0]]).all()


def check_refusals(
    executor: Executor,
    num_blocks: int,
    *,
    outside: Callable[[int], str],
    count: str,
    width: str | None = None,
) -> None:
    """Blocks outside the pool and arrays of other shapes are refused.

    Args:
        executor: the executor under test.
        num_blocks: size of its pool.
        outside: the expected message for a block outside the pool.
        count: the expected message when the numbers of rows and blocks differ.
        width: the expected message for rows that are not a block wide; None accepts any.
    """
    out = np.zeros((1, executor.block_bytes), np.uint8)
    for call in (executor.read_blocks, executor.write_blocks):
        for block in (-1, num_blocks):
            with pytest.raises(ExecutorError, match=outside(block)):
                call(np.array([block], np.int32), out)
        with pytest.raises(ExecutorError, match=count):
            call(np.array([1, 2], np.int32), out)
        with pytest.raises(ExecutorError, match=width):
            call(np.array([1], np.int32), out[:, 1:])

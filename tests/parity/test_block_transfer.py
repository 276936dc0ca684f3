"""Reading and writing KV blocks of the native executor, and rejected arguments."""

import pytest

from tests.fakes.block_transfer import check_refusals, check_round_trip
from tests.parity.loading import load_stepper

NUM_BLOCKS = 16


@pytest.fixture(scope="module")
def executor(demo_model):
    loaded = load_stepper(demo_model, kv_dtype="f16", num_blocks=NUM_BLOCKS).executor
    yield loaded
    loaded.close()


def test_blocks_are_read_back_as_written(executor):
    check_round_trip(executor, NUM_BLOCKS)


def test_blocks_outside_the_pool_and_other_shapes_are_refused(executor):
    check_refusals(
        executor,
        NUM_BLOCKS,
        outside=lambda block: f"Block {block} cannot be copied",
        count="2 blocks have",
    )

"""Reading and writing KV blocks of the torch executor, and rejected arguments."""

import pytest

from tests.fakes.block_transfer import check_refusals, check_round_trip
from tests.fakes.tiny_transformers import save_tiny, tiny_hf_model
from tests.torch_executor.loaded import NUM_BLOCKS, load_torch


@pytest.fixture(scope="module", params=["gpt2", "gemma3"])
def executor(request, tmp_path_factory):
    directory = save_tiny(tmp_path_factory.mktemp(request.param), tiny_hf_model(request.param))
    loaded = load_torch(directory)
    yield loaded
    loaded.close()


def test_blocks_are_read_back_as_written(executor):
    check_round_trip(executor, NUM_BLOCKS, highest_byte=100)


def test_blocks_outside_the_pool_and_other_shapes_are_refused(executor):
    check_refusals(
        executor,
        NUM_BLOCKS,
        outside=lambda block: "inside the KV pool",
        count="must be",
        width="must be",
    )

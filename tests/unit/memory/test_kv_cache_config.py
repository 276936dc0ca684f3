import pytest

from engine.api.errors import ModelError
from engine.memory.kv_cache_config import block_bytes, default_pool_bytes, size_pool
from tests.fakes.toy_executor import toy_spec

GIB = 2**30


def test_bytes_of_a_block():
    # layers × (K and V) × KV heads × head size × bytes × tokens
    assert block_bytes(toy_spec(), block_size=32, kv_dtype="f16") == 2 * 2 * 1 * 4 * 2 * 32
    assert block_bytes(toy_spec(), block_size=32, kv_dtype="f32") == 2 * 2 * 1 * 4 * 4 * 32
    # int8: a scale of four bytes for each key and value
    assert block_bytes(toy_spec(), block_size=32, kv_dtype="int8") == 2 * 2 * 1 * (4 + 4) * 32


@pytest.mark.parametrize(
    ("available", "context_bytes", "expected"),
    [
        (20 * GIB, GIB, 2 * GIB),  # a tenth
        (4 * GIB, GIB, GIB),  # one full context
        (GIB, GIB, GIB // 2),  # never above half
    ],
)
def test_default_pool(available, context_bytes, expected):
    pool = default_pool_bytes(
        available, block_bytes=context_bytes // 64, block_size=32, context_length=64 * 32
    )
    assert pool == expected


def pool(**options):
    defaults = {
        "block_size": 4,
        "kv_dtype": "f16",
        "context_length": 64,
        "requested_bytes": None,
        "available": 10_000_000,
    }
    return size_pool(toy_spec(), **defaults | options)


def test_a_requested_size_is_used():
    cache = pool(requested_bytes=10_000)
    assert cache.num_blocks == 10_000 // cache.block_bytes
    assert cache.pool_bytes <= 10_000
    assert cache.capacity_tokens == cache.num_blocks * 4


def test_a_pool_below_one_block_is_refused():
    with pytest.raises(ModelError, match="kv_cache_bytes"):
        pool(requested_bytes=100)
    with pytest.raises(ModelError, match="KV cache"):
        pool(available=100)

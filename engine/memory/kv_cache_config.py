"""`KVCacheConfig`: the geometry of the KV pool, in bytes, blocks and tokens. It holds no memory.

The executor owns the storage; the block manager tracks which request holds which block.
"""

from dataclasses import dataclass
from typing import Protocol

from engine.api.config import KvDtype
from engine.api.errors import ModelError

_KV_ELEMENT_BYTES: dict[KvDtype, int] = {"f16": 2, "bf16": 2, "f32": 4, "int8": 1}
_KV_SCALE_BYTES: dict[KvDtype, int] = {"int8": 4}

POOL_SHARE = 0.10
"""Default pool size as a fraction of free memory."""

POOL_SHARE_LIMIT = 0.50
"""Upper bound of the default pool, as a fraction of free memory, whatever the context length."""


class KvGeometry(Protocol):
    """The fields of a model's spec that determine the size of its KV cache."""

    @property
    def kv_elements_per_token(self) -> int:
        """Key and value elements per token, summed over all layers."""
        ...

    @property
    def kv_vectors_per_token(self) -> int:
        """Key and value vectors per token, summed over all layers and KV heads."""
        ...


@dataclass(frozen=True, slots=True)
class KVCacheConfig:
    """Geometry of a pool of `num_blocks` blocks.

    Attributes:
        block_size: tokens per block.
        block_bytes: bytes per block: keys, values and scales of all layers.
        num_blocks: blocks in the pool.
    """

    block_size: int
    block_bytes: int
    num_blocks: int

    @property
    def pool_bytes(self) -> int:
        """Size of the pool in bytes."""
        return self.num_blocks * self.block_bytes

    @property
    def capacity_tokens(self) -> int:
        """Tokens the pool holds when every block is full."""
        return self.num_blocks * self.block_size

    def blocks_for(self, tokens: int) -> int:
        """Number of blocks for `tokens` tokens of one sequence."""
        return -(-tokens // self.block_size)


def block_bytes(spec: KvGeometry, *, block_size: int, kv_dtype: KvDtype) -> int:
    """Bytes of one block: elements, and one scale per vector if the type is quantised.

    Args:
        spec: the model's shapes.
        block_size: tokens per block.
        kv_dtype: element type; not `auto`.
    """
    elements = spec.kv_elements_per_token * _KV_ELEMENT_BYTES[kv_dtype]
    scales = spec.kv_vectors_per_token * _KV_SCALE_BYTES.get(kv_dtype, 0)
    return (elements + scales) * block_size


def default_pool_bytes(
    available: int, *, block_bytes: int, block_size: int, context_length: int
) -> int:
    """The default size of the pool in bytes.

    A tenth of free memory, or one full context if that is more, but at most half of free memory.

    Args:
        available: free bytes left once the weights are loaded.
        block_bytes: bytes per block.
        block_size: tokens per block.
        context_length: tokens of one full context.
    """
    one_context = -(-context_length // block_size) * block_bytes
    wanted = max(int(available * POOL_SHARE), one_context)
    return min(wanted, int(available * POOL_SHARE_LIMIT))


def size_pool(
    spec: KvGeometry,
    *,
    block_size: int,
    kv_dtype: KvDtype,
    context_length: int,
    requested_bytes: int | None,
    available: int,
) -> KVCacheConfig:
    """Compute the pool's geometry for a model.

    Args:
        spec: the model's shapes.
        block_size: tokens per block.
        kv_dtype: element type of keys and values; not `auto`.
        context_length: tokens of one full context.
        requested_bytes: the user's pool size; None for the default size.
        available: free bytes left once the weights are loaded.

    Raises:
        ModelError: the pool is smaller than one block.
    """
    size = block_bytes(spec, block_size=block_size, kv_dtype=kv_dtype)
    if requested_bytes is None:
        pool = default_pool_bytes(
            available, block_bytes=size, block_size=block_size, context_length=context_length
        )
    else:
        pool = requested_bytes
    if pool < size:
        raise ModelError(
            f"The KV cache would get {pool:,} bytes, but one block of {block_size} tokens of this "
            f"model takes {size:,}: free memory or ask for a larger kv_cache_bytes."
        )
    return KVCacheConfig(block_size=block_size, block_bytes=size, num_blocks=pool // size)

"""`KVCacheConfig`: the geometry of the KV pool, in bytes, blocks and tokens. It holds no memory.

The executor owns the storage; which request holds which block is the block manager's business.
"""

from dataclasses import dataclass
from typing import Protocol

from engine.api.config import KvDtype
from engine.api.errors import ModelError

_KV_ELEMENT_BYTES: dict[KvDtype, int] = {"f16": 2, "bf16": 2, "f32": 4, "int8": 1}
_KV_SCALE_BYTES: dict[KvDtype, int] = {"int8": 4}

POOL_SHARE = 0.10
"""Share of free memory the pool takes when nobody says otherwise."""

POOL_SHARE_LIMIT = 0.50
"""The default pool never takes more than this share of free memory, whatever the context asks."""


class KvGeometry(Protocol):
    """What of a model's spec sizes its KV cache."""

    @property
    def kv_elements_per_token(self) -> int:
        """Numbers kept for one token, in all layers."""
        ...

    @property
    def kv_vectors_per_token(self) -> int:
        """Keys and values kept for one token, in all layers and heads."""
        ...


@dataclass(frozen=True, slots=True)
class KVCacheConfig:
    """A pool of `num_blocks` blocks.

    Attributes:
        block_size: tokens in a block.
        block_bytes: keys and values of one block in every layer.
        num_blocks: blocks in the pool.
    """

    block_size: int
    block_bytes: int
    num_blocks: int

    @property
    def pool_bytes(self) -> int:
        """Size of the whole pool."""
        return self.num_blocks * self.block_bytes

    @property
    def capacity_tokens(self) -> int:
        """Tokens the pool holds when every block is full."""
        return self.num_blocks * self.block_size

    def blocks_for(self, tokens: int) -> int:
        """Blocks that hold `tokens` tokens of one sequence."""
        return -(-tokens // self.block_size)


def block_bytes(spec: KvGeometry, *, block_size: int, kv_dtype: KvDtype) -> int:
    """Bytes of one block: its tokens' numbers, and their scales if it has any.

    Args:
        spec: the model's shapes.
        block_size: tokens in a block.
        kv_dtype: element type; not `auto`.
    """
    elements = spec.kv_elements_per_token * _KV_ELEMENT_BYTES[kv_dtype]
    scales = spec.kv_vectors_per_token * _KV_SCALE_BYTES.get(kv_dtype, 0)
    return (elements + scales) * block_size


def default_pool_bytes(
    available: int, *, block_bytes: int, block_size: int, context_length: int
) -> int:
    """The pool's size when the user names none.

    A tenth of free memory, or one full context if that is more, but never above half of free
    memory.

    Args:
        available: free bytes left once the weights are loaded.
        block_bytes: size of one block.
        block_size: tokens in a block.
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
    """Decide the pool for a model.

    Args:
        spec: the model's shapes.
        block_size: tokens in a block.
        kv_dtype: element type of keys and values; not `auto`.
        context_length: tokens of one full context.
        requested_bytes: the user's size, obeyed if at least one block fits; None for the default.
        available: free bytes left once the weights are loaded.

    Raises:
        ModelError: not even one block fits.
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

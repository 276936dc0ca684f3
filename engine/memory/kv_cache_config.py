"""`KVCacheConfig`: the geometry of the KV pool, in bytes, blocks and tokens. It holds no memory.

The executor owns the storage; the block manager tracks which request holds which block.
"""

from dataclasses import dataclass

from engine.api.errors import ModelDoesNotFit, ModelError
from engine.executors.memory_plan import MemoryPlan

POOL_SHARE = 0.10
"""Default pool size as a fraction of free memory."""

POOL_SHARE_LIMIT = 0.50
"""Upper bound of the default pool, as a fraction of free memory, whatever the context length."""


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


def default_pool_bytes(
    available: int, *, block_bytes: int, block_size: int, context_length: int
) -> int:
    """The default size of the pool in bytes.

    A tenth of free memory, or one full context if that is more, but at most half of free memory; at least
    one block.

    Args:
        available: free bytes left once the weights are loaded.
        block_bytes: bytes per block.
        block_size: tokens per block.
        context_length: tokens of one full context.
    """
    one_context = -(-context_length // block_size) * block_bytes
    wanted = max(int(available * POOL_SHARE), one_context)
    return max(min(wanted, int(available * POOL_SHARE_LIMIT)), block_bytes)


def size_pool(
    plan: MemoryPlan,
    *,
    model: str,
    block_size: int,
    context_length: int,
    requested_bytes: int | None,
    available: int | None,
    can_quantize: bool,
    limit: int | None = None,
) -> KVCacheConfig:
    """Compute the pool's geometry for a model, and check that the model and its pool fit in memory.

    Args:
        plan: memory of the weights, the work buffers and a block.
        model: the model's name.
        block_size: tokens per block.
        context_length: tokens of one full context.
        requested_bytes: the user's pool size; None for the default size.
        available: free bytes before anything is loaded; None if unknown.
        can_quantize: whether the weights are floats that `--weights` would quantize.
        limit: most bytes of model and pool together; the pool takes what the model leaves of them, unless
            its size was requested. None for no such limit.

    Raises:
        ModelDoesNotFit: model and pool do not fit.
        ModelError: the pool is smaller than one block, or neither the pool's size nor free memory is
            known.
    """
    loaded = plan.weight_bytes + plan.work_bytes
    least = max(requested_bytes or 0, plan.block_bytes)
    if limit is not None and loaded + least > limit:
        raise ModelDoesNotFit(
            f"{model} does not fit in its share of memory: it takes {_mib(loaded)} for weights and work "
            f"buffers and at least {_mib(least)} for the KV pool, but its share is {_mib(limit)}: raise "
            "the share."
        )
    if requested_bytes is not None:
        pool = requested_bytes
    elif limit is not None:
        pool = limit - loaded
    elif available is None:
        raise ModelError("Free memory is unknown, so the KV cache needs a size: set --kv-cache.")
    else:
        pool = default_pool_bytes(
            max(0, available - loaded),
            block_bytes=plan.block_bytes,
            block_size=block_size,
            context_length=context_length,
        )
    if pool < plan.block_bytes:
        raise ModelError(
            f"The KV cache would get {pool:,} bytes, but one block of {block_size} tokens of "
            f"{model} takes {plan.block_bytes:,}: ask for more with --kv-cache."
        )
    cache = KVCacheConfig(block_size, plan.block_bytes, num_blocks=pool // plan.block_bytes)
    if available is not None and loaded + cache.pool_bytes > available:
        if loaded + plan.block_bytes <= available:  # then the pool or the share was requested
            setting = "--kv-cache" if limit is None or requested_bytes is not None else "its share"
            advice = f"lower {setting} or free memory"
        elif can_quantize:
            advice = (
                "free memory, quantize its weights (--weights q8 or q4), or choose a smaller model"
            )
        else:
            advice = "free memory, or choose a smaller or more strongly quantized model"
        raise ModelDoesNotFit(
            f"{model} does not fit in memory: it takes {_mib(plan.weight_bytes)} for its weights, "
            f"{_mib(plan.work_bytes)} for work buffers and {_mib(cache.pool_bytes)} for the KV pool, "
            f"but {_mib(available)} are available, {_mib(loaded + cache.pool_bytes - available)} too "
            f"little: {advice}."
        )
    return cache


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"

"""`KVCacheConfig`: the geometry of the KV pool, in bytes, blocks and tokens. It holds no memory.

For a model with recurrent layers the pool's bytes are divided between blocks and state slots. The executor
owns the storage; the block manager tracks which request holds which block.
"""

from dataclasses import dataclass

from engine.api.config import DEFAULT_STATE_INTERVAL
from engine.api.errors import ModelDoesNotFit, ModelError
from engine.executors.memory_plan import MemoryPlan

POOL_SHARE = 0.10
"""Default pool size as a fraction of free memory."""

POOL_SHARE_LIMIT = 0.50
"""Upper bound of the default pool, as a fraction of free memory, whatever the context length."""

STATE_SHARE = 0.5
"""Most of the pool's bytes that are state slots, unless their number is set. Of Qwen3.5's shapes the state
takes as much as the KV of 3,000 tokens, so a conversation with a checkpoint in every 1,024 needs more for
states than for KV; they are what is dropped first, because they can be computed again."""

EXPERTS_SHARE = 0.75
"""Of what a model larger than memory leaves beside the weights that have to stay there, the part that is kept
for the experts that were used last; a default pool takes its size from the rest."""

MIN_STATE_SLOTS = 2
"""One for a running request, and one for a checkpoint."""

DEFAULT_STATE_SLOTS = 32
"""State slots for which a default pool has room: 24 running requests and eight checkpoints. A pool for one
context alone would hold the states of a few requests only, and the others would wait."""


@dataclass(frozen=True, slots=True)
class KVCacheConfig:
    """Geometry of a pool of `num_blocks` blocks.

    Attributes:
        block_size: tokens per block.
        block_bytes: bytes per block: keys, values and scales of all layers.
        num_blocks: blocks in the pool.
        state_bytes: bytes of a state slot; 0 for a model without recurrent layers.
        num_state_slots: state slots in the pool.
    """

    block_size: int
    block_bytes: int
    num_blocks: int
    state_bytes: int = 0
    num_state_slots: int = 0

    @property
    def pool_bytes(self) -> int:
        """Size of the pool in bytes, state slots included."""
        return self.num_blocks * self.block_bytes + self.num_state_slots * self.state_bytes

    @property
    def capacity_tokens(self) -> int:
        """Tokens the pool holds when every block is full."""
        return self.num_blocks * self.block_size

    def blocks_for(self, tokens: int) -> int:
        """Number of blocks for `tokens` tokens of one sequence."""
        return -(-tokens // self.block_size)


def default_pool_bytes(
    available: int,
    *,
    block_bytes: int,
    block_size: int,
    context_length: int,
    state_bytes: int = 0,
) -> int:
    """The default size of the pool in bytes.

    A tenth of free memory, or one full context if that is more, with `DEFAULT_STATE_SLOTS` recurrent states,
    but at most half of free memory; at least one block and the fewest states.

    Args:
        available: free bytes left once the weights are loaded.
        block_bytes: bytes per block.
        block_size: tokens per block.
        context_length: tokens of one full context.
        state_bytes: bytes of a state slot.
    """
    one_context = -(-context_length // block_size) * block_bytes
    states = DEFAULT_STATE_SLOTS * state_bytes
    wanted = max(int(available * POOL_SHARE), one_context + states, int(states / STATE_SHARE))
    least = block_bytes + MIN_STATE_SLOTS * state_bytes
    return max(min(wanted, int(available * POOL_SHARE_LIMIT)), least)


def fits_whole(
    plan: MemoryPlan, cache: KVCacheConfig, *, available: int | None, limit: int | None
) -> bool:
    """Whether model and pool fit in memory with all experts.

    Args:
        plan: memory of the model.
        cache: its pool.
        available: free bytes before anything is loaded; None if unknown.
        limit: most bytes of model and pool together; None for no such limit.
    """
    whole = plan.weight_bytes + plan.work_bytes + cache.pool_bytes
    return all(bound is None or whole <= bound for bound in (available, limit))


def choose_state_slots(
    pool: int, plan: MemoryPlan, *, block_size: int, max_rows: int, interval: int
) -> int:
    """The default number of state slots in a pool of so many bytes; 0 for a model without recurrent layers.

    Two for each row and one for every `interval` tokens that the pool's blocks would hold, if that is less
    than `STATE_SHARE` of the pool.
    """
    if not plan.state_bytes:
        return 0
    tokens = pool // plan.block_bytes * block_size
    wanted = 2 * max_rows + tokens // interval
    slots = max(MIN_STATE_SLOTS, min(wanted, int(pool * STATE_SHARE) // plan.state_bytes))
    return min(slots, (pool - plan.block_bytes) // plan.state_bytes)


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
    max_rows: int = 1,
    state_slots: int | None = None,
    state_interval: int = DEFAULT_STATE_INTERVAL,
) -> KVCacheConfig:
    """Compute the pool's geometry for a model, and check that the model and its pool fit in memory.

    Of a model with experts only what has to stay in memory must fit (`MemoryPlan.resident_bytes`); the pool
    leaves room for all experts, or for the largest part of them.

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
        max_rows: rows of a step; they and what follows determine the state slots of a model with recurrent
            layers.
        state_slots: the user's number of state slots; None for the default number.
        state_interval: tokens between checkpoints.

    Raises:
        ModelDoesNotFit: model and pool do not fit.
        ModelError: the pool is smaller than one block, or neither the pool's size nor free memory is
            known.
    """
    loaded = plan.resident_bytes + plan.work_bytes
    states = plan.state_bytes * (state_slots or MIN_STATE_SLOTS)
    smallest = plan.block_bytes + states
    least = max(requested_bytes or 0, smallest)
    if limit is not None and loaded + least > limit:
        raise ModelDoesNotFit(
            f"{model} does not fit in its share of memory: it takes {_mib(loaded)} for {_weights(plan)} and "
            f"work buffers and at least {_mib(least)} for the KV pool, but its share is {_mib(limit)}: raise "
            f"the share{_or_cache(plan)}."
        )
    if requested_bytes is not None:
        pool = requested_bytes
    elif limit is not None:
        pool = max(smallest, _left(plan, limit))
    elif available is None:
        raise ModelError("Free memory is unknown, so the KV cache needs a size: set --kv-cache.")
    else:
        pool = default_pool_bytes(
            max(0, _left(plan, available)),
            block_bytes=plan.block_bytes,
            block_size=block_size,
            context_length=context_length,
            state_bytes=plan.state_bytes,
        )
    if states and pool < smallest:
        raise ModelError(
            f"The KV cache would get {pool:,} bytes, but one block of {block_size} tokens and "
            f"{states // plan.state_bytes} recurrent states of {model} take {smallest:,}: ask for more "
            "with --kv-cache."
        )
    if pool < smallest:
        raise ModelError(
            f"The KV cache would get {pool:,} bytes, but one block of {block_size} tokens of "
            f"{model} takes {plan.block_bytes:,}: ask for more with --kv-cache."
        )
    slots = state_slots or choose_state_slots(
        pool, plan, block_size=block_size, max_rows=max_rows, interval=state_interval
    )
    cache = KVCacheConfig(
        block_size,
        plan.block_bytes,
        num_blocks=(pool - slots * plan.state_bytes) // plan.block_bytes,
        state_bytes=plan.state_bytes,
        num_state_slots=slots if plan.state_bytes else 0,
    )
    if available is not None and loaded + cache.pool_bytes > available:
        if loaded + smallest <= available:  # then the pool or the share was requested
            setting = "--kv-cache" if limit is None or requested_bytes is not None else "its share"
            advice = f"lower {setting} or free memory"
        elif can_quantize:
            advice = (
                "free memory, quantize its weights (--weights q8 or q4), or choose a smaller model"
            )
        else:
            advice = "free memory, or choose a smaller or more strongly quantized model"
        raise ModelDoesNotFit(
            f"{model} does not fit in memory: it takes {_mib(plan.resident_bytes)} for its {_weights(plan)}, "
            f"{_mib(plan.work_bytes)} for work buffers and {_mib(cache.pool_bytes)} for the KV pool, "
            f"but {_mib(available)} are available, {_mib(loaded + cache.pool_bytes - available)} too "
            f"little: {advice}{_or_cache(plan)}."
        )
    return cache


def _left(plan: MemoryPlan, memory: int) -> int:
    """What a model leaves of `memory` bytes for its pool, and for its experts if not all of them fit."""
    beside_all = memory - plan.weight_bytes - plan.work_bytes
    if plan.resident_bytes == plan.weight_bytes:
        return beside_all
    beside_resident = memory - plan.resident_bytes - plan.work_bytes
    return max(beside_all, int((1 - EXPERTS_SHARE) * beside_resident))


def _weights(plan: MemoryPlan) -> str:
    """What `resident_bytes` are."""
    if plan.resident_bytes == plan.weight_bytes:
        return "weights"
    return "weights without the experts that a token does not use"


def _or_cache(plan: MemoryPlan) -> str:
    """How experts could be read from disk, if they cannot: a further advice."""
    return plan.shortage and f"; its experts could be read from disk, but {plan.shortage}"


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"

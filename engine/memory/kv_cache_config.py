"""`KVCacheConfig`: the geometry of the KV pool, in bytes, blocks and tokens. It holds no memory.

For a model with recurrent layers the pool's bytes are divided between blocks and state slots; for one with
sliding windows, between the blocks of layers that keep every token and window blocks of those that do not.
The executor owns the storage; the block manager tracks which request holds which block.
"""

from dataclasses import dataclass

from engine._core import ATTENTION_CHUNK
from engine.api.config import DEFAULT_STATE_INTERVAL
from engine.api.errors import ModelDoesNotFit, ModelError
from engine.executors.memory_plan import MemoryPlan
from engine.memory.window_size import blocks_of_window

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


WINDOW_SHARE = 0.6
"""Window blocks of a pool as a share of the blocks that it would have if all layers kept every token: so much
of the tokens of short contexts still fits, and several times those of long ones."""

DEFAULT_WINDOWS = 8
"""Whole windows for which a default pool has room beside one full context."""


@dataclass(frozen=True, slots=True)
class KVCacheConfig:
    """Geometry of a pool of `num_blocks` blocks.

    Attributes:
        block_size: tokens per block.
        block_bytes: bytes per block: keys, values and scales of all layers, without those that have window
            blocks.
        num_blocks: blocks in the pool.
        state_bytes: bytes of a state slot; 0 for a model without recurrent layers.
        num_state_slots: state slots in the pool.
        window_block_bytes: bytes of a window block: the layers that keep a window only.
        num_window_blocks: window blocks in the pool; 0 if all layers keep every token.
    """

    block_size: int
    block_bytes: int
    num_blocks: int
    state_bytes: int = 0
    num_state_slots: int = 0
    window_block_bytes: int = 0
    num_window_blocks: int = 0

    @property
    def pool_bytes(self) -> int:
        """Size of the pool in bytes, state slots and window blocks included."""
        return (
            self.num_blocks * self.block_bytes
            + self.num_state_slots * self.state_bytes
            + self.num_window_blocks * self.window_block_bytes
        )

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
    window_bytes: int = 0,
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
        window_bytes: bytes of the window blocks beside one full context.
    """
    one_context = -(-context_length // block_size) * block_bytes + window_bytes
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


def choose_window_blocks(
    pool: int,
    plan: MemoryPlan,
    *,
    block_size: int,
    context_length: int,
    max_rows: int,
    interval: int,
    token_budget: int,
) -> int:
    """The default number of window blocks in a pool of so many bytes; 0 if all layers keep every token.

    Those of a window for each row and for every `interval` tokens that the pool would hold with them, but at
    most `WINDOW_SHARE` of the blocks that the pool would have undivided, or half of that if one full context
    of the other layers needs the rest. At least `least_window_blocks`, and so many that the windows of full
    contexts do not run short before their blocks. A pool that would get no more blocks is not divided.
    """
    if not plan.window_block_bytes:
        return 0
    window, context = _window_blocks(plan, block_size), -(-context_length // block_size)
    other_bytes = plan.block_bytes - plan.window_block_bytes
    undivided = pool // plan.block_bytes
    share = int(undivided * WINDOW_SHARE)
    wanted = max_rows * (window + 1) + undivided * block_size // interval * window
    beside_context = (pool - context * other_bytes) // plan.window_block_bytes
    most = min(wanted, share, max(share // 2, beside_context))
    of_contexts = plan.window_block_bytes + other_bytes * context // (window + 1)
    least = least_window_blocks(plan, block_size=block_size, token_budget=token_budget)
    count = max(least, pool // of_contexts, most)
    return count if count < undivided else 0


def least_window_blocks(plan: MemoryPlan, *, block_size: int, token_budget: int) -> int:
    """Window blocks that one request needs, with the largest step, beside a kept window."""
    return 2 * _window_blocks(plan, block_size) + 2 - (-token_budget // block_size)


def _window_blocks(plan: MemoryPlan, block_size: int) -> int:
    return blocks_of_window(plan.window, chunk=ATTENTION_CHUNK, block_size=block_size)


def _default_window_bytes(
    plan: MemoryPlan, *, block_size: int, context_length: int, token_budget: int
) -> int:
    """Bytes of the window blocks beside one full context in a default pool."""
    if not plan.window_block_bytes:
        return 0
    wanted = DEFAULT_WINDOWS * (_window_blocks(plan, block_size) + 2)
    wanted -= -token_budget // block_size
    return min(wanted, -(-context_length // block_size)) * plan.window_block_bytes


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
    token_budget: int = 1,
    window_blocks: int | None = None,
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
        state_interval: tokens between checkpoints, or between kept windows.
        token_budget: tokens of a step.
        window_blocks: the user's number of window blocks, raised to `least_window_blocks`; with 0 all layers
            keep every token, and with None it is chosen.

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
            block_bytes=plan.block_bytes - (0 if window_blocks == 0 else plan.window_block_bytes),
            block_size=block_size,
            context_length=context_length,
            state_bytes=plan.state_bytes,
            window_bytes=0
            if window_blocks == 0
            else _default_window_bytes(
                plan,
                block_size=block_size,
                context_length=context_length,
                token_budget=token_budget,
            ),
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
    if window_blocks and plan.window_block_bytes:
        windows = max(
            window_blocks,
            least_window_blocks(plan, block_size=block_size, token_budget=token_budget),
        )
    elif window_blocks == 0:
        windows = 0
    else:
        windows = choose_window_blocks(
            pool,
            plan,
            block_size=block_size,
            context_length=context_length,
            max_rows=max_rows,
            interval=state_interval,
            token_budget=token_budget,
        )
    window_block_bytes = plan.window_block_bytes if windows else 0
    block_bytes = plan.block_bytes - window_block_bytes
    rest = pool - slots * plan.state_bytes - windows * window_block_bytes
    cache = KVCacheConfig(
        block_size,
        block_bytes,
        num_blocks=rest // block_bytes,
        state_bytes=plan.state_bytes,
        num_state_slots=slots if plan.state_bytes else 0,
        window_block_bytes=window_block_bytes,
        num_window_blocks=windows,
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

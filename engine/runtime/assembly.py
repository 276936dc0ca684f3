"""Builds the KV pool and the pipeline of an opened model.

In two stages, because weights take long to load: once the pool and the pipeline exist, requests can
be queued, priced and aborted; once the executor and the swap tier are installed, they can run.
"""

from collections.abc import Callable
from dataclasses import dataclass

from engine._core import ATTENTION_CHUNK
from engine.api.config import EngineConfig
from engine.api.errors import ModelError
from engine.api.events import EventBus
from engine.api.request import MAX_STOP_TOKEN_IDS
from engine.api.scheduling import Scheduling
from engine.batch.request_queue import RequestQueue
from engine.batch.rows import DEFAULT_STOP_IDS, RowTable
from engine.executors.base import Executor, StateKeeper, WindowKeeper
from engine.executors.draft_model import DraftModel
from engine.memory.allocator import Allocator
from engine.memory.block_manager import BlockManager
from engine.memory.kv_identity import kv_salt
from engine.memory.prefix_cache import PrefixCache, PrefixIndex
from engine.memory.recurrent_states import RecurrentStates
from engine.memory.sliding_windows import SlidingWindows
from engine.memory.swap_opening import open_state_store, open_swap_tier
from engine.observability.counters import EngineCounters
from engine.runtime.draft_headers import DraftHeaders
from engine.runtime.loading import Opened
from engine.scheduler.model_drafts import ModelDrafts
from engine.step.pipeline import Pipeline

PoolFactory = Callable[[int, int], tuple[Allocator, PrefixIndex | None]]
"""Makes the block allocator and the index of its blocks from (number of blocks, block size)."""


def rust_pool(num_blocks: int, block_size: int) -> tuple[Allocator, PrefixIndex | None]:
    """The default pool factory: the allocator and prefix trie of `engine._core`."""
    from engine._core import BlockAllocator, PrefixTrie

    allocator = BlockAllocator(num_blocks, block_size)
    return allocator, PrefixTrie(allocator)


@dataclass(frozen=True, slots=True)
class Pool:
    """The KV pool of an opened model; the executor is loaded later.

    Attributes:
        blocks: the block manager.
        index: the prefix index of the blocks; None when prefix caching is off.
        salt: hash of everything except the tokens that determines KV bytes; empty without an index.
    """

    blocks: BlockManager
    index: PrefixIndex | None
    salt: bytes


def build_pool(config: EngineConfig, opened: Opened, factory: PoolFactory) -> Pool:
    """Build the pool with the geometry chosen when the model was opened."""
    cache = opened.kv_cache
    allocator, index = factory(cache.num_blocks, cache.block_size)
    prefixes, salt = None, b""
    if not config.prefix_caching:
        index = None
    if index is not None:
        salt = kv_salt(opened.model, config)
        prefixes = PrefixCache(index, salt, block_size=cache.block_size)
    blocks = BlockManager(
        allocator,
        block_size=cache.block_size,
        block_bytes=cache.block_bytes,
        prefixes=prefixes,
    )
    if cache.num_state_slots:
        blocks.recurrent = RecurrentStates(
            num_slots=cache.num_state_slots,
            max_rows=config.max_num_seqs,
            allocator=allocator,
            block_size=cache.block_size,
            interval=config.state_interval,
            state_bytes=cache.state_bytes,
            control_ids=opened.model.tokenizer.special_ids,
            keeps_checkpoints=prefixes is not None,
        )
    if cache.num_window_blocks:
        blocks.windows = SlidingWindows(
            num_blocks=cache.num_window_blocks,
            window=opened.memory.window,
            chunk=ATTENTION_CHUNK,
            max_rows=config.max_num_seqs,
            token_budget=config.max_num_batched_tokens,
            allocator=allocator,
            block_size=cache.block_size,
            interval=config.state_interval,
            block_bytes=cache.window_block_bytes,
            control_ids=opened.model.tokenizer.special_ids,
            keeps_checkpoints=prefixes is not None,
        )
        if prefixes is not None:
            prefixes.windows = blocks.windows
    return Pool(blocks, index, salt)


def build_pipeline(
    config: EngineConfig,
    opened: Opened,
    pool: Pool,
    waiting: RequestQueue,
    *,
    scheduling: Scheduling,
    counters: EngineCounters,
    events: EventBus,
    clock: Callable[[], float],
) -> Pipeline:
    """Build the model's pipeline, without an executor.

    Args:
        config: number of rows, token budget per step, whether to speculate.
        opened: the model.
        pool: its KV blocks.
        waiting: the request queue.
        scheduling: the initial policy and batch former.
        counters: counts requests, tokens and steps.
        events: publishes events.
        clock: monotonic seconds.
    """
    eos_ids = opened.model.tokenizer.eos_ids
    table = RowTable(
        max_rows=config.max_num_seqs,
        max_model_len=opened.max_model_len,
        block_size=opened.kv_cache.block_size,
        max_stop_ids=max(DEFAULT_STOP_IDS, MAX_STOP_TOKEN_IDS + len(eos_ids)),
    )
    return Pipeline(
        table,
        pool.blocks,
        waiting,
        token_budget=config.max_num_batched_tokens,
        scheduling=scheduling,
        speculation=_speculates(config, opened),
        max_hold_s=config.max_hold_s,
        counters=counters,
        events=events,
        clock=clock,
    )


def _speculates(config: EngineConfig, opened: Opened) -> bool:
    """Whether the pipeline speculates; by default not where a step with drafts may take longer than it saves.

    These are steps without CUDA graphs where others are replayed as such, and steps that copy the states of
    recurrent layers.
    """
    if config.speculation is None:
        return not opened.model.uses_graphs and not opened.memory.state_bytes
    return config.speculation


def install_draft_model(
    executor: Executor, pipeline: Pipeline, draft: DraftHeaders, config: EngineConfig
) -> None:
    """Let the pipeline draft with a loaded draft model.

    Raises:
        ExecutorError: the draft model does not work.
    """
    model = DraftModel(
        executor,
        name=draft.model.name,
        max_len=draft.max_len,
        block_size=draft.config.block_size,
    )
    model.warm_up()
    pipeline.scheduler.model_drafts = ModelDrafts(
        pipeline.table, model, token_budget=config.max_num_batched_tokens
    )


def install(executor: Executor, pipeline: Pipeline, pool: Pool, config: EngineConfig) -> None:
    """Set the pipeline's executor and open the swap tier of its pool.

    Raises:
        ModelError: the model has recurrent layers, or window blocks, which the executor does not support.
    """
    if pool.blocks.windows is not None:
        if not isinstance(executor, WindowKeeper):
            raise ModelError("The executor does not keep the windows of layers apart.")
        pool.blocks.windows.keeper = executor
    if pool.blocks.recurrent is not None:
        if not isinstance(executor, StateKeeper):
            raise ModelError("The executor does not keep the state of recurrent layers.")
        pool.blocks.recurrent.keeper = executor
    pipeline.executor = executor
    open_tier(executor, pool, config)


def open_tier(executor: Executor, pool: Pool, config: EngineConfig) -> None:
    """Open the swap tier of a pool, unless it is open."""
    blocks = pool.blocks
    if pool.index is not None and blocks.tier is None:
        blocks.tier = open_swap_tier(config, salt=pool.salt, index=pool.index, executor=executor)
        kept = blocks.recurrent or blocks.windows
        if blocks.tier is not None and kept is not None:
            store = open_state_store(config, kept.state_bytes, salt=pool.salt, executor=executor)
            if store is not None:
                kept.save_in(store)

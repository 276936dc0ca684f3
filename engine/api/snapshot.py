"""`EngineSnapshot`: the engine's state at a step boundary, which the screen draws and `/metrics` exports.

Snapshots are frozen and published by a single reference assignment, so readers need no lock and see a
consistent state. The cost of building one does not depend on the batch size.
"""

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

import numpy as np
from numpy.typing import NDArray

from engine.api.generation_defaults import GenerationDefaults
from engine.api.scheduling import Scheduling
from engine.api.step_costs import StepCosts


class EngineState(StrEnum):
    """Lifecycle of an engine: loading → ready → draining → stopped, or failed from any state.

    A change of the model goes ready → draining → loading → ready. If loading fails, at the start or at a
    change, the state is unloaded: another model can be loaded.
    """

    LOADING = "loading"
    READY = "ready"
    DRAINING = "draining"
    UNLOADED = "unloaded"
    STOPPED = "stopped"
    FAILED = "failed"


class BlockState(IntEnum):
    """State of one KV block; the values of `BlockMap.state`."""

    FREE = 0
    ACTIVE = 1
    CACHED = 2
    SWAPPED = 3


SMALL_MODEL_PARAMETERS = 1_000_000_000
"""Parameters below which a model may not end an answer by itself, and drifts from the passages that it was
given in its second paragraph."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The loaded model, as shown to people and returned by `/v1/models`.

    `sees_images`: whether requests may have images. `draft_model`: the name of its draft model, if it has
    one. `digest`: identifies the contents of its files on every machine (`engine.models.content_digest`);
    empty if it has none. `continues_text`: whether it has no chat template and knows no turns, so that chats
    are texts that it continues. `active_parameters`, `active_bytes`: the weights that a token uses, which are
    all but the experts that it does not choose; None for a model without experts.
    """

    name: str
    architecture: str
    parameters: int
    weight_format: str
    kv_dtype: str
    context_length: int
    vocab_size: int
    weight_bytes: int
    executor: str
    dispatch: str
    threads: int
    generation_defaults: GenerationDefaults = field(default_factory=GenerationDefaults)
    sees_images: bool = False
    draft_model: str | None = None
    digest: str = ""
    continues_text: bool = False
    active_parameters: int | None = None
    active_bytes: int | None = None

    @property
    def is_small(self) -> bool:
        """Whether it has fewer than `SMALL_MODEL_PARAMETERS` parameters."""
        return self.parameters < SMALL_MODEL_PARAMETERS


@dataclass(frozen=True, slots=True)
class BlockCounts:
    """Number of KV blocks in each state; `free + active + cached == total`.

    `swapped` counts the blocks in the swap tier, including those that are also in the pool. `pinned`
    counts the active blocks that a pin keeps, whether or not requests reference them too.
    """

    total: int = 0
    free: int = 0
    active: int = 0
    cached: int = 0
    swapped: int = 0
    block_size: int = 0
    block_bytes: int = 0
    pinned: int = 0

    @property
    def usage(self) -> float:
        """Fraction of the pool that running requests and pins keep, 0–1."""
        return self.active / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class SwapCounts:
    """Counters of the swap tier; all zero without one.

    Attributes:
        blocks: blocks in the tier.
        capacity: maximum number of blocks.
        swapped_in, swapped_out: blocks copied into the pool and out of it since start.
        dropped: blocks evicted from the pool without a copy, because the tier could not keep up.
        evicted: blocks evicted from the tier.
        damaged: blocks whose stored data was found damaged.
        victims_swapped, victims_recomputed: preempted requests whose blocks were swapped out, and
            those whose tokens were cheaper to recompute.
        in_bytes_per_second, out_bytes_per_second: copy bandwidth over the last 256 MiB; None before
            the first copy.
    """

    blocks: int = 0
    capacity: int = 0
    swapped_in: int = 0
    swapped_out: int = 0
    dropped: int = 0
    evicted: int = 0
    damaged: int = 0
    victims_swapped: int = 0
    victims_recomputed: int = 0
    in_bytes_per_second: float | None = None
    out_bytes_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class StateCounts:
    """Slots of recurrent states by what they hold; all zero for a model without recurrent layers.

    Attributes:
        total: slots of the pool.
        free: slots that hold nothing.
        checkpoints: slots that hold the state of a cached prefix.
        slot_bytes: bytes of a slot.
        restored: requests that began with a copy of a state, since start.
        evicted: checkpoints dropped for others or with their blocks, since start.
        stored: states kept outside the pool, including those that are also checkpoints.
    """

    total: int = 0
    free: int = 0
    checkpoints: int = 0
    slot_bytes: int = 0
    restored: int = 0
    evicted: int = 0
    stored: int = 0

    @property
    def active(self) -> int:
        """Slots of running requests."""
        return self.total - self.free - self.checkpoints


@dataclass(frozen=True, slots=True)
class SessionCounts:
    """Sessions whose blocks are kept while they are expected back, and what they have lost.

    Attributes:
        running: sessions with a running request.
        expected: sessions that are expected back.
        held_requests: waiting requests that are held.
        lost_away, lost_held, lost_space: blocks that sessions had to compute again because they were away
            for too long, because they were held, and because others needed the room.
    """

    running: int = 0
    expected: int = 0
    held_requests: int = 0
    lost_away: int = 0
    lost_held: int = 0
    lost_space: int = 0


@dataclass(frozen=True, slots=True)
class StepStats:
    """The last executed step.

    Attributes:
        predicted_seconds: prediction of the step-time model, or None until it is calibrated.
    """

    seconds: float = 0.0
    prefill_tokens: int = 0
    decode_tokens: int = 0
    rows: int = 0
    predicted_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """Monotonic counters since start.

    Attributes:
        prompt_tokens: prompt tokens computed, without those found in a cache.
        prefix_cache_queries, prefix_cache_hits: prompt tokens of admitted requests, and the number
            of them found in the pool.
        external_prefix_cache_queries, external_prefix_cache_hits: prompt tokens not found in the
            pool, and the number of them found in the swap tier.
        copied_blocks: KV blocks copied, for forks and for fully cached prompts.
        drafts, draft_tokens, accepted_draft_tokens: drafts verified, their tokens, and the number of
            tokens accepted.
        model_draft_tokens, accepted_model_draft_tokens: those of them that a draft model proposed.
        deadlines_met, deadlines_missed: first tokens of requests with a deadline.
        predicted_seconds, measured_seconds: sums of the predicted and of the measured time, over the
            steps that the step-time model predicted.
        finished: finished requests by finish reason.
    """

    prompt_tokens: int = 0
    generation_tokens: int = 0
    steps: int = 0
    preemptions: int = 0
    prefix_cache_queries: int = 0
    prefix_cache_hits: int = 0
    external_prefix_cache_queries: int = 0
    external_prefix_cache_hits: int = 0
    copied_blocks: int = 0
    drafts: int = 0
    draft_tokens: int = 0
    accepted_draft_tokens: int = 0
    model_draft_tokens: int = 0
    accepted_model_draft_tokens: int = 0
    deadlines_met: int = 0
    deadlines_missed: int = 0
    predicted_seconds: float = 0.0
    measured_seconds: float = 0.0
    finished: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rates:
    """Recent throughput and latency, by the engine's clock; None without samples.

    Attributes:
        decode_tokens_per_second: over the last two seconds of wall time.
        prefill_tokens_per_second: over the last two seconds of wall time.
        ttft_p50, ttft_p95, itl_p50, itl_p95: percentiles in seconds, over the last 512 samples.
    """

    decode_tokens_per_second: float = 0.0
    prefill_tokens_per_second: float = 0.0
    ttft_p50: float | None = None
    ttft_p95: float | None = None
    itl_p50: float | None = None
    itl_p95: float | None = None


@dataclass(frozen=True, slots=True)
class WindowCounts:
    """Window blocks, of layers with a sliding window that keep no more; all zero for any other model.

    Attributes:
        total: window blocks of the pool.
        free: those that no block has.
        active: those that running requests see.
        block_bytes: bytes of a window block.
        tokens: tokens of the window.
        windows: kept windows, after which a request can begin; they may share blocks.
        evicted: kept windows dropped for others or with their blocks, since start.
        stored: windows kept outside the pool, including those that are also in it.
    """

    total: int = 0
    free: int = 0
    active: int = 0
    block_bytes: int = 0
    tokens: int = 0
    windows: int = 0
    evicted: int = 0
    stored: int = 0

    @property
    def cached(self) -> int:
        """Window blocks of cached blocks, with which requests can begin; blocks that need one take them."""
        return self.total - self.free - self.active


@dataclass(frozen=True, slots=True)
class EngineSnapshot:
    """A consistent snapshot of the engine.

    Attributes:
        step: number of the last executed step.
        time: when it was taken, in monotonic seconds.
        scheduling: the policy and the batch former in effect.
        step_costs: the coefficients of the step-time model, or None until it is calibrated.
        step_error: typical relative error of its predictions, or None.
        loading_progress: 0–1 while `state` is loading.
        next_model: the model that is being loaded, or will be once running requests have finished; None
            if the engine keeps its model.
        on_demand: the model that the next request loads, one of several, while it is not loaded; else None.
        last_error: message of the last failed step or load, or None.
        last_error_time: its time in monotonic seconds, or None.
    """

    step: int
    time: float
    state: EngineState
    model: ModelInfo | None = None
    running: int = 0
    waiting: int = 0
    blocks: BlockCounts = field(default_factory=BlockCounts)
    swap: SwapCounts = field(default_factory=SwapCounts)
    states: StateCounts = field(default_factory=StateCounts)
    windows: WindowCounts = field(default_factory=WindowCounts)
    sessions: SessionCounts = field(default_factory=SessionCounts)
    last_step: StepStats = field(default_factory=StepStats)
    totals: Totals = field(default_factory=Totals)
    rates: Rates = field(default_factory=Rates)
    scheduling: Scheduling = field(default_factory=Scheduling)
    step_costs: StepCosts | None = None
    step_error: float | None = None
    loading_progress: float = 1.0
    next_model: str | None = None
    on_demand: str | None = None
    last_error: str | None = None
    last_error_time: float | None = None

    @property
    def changes_model(self) -> bool:
        """Whether another model is being loaded, or will be once running requests have finished."""
        return self.next_model is not None


@dataclass(frozen=True, slots=True)
class BlockMap:
    """Every KV block at one step boundary.

    Attributes:
        epoch: increases with each change; the `since` of the next call.
        state: [blocks] uint8, values of `BlockState`.
        refcount: [blocks] uint16.
        fill: [blocks] uint8, tokens stored in the block.
        owner: [blocks] int32, index into `owners`, -1 for none; of a shared block, the first request.
        owners: request ids, in no particular order.
        first_token: [blocks] int32, position of the block's first token in the owner's sequence, or -1.
        pinned: [blocks] bool, whether a pin keeps the block.
        last_used: [blocks] float64, when the block was last released, on the clock of
            `EngineSnapshot.time`; NaN for one in use or never used. Cached blocks are evicted in this
            order.
        held_blocks, held_by: [holds] int32, every pair of a block and the index in `owners` of a request
            that holds it, request by request in sequence order. A shared block occurs several times.
        checkpoints: [C] int32, ascending: the blocks after which a recurrent state, or a sliding window, is
            kept; empty for a model with neither.
    """

    epoch: int
    state: NDArray[np.uint8]
    refcount: NDArray[np.uint16]
    fill: NDArray[np.uint8]
    owner: NDArray[np.int32]
    owners: tuple[str, ...]
    first_token: NDArray[np.int32]
    pinned: NDArray[np.bool_]
    last_used: NDArray[np.float64]
    held_blocks: NDArray[np.int32]
    held_by: NDArray[np.int32]
    checkpoints: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))

    def blocks_of(self, request_id: str) -> NDArray[np.int32]:
        """[B] int32, the blocks of a request in sequence order; empty if it holds none."""
        if request_id not in self.owners:
            return self.held_blocks[:0]
        return np.compress(self.held_by == self.owners.index(request_id), self.held_blocks)

    def owners_of(self, block: int) -> tuple[str, ...]:
        """All requests that hold a block."""
        return tuple(self.owners[by] for by in self.held_by[self.held_blocks == block].tolist())

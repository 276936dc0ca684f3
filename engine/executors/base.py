"""The interface between pipeline and executor: `StepPlan`, `StepResult` and the `Executor` protocol.

Hot path. One `execute` call is one forward pass over all scheduled tokens of all rows. Mixed
lengths, mixed phases and mixed sampling are the normal case. All arrays are C-contiguous numpy
arrays: Rust copies what a step reads when it begins, torch reads them in place. Do not add a Python
loop over rows or tokens.

Index spaces: *row* is a request's row in the row table, [0, max_rows); *batch* is an index into the
step's list of rows, [0, R); *flat* is an index into the step's tokens, [0, T).
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from engine.api.image import Image
from engine.text.sequence_breakers import MAX_BREAKER_TAIL

SAMPLING_DTYPE = np.dtype(
    [
        ("temperature", np.float32),
        ("top_p", np.float32),
        ("min_p", np.float32),
        ("repetition_penalty", np.float32),
        ("presence_penalty", np.float32),
        ("frequency_penalty", np.float32),
        ("dry_multiplier", np.float32),  # 0: no DRY penalty
        ("dry_base", np.float32),
        ("dry_allowed_length", np.int32),
        ("dry_penalty_last_n", np.int32),  # -1: all tokens
        ("first_breaker", np.int32),  # its sequence breakers: a range of `breaker_heads`
        ("num_breakers", np.int32),
        ("top_k", np.int32),
        ("num_logprobs", np.int32),  # -1: none; k ≥ 0: the sampled token's and k alternatives
        ("seed", np.uint64),
    ],
    align=True,
)
"""Per-row sampling parameters; mirrored by `SamplingRow` (`repr(C)`) in the kernels crate."""

MAX_TOP_LOGPROBS = 20

MAX_LOGPROB_TOKEN_IDS = 64
"""Maximum number of token ids of a request whose log-probabilities are reported."""

MAX_DRAFT_TOKENS = 16
"""Maximum number of draft tokens in a step, summed over its rows."""

_NO_INTS: NDArray[np.int32] = np.zeros(0, np.int32)
_NO_MASK_BITS: NDArray[np.uint32] = np.zeros((0, 0), np.uint32)
NO_BREAKER_HEADS: NDArray[np.uint32] = np.zeros((0, 0), np.uint32)
NO_BREAKER_TAILS: NDArray[np.int32] = np.zeros((0, MAX_BREAKER_TAIL), np.int32)


@dataclass(frozen=True, slots=True)
class ImageRun:
    """Consecutive tokens of a step that stand for a part of an image.

    Attributes:
        image: the image.
        flat: the first of them.
        offset: how many of the image's tokens come before it.
        count: number of tokens, at least one.
    """

    image: Image
    flat: int
    offset: int
    count: int


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One ragged step. The row-indexed arrays are views of the row table, valid during `execute`.

    A row's *run* is its tokens in this step.

    Attributes:
        rows: [R] int32, batch → row.
        query_start: [R + 1] int32, batch → first flat token; `query_start[R] == T`.
        token_ids: [T] int32.
        positions: [T] int32, consecutive within a run.
        needs_logits: [R] uint8; 1 if the run includes the row's last token and the next one is to
            be sampled. The sampled token's position is `num_tokens[row]`.
        block_tables: [max_rows, max_blocks] int32, row → KV blocks in sequence order. Entries up to
            the run's last position are allocated; later ones are undefined.
        token_table: [max_rows, max_model_len] int32, row → tokens; penalties read it.
        num_tokens: [max_rows] int32, tokens of each row, prompt and output.
        penalty_start: [max_rows] int32; tokens from here on count as output for penalties. A
            fork inherits it, so that its parent's output still counts as output.
        sampling: [max_rows] of `SAMPLING_DTYPE`.
        bias_rows, bias_ids, bias_values: [B] int32, int32, float32: logit biases, sorted by row.
        logprob_rows, logprob_ids: [L] int32 each, sorted by row: rows that report the logprobs of chosen
            token ids whenever they sample, and those ids, in the order requested. Such rows have no
            drafts. Entries of rows outside the step are ignored.
        breaker_heads, breaker_tails: [P, `mask_words(vocab)`] uint32 and [P, `MAX_BREAKER_TAIL`] int32,
            the sequence breakers of rows with a DRY penalty; see `engine.text.sequence_breakers`.
        mask_rows: [G] int32, *batch* indices, ascending: entries that sample under a token mask;
            none of them has drafts.
        mask_bits: [G, `mask_words(vocab)`] uint32; bit `id % 32` of word `id // 32` is 1 if token
            `id` is allowed. Bits beyond the vocabulary are ignored. A row whose mask has no 1 fails.
        num_draft_tokens: [R] int32, number of draft tokens at the end of each run. They are in
            `token_table` from `num_tokens[row]` on; only rows with `needs_logits` have any. Empty
            if there are none. The sum is at most `MAX_DRAFT_TOKENS`.
        score_tokens, score_targets, score_tops: [P] int32 each: a flat token, the token that follows
            it in its row and is scored, and the number of alternatives to return besides its logprob.
        images: the runs of image tokens in the step; empty for a model that sees no images. Their
            embeddings are computed from the image instead of looked up.
        state_slots: [max_rows] int32, row → slot of its recurrent state, -1 for rows without a request;
            empty for a model without recurrent layers. A run that begins at position 0 begins with a
            zeroed state, whatever the slot holds; any other run begins with the slot's content. The step
            leaves the state after the run's last token in the slot. No two rows of a step have the same.
        window_blocks: [num_blocks] int32, block → the *window block* with its keys and values in the layers
            that keep a window only, -1 without one; empty if all layers keep every token. The blocks of a
            run from the first attention chunk on that its first token sees have one.
    """

    rows: NDArray[np.int32]
    query_start: NDArray[np.int32]
    token_ids: NDArray[np.int32]
    positions: NDArray[np.int32]
    needs_logits: NDArray[np.uint8]
    block_tables: NDArray[np.int32]
    token_table: NDArray[np.int32]
    num_tokens: NDArray[np.int32]
    penalty_start: NDArray[np.int32]
    sampling: NDArray[np.void]
    bias_rows: NDArray[np.int32]
    bias_ids: NDArray[np.int32]
    bias_values: NDArray[np.float32]
    logprob_rows: NDArray[np.int32] = field(default_factory=lambda: _NO_INTS)
    logprob_ids: NDArray[np.int32] = field(default_factory=lambda: _NO_INTS)
    breaker_heads: NDArray[np.uint32] = field(default_factory=lambda: NO_BREAKER_HEADS)
    breaker_tails: NDArray[np.int32] = field(default_factory=lambda: NO_BREAKER_TAILS)
    mask_rows: NDArray[np.int32] = field(default_factory=lambda: _NO_INTS)
    mask_bits: NDArray[np.uint32] = field(default_factory=lambda: _NO_MASK_BITS)
    num_draft_tokens: NDArray[np.int32] = field(default_factory=lambda: _NO_INTS)
    score_tokens: NDArray[np.int32] = field(default_factory=lambda: _NO_INTS)
    score_targets: NDArray[np.int32] = field(default_factory=lambda: _NO_INTS)
    score_tops: NDArray[np.int32] = field(default_factory=lambda: _NO_INTS)
    images: tuple[ImageRun, ...] = ()
    state_slots: NDArray[np.int32] = field(default_factory=lambda: _NO_INTS)
    window_blocks: NDArray[np.int32] = field(default_factory=lambda: _NO_INTS)


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a step. Its arrays are views of the executor's buffers, valid until the next step.

    Draft tokens are verified by sampling: the row samples after its last token and after each draft
    token, each time exactly as it would without drafts. A draft token is accepted if it equals the
    sample at its position and all drafts before it were accepted.

    Attributes:
        sampled: [R] int32, the token after the last accepted draft; -1 where `needs_logits` was 0.
        logprobs: [R] float32, raw log-probability of the sampled token; NaN where not requested.
        top_ids: [R, K] int32, likeliest first, K = `MAX_TOP_LOGPROBS`; valid up to the row's
            `num_logprobs`.
        top_logprobs: [R, K] float32.
        token_id_logprobs: [L] float32, raw log-probability of each of the plan's `logprob_ids` at the
            position that its row samples; NaN where the row did not sample or failed.
        failed: [R] uint8, 1 where the logits contain a NaN, or are all -inf before or after the
            mask; `sampled` is -1 there.
        accepted: [R] int32, number of accepted drafts; defined only if the plan has drafts.
        draft_logprobs: [D] float32, as `logprobs`, of each draft of the step; valid for accepted
            ones.
        draft_top_ids, draft_top_logprobs: [D, K], as `top_ids` and `top_logprobs`.
        score_logprobs: [P] float32, raw log-probability of each score target; NaN where the logits
            contain a NaN or are all -inf.
        score_ranks: [P] int32, 1 for the likeliest token; ties rank by lowest id.
        score_top_ids, score_top_logprobs: [P, K]; valid up to the target's `score_tops`.
    """

    sampled: NDArray[np.int32]
    logprobs: NDArray[np.float32]
    top_ids: NDArray[np.int32]
    top_logprobs: NDArray[np.float32]
    token_id_logprobs: NDArray[np.float32]
    failed: NDArray[np.uint8]
    accepted: NDArray[np.int32]
    draft_logprobs: NDArray[np.float32]
    draft_top_ids: NDArray[np.int32]
    draft_top_logprobs: NDArray[np.float32]
    score_logprobs: NDArray[np.float32]
    score_ranks: NDArray[np.int32]
    score_top_ids: NDArray[np.int32]
    score_top_logprobs: NDArray[np.float32]

    @classmethod
    def empty(cls, rows: int, *, drafts: int = 0, scores: int = 0, logprob_ids: int = 0) -> Self:
        """A result with new arrays, in which no row has sampled.

        Args:
            rows: R.
            drafts: D.
            scores: P.
            logprob_ids: L.
        """
        return cls(
            sampled=np.full(rows, -1, np.int32),
            logprobs=np.full(rows, np.nan, np.float32),
            top_ids=np.zeros((rows, MAX_TOP_LOGPROBS), np.int32),
            top_logprobs=np.zeros((rows, MAX_TOP_LOGPROBS), np.float32),
            token_id_logprobs=np.full(logprob_ids, np.nan, np.float32),
            failed=np.zeros(rows, np.uint8),
            accepted=np.zeros(rows, np.int32),
            draft_logprobs=np.full(drafts, np.nan, np.float32),
            draft_top_ids=np.zeros((drafts, MAX_TOP_LOGPROBS), np.int32),
            draft_top_logprobs=np.zeros((drafts, MAX_TOP_LOGPROBS), np.float32),
            score_logprobs=np.full(scores, np.nan, np.float32),
            score_ranks=np.zeros(scores, np.int32),
            score_top_ids=np.zeros((scores, MAX_TOP_LOGPROBS), np.int32),
            score_top_logprobs=np.zeros((scores, MAX_TOP_LOGPROBS), np.float32),
        )


@dataclass(frozen=True, slots=True)
class ExecutorInfo:
    """Properties of a loaded executor, for display and metrics.

    Attributes:
        kind: `native`, `torch` or `onnx`.
        dispatch: instruction-set level, or device and attention backend.
        threads: compute threads.
        weight_format: type of most weights in memory.
        weight_bytes: bytes of the weights in memory.
        kv_dtype: element type of the KV cache.
        parameters: number of weights.
        kv_in_main_memory: False if the KV cache is in device memory.
    """

    kind: str
    dispatch: str
    threads: int
    weight_format: str
    weight_bytes: int
    kv_dtype: str
    parameters: int
    kv_in_main_memory: bool = True


@runtime_checkable
class CoreYielder(Protocol):
    """An executor that computes on this machine's cores and can yield one of them."""

    def yield_core(self) -> AbstractContextManager[None]:
        """A context in which the executor computes on one core less, also within a running step.

        May be entered from any thread at any time. Entering waits until the core is free, at most 2 ms.
        """
        ...


class Executor(Protocol):
    """Runs steps. Called by the engine's thread only; never concurrently.

    The executor owns the KV storage of `num_blocks` blocks; the block manager tracks which request
    holds which block. A block's bytes are undefined until a step writes them.
    """

    info: ExecutorInfo

    def execute(self, plan: StepPlan) -> StepResult:
        """Run one step. The GIL is released while computing.

        Raises:
            ExecutorError: the step failed; the KV it would have written is undefined.
        """
        ...

    def copy_blocks(self, sources: NDArray[np.int32], targets: NDArray[np.int32]) -> None:
        """Copy the KV of block `sources[i]` to block `targets[i]`, in every layer, in order.

        Called between steps. On return the copy is done or ordered before the next step.

        Raises:
            ExecutorError: nothing was copied.
        """
        ...

    @property
    def block_bytes(self) -> int:
        """Bytes of a KV block, summed over layers."""
        ...

    def read_blocks(self, blocks: NDArray[np.int32], out: NDArray[np.uint8]) -> None:
        """Copy the KV of block `blocks[i]` into `out[i]`, [n, block_bytes], in main memory.

        Called between steps; the copy is done on return. The layout of the bytes is private to
        executors of the same model and settings.

        Raises:
            ExecutorError: nothing was copied.
        """
        ...

    def write_blocks(self, blocks: NDArray[np.int32], data: NDArray[np.uint8]) -> None:
        """Copy `data[i]`, as returned by `read_blocks`, into block `blocks[i]`.

        Called between steps. On return the copy is done or ordered before the next step, and `data`
        may be reused.

        Raises:
            ExecutorError: nothing was copied.
        """
        ...

    def close(self) -> None:
        """Free weights and KV storage. Idempotent."""
        ...


@runtime_checkable
class StateKeeper(Protocol):
    """An executor of models with recurrent layers: beside the KV blocks it owns a pool of *state slots*.

    A slot holds the state of one sequence after some token: that of all recurrent layers, in fp32. Its bytes
    are undefined until a step or a copy writes them. `engine.memory.recurrent_states` tracks what each
    slot holds. Called by the engine's thread only, between steps.

    After an `ExecutorError` with an `entry` nothing was computed, and all slots are as before the step; after
    any other failed step, those of its rows are undefined.
    """

    @property
    def state_bytes(self) -> int:
        """Bytes of a slot; 0 for a model without recurrent layers, which has no slots."""
        ...

    def copy_states(self, sources: NDArray[np.int32], targets: NDArray[np.int32]) -> None:
        """Copy slot `sources[i]` to slot `targets[i]`, in order: a target may be a later source.

        On return the copy is done or ordered before the next step.

        Raises:
            ExecutorError: nothing was copied.
        """
        ...

    def read_states(self, slots: NDArray[np.int32], out: NDArray[np.uint8]) -> None:
        """Copy slot `slots[i]` into `out[i]`, [n, state_bytes], in main memory; done on return.

        The layout of the bytes is private to executors of the same model and settings.

        Raises:
            ExecutorError: nothing was copied.
        """
        ...

    def write_states(self, slots: NDArray[np.int32], data: NDArray[np.uint8]) -> None:
        """Copy `data[i]`, as returned by `read_states`, into slot `slots[i]`.

        On return the copy is done or ordered before the next step, and `data` may be reused.

        Raises:
            ExecutorError: nothing was copied.
        """
        ...


@runtime_checkable
class WindowKeeper(Protocol):
    """An executor that keeps the keys and values of layers with a sliding window in *window blocks*.

    It has fewer of them than blocks: `StepPlan.window_blocks` says which block has which. What `copy_blocks`,
    `read_blocks` and `write_blocks` copy is then without these layers. `engine.memory.sliding_windows`
    decides which block has one. Called by the engine's thread only, between steps.
    """

    @property
    def window_block_bytes(self) -> int:
        """Bytes of a window block; 0 if all layers keep every token, so that there are none."""
        ...

    def copy_window_blocks(self, sources: NDArray[np.int32], targets: NDArray[np.int32]) -> None:
        """As `Executor.copy_blocks`, for window blocks."""
        ...

    def read_window_blocks(self, blocks: NDArray[np.int32], out: NDArray[np.uint8]) -> None:
        """As `Executor.read_blocks`, for window blocks: [n, window_block_bytes]."""
        ...

    def write_window_blocks(self, blocks: NDArray[np.int32], data: NDArray[np.uint8]) -> None:
        """As `Executor.write_blocks`, for window blocks."""
        ...

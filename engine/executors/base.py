"""The seam between the pipeline and the arithmetic: one ragged step in, sampled tokens out.

Hot path. One `execute` call is one forward pass over every scheduled token of every row. Mixed
lengths, mixed phases and mixed sampling are the normal case. All arrays are C-contiguous numpy
arrays which Rust and torch read without a copy. Do not add a Python loop over rows or tokens.

Index spaces: *row* is a request's permanent row, [0, max_rows); *batch* is a position in this
step's list of rows, [0, R); *flat* is a token of this step, [0, T).
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

SAMPLING_DTYPE = np.dtype(
    [
        ("temperature", np.float32),
        ("top_p", np.float32),
        ("min_p", np.float32),
        ("repetition_penalty", np.float32),
        ("presence_penalty", np.float32),
        ("frequency_penalty", np.float32),
        ("top_k", np.int32),
        ("num_logprobs", np.int32),  # -1: no logprob wanted; k ≥ 0: k alternatives beside the own
        ("seed", np.uint64),
    ],
    align=True,
)
"""Per-row sampling parameters; mirrored by `SamplingRow` (`repr(C)`) in the kernels crate."""

MAX_TOP_LOGPROBS = 20

MAX_DRAFT_TOKENS = 16
"""The most drafts in a step, over all its rows."""

_NO_INTS: NDArray[np.int32] = np.zeros(0, np.int32)
_NO_MASK_BITS: NDArray[np.uint32] = np.zeros((0, 0), np.uint32)


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One ragged step. The row-indexed arrays are live views: valid until `execute` returns.

    Attributes:
        rows: [R] int32, batch → row.
        query_start: [R + 1] int32, batch → first flat token; `query_start[R] == T`.
        token_ids: [T] int32.
        positions: [T] int32, consecutive within a row's run.
        needs_logits: [R] uint8; 1 when the run reaches the row's last known token and the next one
            is to be sampled. The sampled token's position is `num_tokens[row]`.
        block_tables: [max_rows, max_blocks] int32, row → KV blocks in sequence order. Entries
            covering positions up to the run's last one are allocated; later ones are undefined.
        token_table: [max_rows, max_model_len] int32, row → every known token (penalties read it).
        num_tokens: [max_rows] int32, known tokens a row (prompt and output).
        penalty_start: [max_rows] int32; tokens from here on count as output for penalties. A
            fork inherits it, so that its parent's output goes on counting.
        sampling: [max_rows] of `SAMPLING_DTYPE`.
        bias_rows, bias_ids, bias_values: [B] int32, int32, float32: logit biases, sorted by row.
        mask_rows: [G] int32, *batch* indices, ascending: entries that sample under a token mask;
            none of them has drafts.
        mask_bits: [G, `mask_words(vocab)`] uint32; bit `id % 32` of word `id // 32` is 1 where
            token `id` is allowed. Bits beyond the vocabulary are ignored. A mask without a 1 fails
            its row.
        num_draft_tokens: [R] int32, how many of the run's last tokens are drafts, guesses of what will be
            sampled; they stand in `token_table` from `num_tokens[row]` on, and only rows with
            `needs_logits` have any. Empty: no row has. At most `MAX_DRAFT_TOKENS` together.
        score_tokens, score_targets, score_tops: [P] int32 each: a flat token, the known token that
            follows it in its row, and how many alternatives are wanted beside that one's logprob.
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
    mask_rows: NDArray[np.int32] = field(default_factory=lambda: _NO_INTS)
    mask_bits: NDArray[np.uint32] = field(default_factory=lambda: _NO_MASK_BITS)
    num_draft_tokens: NDArray[np.int32] = field(default_factory=lambda: _NO_INTS)
    score_tokens: NDArray[np.int32] = field(default_factory=lambda: _NO_INTS)
    score_targets: NDArray[np.int32] = field(default_factory=lambda: _NO_INTS)
    score_tops: NDArray[np.int32] = field(default_factory=lambda: _NO_INTS)


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step sampled. Views of the executor's buffers: valid until the next `execute`.

    A row's samples are drawn one after the other, each as if it were alone in its step: while a
    sample equals the row's next draft, that draft is accepted and the next sample counts.

    Attributes:
        sampled: [R] int32, the token after the last accepted draft; -1 where `needs_logits` was 0.
        logprobs: [R] float32, raw log-probability of the sampled token; NaN where not asked for.
        top_ids: [R, K] int32, likeliest first, K = `MAX_TOP_LOGPROBS`; valid up to the row's
            `num_logprobs`.
        top_logprobs: [R, K] float32.
        failed: [R] uint8, 1 where the logits held a NaN, or only -inf before or after the mask;
            `sampled` is -1 there.
        accepted: [R] int32, how many of the row's drafts were accepted. Of use only if the plan has
            drafts.
        draft_logprobs: [D] float32, as `logprobs`, of each draft of the step; valid for accepted
            ones.
        draft_top_ids, draft_top_logprobs: [D, K], as `top_ids` and `top_logprobs`.
        score_logprobs: [P] float32, raw log-probability of each of the plan's targets; NaN where the
            logits held one or only -inf.
        score_ranks: [P] int32, 1 for the likeliest token; ties rank by lowest id.
        score_top_ids, score_top_logprobs: [P, K]; valid up to the target's `score_tops`.
    """

    sampled: NDArray[np.int32]
    logprobs: NDArray[np.float32]
    top_ids: NDArray[np.int32]
    top_logprobs: NDArray[np.float32]
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
    def empty(cls, rows: int, *, drafts: int = 0, scores: int = 0) -> Self:
        """Arrays of their own for so many rows, drafts and scores: nothing sampled, nothing known."""
        return cls(
            sampled=np.full(rows, -1, np.int32),
            logprobs=np.full(rows, np.nan, np.float32),
            top_ids=np.zeros((rows, MAX_TOP_LOGPROBS), np.int32),
            top_logprobs=np.zeros((rows, MAX_TOP_LOGPROBS), np.float32),
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
    """Facts about a loaded executor, for people and metrics."""

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
    """Runs steps. Called by the engine's thread alone; never concurrently.

    The executor owns the KV storage of `num_blocks` blocks; which request holds which block is the
    block manager's business. A block's bytes are undefined until a step wrote them.
    """

    info: ExecutorInfo

    def execute(self, plan: StepPlan) -> StepResult:
        """Run one step. The GIL is released while computing.

        Raises:
            ExecutorError: the step failed; KV written by it must be considered lost.
        """
        ...

    def copy_blocks(self, sources: NDArray[np.int32], targets: NDArray[np.int32]) -> None:
        """Copy the KV of block `sources[i]` to block `targets[i]`, in every layer, in order.

        Called between steps. It is done, or ordered before the next step, when this returns.

        Raises:
            ExecutorError: nothing was copied.
        """
        ...

    @property
    def block_bytes(self) -> int:
        """Bytes of a KV block, every layer."""
        ...

    def read_blocks(self, blocks: NDArray[np.int32], out: NDArray[np.uint8]) -> None:
        """Copy the KV of `blocks[i]` into `out[i]`; [n, block_bytes], in main memory.

        Called between steps; done when this returns. The bytes mean something to `write_blocks` of
        an executor of the same model and settings alone.

        Raises:
            ExecutorError: nothing was copied.
        """
        ...

    def write_blocks(self, blocks: NDArray[np.int32], data: NDArray[np.uint8]) -> None:
        """Copy `data[i]`, which `read_blocks` gave, into block `blocks[i]`.

        Called between steps. It is done, or ordered before the next step, when this returns, and
        `data` may be used for something else.

        Raises:
            ExecutorError: nothing was copied.
        """
        ...

    def close(self) -> None:
        """Free weights and KV storage. Idempotent."""
        ...

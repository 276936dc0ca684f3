"""Python bindings of the Rust core (`rust_core/py`). A test checks this file against the module."""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

# --- memory: block allocator and prefix trie ------------------------------------------------------

class OutOfBlocks(RuntimeError):
    """More KV blocks were requested than are free or cached; nothing was evicted."""

class IntegrityError(AssertionError):
    """An invariant of the block bookkeeping is violated: a bug in the engine."""

@final
class AllocatorStats:
    """Current counts of blocks, and counters since the pool was created; a consistent snapshot.

    Attributes:
        num_blocks: `free + cached + active`.
        block_size: tokens in a block.
        free: not referenced, not pinned and not indexed.
        cached: not referenced and not pinned, but indexed by the trie; reused after the free ones.
        active: referenced or pinned.
        pinned: active blocks with a pin.
        indexed: blocks in the trie, whatever their state.
        allocated_total: blocks ever allocated.
        evicted_total: cached blocks ever evicted for an allocation.
        epoch: grows with every change of any block; equal epochs mean equal states and references.
    """

    @property
    def num_blocks(self) -> int: ...
    @property
    def block_size(self) -> int: ...
    @property
    def free(self) -> int: ...
    @property
    def cached(self) -> int: ...
    @property
    def active(self) -> int: ...
    @property
    def pinned(self) -> int: ...
    @property
    def indexed(self) -> int: ...
    @property
    def allocated_total(self) -> int: ...
    @property
    def evicted_total(self) -> int: ...
    @property
    def epoch(self) -> int: ...

@final
class BlockAllocator:
    """Reference counts and the free list of KV blocks. Thread-safe; every call is atomic.

    A block is free, active (referenced or pinned) or cached (neither, but indexed by a
    `PrefixTrie`). Operations on several blocks check all of them before they change any, and cost
    O(1) a block.
    """

    def __new__(cls, num_blocks: int, block_size: int) -> BlockAllocator:
        """Create a pool of free blocks.

        Args:
            num_blocks: 1 to 2**24.
            block_size: tokens in a block, 1 to 255.

        Raises:
            ValueError: a size is out of range.
        """

    @property
    def num_blocks(self) -> int:
        """Blocks in the pool."""

    @property
    def block_size(self) -> int:
        """Tokens in a block."""

    @property
    def num_free(self) -> int:
        """Blocks that `allocate` can return: free and cached ones."""

    def allocate(self, count: int) -> NDArray[np.int32]:
        """Allocate `count` blocks, each with one reference.

        Free blocks are taken first, then cached ones, least recently released first, which are removed
        from the trie.

        Returns:
            [count] int32 block ids.

        Raises:
            OutOfBlocks: `count` is more than `num_free`; nothing changed.
        """

    def retain(self, blocks: NDArray[np.int32] | Sequence[int]) -> None:
        """Add a reference to each block; cached blocks become active.

        Raises:
            ValueError: a block does not exist, is free, or has 65535 references; nothing changed.
        """

    def release(self, blocks: NDArray[np.int32] | Sequence[int]) -> None:
        """Remove a reference from each block, in the order given.

        Of blocks whose count drops to zero, the first is reused first: pass a sequence's blocks
        last to first, so that tails are evicted before heads.

        Raises:
            ValueError: a block does not exist or is released more often than it is referenced; nothing
                changed.
        """

    def pin(self, blocks: NDArray[np.int32] | Sequence[int]) -> None:
        """Keep each block from being reused until `unpin`, even if its references are released.

        Raises:
            ValueError: a block does not exist or is free; nothing changed.
        """

    def unpin(self, blocks: NDArray[np.int32] | Sequence[int]) -> None:
        """Undo one `pin` of each block.

        Raises:
            ValueError: a block does not exist or is not pinned; nothing changed.
        """

    def stats(self) -> AllocatorStats:
        """The current statistics; O(1)."""

    def states(self) -> NDArray[np.uint8]:
        """[num_blocks] uint8, values of `engine.api.snapshot.BlockState`; O(blocks)."""

    def refcounts(self) -> NDArray[np.uint16]:
        """[num_blocks] uint16, references to each block; O(blocks)."""

    def pins(self) -> NDArray[np.uint16]:
        """[num_blocks] uint16, pins of each block; O(blocks)."""

    def released_at(self) -> NDArray[np.uint64]:
        """[num_blocks] uint64, the `epoch` at which each block last became neither referenced nor pinned.

        0 for a block that never was; kept while the block is in use again. O(blocks).
        """

    def generations(self) -> NDArray[np.uint32]:
        """[num_blocks] uint32, how often each block has been allocated; O(blocks)."""

    def claims(self, blocks: NDArray[np.int32] | Sequence[int]) -> NDArray[np.int32]:
        """[n] int32, references to each block, and one more if the trie indexes it; O(n).

        A block that a request may write has exactly one claim: the request's own.

        Raises:
            ValueError: a block does not exist.
        """

    def count_available(self, blocks: NDArray[np.int32] | Sequence[int]) -> int:
        """How many of the blocks are neither referenced nor pinned, so that `num_free` counts them; O(n).

        Raises:
            ValueError: a block does not exist.
        """

    def check_integrity(self) -> None:
        """Check every invariant of allocator and trie; O(blocks × block size).

        Raises:
            IntegrityError: the first violated invariant, as one sentence.
        """

@final
class PrefixTrie:
    """Index of the tokens whose KV the blocks of a `BlockAllocator` hold. Thread-safe; calls are atomic.

    A node is one full block. The salt identifies everything else that separates blocks: what changes
    KV bytes (model, weight format, adapter, KV dtype, RoPE settings) and the caller's cache salt. Two
    salts share no blocks. `len()` is the number of indexed blocks.
    """

    def __new__(cls, allocator: BlockAllocator) -> PrefixTrie:
        """A handle on the trie of `allocator`'s pool; two handles see the same trie."""

    @property
    def block_size(self) -> int:
        """Tokens in a block."""

    def __len__(self) -> int: ...
    def match_prefix(
        self, salt: bytes, tokens: NDArray[np.int32] | Sequence[int]
    ) -> NDArray[np.int32]:
        """The blocks of the longest indexed prefix of `tokens`, first block first.

        References are not incremented: call `retain` before the next allocation, which may otherwise
        evict the blocks. At least one token of a prompt must be computed: leave the last one out.
        """

    def insert(
        self,
        salt: bytes,
        tokens: NDArray[np.int32] | Sequence[int],
        blocks: NDArray[np.int32] | Sequence[int],
        *,
        start: int = 0,
    ) -> NDArray[np.int32]:
        """Index full blocks of one sequence.

        Where another block already holds the same tokens, that one is returned instead, and nothing is
        indexed below it, because the caller has no reference to it. The caller may `retain` the
        returned block, put it in its table, `release` its own, and continue from there.

        Args:
            salt: the root.
            tokens: the sequence's first `len(blocks) * block_size` tokens, or more.
            blocks: the sequence's blocks from its first one, full, and referenced by the caller.
            start: how many of them an earlier call indexed; the walk begins there, in O(1).

        Returns:
            [len(blocks) - start] int32, the block that the trie names for each of `blocks[start:]`,
            or the caller's own below a duplicate.

        Raises:
            ValueError: the arguments contradict each other or the trie; nothing was indexed.
        """

    def index_rows(
        self,
        salt: bytes,
        token_table: NDArray[np.int32],
        block_tables: NDArray[np.int32],
        rows: NDArray[np.int32] | Sequence[int],
        start: NDArray[np.int32] | Sequence[int],
        stop: NDArray[np.int32] | Sequence[int],
    ) -> int:
        """Index the full blocks of many sequences in one call.

        Where another block already holds the same tokens, the row's reference moves to that one, its
        table names it, and its own block is released. No step that reads the tables may be in flight.

        Args:
            salt: the root.
            token_table: [max_rows, max_model_len] int32.
            block_tables: [max_rows, max_blocks] int32, changed in place.
            rows: [n] rows.
            start: [n] number of each row's blocks that earlier calls indexed.
            stop: [n] number of its blocks that are full and computed.

        Returns:
            The number of duplicates.

        Raises:
            ValueError: the arguments contradict each other or the trie; earlier rows are indexed.
        """

    def node(
        self, block: int
    ) -> tuple[int, int | None, NDArray[np.int32], NDArray[np.int32]] | None:
        """The node that names a block; None if the block is not indexed. O(children).

        Returns:
            Number of blocks from the root to this one, the parent's block (None for a first block),
            [children] int32 blocks that continue it, [block_size] int32 its tokens.

        Raises:
            ValueError: the block does not exist.
        """

    def chains(
        self, limit: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], bool]:
        """The trie as runs of blocks without a fork, breadth first; O(indexed blocks).

        Args:
            limit: maximum number of chains.

        Returns:
            [chains] int32, the index of the chain that each one continues, -1 for none; [chains] int32,
            its number of blocks; [blocks] int32, the blocks of all chains in order; and whether chains
            were left out.
        """

    def clear(self) -> int:
        """Empty the trie: cached blocks become free, referenced ones stay. Returns how many it had."""

# --- prompt lookup --------------------------------------------------------------------------------

@final
class SteadyRows:
    """Updates rows that each decode one token per step, between two steps.

    Keeps references to the arrays given at construction, whose memory must not move, and reads and
    writes them in every call: no two calls at once, and no other writer meanwhile. A row is steady when
    it has had its first token and has computed all its tokens but the last.
    """

    def __new__(
        cls,
        rows: NDArray[np.int32],
        token_ids: NDArray[np.int32],
        positions: NDArray[np.int32],
        *,
        token_table: NDArray[np.int32],
        block_tables: NDArray[np.int32],
        num_tokens: NDArray[np.int32],
        num_computed: NDArray[np.int32],
        num_blocks: NDArray[np.int32],
        num_indexed: NDArray[np.int32],
        max_total: NDArray[np.int32],
        stop_ids: NDArray[np.int32],
        last_token_at: NDArray[np.float64],
        drained: NDArray[np.bool_],
        block_size: int,
    ) -> SteadyRows:
        """Hold the rows of a step and the row-indexed arrays; see `engine.batch.rows`.

        Args:
            rows: [R] int32, each once.
            token_ids, positions: [R] int32, filled by `look_up`.
            token_table: [max_rows, max_model_len] int32.
            block_tables: [max_rows, max_blocks] int32.
            num_tokens, num_computed, num_blocks, num_indexed, max_total: [max_rows] int32.
            stop_ids: [max_rows, S] int32, padded with -1.
            last_token_at: [max_rows] float64.
            drained: [max_rows] bool.
            block_size: tokens in a block.

        Raises:
            ValueError: the arrays contradict each other, or a row does not exist.
        """

    def look_up(self) -> int | None:
        """Fill in the next step: the last token of each row, and its position.

        Returns:
            How many rows have no block for that token; None if a row is not steady.
        """

    def repeats(self, min_match: int, /) -> bool:
        """Whether the last `min_match` tokens of some row occur in it earlier.

        If not, `draft_by_lookup` finds nothing.
        """

    def append_blocks(self, blocks: NDArray[np.int32], /) -> None:
        """Give one block to each row that has none for its next token, in the order of the rows.

        Raises:
            ValueError: there are more or fewer blocks than such rows, or a table is full; nothing was
                changed.
        """

    def take_drained(self) -> bool:
        """Whether some row was marked as drained. Clears the marks."""

    def advance(
        self, sampled: NDArray[np.int32], now: float, /
    ) -> (
        tuple[
            int,
            bytes,
            list[tuple[int, bool]],
            tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]] | None,
        ]
        | None
    ):
        """Append the token that each row sampled; `num_tokens` is raised last.

        Args:
            sampled: [R] int32; fastest if it is the array of the last call.
            now: time of the tokens, seconds.

        Returns:
            The number of tokens that the step's tokens attended to, over all rows; inter-token latencies
            in seconds, [R] float64, as bytes; rows that finish, and whether by a stop token; and rows that
            filled a block, with start and end of their full blocks that are not indexed, or None. None,
            with nothing changed, if a row has no token (-1) or is not steady.
        """

def draft_by_lookup(
    token_table: NDArray[np.int32],
    stop_ids: NDArray[np.int32],
    num_tokens: NDArray[np.int32],
    room: NDArray[np.int32],
    rows: NDArray[np.int32],
    drafts: NDArray[np.int32],
    lengths: NDArray[np.int32],
    matched: NDArray[np.int32],
    *,
    min_match: int,
    max_match: int,
) -> bool:
    """Draft the next tokens of rows by prompt lookup.

    A draft continues the longest earlier occurrence of a row's last `min_match` to `max_match`
    tokens, the latest of several, and ends before a stop token. Cost: one pass over each row's tokens,
    about a microsecond for a thousand.

    Args:
        token_table: [max_rows, max_model_len] int32, the rows' tokens.
        stop_ids: [max_rows, S] int32, tokens that end a row.
        num_tokens: [max_rows] int32, known tokens.
        room: [R] int32, the most tokens to draft for each of `rows`; none if not positive.
        rows: [R] int32.
        drafts: [R, K] int32, filled with the drafts.
        lengths: [R] int32, filled with their lengths, 0 for none.
        matched: [R] int32, filled with the lengths of the matches, 0 for none.
        min_match: at least 1.
        max_match: at least `min_match`.

    Returns:
        Whether any row has a draft.

    Raises:
        ValueError: the arrays contradict each other; nothing was changed.
    """

# --- swap: KV blocks outside the pool -------------------------------------------------------------

@final
class SwapStats:
    """Current entries, and counters since the store was opened.

    Attributes:
        entries: stored blocks, including those being written.
        capacity: the most blocks; less than requested once the disk was full.
        evicted_total: entries ever evicted for others.
        damaged_total: entries ever found damaged.
        written_bytes, read_bytes: bytes of blocks ever copied in and out.
    """

    @property
    def entries(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    @property
    def evicted_total(self) -> int: ...
    @property
    def damaged_total(self) -> int: ...
    @property
    def written_bytes(self) -> int: ...
    @property
    def read_bytes(self) -> int: ...

@final
class SwapStore:
    """KV blocks addressed by their contents, in a mapped file that outlives the process or in memory.

    An entry is a block's tokens after the entry of the prefix before it; an entry's prefix always
    has entries. Hashes locate candidates; equality is decided on tokens. Least recently used entries
    are evicted first, tails before heads. Thread-safe; no lock is held while blocks are copied, and the
    GIL is released.
    """

    def __new__(
        cls,
        path: str | PathLike[str] | None,
        *,
        identity: bytes,
        block_size: int,
        block_bytes: int,
        capacity_bytes: int,
    ) -> SwapStore:
        """Open the file at `path`, or create a store in memory if that is None.

        A file that is damaged, or was written by another version or with other settings, is replaced by
        an empty one; `notice` says so.

        Args:
            path: the file; its folder is created. No other process can use it meanwhile.
            identity: 32 bytes that depend on everything other than tokens that changes KV bytes.
            block_size: tokens in a block, 1 to 255.
            block_bytes: bytes of a block.
            capacity_bytes: bound on the size of the file or memory.

        Raises:
            OSError: another process has the file open, or it cannot be used.
            ValueError: the capacity is less than one block, or a size is out of range.
        """

    @property
    def notice(self) -> str | None:
        """The problem found in the file, as one sentence, or None."""

    @property
    def persistent(self) -> bool:
        """Whether it outlives the process."""

    def stats(self) -> SwapStats:
        """The current statistics; O(1)."""

    def match_prefix(
        self, salt: bytes, tokens: NDArray[np.int32] | Sequence[int]
    ) -> NDArray[np.int64]:
        """The complete entries of the longest prefix of `tokens`, first block first.

        `salt`: the root of the prefix trie under which the blocks were indexed.
        """

    def save_victims(
        self, trie: PrefixTrie, count: int, max_entries: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Reserve entries for the blocks that the next `count` allocations of the trie's pool would evict.

        Includes the blocks above these that have no entry either. Nothing is copied: `fill` the
        entries, or `abandon` them.

        Returns:
            Blocks and their entries, prefixes first, at most `max_entries`.
        """

    def count_unsaved_victims(self, trie: PrefixTrie, count: int) -> int:
        """How many of the blocks that the next `count` allocations would evict have no entry."""

    def save_indexed(
        self, trie: PrefixTrie, max_entries: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """As `save_victims`, for blocks that were indexed and have no entry, oldest first.

        Returns:
            Blocks and their entries; empty when all indexed blocks have entries.
        """

    def fill(self, entries: Sequence[int], data: NDArray[np.uint8]) -> int:
        """Copy blocks into reserved entries and complete them.

        Args:
            entries: [n] reserved entries.
            data: [n, block_bytes].

        Returns:
            How many were still reserved and had complete parents.

        Raises:
            OSError: the disk is full or fails; the entry that could not be written is released, with
                those below it.
        """

    def abandon(self, entries: Sequence[int]) -> None:
        """Release reserved entries that will not be filled, and those below them."""

    def read(self, entries: Sequence[int], data: NDArray[np.uint8]) -> int:
        """Copy entries out, in order, up to the first that is missing or damaged.

        A damaged entry is removed with all below it.

        Args:
            entries: [n] entries.
            data: [n, block_bytes].

        Returns:
            How many were copied.
        """

    def note_saved(
        self, trie: PrefixTrie, blocks: NDArray[np.int32] | Sequence[int], entries: Sequence[int]
    ) -> None:
        """Record the entries of indexed blocks, so that they are not saved again."""

    def note_unwanted(self, trie: PrefixTrie, blocks: NDArray[np.int32] | Sequence[int]) -> None:
        """Exclude indexed blocks from saving until they are referenced again."""

    def count_saved(self, trie: PrefixTrie, blocks: NDArray[np.int32] | Sequence[int]) -> int:
        """How many of the blocks are known to have an entry."""

    def check_integrity(self) -> None:
        """Check every invariant of the store; O(entries).

        Raises:
            AssertionError: the first violated invariant, as one sentence.
        """

    def close(self) -> None:
        """Close the file and free memory; any other call then raises ValueError. Idempotent."""

# --- formats: model files -------------------------------------------------------------------------

@final
class GgufTensor:
    """One entry of a GGUF file's tensor table."""

    @property
    def name(self) -> str:
        """Name in the file."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Row-major, slowest dimension first: a matrix is (outputs, inputs)."""

    @property
    def dtype(self) -> str:
        """The name of one of `engine.models.gguf.SUPPORTED_DTYPES`."""

    @property
    def offset(self) -> int:
        """First byte, from the start of its file: of a split model, the part that has the tensor."""

    @property
    def nbytes(self) -> int:
        """Bytes in the file."""

@final
class GgufFile:
    """A model in memory-mapped GGUF: opening it reads and checks headers, not the weights.

    Version 2 and 3, little-endian, in one file or all parts of a split model, with tensors of the
    types above.
    """

    def __new__(cls, path: str | PathLike[str] | Sequence[str | PathLike[str]]) -> GgufFile:
        """Open and check `path`: one file, or the parts of one model in order.

        Raises:
            ValueError: the file cannot be read, is damaged or is not supported; one sentence says
                what is wrong, where, and what to do.
        """

    @staticmethod
    def split_of(path: str | PathLike[str]) -> tuple[int, int] | None:
        """A file's place in a split model, its number from 1 and the count; None if it is a whole model.

        Raises:
            ValueError: as for the constructor.
        """

    @property
    def version(self) -> int:
        """GGUF version of the (first) file."""

    @property
    def metadata(self) -> dict[str, object]:
        """Key-value pairs: str, int, float, bool, or a list of one of them. Cached."""

    @property
    def tensors(self) -> list[GgufTensor]:
        """The tensor table, in file order. Cached."""

    def dequantize(self, name: str) -> NDArray[np.float32]:
        """One tensor as float32, in its shape: a slow reference for tests and tools.

        Raises:
            ValueError: the file has no such tensor.
        """

def quantize(weights: NDArray[np.float32], dtype: str) -> NDArray[np.uint8]:
    """Rows of weights as blocks of a type, as `--weights` quantizes them.

    Args:
        weights: [rows, cols], contiguous.
        dtype: `Q8_0`, `Q4_1`, `Q4_K` or `Q6_K`.

    Returns:
        [rows, bytes of a row].

    Raises:
        ValueError: weights are not quantized to that type, or rows are not whole blocks of it.
    """

# --- executor: the native CPU executor ------------------------------------------------------------

MAX_DRAFT_TOKENS: int
"""The most draft tokens of a step, over all its rows."""

MAX_TOP_LOGPROBS: int
MAX_LOGPROB_TOKEN_IDS: int
"""The most top logprobs that a row may request."""

MAX_BREAKER_TAIL: int
"""The most tokens of a sequence breaker after its first."""

def dry_penalties(
    tokens: NDArray[np.int32],
    *,
    multiplier: float,
    base: float,
    allowed_length: int,
    penalty_last_n: int,
    breaker_heads: NDArray[np.uint32],
    breaker_tails: NDArray[np.int32],
) -> list[tuple[int, float]]:
    """The tokens that DRY penalises after `tokens`, and the penalty of each; as the native sampler.

    Args:
        tokens: [n] int32, prompt and output.
        multiplier: as `SamplingParams.dry_multiplier`; so are the next three.
        base: at least 1.
        allowed_length: at least 0.
        penalty_last_n: -1 for all tokens.
        breaker_heads: [P, words] uint32, the sequence breakers of the row.
        breaker_tails: [P, `MAX_BREAKER_TAIL`] int32.

    Raises:
        ValueError: a token id is out of range, or the arrays contradict each other.
    """

@final
class RowSampler:
    """Samples and scores single rows, as the native executor does, from logits computed elsewhere.

    Not safe for concurrent use. All methods raise `ValueError` if an array has the wrong length or an id
    is outside the vocabulary, and release the GIL.
    """

    def __new__(cls, vocab: int) -> RowSampler:
        """For rows of `vocab` logits."""

    def sample(
        self,
        logits: NDArray[np.float32],
        params: NDArray[np.uint8],
        tokens: NDArray[np.int32],
        *,
        penalty_start: int,
        bias_ids: NDArray[np.int32],
        bias_values: NDArray[np.float32],
        breaker_heads: NDArray[np.uint32],
        breaker_tails: NDArray[np.int32],
        mask: NDArray[np.uint32] | None,
        top_ids: NDArray[np.int32],
        top_logprobs: NDArray[np.float32],
    ) -> tuple[int, float]:
        """The token after `tokens` and its raw log-probability; -1 if the logits are unusable.

        Args:
            logits: [vocab] float32; modified by mask, bias and penalties.
            params: a record of `SAMPLING_DTYPE` as bytes.
            tokens: [n] int32, prompt and output; their number is the position of the sampled token.
            penalty_start: tokens from here on count as output for penalties.
            bias_ids: [B] int32.
            bias_values: [B] float32.
            breaker_heads: as in `StepPlan`, those of the whole step; so are `breaker_tails`.
            mask: [words] uint32, the row's token mask; None allows all tokens.
            top_ids: [`MAX_TOP_LOGPROBS`] int32, written up to the record's `num_logprobs`.
            top_logprobs: [`MAX_TOP_LOGPROBS`] float32, likewise.
        """

    def score(
        self,
        logits: NDArray[np.float32],
        target: int,
        top_ids: NDArray[np.int32],
        top_logprobs: NDArray[np.float32],
    ) -> tuple[float, int]:
        """Raw log-probability and rank of `target`; NaN and 0 if the logits are unusable.

        `top_ids` and `top_logprobs`, of equal length, are filled with the likeliest tokens.
        """

    def logprobs_of(
        self,
        logits: NDArray[np.float32],
        ids: NDArray[np.int32],
        logprobs: NDArray[np.float32],
    ) -> None:
        """Write the raw log-probability of each of `ids` to `logprobs`; NaN if the logits are unusable."""

ATTENTION_CHUNK: int
"""Tokens that attention reads together: those of a window are read from a multiple of it on."""

SAMPLING_ROW_LAYOUT: list[tuple[str, int, int]]
"""Name, byte offset and size of each field of a record of sampling parameters, without padding."""

@final
class StepArrays:
    """The arrays of a step and of its results, reusable for further steps.

    Keeps references to the arrays, whose memory must not move. They are copied when a step begins and
    written when it ends, both with the GIL held, so a step with other values in the same arrays needs no
    new object, and changing them during a step has no effect on it.
    """

    def __new__(
        cls,
        rows: NDArray[np.int32],
        query_start: NDArray[np.int32],
        token_ids: NDArray[np.int32],
        positions: NDArray[np.int32],
        needs_logits: NDArray[np.uint8],
        block_tables: NDArray[np.int32],
        token_table: NDArray[np.int32],
        num_tokens: NDArray[np.int32],
        penalty_start: NDArray[np.int32],
        sampling: NDArray[np.uint8],
        bias_rows: NDArray[np.int32],
        bias_ids: NDArray[np.int32],
        bias_values: NDArray[np.float32],
        logprob_rows: NDArray[np.int32],
        logprob_ids: NDArray[np.int32],
        breaker_heads: NDArray[np.uint32],
        breaker_tails: NDArray[np.int32],
        mask_rows: NDArray[np.int32],
        mask_bits: NDArray[np.uint32],
        num_draft_tokens: NDArray[np.int32],
        score_tokens: NDArray[np.int32],
        score_targets: NDArray[np.int32],
        score_tops: NDArray[np.int32],
        state_slots: NDArray[np.int32],
        window_blocks: NDArray[np.int32],
        sampled: NDArray[np.int32],
        logprobs: NDArray[np.float32],
        top_ids: NDArray[np.int32],
        top_logprobs: NDArray[np.float32],
        token_id_logprobs: NDArray[np.float32],
        failed: NDArray[np.uint8],
        accepted: NDArray[np.int32],
        draft_logprobs: NDArray[np.float32],
        draft_top_ids: NDArray[np.int32],
        draft_top_logprobs: NDArray[np.float32],
        score_logprobs: NDArray[np.float32],
        score_ranks: NDArray[np.int32],
        score_top_ids: NDArray[np.int32],
        score_top_logprobs: NDArray[np.float32],
    ) -> StepArrays:
        """Hold the arrays of a plan and its results.

        Args:
            rows: first of the fields of `StepPlan` (`engine/executors/base.py`), in their order, with
                `sampling` as bytes.
            sampled: first of the fields of `StepResult`, in their order, filled by the step.

        Raises:
            TypeError: an array has the wrong type or number of dimensions.
            ValueError: an array is not C-contiguous, or two output arrays overlap.
        """

class StepEntryError(ValueError):
    """One entry of a step's plan is invalid; nothing was computed.

    `args` are the sentence and the index of the entry.
    """

@final
class YieldedCore:
    """A core that a compute thread has yielded. Released too when this is dropped."""

    def release(self) -> None:
        """Let the compute thread return, also into a running step. Idempotent."""

@final
class PackedSaving:
    """Writes the packed weights of a loaded model to a file, once. Keeps them in memory until then."""

    @property
    def path(self) -> Path:
        """The file that will be written."""

    @property
    def file_bytes(self) -> int:
        """Bytes of that file."""

    def save(self) -> Literal["done", "cancelled", "busy"]:
        """Write, sync and rename the file. The GIL is released meanwhile.

        A thread of the lowest priority does the work. `busy`: another process is writing the same file;
        `cancelled` also if it was saved before.

        Raises:
            OSError: the folder or file cannot be written; nothing is left behind.
        """

    def cancel(self) -> None:
        """Stop `save` soon; its unfinished file is removed. From any thread."""

def inspect_packed(path: str | PathLike[str]) -> dict[str, Any]:
    """The header of a file of packed weights: `source`, `source_id` and `weight_bytes`.

    Raises:
        ValueError: it is none, is damaged, or others can write to it.
    """

def verify_packed(path: str | PathLike[str]) -> None:
    """Read a file of packed weights and compare its checksum. The GIL is released meanwhile.

    Raises:
        ValueError: it is damaged, or as for `inspect_packed`.
    """

class NativeExecutor:
    """A loaded model and its KV cache. Runs one step at a time, from any thread."""

    def __new__(
        cls,
        spec_json: str,
        paths: Sequence[str | PathLike[str]],
        *,
        num_blocks: int,
        block_size: int,
        weights: str,
        kv_dtype: str,
        threads: int | None,
        dispatch: str,
        max_rows: int,
        max_batched_tokens: int,
        max_model_len: int,
        state_slots: int = 0,
        window_blocks: int = 0,
        packed_weights: tuple[str | PathLike[str], bytes, str] | None = None,
        packs_into_file: bool = False,
        progress: Callable[[float], object] | None = None,
    ) -> NativeExecutor:
        """Open the weight files, check every tensor, map or pack the weights, reserve the KV cache.

        The GIL is released meanwhile.

        Args:
            spec_json: `ModelSpec.to_json()`.
            paths: one GGUF file, one safetensors directory, or safetensors files.
            num_blocks: KV blocks in the pool.
            block_size: tokens in a block; a multiple of 16.
            weights: `stored`, or `q8` or `q4` to quantize float weights while they are packed.
            kv_dtype: `f16`, `f32` or `int8`.
            threads: compute threads, including the caller's; None takes the physical cores that
                affinity mask and cgroup quota allow.
            dispatch: `auto`, `amx`, `avx512`, `avxvnni`, `avx2` or `portable`; the environment
                variable `PRAVAHA_DISPATCH` overrides it.
            max_rows: the most requests of a step and rows of the row-indexed arrays.
            max_batched_tokens: the most tokens of a step.
            max_model_len: the most positions of a sequence.
            state_slots: slots for recurrent states; not used for a model without.
            window_blocks: blocks of the layers that need to keep a window only; with 0 they keep all tokens.
            packed_weights: folder in which packed weights are kept, 32 bytes that identify the contents of
                `paths`, and the model's path, which the file names; None packs them.
            packs_into_file: whether packed weights that are not there yet are packed into the file and
                mapped, not in memory; waits while another process does so.
            progress: called with the fraction loaded, in (0, 1], after each layer, or after each 16 MiB that
                are packed into the file. What it raises stops the load; an unfinished file is removed.

        Raises:
            ValueError: files, spec or configuration are unusable; one sentence says why.
            OSError: the packed weights cannot be written to their file.
            MemoryError: weights, KV cache or work buffers do not fit.
            RuntimeError: a compute thread could not be started.
        """

    @property
    def info(self) -> dict[str, Any]:
        """Properties of the loaded model.

        `dispatch`, `threads`, `weight_format`, `weight_bytes`, `work_bytes`, `kv_bytes`, `kv_dtype`,
        `parameters`; `packed`: `off`, `mapped`, `missing` or `unusable`; `packed_path` and
        `packed_reason`, a clause, or None.
        """

    def packed_saving(self) -> PackedSaving | None:
        """What saves the packed weights; None if they are not kept, or were mapped."""

    def execute(self, arrays: StepArrays) -> None:
        """Run one step. The GIL is released meanwhile.

        Raises:
            StepEntryError: one entry of the plan is invalid; nothing was computed.
            ValueError: the arrays contradict each other or the limits; nothing was computed.
            RuntimeError: the executor is closed, runs a step on another thread, or a compute thread
                panicked.
        """

    def yield_core(self) -> YieldedCore:
        """Make the last compute thread yield its core, also in the middle of a step, and wait for that.

        The thread yields after the item it computes, so the wait is microseconds, at most 2 ms. No thread
        yields if there is only one, or during a step of few rows. The GIL is released meanwhile. May be
        called from any thread, also while the core is yielded already or after `close`.
        """

    def copy_blocks(self, sources: NDArray[np.int32], targets: NDArray[np.int32]) -> None:
        """Copy the KV of block `sources[i]` to block `targets[i]`, in every layer, in order.

        The GIL is released meanwhile.

        Raises:
            ValueError: the lists differ in length or name a block outside the pool; nothing was
                copied.
            RuntimeError: the executor is closed or busy.
        """

    @property
    def window_block_bytes(self) -> int:
        """Bytes of a window block over the layers that keep a window only; 0 if all keep every token."""

    def copy_window_blocks(self, sources: NDArray[np.int32], targets: NDArray[np.int32]) -> None:
        """As `copy_blocks`, for window blocks."""

    def read_window_blocks(self, blocks: NDArray[np.int32], data: NDArray[np.uint8]) -> None:
        """As `read_blocks`, for window blocks: [n, window_block_bytes]."""

    def write_window_blocks(self, blocks: NDArray[np.int32], data: NDArray[np.uint8]) -> None:
        """As `write_blocks`, for window blocks."""

    @property
    def state_bytes(self) -> int:
        """Bytes of a recurrent state over all layers; 0 for a model without."""

    def copy_states(self, sources: NDArray[np.int32], targets: NDArray[np.int32]) -> None:
        """Copy state slot `sources[i]` to slot `targets[i]`, in every layer, in order.

        Raises:
            ValueError: the lists differ in length or name a slot outside the pool; nothing was copied.
            RuntimeError: the executor is closed or runs a step on another thread.
        """

    def read_states(self, slots: NDArray[np.int32], data: NDArray[np.uint8]) -> None:
        """Copy each slot's bytes into its row of `data`, `[slots, state_bytes]`.

        The GIL is released meanwhile.

        Raises:
            ValueError: `data` has another size, or a slot is outside the pool; nothing was copied.
            RuntimeError: the executor is closed or runs a step on another thread.
        """

    def write_states(self, slots: NDArray[np.int32], data: NDArray[np.uint8]) -> None:
        """Copy each row of `data`, as written by `read_states`, into its slot.

        The GIL is released meanwhile.

        Raises:
            ValueError: `data` has another size, or a slot is outside the pool; nothing was copied.
            RuntimeError: the executor is closed or runs a step on another thread.
        """

    def time_phases(self, wanted: bool) -> None:
        """Enable or disable phase timing of the following steps; costs a few microseconds a step."""

    def take_phase_seconds(self) -> dict[str, float]:
        """Seconds of each phase since the last call, averaged over workers; they sum to the steps' time."""
    @property
    def block_bytes(self) -> int:
        """Bytes of a KV block over all layers."""

    def read_blocks(self, blocks: NDArray[np.int32], data: NDArray[np.uint8]) -> None:
        """Copy each block's bytes into its row of `data`, [n, block_bytes]; the GIL is released.

        Raises:
            ValueError: the shapes differ or a block is outside the pool; nothing was copied.
            RuntimeError: the executor is closed or busy.
        """

    def write_blocks(self, blocks: NDArray[np.int32], data: NDArray[np.uint8]) -> None:
        """Copy rows that `read_blocks` filled into blocks; the GIL is released.

        Raises:
            ValueError: the shapes differ or a block is outside the pool; nothing was copied.
            RuntimeError: the executor is closed or busy.
        """

    def close(self) -> None:
        """Free weights and KV cache, end the threads. Idempotent."""

def plan_memory(
    spec_json: str,
    paths: Sequence[str | PathLike[str]],
    *,
    block_size: int,
    weights: str,
    kv_dtype: str,
    threads: int | None,
    max_rows: int,
    max_batched_tokens: int,
    max_model_len: int,
) -> dict[str, Any]:
    """Bytes that a `NativeExecutor` with these arguments will hold, from the files' headers.

    Computed by the code that allocates them. The GIL is released meanwhile.

    Returns:
        `weight_bytes`, the packed weights; `active_bytes`, those of them that a token uses, which are all but
        the experts that it does not choose; `weight_format`, the type of most of them; `work_bytes`, the
        buffers of a step; `block_bytes`, a KV block over all layers; `window_block_bytes`, its part in the
        layers that need to keep a window only, and `window`, the tokens of the largest such window, both 0
        without; `state_bytes`, a recurrent state over all layers.

    Raises:
        ValueError: files, spec or configuration are unusable; one sentence says why.
        MemoryError: the work buffers exceed the address space.
    """

def find_packed(
    spec_json: str,
    paths: Sequence[str | PathLike[str]],
    *,
    weights: str,
    packed_weights: tuple[str | PathLike[str], bytes, str],
) -> dict[str, Any]:
    """The file of a model's packed weights, from the headers of `paths`; see `NativeExecutor`.

    Returns:
        `path`; `file_bytes`, its length; `found`, whether it is there and can be used.

    Raises:
        ValueError: files or spec are unusable; one sentence says why.
    """

def measure_read_bandwidth(
    nbytes: int, threads: int | None, seconds: float, *, huge_pages: bool = True
) -> float:
    """Bytes per second that all threads together read from a buffer of `nbytes`; best pass."""

def measure_int8_dot(threads: int | None, seconds: float) -> float:
    """Operations per second of the dispatch level's integer dot product; best pass."""

def peak_instructions() -> list[tuple[str, str, bool]]:
    """Measurable instructions: name, data type, and whether this process can run them."""

def measure_peak(instruction: str, threads: int | None, seconds: float) -> float:
    """Operations per second of an instruction of `peak_instructions`, from registers; best pass.

    A multiplication and an addition are two operations.

    Raises:
        ValueError: there is no such instruction, or this machine lacks it.
    """

def measure_barrier(threads: int | None, seconds: float) -> float:
    """Seconds that a barrier takes when all threads arrive together; best pass."""

def cpu_features() -> dict[str, Any]:
    """CPU features and cores that this process may use.

    The first call requests AMX tiles from the operating system if the processor has them.

    Returns:
        `level`, the best dispatch level; `levels`, all that can run, best first; `obstacles`, for each
        other level a clause that says why it cannot run; the processor's `flags`; `threads` by default;
        `cores`, `affinity` and `quota`.
    """

# --- embeddings -----------------------------------------------------------------------------------

@final
class BertEncoder:
    """A BERT encoder: mean-pooled unit vectors of texts given as token ids. Callable from any thread."""

    def __new__(
        cls,
        config_json: str,
        weights: str | PathLike[str],
        *,
        precision: str,
        threads: int | None,
        dispatch: str,
    ) -> BertEncoder:
        """Load from `config.json`'s text and a safetensors file; the GIL is released meanwhile.

        Args:
            config_json: the configuration.
            weights: the file.
            precision: of the matrix products: "f32", or "int8" with a scale for each 32 inputs.
            threads: compute threads; None for the default.
            dispatch: instruction-set level.

        Raises:
            ValueError: the configuration or the weights are damaged or unsupported.
            MemoryError: memory is short.
        """

    @property
    def dimensions(self) -> int:
        """Dimensions of the vectors."""

    @property
    def max_positions(self) -> int:
        """The most tokens of a text."""

    def encode(self, ids: NDArray[np.int32], starts: NDArray[np.int64]) -> NDArray[np.float32]:
        """Vectors of ragged texts; the GIL is released meanwhile.

        Args:
            ids: [T] int32, the texts concatenated, special tokens included.
            starts: [N + 1] int64, start of each text; the last is T.

        Returns:
            [N, dimensions] float32.

        Raises:
            ValueError: the arrays contradict each other or the model.
            RuntimeError: a worker failed.
        """

# --- dense search -----------------------------------------------------------------------------------

class VectorLayout:
    """How vectors are stored as rows of bytes, and exact search over such rows. Callable from any thread."""

    def __new__(cls, dtype: str, dimensions: int) -> VectorLayout:
        """Define a layout.

        Args:
            dtype: "f32", "f16" or "int8" (with a scale for each vector).
            dimensions: from 1 to 16,384.

        Raises:
            ValueError: there is no such layout.
        """

    @property
    def row_bytes(self) -> int:
        """Bytes of a stored vector. That many zero bytes are a vector of zeros."""

    def encode(self, vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Rows [N * row_bytes] of vectors given as [N * dimensions]; the GIL is released meanwhile.

        Raises:
            ValueError: a value is not finite, or too large for the type.
        """

    def decode(self, rows: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The vectors [N * dimensions] that rows [N * row_bytes] hold; the GIL is released meanwhile."""

    def search(
        self,
        rows: NDArray[np.uint8],
        queries: NDArray[np.float32],
        k: int,
        *,
        allowed: NDArray[np.uint8] | None,
        threads: int | None,
        dispatch: str,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The rows with the largest dot products; the GIL is released meanwhile.

        Scores do not depend on threads or on the other queries.

        Args:
            rows: [R * row_bytes], C-contiguous.
            queries: [N, dimensions], C-contiguous.
            k: number of rows to find for each query.
            allowed: bit `i % 8` of byte `i / 8` allows row `i`; rows beyond it are not allowed. None
                allows all.
            threads: the most compute threads, the caller's included; None for the default. Small
                searches use fewer.
            dispatch: instruction-set level.

        Returns:
            Row numbers and scores, both [N, k], best first; equal scores by row number. Row -1 and
            score -inf follow where fewer rows are allowed.

        Raises:
            ValueError: the arrays do not fit the layout, or a query is not finite.
        """

# --- sandbox: restrictions of the calling process that cannot be undone ----------------------------

def landlock_abi() -> int:
    """The version of the kernel's Landlock; 0 if there is none."""

def has_seccomp_filters() -> bool:
    """Whether the kernel has seccomp filters."""

def enter_namespaces(*, own_network: bool) -> None:
    """Enter new user, mount, process, IPC and host name namespaces, and a network one on request.

    Children started afterwards are in the process namespace, and all end with the first of them.

    Raises:
        OSError: the kernel, a container or a security module does not permit it.
    """

def mount_proc() -> None:
    """Mount a fresh `/proc`; called by the first process of a process namespace.

    Raises:
        OSError: the kernel refuses.
    """

def bind_mount(
    source: str | PathLike[str], target: str | PathLike[str], *, read_only: bool
) -> None:
    """Show one folder or file at another path, in this mount namespace.

    Raises:
        OSError: a path does not exist, or the kernel refuses.
    """

def become_subreaper() -> None:
    """Let orphaned descendants become children of this process."""

def signal_when_parent_ends(signal: int) -> None:
    """Have a signal sent to this process when the thread that started it ends.

    Raises:
        OSError: there is no such signal.
    """

def hide_memory() -> None:
    """Keep other processes of the user from reading this one's memory, until it executes another program."""

def drop_privileges() -> None:
    """Drop all capabilities and set `no_new_privs`, also for every program executed later.

    Raises:
        OSError: the kernel refuses.
    """

def restrict_files(
    *,
    readable: Sequence[str | PathLike[str]],
    writable: Sequence[str | PathLike[str]],
    tcp: bool,
) -> None:
    """Restrict this process and its descendants by Landlock to these files and folders.

    Paths that do not exist are left out. `drop_privileges` comes first. From ABI 4 on TCP is denied unless
    `tcp`; from ABI 6 on signals and abstract sockets reach only processes under the same restriction.

    Raises:
        OSError: the kernel has no Landlock, or refuses a rule.
    """

def filter_system_calls(
    *, internet: bool, unix_sockets: bool, tracing: bool, own_namespaces: bool
) -> None:
    """Install the seccomp filter. `drop_privileges` comes first.

    Args:
        internet: permit IPv4 and IPv6 sockets.
        unix_sockets: permit Unix sockets with names.
        tracing: permit tracing other processes.
        own_namespaces: whether the process is in process and IPC namespaces of its own.

    Raises:
        OSError: the kernel has no seccomp filters.
    """

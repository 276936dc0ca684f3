"""`ReuseFinder`: finds KV that a waiting request can reuse instead of computing it.

There are three sources, all of them limited to the request's cache salt. The prefix cache holds full
blocks of running and finished requests. The swap tier holds blocks that were evicted from the pool and
continue the cached prefix. A *donor* is a running request with the same leading tokens: the parent of a
fork, or a row found by comparing tokens. A donor's blocks can be shared up to the last token, the
partial block included. If the donor is still computing them, the request is deferred, which is cheaper
than computing them twice (in-batch deduplication).

For a model with recurrent layers, KV is of use only up to a token after which there is a state
(`engine.memory.recurrent_states`): a checkpoint, a stored state, or that of a donor that has computed just as
many tokens. A request that waits for a donor lets it make a checkpoint where their tokens part.

For a model with sliding windows, KV is of use only up to a token after which the window is complete
(`engine.memory.sliding_windows`): that of a donor, one that was kept, or a stored one.

A request does not wait for a donor that lost its row, finished, or has no pending prefill. Cost: a
lookup hashes the prompt once; the donor search compares one block of tokens with each running row,
and whole prompts only where that block matches.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from engine.batch.rows import RowTable
from engine.batch.sequence import NO_ROW, Sequence
from engine.memory.block_manager import BlockManager
from engine.memory.image_identity import common_images_until, identity_tokens
from engine.memory.kv_identity import NO_CACHE_SALT
from engine.memory.recurrent_states import RunningState, StateSource
from engine.memory.swap_tier import NO_ENTRIES

_NO_BLOCKS: NDArray[np.int32] = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class Reuse:
    """Blocks that a request starts with.

    Attributes:
        blocks: [B] int32, in sequence order; their refcounts are not incremented yet.
        tokens: number of tokens whose KV is reused; fewer than the request has.
        indexed: number of leading blocks that are in the prefix trie.
        swapped: [S] int64, entries of the swap tier that hold the blocks after these.
        parent_id: the running request whose blocks these are; None if they come from the cache.
        state: the recurrent state after the last of these tokens, or a stored window; None for a model
            without recurrent layers, with a window that is in the pool, and if there are no tokens.
        fallback: a shorter reuse that needs neither the swap tier nor a copied block; None if dropping them
            suffices.
        shared: leading tokens that are in the pool or the tier, with or without a state.
    """

    blocks: NDArray[np.int32]
    tokens: int
    indexed: int
    swapped: NDArray[np.int64] = field(default_factory=lambda: NO_ENTRIES)
    parent_id: str | None = None
    state: StateSource | None = None
    fallback: "Reuse | None" = None
    shared: int = 0

    def has_partial_block(self, block_size: int) -> bool:
        """Whether the last block is used in part, so that the request's first write goes into it."""
        return self.tokens < len(self.blocks) * block_size

    def whole_blocks(self, block_size: int) -> "Reuse":
        """This reuse without a partially used last block, which would have to be copied."""
        if self.fallback is not None:
            return self.fallback
        count = self.tokens // block_size
        return replace(
            self,
            blocks=self.blocks[:count],
            tokens=count * block_size,
            indexed=min(self.indexed, count),
            swapped=NO_ENTRIES,
        )

    def nothing(self) -> "Reuse":
        """No reuse: everything is computed."""
        return Reuse(_NO_BLOCKS, 0, 0, shared=self.shared)


class ReuseFinder:
    """Finds reusable KV at admission. Owned by the scheduler."""

    def __init__(self, table: RowTable, blocks: BlockManager) -> None:
        self._table = table
        self._blocks = blocks

    def waits_for_donor(self, sequence: Sequence) -> bool:
        """Whether the sequence's donor is still computing tokens that it can reuse. O(1)."""
        donor, table = sequence.donor, self._table
        if donor is None:
            return False
        row = donor.row
        if row == NO_ROW:
            sequence.donor = None  # finished or preempted; what it computed may be cached
            sequence.missing_blocks = sequence.missing_window_blocks = 0
            return False
        wanted = min(sequence.donor_tokens, sequence.num_reusable_tokens)
        num_pending_tokens = table.num_tokens[row] - table.num_computed[row]
        waits = bool(num_pending_tokens > 1 and table.num_computed[row] < wanted)
        kept = self._blocks.recurrent or self._blocks.windows
        if waits and kept is not None:
            kept.add_border(row, wanted, int(table.num_computed[row]))
        return waits

    def find(self, sequence: Sequence, running: NDArray[np.int32]) -> Reuse | None:
        """The KV that the sequence can reuse now, or None if it should wait for a donor.

        Args:
            sequence: a waiting sequence for which `waits_for_donor` is False.
            running: [R] int32, rows that may be donors.
        """
        target = sequence.num_reusable_tokens
        size = self._table.block_size
        prefixes = self._blocks.prefixes
        cached = _NO_BLOCKS
        identity = identity_tokens(sequence.tokens, sequence.request.images, size)
        if prefixes is not None:
            cached = prefixes.match(identity, sequence.cache_salt)
        cached = cached[: self._blocks.blocks_for(target)]
        hit = min(len(cached) * size, target)
        swapped = self._find_swapped(sequence, identity, len(cached), target // size)
        hit += len(swapped) * size
        if sequence.donor is None and prefixes is not None:
            self._look_for_donor(sequence, running, hit)
            if self.waits_for_donor(sequence):
                return None
        if self._blocks.recurrent is not None:
            return self._find_with_state(sequence, identity, cached, swapped)
        if self._blocks.windows is not None:
            return self._find_with_window(sequence, identity, cached, swapped)
        shared = self._shared_with_donor(sequence, target)
        if shared > hit:
            return self._from_donor(sequence, shared)
        whole = min(len(cached), hit // size)
        parent_id = sequence.donor.request_id if shared and sequence.donor is not None else None
        return Reuse(cached, hit - len(swapped) * size, whole, swapped, parent_id)

    def _find_with_state(
        self,
        sequence: Sequence,
        identity: NDArray[np.int32],
        cached: NDArray[np.int32],
        swapped: NDArray[np.int64],
    ) -> Reuse:
        """The longest reuse after which there is a state.

        Args:
            sequence: the waiting sequence.
            identity: its identity tokens.
            cached: [B] int32, leading blocks that are in the pool.
            swapped: [S] int64, entries of the swap tier that continue them.
        """
        states, table, size = self._blocks.recurrent, self._table, self._table.block_size
        if states is None:
            raise AssertionError("the model has no recurrent layers")
        target = sequence.num_reusable_tokens
        path = cached[: target // size]
        shared = (len(path) + len(swapped)) * size
        best = Reuse(_NO_BLOCKS, 0, 0, shared=shared)
        checkpoint, stored = states.find(identity, sequence.cache_salt, path, len(swapped))
        if checkpoint is not None:
            count = checkpoint.tokens // size
            best = replace(
                best, blocks=path[:count], tokens=checkpoint.tokens, indexed=count, state=checkpoint
            )
        if stored is not None:
            count = stored.tokens // size
            kept = min(count, len(path))
            best = replace(
                best,
                blocks=path[:kept],
                tokens=kept * size,
                indexed=kept,
                swapped=swapped[: count - kept],
                state=stored,
                fallback=best,
            )
        reused = best.tokens + len(best.swapped) * size
        donor = sequence.donor
        if donor is None or donor.row == NO_ROW:
            return best
        computed = int(table.num_computed[donor.row])
        if reused < computed <= min(sequence.donor_tokens, target):
            mine = best if best.fallback is None else best.fallback
            found = self._from_donor(sequence, computed)
            return replace(found, state=RunningState(donor.row), fallback=mine, shared=shared)
        return best

    def _find_with_window(
        self,
        sequence: Sequence,
        identity: NDArray[np.int32],
        cached: NDArray[np.int32],
        swapped: NDArray[np.int64],
    ) -> Reuse:
        """The longest reuse after which the window is complete; arguments as of `_find_with_state`."""
        windows, size = self._blocks.windows, self._table.block_size
        if windows is None:
            raise AssertionError("the model has no sliding windows")
        target = sequence.num_reusable_tokens
        path = cached[: target // size]
        most = (len(path) + len(swapped)) * size
        whole = self._with_window(path, most)
        best = whole
        if len(cached) > len(path) and windows.longest(cached) == len(cached):
            # All but the last token of the prompt, in a copy of its block.
            best = Reuse(cached, target, len(path), fallback=whole, shared=most)
        reused = best.tokens
        stored = windows.find(identity, sequence.cache_salt, above=reused, most=most)
        if stored is not None:
            count = stored.tokens // size
            kept = min(count, len(path))
            reused = stored.tokens
            best = Reuse(
                path[:kept],
                kept * size,
                kept,
                swapped[: count - kept],
                state=stored,
                fallback=whole,
                shared=most,
            )
        shared = self._shared_with_donor(sequence, target)
        if shared and sequence.donor is not None:
            found = self._from_donor(sequence, shared)
            if shared > reused and windows.is_complete(found.blocks, shared):
                return replace(found, fallback=whole, shared=most)
            best = replace(best, parent_id=sequence.donor.request_id)
        return best

    def _with_window(self, path: NDArray[np.int32], shared: int) -> Reuse:
        """The longest part of a path of indexed blocks after which the window is complete."""
        windows, size = self._blocks.windows, self._table.block_size
        count = 0 if windows is None else windows.longest(path)
        return Reuse(path[:count], count * size, count, shared=shared)

    def _find_swapped(
        self, sequence: Sequence, identity: NDArray[np.int32], first: int, last: int
    ) -> NDArray[np.int64]:
        """Swap-tier entries of the blocks [first, last) of the sequence's identity tokens."""
        tier = self._blocks.tier
        if tier is None:
            return NO_ENTRIES
        return tier.find(identity, first, last, sequence.cache_salt)

    def _shared_with_donor(self, sequence: Sequence, target: int) -> int:
        donor = sequence.donor
        if donor is None or donor.row == NO_ROW:
            return 0
        return min(sequence.donor_tokens, int(self._table.num_computed[donor.row]), target)

    def _from_donor(self, sequence: Sequence, shared: int) -> Reuse:
        if sequence.donor is None:
            raise AssertionError("the sequence has no donor")
        table, row = self._table, sequence.donor.row
        blocks = table.block_tables[row, : self._blocks.blocks_for(shared)].copy()
        indexed = min(int(table.num_indexed[row]), shared // table.block_size)
        return Reuse(blocks, shared, indexed, parent_id=sequence.donor.request_id)

    def _look_for_donor(self, sequence: Sequence, running: NDArray[np.int32], hit: int) -> None:
        """Find the running row with the longest common prefix, at least one block beyond `hit`.

        A remainder of the prompt shorter than a block counts as a block: sharing it costs one copy.
        """
        table, tokens = self._table, sequence.tokens
        target = sequence.num_reusable_tokens
        window = min(table.block_size, target - hit)
        if window <= 0 or not len(running):
            return
        end = hit + window
        rows = running[table.num_tokens[running] >= end]
        rows = rows[(table.token_table[rows, hit:end] == tokens[hit:end]).all(axis=1)]
        if table.cache_salts or sequence.cache_salt:
            salts = [table.cache_salts.get(row, NO_CACHE_SALT) for row in rows.tolist()]
            rows = rows[[salt == sequence.cache_salt for salt in salts]]
        if not rows.size:
            return
        num_tokens = table.num_tokens[rows]
        equal = table.token_table[rows, :target] == tokens[:target]
        equal &= np.arange(target) < num_tokens[:, None]
        common = np.where(equal.all(axis=1), target, equal.argmin(axis=1))
        if table.images or sequence.request.images:
            mine = sequence.request.images
            common = np.minimum(
                common,
                [common_images_until(mine, table.images.get(row, ())) for row in rows.tolist()],
            )
        best = int(np.lexsort((table.num_computed[rows], common))[-1])
        if common[best] >= end:
            sequence.donor = table.sequence(int(rows[best]))
            sequence.donor_tokens = int(common[best])

"""`Admission`: gives rows to waiting requests while the budget, rows and blocks last.

A request is admitted with what need not be computed (`engine.memory.reuse`): its `num_computed`
starts there. A request whose prefix or prompt scores a running request is computing right now is
deferred, and later requests may be admitted before it. The loop runs over the requests that are
admitted or deferred in this pass, never over the whole queue.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.batch.request_queue import RequestQueue
from engine.batch.rows import RowTable
from engine.batch.sequence import Sequence, Start
from engine.memory.block_copies import BlockCopies
from engine.memory.block_manager import BlockManager
from engine.memory.reuse import Reuse, ReuseFinder
from engine.memory.state_saver import StoredState
from engine.scheduler.ordering import Ranking
from engine.scheduler.row_blocks import RowBlocks
from engine.scheduler.running_rows import RunningRows

_WATERMARK_SHARE = 0.01
MAX_ROOM = 2**31 - 1


class Admitted(NamedTuple):
    """The requests that one pass admitted.

    Attributes:
        rows: [A] int32.
        num_scheduled_tokens: [A] int32, tokens each computes in this step.
        sequences: the sequences in these rows.
        unplaceable: sequences that need more blocks than the pool has, removed from the queue.
    """

    rows: NDArray[np.int32]
    num_scheduled_tokens: NDArray[np.int32]
    sequences: list[Sequence]
    unplaceable: list[Sequence]


class Admission:
    """Moves requests from the queue into rows. Owned by the scheduler.

    Attributes:
        copies: block copies that must be made before the step is executed.
    """

    def __init__(
        self,
        table: RowTable,
        blocks: BlockManager,
        waiting: RequestQueue,
        running: RunningRows,
        ranking: Ranking,
    ) -> None:
        self.copies = BlockCopies(blocks)
        self.reuse = ReuseFinder(table, blocks)
        self._table = table
        self._blocks = blocks
        self._row_blocks = RowBlocks(table, blocks)
        self._waiting = waiting
        self._running = running
        self._ranking = ranking

    def may_admit_shorter_than(
        self, num_pending_tokens: int, *, lowest_served: int | None = None
    ) -> bool:
        """Whether a waiting request of these classes has fewer pending tokens and seems to fit."""
        if not self._table.num_free:
            return False
        index = self._ranking.pick_shortest(self._waiting, lowest_served=lowest_served)
        if index is None:
            return False
        sequence, states = self._waiting.at(index), self._blocks.recurrent
        if states is not None and not states.has_room:
            return False
        shorter = self._waiting.columns().num_pending_tokens[index] < num_pending_tokens
        if sequence.missing_window_blocks > self._window_room():
            return False
        return bool(shorter) and sequence.missing_blocks <= self._blocks.num_free

    def admit(
        self,
        budget: int,
        now: float,
        *,
        shortest_first: bool = False,
        lowest_served: int | None = None,
    ) -> Admitted:
        """Admit requests in the policy's order, up to `budget` tokens.

        With `shortest_first`, those with the fewest pending tokens go first instead. `lowest_served` is
        the rank of the lowest service class that may be admitted; None admits all.

        A request is admitted only if blocks for all of its tokens are free beyond the watermark and
        the blocks promised to running requests. Its blocks are allocated chunk by chunk.
        """
        table, waiting, states = self._table, self._waiting, self._blocks.recurrent
        promised = self._row_blocks.promised(self._running.rows)
        rows: list[int] = []
        scheduled: list[int] = []
        admitted: list[Sequence] = []
        unplaceable: list[Sequence] = []
        deferred: list[Sequence] = []  # never more than could be admitted: bounds the pass
        while budget > 0 and len(waiting) and len(deferred) < table.num_free:
            if shortest_first:
                index = self._ranking.pick_shortest(waiting, lowest_served=lowest_served)
            else:
                index = self._ranking.pick(waiting, now, lowest_served=lowest_served)
            if index is None:
                break
            sequence = waiting.at(index)
            whole = self._blocks.blocks_for(len(sequence.tokens))
            if whole > self._blocks.num_blocks:
                unplaceable.append(waiting.pop(index))
                continue
            if sequence.waits_for_scores or self.reuse.waits_for_donor(sequence):
                deferred.append(waiting.pop(index))
                continue
            if states is not None and not states.has_room:
                break  # running rows have all the slots that they may have
            if sequence.missing_window_blocks > self._window_room():
                break
            room = self._blocks.num_free - promised - self._watermark()
            if sequence.missing_blocks > room:
                break  # known from the last attempt; saves hashing the prompt again in every step
            reuse = self.reuse.find(sequence, self._running.rows)
            if reuse is None:
                deferred.append(waiting.pop(index))
                continue
            reuse = self._fit(reuse, whole, room, sequence)
            if reuse is None or not self._fits_window(reuse, whole, sequence):
                break
            row = self._place(waiting.pop(index), reuse, now)
            self._ranking.admitted()
            computed = int(table.num_computed[row])
            chunk = min(budget, len(sequence.tokens) - computed)
            if states is not None:
                chunk = min(chunk, int(states.next_border[row]) - computed)
            budget -= chunk
            promised += whole - int(table.num_blocks[row])
            rows.append(row)
            scheduled.append(chunk)
            admitted.append(sequence)
            if reuse.swapped.size:
                break  # swap-in delays the step: at most one request per step
        for sequence in reversed(deferred):
            waiting.requeue(sequence)
        batch, num_scheduled_tokens = np.array(rows, np.int32), np.array(scheduled, np.int32)
        # One allocation for all rows: a dozen numpy calls per request would delay the step.
        missing = self._row_blocks.missing(batch, num_scheduled_tokens)
        self._row_blocks.allocate(batch, missing)
        return Admitted(batch, num_scheduled_tokens, admitted, unplaceable)

    def _fit(self, reuse: Reuse, whole: int, room: int, sequence: Sequence) -> Reuse | None:
        """The reuse with which a sequence of `whole` blocks fits into `room` free blocks, or None.

        Cached blocks that no row holds count as free until they are retained, so reusing them uses
        up free blocks. If there is no block for the copy of a partial last block, its tokens are
        computed again.
        """
        size = self._table.block_size
        options = [reuse]
        if reuse.has_partial_block(size):
            options.append(reuse.whole_blocks(size))
        for option in options:
            idle = self._blocks.count_available(option.blocks)
            needed = whole - len(option.blocks) + idle + option.has_partial_block(size)
            if needed <= room:
                return option
            sequence.missing_blocks = needed
        return None

    def _window_room(self) -> int:
        """Window blocks left for another request; plenty for a model without sliding windows."""
        windows = self._blocks.windows
        return MAX_ROOM if windows is None else windows.room(self._table, self._running.rows)

    def _fits_window(self, reuse: Reuse, whole: int, sequence: Sequence) -> bool:
        """Whether there are window blocks for a sequence of `whole` blocks that begins with `reuse`."""
        windows = self._blocks.windows
        if windows is None:
            return True
        tokens = reuse.tokens + len(reuse.swapped) * self._table.block_size
        sequence.missing_window_blocks = windows.needed(whole, reuse.blocks, tokens)
        return sequence.missing_window_blocks <= self._window_room()

    def _place(self, sequence: Sequence, reuse: Reuse, now: float) -> int:
        """Give a sequence a row that starts with the reused blocks.

        They are retained before anything is allocated, since an allocation may evict cached blocks.
        """
        table, states, windows = self._table, self._blocks.recurrent, self._blocks.windows
        if windows is not None and reuse.state is None:
            if not windows.is_complete(reuse.blocks, reuse.tokens):  # dropped since it was found
                reuse = reuse.nothing()
            windows.hold(reuse.blocks[windows.first_block(reuse.tokens) :])
        blocks = reuse.blocks
        self._blocks.retain(blocks)
        loaded = self._swap_in(reuse.swapped)
        if windows is not None and isinstance(reuse.state, StoredState):
            whole = len(loaded) == len(reuse.swapped)
            if not (whole and windows.restore(reuse.state, np.concatenate([blocks, loaded]))):
                return self._place_without_tier(sequence, reuse, loaded, now)
        slot = None
        if states is not None:
            slot = None if len(loaded) < len(reuse.swapped) else states.take(reuse.state)
            if slot is None:
                return self._place_without_tier(sequence, reuse, loaded, now)
        copied = None
        if reuse.has_partial_block(table.block_size):
            copied = self.copies.add(int(blocks[-1]))
            blocks[-1] = copied
        sequence.start = Start(reuse.tokens, len(blocks), copied, reuse.parent_id)
        sequence.swapped_tokens = len(loaded) * table.block_size
        computed = reuse.tokens + sequence.swapped_tokens
        if sequence.preemptions == 0:
            sequence.mailbox.cached_tokens = computed
        row = table.place(sequence, now)
        blocks = np.concatenate([blocks, loaded])
        table.assign_prefix_blocks(row, blocks, computed=computed, indexed=reuse.indexed)
        if windows is not None:
            windows.place(table, row, reuse.shared)
        if loaded.size:
            self._index_swapped_in(row, reuse, loaded)
        if states is not None and slot is not None:
            states.place(row, slot, states.borders(sequence.tokens, computed, reuse.shared))
        sequence.donor = None
        sequence.missing_blocks = sequence.missing_window_blocks = 0
        self._running.add(row)
        if self._blocks.sessions is not None:
            self._blocks.sessions.started(sequence)
        return row

    def _place_without_tier(
        self, sequence: Sequence, reuse: Reuse, loaded: NDArray[np.int32], now: float
    ) -> int:
        """As `_place`, where the tier's blocks or the stored state after them turned out to be damaged."""
        self._blocks.release(loaded)
        self._blocks.release(reuse.blocks)
        return self._place(sequence, reuse.fallback or reuse.nothing(), now)

    def _swap_in(self, entries: NDArray[np.int64]) -> NDArray[np.int32]:
        """New blocks with the content of swap-tier entries; fewer if an entry is damaged."""
        tier = self._blocks.tier
        if tier is None or not entries.size:
            return np.zeros(0, np.int32)
        blocks = self._blocks.allocate_hidden(len(entries))
        loaded = tier.load(entries, blocks)
        self._blocks.release(blocks[loaded:])
        return blocks[:loaded]

    def _index_swapped_in(self, row: int, reuse: Reuse, loaded: NDArray[np.int32]) -> None:
        """Add swapped-in blocks to the prefix trie, so that later requests of this pass find them."""
        prefixes, tier = self._blocks.prefixes, self._blocks.tier
        if prefixes is None or tier is None:
            raise AssertionError("blocks were swapped in without a prefix cache")
        prefixes.index(self._table, np.array([row], np.int32))
        tier.note_loaded(reuse.swapped[: len(loaded)], loaded)

    def _watermark(self) -> int:
        """Blocks reserved at admission: one per running row, at least 1 % of the pool.

        Without it a full pool would admit a request and preempt it for the next decode, repeatedly.
        An idle engine reserves none, or a request as large as the pool could never run.
        """
        running = len(self._running)
        if not running:
            return 0
        return max(running, int(self._blocks.num_blocks * _WATERMARK_SHARE))

"""`SlidingWindows`: which blocks have the keys and values of the layers with a sliding window.

Such a layer sees the last `window` tokens only, so a running row needs no more of it. The executor keeps
these layers apart, in *window blocks*, of which there are fewer than blocks
(`engine.executors.base.WindowKeeper`). A block that is allocated has one; when no row sees it any more, it is
given to another block as soon as one needs it.

A window is a state: what it holds depends on all tokens before it, so a sequence can be continued only
where its window is complete. As long as there is room, that is everywhere. When there is none, windows are
kept where the states of recurrent layers are: at the borders of a prompt (`engine.memory.state_borders`),
in every interval of an answer, and at the last block border of a row that ends or is preempted; and the one
that saves the least is dropped when others need its blocks (`engine.memory.state_checkpoints`). Unlike
states they are not copied: windows that overlap share their blocks, a border costs no step of its own, and
a row needs no slot.

* A row *holds* the window blocks of its blocks from `first_held` on. They include the window at the row's
  last block border, and the one before that if the row is at a border, so that both a row that ends and
  one that was forked can be continued from there.
* A kept window is a checkpoint of an indexed block, whose `slot` is the key of its window blocks.
* A window block is *active* (a row holds it), *kept* (it is in a kept window), *idle* (neither, but its
  block is still cached), or free. Blocks get free ones, then idle ones, least recently used first, then
  those of the kept window that saves the least. Rows never wait for them.

Invariants: a block in a row's window has a window block; a window block belongs to one block, which is
active or indexed; `of_block` and `_block_of` are inverse.

Engine's thread only, except `longest` and `find`. Cost: two numpy expressions per step; a few more, and a
Python loop, for rows that filled a block in it.
"""

import itertools
from collections import OrderedDict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from engine.api.snapshot import WindowCounts
from engine.batch.rows import RowTable
from engine.executors.base import WindowKeeper
from engine.memory.allocator import Allocator
from engine.memory.image_identity import identity_tokens
from engine.memory.kv_identity import NO_CACHE_SALT
from engine.memory.staging_writer import Buffer
from engine.memory.state_borders import borders_between
from engine.memory.state_checkpoints import Checkpoint, StateCheckpoints
from engine.memory.state_saver import FLUSH_S, StateSaver, StoredState
from engine.memory.state_store import StateStore
from engine.memory.window_size import blocks_of_window, first_block

_NO_BORDERS: list[int] = []


class SlidingWindows:
    """The window blocks of one pool.

    Attributes:
        of_block: [num_blocks] int32, block → its window block, -1 without one.
        first_held: [max_rows] int32, row → the first of its blocks whose window block it holds.
        checkpoints: the kept windows.
        num_blocks: window blocks of the executor.
        keeper: the executor; set before the first step.
        saver: stores windows that were dropped, and across restarts; None without a swap tier.
    """

    def __init__(
        self,
        *,
        num_blocks: int,
        window: int,
        chunk: int,
        max_rows: int,
        token_budget: int,
        allocator: Allocator,
        block_size: int,
        interval: int,
        block_bytes: int,
        control_ids: Iterable[int],
        keeps_checkpoints: bool,
    ) -> None:
        """No block has a window block.

        Args:
            num_blocks: window blocks of the executor.
            window: tokens of the largest window.
            chunk: tokens that attention reads together.
            max_rows: rows of the row table.
            token_budget: the most tokens of a step.
            allocator, block_size: of the block pool.
            interval: tokens between kept windows, rounded down to whole blocks, at least one.
            block_bytes: bytes of a window block.
            control_ids: control tokens, with which messages begin and end.
            keeps_checkpoints: False without a prefix cache.
        """
        self.of_block: NDArray[np.int32] = np.full(allocator.num_blocks, -1, np.int32)
        self.first_held: NDArray[np.int32] = np.zeros(max_rows, np.int32)
        self.checkpoints = StateCheckpoints(allocator)
        self.num_blocks = num_blocks
        self.keeper: WindowKeeper | None = None
        self.saver: StateSaver | None = None
        self._allocator = allocator
        self._window = window
        self._chunk = chunk
        self._block_size = block_size
        self._block_bytes = block_bytes
        self._interval = max(1, interval // block_size) * block_size
        self._control_ids = np.array(sorted(control_ids), np.int32)
        self._keeps = keeps_checkpoints
        self._most = blocks_of_window(window, chunk=chunk, block_size=block_size)
        self._step_blocks = -(-token_budget // block_size)
        self._block_of: NDArray[np.int32] = np.full(num_blocks, -1, np.int32)
        self._holders: NDArray[np.int32] = np.zeros(num_blocks, np.int32)  # rows that hold it
        self._keepers: NDArray[np.int32] = np.zeros(num_blocks, np.int32)  # kept windows it is in
        self._num_active = 0  # with a holder
        self._free = list(range(num_blocks - 1, -1, -1))
        self._idle: OrderedDict[int, None] = OrderedDict()  # the least recently used first
        self._kept: dict[int, NDArray[np.int32]] = {}  # a checkpoint's slot → its window blocks
        self._slots = itertools.count()
        self._num_full: NDArray[np.int32] = np.zeros(max_rows, np.int32)  # full blocks last seen
        self._borders: dict[int, list[int]] = {}  # row → its borders to come, ascending

    # ---- sizes ----

    @property
    def state_bytes(self) -> int:
        """Bytes of the largest kept window, as the state store has it."""
        return self._most * self._block_bytes

    @property
    def num_available(self) -> int:
        """Window blocks that new blocks can get: those that no row holds."""
        return self.num_blocks - self._num_active

    @property
    def num_free(self) -> int:
        """Window blocks that no block has."""
        return len(self._free)

    def room(self, table: RowTable, rows: NDArray[np.int32]) -> int:
        """Window blocks left for a request beside the running rows.

        These need those of a whole window each, and together those of a step.

        Args:
            table: the row table.
            rows: [R] int32, rows that hold a request.
        """
        if not len(rows):
            return self.num_available
        first = self.first_held[rows]
        whole = -(-table.num_tokens[rows] // self._block_size)
        wanted = np.minimum(whole - first, self._most + 2)
        promised = np.maximum(wanted - (table.num_blocks[rows] - first), 0).sum()
        return self.num_available - int(promised) - self._step_blocks - len(rows)

    def needed(self, whole: int, blocks: NDArray[np.int32], tokens: int) -> int:
        """Window blocks that become active if a request begins with these blocks.

        Args:
            whole: number of blocks of all its tokens.
            blocks: [B] int32, the blocks it begins with.
            tokens: tokens it begins with.
        """
        first = self.first_block(tokens)
        mine = self.of_block[blocks[first:]]
        shared = int(np.count_nonzero(self._holders[mine[mine >= 0]]))
        return max(0, min(whole - first, self._most + 2) - shared)

    def first_block(self, tokens: int) -> int:
        """The first block in the window of a sequence that continues after `tokens` tokens."""
        return first_block(tokens, self._window, chunk=self._chunk, block_size=self._block_size)

    # ---- where a request can begin ----

    def is_complete(self, blocks: NDArray[np.int32], tokens: int) -> bool:
        """Whether the window after `tokens` tokens is there, in the blocks of a sequence up to them."""
        return bool((self.of_block[blocks[self.first_block(tokens) :]] >= 0).all())

    def longest(self, path: NDArray[np.int32]) -> int:
        """Number of leading blocks of an indexed path after which the window is complete. Any thread."""
        depths = np.arange(1, len(path) + 1, dtype=np.int32)
        gap = np.maximum.accumulate(np.where(self.of_block[path] >= 0, 0, depths))
        hidden = np.maximum(0, depths * self._block_size - self._window)
        first = hidden // self._chunk * self._chunk // self._block_size
        found = np.flatnonzero(gap <= first)
        return int(depths[found[-1]]) if found.size else 0

    def find(
        self, identity: NDArray[np.int32], cache_salt: bytes, *, above: int, most: int
    ) -> StoredState | None:
        """The longest stored window of a request after more than `above` and at most `most` tokens.

        Any thread.
        """
        if self.saver is None:
            return None
        return self.saver.find(identity, cache_salt, above=above, most=most)

    # ---- window blocks of blocks ----

    def add(self, blocks: NDArray[np.int32]) -> None:
        """Give blocks without a window block one each, which the caller holds.

        The caller has checked that so many are available.
        """
        count = len(blocks)
        if count > len(self._free):
            self._make_room(count)
        mine = np.array([self._free.pop() for _ in range(count)], np.int32)
        self.of_block[blocks] = mine
        self._block_of[mine] = blocks
        self._holders[mine] = 1
        self._num_active += count

    def hold(self, blocks: NDArray[np.int32]) -> None:
        """Hold the window blocks of blocks once more; all have one."""
        mine = self.of_block[blocks]
        if (mine < 0).any():
            raise AssertionError(f"blocks {blocks} have the window blocks {mine}")
        self._use_again(mine)
        self._num_active += int(np.count_nonzero(self._holders[mine] == 0))
        self._holders[mine] += 1

    def let_go(self, blocks: NDArray[np.int32]) -> None:
        """Undo one `hold` of the window blocks of blocks, or `add`; a block may occur more than once."""
        if not blocks.size:
            return
        mine = self.of_block[blocks]
        np.subtract.at(self._holders, mine, 1)
        mine = np.unique(mine)
        mine = mine[self._holders[mine] == 0]
        self._num_active -= len(mine)
        self._put_back(mine[self._keepers[mine] == 0])

    def forget(self, blocks: NDArray[np.int32]) -> None:
        """Take the window blocks of blocks that were allocated again, after `drop_evicted`: they are idle."""
        mine = self.of_block[blocks]
        mine = mine[mine >= 0]
        if mine.size:
            self._use_again(mine)
            self._take(mine)

    def copy(self, sources: NDArray[np.int32], targets: NDArray[np.int32]) -> None:
        """Copy the window blocks of blocks, in order; all have one.

        Raises:
            ExecutorError: nothing was copied.
        """
        self._executor.copy_window_blocks(self.of_block[sources], self.of_block[targets])

    def replace(self, table: RowTable, before: NDArray[np.int32], rows: NDArray[np.int32]) -> None:
        """Follow rows whose duplicate blocks were replaced by indexed ones with the same tokens.

        Args:
            table: the rows.
            before: [N, max_blocks] int32, their block tables before that.
            rows: [N] int32.
        """
        for at, column in np.argwhere(before != table.block_tables[rows]).tolist():
            if column < self.first_held[rows[at]]:
                continue
            own = before[at, column : column + 1]
            indexed = table.block_tables[rows[at], column : column + 1]
            if self.of_block[indexed] >= 0:
                self.hold(indexed)
                self.let_go(own)
            else:
                self.of_block[indexed] = self.of_block[own]
                self._block_of[self.of_block[own]] = indexed
                self.of_block[own] = -1

    def restore(self, stored: StoredState, blocks: NDArray[np.int32]) -> bool:
        """Hold the window after a stored one's tokens; its blocks that have no window block get one.

        Args:
            stored: from `find`.
            blocks: [B] int32, the blocks up to these tokens.

        Returns:
            Whether that succeeded; otherwise nothing is held.
        """
        window = blocks[self.first_block(stored.tokens) :]
        has = self.of_block[window] >= 0
        there, new = window[has], window[~has]
        self.hold(there)
        self.add(new)

        def write(data: Buffer) -> None:
            rows = data[: len(window) * self._block_bytes].reshape(len(window), -1)
            self._executor.write_window_blocks(self.of_block[new], np.ascontiguousarray(rows[~has]))

        if self.saver is not None and self.saver.load(stored.key, write):
            return True
        self.let_go(there)
        unwritten = self.of_block[new]
        self._holders[unwritten] = 0
        self._num_active -= len(unwritten)
        self._take(unwritten)
        return False

    def _put_back(self, mine: NDArray[np.int32]) -> None:
        """Window blocks that nothing needs become idle if their blocks are indexed, and free if not."""
        blocks = self._block_of[mine]
        indexed = self._allocator.claims(blocks) > self._allocator.refcounts()[blocks]
        self._idle.update(dict.fromkeys(mine[indexed].tolist()))
        self._take(mine[~indexed])

    def _use_again(self, mine: NDArray[np.int32]) -> None:
        """Window blocks are no longer idle, if they were."""
        for one in mine.tolist():
            self._idle.pop(one, None)

    def _take(self, mine: NDArray[np.int32]) -> None:
        """Take window blocks from their blocks: they are free."""
        self.of_block[self._block_of[mine]] = -1
        self._block_of[mine] = -1
        self._free += mine.tolist()

    def _make_room(self, count: int) -> None:
        """Free window blocks until there are so many: idle ones, then those of the cheapest kept windows."""
        self._take_idle(count)
        if count <= len(self._free):
            return
        for victim in self.checkpoints.by_price():
            if (self._holders[self._kept[victim.slot]] == 0).any():
                self._save_victim(victim)
                self.checkpoints.evict(victim)
                self._drop(victim)
                self._take_idle(count)
                if count <= len(self._free):
                    return
        raise AssertionError(f"{count} window blocks are needed, {len(self._free)} are free")

    def _take_idle(self, count: int) -> None:
        """Free idle window blocks until there are `count` free ones or no idle ones."""
        wanted = min(count - len(self._free), len(self._idle))
        if wanted > 0:
            self._take(
                np.array([self._idle.popitem(last=False)[0] for _ in range(wanted)], np.int32)
            )

    @property
    def _executor(self) -> WindowKeeper:
        if self.keeper is None:
            raise AssertionError("a window was copied before the weights were loaded")
        return self.keeper

    # ---- rows ----

    def place(self, table: RowTable, row: int, shared: int) -> None:
        """Follow a row that was just placed and whose window is held.

        Args:
            table: the row table.
            row: the row.
            shared: its leading tokens whose KV is cached.
        """
        computed = int(table.num_computed[row])
        self.first_held[row] = self.first_block(computed)
        self._num_full[row] = computed // self._block_size
        if not self._keeps:
            return
        first = int(self._num_full[row]) * self._block_size
        tokens = table.token_table[row, : table.num_tokens[row]]
        control = np.flatnonzero(np.isin(tokens[first:], self._control_ids)) + first
        self._borders[row] = borders_between(
            first,
            len(tokens),
            block_size=self._block_size,
            interval=self._interval,
            messages=control.tolist(),
            most_messages=len(control),
            shared=shared,
        )
        if computed:  # a window that is used is worth keeping
            path = table.block_tables[row, : computed // self._block_size]
            used = self.checkpoints.find(path)
            if used is not None:
                self.checkpoints.touch(used)

    def add_border(self, row: int, tokens: int, computed: int) -> None:
        """Keep the window at the last border up to `tokens`, unless the row has computed more.

        For a request that waits until the row has computed tokens which they have in common.
        """
        border = tokens // self._block_size * self._block_size
        borders = self._borders.get(row, _NO_BORDERS)
        if self._keeps and border > computed and border not in borders:
            self._borders[row] = sorted([*borders, border])

    def after_step(self, table: RowTable, rows: NDArray[np.int32]) -> None:
        """Keep the windows at borders that rows passed, and let go what is before their own.

        Args:
            table: the rows, with the step's result and the blocks indexed.
            rows: [R] int32, the step's rows.
        """
        grown = table.num_computed[rows] // self._block_size > self._num_full[rows]
        if np.count_nonzero(grown):
            for row in rows[grown].tolist():
                self._pass(table, row)

    def _pass(self, table: RowTable, row: int) -> None:
        """As `after_step`, for one row that filled a block."""
        size = self._block_size
        before, computed = int(self._num_full[row]) * size, int(table.num_computed[row])
        indexed = int(table.num_indexed[row]) * size
        if self._keeps:
            borders = self._borders[row]
            passed = {border for border in borders if border <= computed}
            if passed:
                self._borders[row] = [border for border in borders if border > computed]
            passed.update(
                range((before // self._interval + 1) * self._interval, computed + 1, self._interval)
            )
            for border in sorted(passed):
                if before < border <= indexed:
                    self._keep(table, row, border)
        self._num_full[row] = computed // size
        first, held = self.first_block((computed - 1) // size * size), int(self.first_held[row])
        if first > held:
            self.let_go(table.block_tables[row, held:first])
            self.first_held[row] = first

    def keep_end(self, table: RowTable, row: int) -> None:
        """Keep the window at the last block border of a row, which ends or is preempted."""
        tokens = int(table.num_indexed[row]) * self._block_size
        if self._keeps and tokens:
            self._keep(table, row, tokens)

    def release(self, table: RowTable, row: int) -> None:
        """Let go the window of a row that is about to be released; the one at its end is kept."""
        self.keep_end(table, row)
        held, end = int(self.first_held[row]), int(table.num_blocks[row])
        self.let_go(table.block_tables[row, held:end])
        self.first_held[row] = self._num_full[row] = 0
        self._borders.pop(row, None)
        if self.saver is not None:
            self.saver.keys.forget(row)

    # ---- kept windows ----

    def _keep(self, table: RowTable, row: int, tokens: int) -> None:
        """Keep the window of a row after so many tokens, whose blocks are indexed, if it is complete."""
        path = table.block_tables[row, : tokens // self._block_size]
        there = self.checkpoints.at(int(path[-1]))
        if there is not None:
            self.checkpoints.touch(there)
            return
        mine = self.of_block[path[self.first_block(tokens) :]]
        if (mine < 0).any():
            return
        self._use_again(mine)
        slot = next(self._slots)
        self._kept[slot] = mine
        self._keepers[mine] += 1
        key = self._key(table, row, tokens)
        self.checkpoints.add(int(path[-1]), slot, tokens, key, path[:-1])

    def _key(self, table: RowTable, row: int, tokens: int) -> bytes:
        if self.saver is None:
            return b""
        identity = identity_tokens(
            table.token_table[row, :tokens], table.images.get(row, ()), self._block_size
        )
        return self.saver.keys.of_row(row, identity, table.cache_salts.get(row, NO_CACHE_SALT))

    def _drop(self, checkpoint: Checkpoint) -> None:
        """The window blocks of a checkpoint that was dropped are no longer kept for it."""
        mine = self._kept.pop(checkpoint.slot)
        self._keepers[mine] -= 1
        self._put_back(mine[(self._keepers[mine] == 0) & (self._holders[mine] == 0)])

    def drop_evicted(self) -> None:
        """Drop the windows that end in blocks that were evicted, and store them if they are not stored."""
        for checkpoint in self.checkpoints.drop_evicted():
            self._save_victim(checkpoint)
            self._drop(checkpoint)

    def skip_storing(self, blocks: NDArray[np.int32]) -> None:
        """Do not store the windows that end in these blocks: computing their tokens again is cheaper."""
        for block in blocks.tolist():
            checkpoint = self.checkpoints.at(block)
            if checkpoint is not None:
                checkpoint.key = b""

    # ---- the state store ----

    def save_in(self, store: StateStore) -> None:
        """Save kept windows in a store from now on. The executor is set."""
        self.saver = StateSaver(store, self._read)

    def _read(self, checkpoint: Checkpoint, buffer: Buffer) -> None:
        mine = self._kept[checkpoint.slot]
        rows = buffer.reshape(self._most, self._block_bytes)
        self._executor.read_window_blocks(mine, rows[: len(mine)])

    def _save_victim(self, victim: Checkpoint) -> None:
        if self.saver is not None:
            self.saver.save_victim(victim)

    def save_idle(self) -> bool:
        """Store the most valuable window that is not stored; False if none is left to store."""
        return self.saver is not None and self.saver.save_idle(self.checkpoints)

    def close(self, seconds: float = FLUSH_S) -> None:
        """Store what is not stored yet for at most `seconds`, and close the store."""
        saver, self.saver = self.saver, None
        if saver is not None:
            saver.close(self.checkpoints, seconds)

    # ---- counts ----

    def counts(self) -> WindowCounts:
        """The window blocks by state."""
        return WindowCounts(
            total=self.num_blocks,
            free=len(self._free),
            active=self._num_active,
            block_bytes=self._block_bytes,
            tokens=self._window,
            windows=len(self.checkpoints),
            evicted=self.checkpoints.num_evicted,
            stored=0 if self.saver is None else len(self.saver.store),
        )

    def check_integrity(self, table: RowTable | None = None) -> None:
        """Raise if an invariant is violated; for tests, between steps.

        Raises:
            AssertionError: a window block has two blocks or is lost, is held or kept by other rows and
                windows than it should, or a row lacks one.
        """
        self.checkpoints.check_integrity()
        used = np.flatnonzero(self._block_of >= 0)
        if sorted([*used.tolist(), *self._free]) != list(range(self.num_blocks)):
            raise AssertionError("window blocks are lost, or both free and in use")
        if not np.array_equal(self.of_block[self._block_of[used]], used):
            raise AssertionError("blocks and window blocks name different ones")
        if np.count_nonzero(self.of_block >= 0) != len(used):
            raise AssertionError("two blocks have the same window block")
        keepers = np.zeros_like(self._keepers)
        for one in self.checkpoints:
            mine = self._kept[one.slot]
            if self._block_of[mine[-1]] != one.block:
                raise AssertionError(f"the window kept at block {one.block} ends elsewhere")
            if len(mine) != one.tokens // self._block_size - self.first_block(one.tokens):
                raise AssertionError(f"the window kept at block {one.block} is not complete")
            keepers[mine] += 1
        if len(self._kept) != len(self.checkpoints) or not np.array_equal(keepers, self._keepers):
            raise AssertionError("window blocks are kept for windows that are not kept")
        if self._num_active != np.count_nonzero(self._holders):
            raise AssertionError(f"{self._num_active} window blocks are not those that are held")
        if set(used[self._holders[used] + self._keepers[used] == 0].tolist()) != set(self._idle):
            raise AssertionError(f"the idle window blocks are not {list(self._idle)}")
        if table is not None:
            self._check_rows(table)

    def _check_rows(self, table: RowTable) -> None:
        holders = np.zeros_like(self._holders)
        for row, sequence in enumerate(table.sequences):
            if sequence is None:
                continue
            first = int(self.first_held[row])
            mine = self.of_block[table.block_tables[row, first : table.num_blocks[row]]]
            if (mine < 0).any() or first > self.first_block(int(table.num_computed[row])):
                raise AssertionError(
                    f"row {row} has the window blocks {mine} from block {first} on"
                )
            if len(mine) > self._most + 2 + self._step_blocks:
                raise AssertionError(f"row {row} holds {len(mine)} window blocks")
            holders[mine] += 1
        if not np.array_equal(holders, self._holders):
            raise AssertionError("window blocks are held by rows that do not need them")

"""`RecurrentStates`: who holds which state slot of a model with recurrent layers.

A recurrent layer has no KV: all that it knows of a sequence is one state of a fixed size, which every token
replaces. So a state cannot be shared, and cannot go back: it can only be copied. The executor owns a pool of
*slots* (`engine.executors.base.StateKeeper`). A slot is *active* (a running row's), a *checkpoint*'s
(`engine.memory.state_checkpoints`), or free.

* A row gets a slot when it is admitted, and keeps it until it finishes or is preempted. Its state begins with
  zeros, or as a copy of a checkpoint, of a running row's state, or of a state of the state store.
* After a step that ended at a block border, a row's state is copied to a checkpoint of that block. At
  the borders of `engine.memory.state_borders`, and every `interval` tokens of an answer, the checkpoint
  stays. At all other borders it is the row's *tail*, whose slot the row's next checkpoint takes, unless
  another request has begun with it: so the end of an answer has one, and a preempted row computes less than a
  block again.
* A row with draft tokens has a copy of its state from before the step. If one of them is rejected, the state
  goes back, and the row computes the accepted ones again in its next step.
* Rows take up to three quarters of the slots, and checkpoints are dropped for them; a request waits if there
  are as many rows. A tail takes a free slot or that of a checkpoint which is worth less.

Invariants: no slot has two holders; the state in a row's slot is the one after `num_computed` tokens, except
for rows whose copy is pending or that begin with zeros. Copies for admitted rows are collected and made
before the step (`run_copies`), in the order of `take`, so a slot may be dropped and taken in one pass.

Engine's thread only, except `find`. Cost per step: a few numpy expressions over its rows,
and one call of the executor if any of them reached a border.
"""

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from engine.api.errors import ExecutorError
from engine.api.snapshot import StateCounts
from engine.batch.rows import RowTable
from engine.executors.base import StateKeeper
from engine.memory.allocator import Allocator
from engine.memory.image_identity import identity_tokens
from engine.memory.kv_identity import NO_CACHE_SALT
from engine.memory.staging_writer import Buffer
from engine.memory.state_borders import borders_between
from engine.memory.state_checkpoints import NO_ROW, Checkpoint, StateCheckpoints
from engine.memory.state_saver import FLUSH_S, StateSaver, StoredState
from engine.memory.state_store import StateStore

_log = logging.getLogger(__name__)

NO_SLOT = -1
RESERVED_SHARE = 0.25
"""Share of the slots that rows leave to checkpoints, at least one of several: if running requests took them
all, each turn of a conversation would begin at its first token."""
NO_BORDER = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True)
class RunningState:
    """The state of a running row after all tokens that it has computed."""

    row: int


StateSource = Checkpoint | RunningState | StoredState
"""What a row's state is copied from when it is admitted; a row without one begins with zeros."""


class RecurrentStates:
    """The state slots of one pool.

    Attributes:
        slots: [max_rows] int32, row → its slot, -1 for a free row.
        next_border: [max_rows] int32, token up to which a row may compute in a step.
        checkpoints: the kept states.
        interval: tokens between checkpoints.
        keeper: the executor; set before the first step.
        saver: stores checkpoints that were dropped, and across restarts; None without a swap tier.
        num_restored: rows that began with a copy of a state.
    """

    def __init__(
        self,
        *,
        num_slots: int,
        max_rows: int,
        allocator: Allocator,
        block_size: int,
        interval: int,
        state_bytes: int,
        control_ids: Iterable[int],
        keeps_checkpoints: bool,
    ) -> None:
        """All slots are free.

        Args:
            num_slots: slots of the executor.
            max_rows: rows of the row table.
            allocator, block_size: of the block pool.
            interval: tokens between checkpoints, rounded down to whole blocks, at least one.
            state_bytes: bytes of a slot.
            control_ids: control tokens, with which messages begin and end.
            keeps_checkpoints: False without a prefix cache.
        """
        interval = max(1, interval // block_size) * block_size
        self.num_slots = num_slots
        self.state_bytes = state_bytes
        self.interval = interval
        self.slots: NDArray[np.int32] = np.full(max_rows, NO_SLOT, np.int32)
        self.next_border: NDArray[np.int32] = np.full(max_rows, NO_BORDER, np.int32)
        self.checkpoints = StateCheckpoints(allocator)
        self.keeper: StateKeeper | None = None
        self.saver: StateSaver | None = None
        self.num_restored = 0
        self._block_size = block_size
        self._keeps = keeps_checkpoints
        reserved = max(1, int(num_slots * RESERVED_SHARE)) if keeps_checkpoints else 0
        self._max_active = max(1, num_slots - reserved)
        self._control_ids = np.array(sorted(control_ids), np.int32)
        self._free = list(range(num_slots - 1, -1, -1))
        self._borders: dict[int, list[int]] = {}  # row → its borders to come, the next one last
        self._tails: dict[int, Checkpoint] = {}
        self._before_drafts: dict[int, int] = {}  # row → slot of its state before the running step
        self._sources: list[int] = []
        self._targets: list[int] = []

    # ---- admission ----

    @property
    def has_room(self) -> bool:
        """Whether a row can be admitted."""
        return self.num_slots - len(self._free) - len(self.checkpoints) < self._max_active

    def find(
        self,
        identity: NDArray[np.int32],
        cache_salt: bytes,
        path: NDArray[np.int32],
        num_swapped: int,
    ) -> tuple[Checkpoint | None, StoredState | None]:
        """The states with which a request can begin. Any thread.

        Args:
            identity: identity tokens of the request.
            cache_salt: digest of its cache salt.
            path: [B] int32, its leading blocks in the pool, without the block of its last token.
            num_swapped: blocks after these in the swap tier.

        Returns:
            The checkpoint after the most tokens, and the stored state after more tokens than that.
        """
        checkpoint, saver = self.checkpoints.find(path), self.saver
        if saver is None:
            return checkpoint, None
        above = 0 if checkpoint is None else checkpoint.tokens
        most = (len(path) + num_swapped) * self._block_size
        return checkpoint, saver.find(identity, cache_salt, above=above, most=most)

    def take(self, source: StateSource | None) -> int | None:
        """A slot for a row that is about to be placed, with a copy of `source` before the next step.

        The caller has checked `has_room`.

        Returns:
            The slot; None if there is no such state any more, and then nothing was taken.

        Raises:
            ExecutorError: a copy for a row that was placed before failed.
        """
        if isinstance(source, Checkpoint):
            if self.checkpoints.at(source.block) is not source:
                return None
            self._forget(source)  # what two requests share stays
            self.checkpoints.touch(source)
            slot = self._take_slot(but=(source,))
            if slot is None:  # it has the last slot: the row takes it over
                slot = source.slot
                self.checkpoints.evict(source)
            else:
                self._copy_later(source.slot, slot)
            self.num_restored += 1
            return slot
        slot = self._take_slot()
        if slot is None:
            raise AssertionError("every state slot is active")
        if isinstance(source, RunningState):
            self._copy_later(int(self.slots[source.row]), slot)
            self.num_restored += 1
        elif source is not None:
            self.run_copies()  # first, since the slot may be the source of one
            write = partial(self._write, slot)
            if self.saver is None or not self.saver.load(source.key, write):
                self._free.append(slot)
                return None
            self.num_restored += 1
        return slot

    def borders(self, tokens: NDArray[np.int32], computed: int, shared: int) -> list[int]:
        """Where the chunks of a request end, so that its state can be kept there; ascending.

        Args:
            tokens: [n] int32, the request's tokens.
            computed: tokens that it begins with.
            shared: leading tokens whose KV is cached.
        """
        if not self._keeps:
            return []
        size = self._block_size
        start = computed // size * size
        control = np.isin(tokens[start:], self._control_ids)
        return borders_between(
            start,
            len(tokens),
            block_size=size,
            interval=self.interval,
            messages=(np.flatnonzero(control) + start).tolist(),
            shared=shared,
        )

    def place(self, row: int, slot: int, borders: list[int]) -> None:
        """Give a row that was just placed its slot and the borders at which its chunks end.

        Args:
            row: the row.
            slot: from `take`.
            borders: ascending, all after the tokens that it begins with.
        """
        self.slots[row] = slot
        self._set_borders(row, borders[::-1])

    def add_border(self, row: int, tokens: int, computed: int) -> None:
        """Make a checkpoint at the last border up to `tokens`, unless the row has computed more.

        For a request that waits until the row has computed tokens which they have in common.
        """
        border = tokens // self._block_size * self._block_size
        borders = self._borders.get(row, [])
        if self._keeps and border > computed and border not in borders:
            self._set_borders(row, sorted([*borders, border], reverse=True))

    def _set_borders(self, row: int, borders: list[int]) -> None:
        self._borders[row] = borders
        self.next_border[row] = borders[-1] if borders else NO_BORDER

    def limit(self, rows: NDArray[np.int32], computed: NDArray[np.int32]) -> NDArray[np.int32]:
        """[R] int32, tokens that rows with so many computed ones may compute in a step; at least 1."""
        left: NDArray[np.int32] = self.next_border[rows] - computed
        return left

    def run_copies(self) -> None:
        """Make the pending copies, in order.

        Raises:
            ExecutorError: none was made.
        """
        if self._sources:
            sources, targets = np.array(self._sources, np.int32), np.array(self._targets, np.int32)
            self._sources, self._targets = [], []
            self._executor.copy_states(sources, targets)

    def cancel_step(self) -> None:
        """Forget pending copies, whose rows fail, and the states before drafts: the step failed."""
        self._sources, self._targets = [], []
        self._free += self._before_drafts.values()
        self._before_drafts.clear()

    def _copy_later(self, source: int, target: int) -> None:
        self._sources.append(source)
        self._targets.append(target)

    @property
    def _executor(self) -> StateKeeper:
        if self.keeper is None:
            raise AssertionError("a state was copied before the weights were loaded")
        return self.keeper

    # ---- drafts ----

    def draft_room(self, computed: NDArray[np.int32]) -> NDArray[np.int32]:
        """[R] int32, draft tokens that decoding rows may have: the step ends at a block border at most.

        A row whose draft is rejected goes back to where the step began, which must not be before a block
        that the step has filled.
        """
        room: NDArray[np.int32] = self._block_size - 1 - computed % self._block_size
        return room

    def save_before_drafts(self, rows: NDArray[np.int32]) -> bool:
        """Copy the states of rows with drafts before the step; False if there are too few free slots."""
        slots = self.borrow(len(rows))
        if slots is None:
            return False
        self._before_drafts = dict(zip(rows.tolist(), slots, strict=True))
        for row, slot in self._before_drafts.items():
            self._copy_later(int(self.slots[row]), slot)
        return True

    def roll_back(self, rows: NDArray[np.int32]) -> None:
        """Restore the states before the step of rows whose draft was rejected, in `after_step`.

        They compute the accepted draft tokens again, with the token that was sampled after these.
        """
        for row in rows.tolist():
            self._copy_later(self._before_drafts[row], int(self.slots[row]))

    # ---- after a step ----

    def after_step(self, table: RowTable, rows: NDArray[np.int32]) -> None:
        """Keep the states of rows whose step ended at a block border. Before any of them is released.

        Args:
            table: the rows, with the step's result and the blocks indexed.
            rows: [R] int32, the step's rows.

        Raises:
            ExecutorError: a state could not be restored; the step's rows have undefined states.
        """
        if self._before_drafts:
            self.run_copies()
            self.give_back(list(self._before_drafts.values()))
            self._before_drafts.clear()
        computed = table.num_computed[rows]
        ended = computed % self._block_size == 0
        if not np.count_nonzero(ended):
            return
        rows, computed = rows[ended], computed[ended]
        self._save(table, rows[table.num_indexed[rows] * self._block_size == computed])
        for row in rows[computed >= self.next_border[rows]].tolist():
            passed = int(table.num_computed[row])
            self._set_borders(row, [border for border in self._borders[row] if border > passed])

    def _save(self, table: RowTable, rows: NDArray[np.int32]) -> None:
        made: list[Checkpoint] = []  # not dropped for one another: their slots are not written yet
        for row in rows.tolist():
            checkpoint = self._make(table, row, made)
            if checkpoint is not None:
                made.append(checkpoint)
                self._copy_later(int(self.slots[row]), checkpoint.slot)
        try:
            self.run_copies()
        except ExecutorError as error:
            _log.warning("Recurrent states could not be kept: %s", error)
            for checkpoint in made:
                self._drop(checkpoint)

    def _make(self, table: RowTable, row: int, made: list[Checkpoint]) -> Checkpoint | None:
        """Record a checkpoint of a row at its last computed token; None if there is one, or no slot for it.

        Args:
            table: the rows.
            row: a row at a block border.
            made: the checkpoints of this step, which are kept.
        """
        tokens = int(table.num_computed[row])
        path = table.block_tables[row, : tokens // self._block_size]
        block, above = int(path[-1]), path[:-1]
        stays = tokens % self.interval == 0 or tokens in self._borders.get(row, ())
        tail = self._tails.get(row)
        there = self.checkpoints.at(block)
        if there is not None:
            if there.row != row:  # also another row's tail: both rows may go on from here
                self._forget(there)
            self.checkpoints.touch(there)
            if tail is not None and tail is not there:
                self._drop(tail)
            return None
        if tail is not None:
            slot = tail.slot
            self._forget(tail)
            self.checkpoints.drop(tail)
        else:
            victim = None if self._free else self.checkpoints.cheapest(made)
            if victim is None and not self._free:
                return None
            if (
                victim is not None
                and not stays
                and not self.checkpoints.is_worth(tokens, above, victim)
            ):
                return None
            slot = self._free.pop() if victim is None else self._evict(victim)
        checkpoint = self.checkpoints.add(block, slot, tokens, self._key(table, row, tokens), above)
        if not stays:
            checkpoint.row = row
            self._tails[row] = checkpoint
        return checkpoint

    def _key(self, table: RowTable, row: int, tokens: int) -> bytes:
        if self.saver is None:
            return b""
        identity = identity_tokens(
            table.token_table[row, :tokens], table.images.get(row, ()), self._block_size
        )
        return self.saver.keys.of_row(row, identity, table.cache_salts.get(row, NO_CACHE_SALT))

    def _take_slot(self, but: Collection[Checkpoint] = ()) -> int | None:
        """A free slot, or that of the cheapest checkpoint not in `but`; None if there is none."""
        if self._free:
            return self._free.pop()
        victim = self.checkpoints.cheapest(but)
        return None if victim is None else self._evict(victim)

    def _evict(self, victim: Checkpoint) -> int:
        """Drop a checkpoint for another state; its slot."""
        if self.saver is not None:
            self.saver.save_victim(victim)
        self._forget(victim)
        self.checkpoints.evict(victim)
        return victim.slot

    def _forget(self, checkpoint: Checkpoint) -> None:
        """A checkpoint is no longer a row's tail."""
        if checkpoint.row != NO_ROW:
            del self._tails[checkpoint.row]
            checkpoint.row = NO_ROW

    def _drop(self, checkpoint: Checkpoint) -> None:
        self._forget(checkpoint)
        self.checkpoints.drop(checkpoint)
        self._free.append(checkpoint.slot)

    # ---- rows and blocks that go ----

    def keep_active(self, table: RowTable, row: int) -> None:
        """Let a row that is about to be preempted leave its state as a checkpoint, if it is at a border."""
        tokens = int(table.num_computed[row])
        full = tokens // self._block_size
        if not full or full * self._block_size != tokens or int(table.num_indexed[row]) != full:
            return
        path = table.block_tables[row, :full]
        if self.checkpoints.at(int(path[-1])) is not None:
            return
        self.checkpoints.add(
            int(path[-1]), int(self.slots[row]), tokens, self._key(table, row, tokens), path[:-1]
        )
        self.slots[row] = NO_SLOT

    def release(self, row: int) -> None:
        """Free the slot of a row that is released; its tail stays as a checkpoint like any."""
        slot = int(self.slots[row])
        if slot != NO_SLOT:
            self._free.append(slot)
            self.slots[row] = NO_SLOT
        tail = self._tails.get(row)
        if tail is not None:
            self._forget(tail)
        self._borders.pop(row, None)
        self.next_border[row] = NO_BORDER
        if self.saver is not None:
            self.saver.keys.forget(row)

    def skip_storing(self, blocks: NDArray[np.int32]) -> None:
        """Do not store the checkpoints of these blocks: computing their tokens again is cheaper."""
        for block in blocks.tolist():
            checkpoint = self.checkpoints.at(block)
            if checkpoint is not None:
                checkpoint.key = b""

    def drop_evicted(self) -> None:
        """Drop the checkpoints of blocks that were evicted, and store them if they are not stored."""
        for checkpoint in self.checkpoints.drop_evicted():
            if self.saver is not None:
                self.saver.save_victim(checkpoint)
            self._forget(checkpoint)
            self._free.append(checkpoint.slot)

    def borrow(self, count: int) -> list[int] | None:
        """So many free slots, for a dummy step; None if there are fewer. Undone by `give_back`."""
        if len(self._free) < count:
            return None
        return [self._free.pop() for _ in range(count)]

    def give_back(self, slots: list[int]) -> None:
        """Return borrowed slots."""
        self._free += slots

    # ---- the state store ----

    def save_in(self, store: StateStore) -> None:
        """Save checkpoints in a store from now on. The executor is set."""
        self.saver = StateSaver(store, self._read)

    def _read(self, checkpoint: Checkpoint, buffer: Buffer) -> None:
        self._executor.read_states(np.array([checkpoint.slot], np.int32), buffer[None])

    def _write(self, slot: int, data: Buffer) -> None:
        self._executor.write_states(np.array([slot], np.int32), data[None])

    def save_idle(self) -> bool:
        """Store the most valuable checkpoint that is not stored; False if none is left to store."""
        return self.saver is not None and self.saver.save_idle(self.checkpoints)

    def close(self, seconds: float = FLUSH_S) -> None:
        """Store what is not stored yet for at most `seconds`, and close the store."""
        saver, self.saver = self.saver, None
        if saver is not None:
            saver.close(self.checkpoints, seconds)

    # ---- counts ----

    def counts(self) -> StateCounts:
        """The slots by what they hold."""
        return StateCounts(
            total=self.num_slots,
            free=len(self._free),
            checkpoints=len(self.checkpoints),
            slot_bytes=self.state_bytes,
            restored=self.num_restored,
            evicted=self.checkpoints.num_evicted,
            stored=0 if self.saver is None else len(self.saver.store),
        )

    def check_integrity(self, table: RowTable | None = None) -> None:
        """Raise if an invariant is violated; for tests, between steps.

        Raises:
            AssertionError: a slot has two holders or none, or a row has none.
        """
        self.checkpoints.check_integrity()
        active = self.slots[self.slots != NO_SLOT].tolist()
        held = [*active, *self._free, *(one.slot for one in self.checkpoints)]
        if sorted(held) != list(range(self.num_slots)):
            raise AssertionError(
                f"slots {sorted(held)} are active, free or checkpoints, of {self.num_slots}"
            )
        if self._sources:
            raise AssertionError("copies of states were not made")
        tails = {one.row: one for one in self.checkpoints if one.row != NO_ROW}
        if tails != self._tails:
            raise AssertionError("the tails of rows are not those of the checkpoints")
        if table is None:
            return
        for row, sequence in enumerate(table.sequences):
            if (sequence is None) != (self.slots[row] == NO_SLOT):
                raise AssertionError(f"row {row} has the slot {self.slots[row]}")
            if sequence is not None and self.next_border[row] <= table.num_computed[row]:
                raise AssertionError(f"row {row} is past its border {self.next_border[row]}")

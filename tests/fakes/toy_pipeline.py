"""A pipeline over the toy executor, stepped by the test: no thread and a manual clock."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np

from engine._core import BlockAllocator, PrefixTrie, SwapStore
from engine.api.events import EventBus
from engine.batch.request_queue import RequestQueue
from engine.batch.rows import RowTable
from engine.batch.sequence import NO_ROW, NOT_QUEUED, SequenceState
from engine.memory.block_manager import BlockManager
from engine.memory.integrity import check_writes
from engine.memory.prefix_cache import PrefixCache
from engine.memory.recurrent_states import RecurrentStates
from engine.memory.sliding_windows import SlidingWindows
from engine.memory.state_store import StateStore
from engine.memory.swap_tier import SwapTier
from engine.observability.counters import EngineCounters
from engine.runtime.forking import child_request, fork_point, prompt_and_output_ids
from engine.runtime.intake import make_sequence
from engine.runtime.loading import open_with_headers
from engine.runtime.request_handle import RequestHandle
from engine.runtime.wakeups import WakeHub
from engine.step.pipeline import Pipeline
from tests.fakes.naive_allocator import NaiveAllocator
from tests.fakes.recurrent_executor import RecurrentExecutor
from tests.fakes.toy_engine import toy_config
from tests.fakes.toy_executor import ToyExecutor, toy_model
from tests.fakes.toy_tokenizer import ToyTokenizer
from tests.fakes.windowed_executor import WindowedExecutor


class ManualClock:
    """A clock that advances only when a test sets it."""

    def __init__(self, tick=0.0):
        self.now = 100.0
        self.tick = tick

    def __call__(self):
        self.now += self.tick
        return self.now


class ToyPipeline:
    """`submit`, `step` and `abort` take effect at once, on the caller's thread."""

    def __init__(
        self,
        *,
        blocks=64,
        block_size=4,
        rows=8,
        budget=32,
        context=256,
        queue=1000,
        allocator=NaiveAllocator,
        force=None,
        prefixes=None,
        scheduling=None,
        speculation=False,
        swap=0,
        swap_path=None,
        max_hold_s=0.0,
        state_slots=0,
        interval=64,
        stored_states=0,
        window=0,
        chunk=1,
        window_blocks=0,
    ):
        """`prefixes`: None caches prefixes if the allocator has a trie.

        `swap`: blocks in the swap tier, which is in memory or in `swap_path`.
        `state_slots`: slots of a model with recurrent layers, with a checkpoint every `interval` tokens and
        `stored_states` of them in the state store; 0 for a model without such layers.
        `window_blocks`: window blocks of a model with windows of `window` tokens, read in chunks of `chunk`;
        0 for a model all of whose layers keep every token. `interval` and `stored_states` as above.
        """
        config = toy_config(
            blocks=blocks, block_size=block_size, max_num_seqs=rows, max_num_batched_tokens=budget
        )
        self.context = context
        self.budget = budget
        self.opened = open_with_headers(config, lambda _: toy_model(context))
        self.clock = ManualClock()
        self.counters = EngineCounters()
        self.events = EventBus()
        self.table = RowTable(max_rows=rows, max_model_len=context, block_size=block_size)
        pool = allocator(blocks, block_size)
        self.trie = PrefixTrie(pool) if isinstance(pool, BlockAllocator) else None
        if prefixes is None:
            prefixes = self.trie is not None
        self.blocks = BlockManager(
            pool,
            block_size=block_size,
            block_bytes=128,
            prefixes=PrefixCache(self.trie, b"toy", block_size=block_size) if prefixes else None,
        )
        self.waiting = RequestQueue(queue)
        self.executor = ToyExecutor(blocks, block_size, force=force)
        if state_slots:
            self.executor = RecurrentExecutor(
                blocks, block_size, force=force, num_slots=state_slots
            )
            self.blocks.recurrent = self._states(pool, rows, state_slots, interval)
            if stored_states:
                self.blocks.recurrent.save_in(
                    self._store(self.executor.state_bytes, stored_states, swap_path)
                )
        if window_blocks:
            self.executor = WindowedExecutor(
                blocks,
                block_size,
                force=force,
                num_window_blocks=window_blocks,
                window=window,
                chunk=chunk,
            )
            windows = self.blocks.windows = self._windows(pool, rows, interval)
            if self.blocks.prefixes is not None:
                self.blocks.prefixes.windows = windows
            if stored_states:
                windows.save_in(self._store(windows.state_bytes, stored_states, swap_path))
        self.executor.watch = lambda plan: check_writes(self.blocks, plan)
        self.executor.salt_of = lambda row: int.from_bytes(
            self.table.cache_salts.get(int(row), b"")[:2], "little"
        )
        self.executor.images_of = lambda row: self.table.images.get(int(row), ())
        self.ended = []
        self.pipeline = Pipeline(
            self.table,
            self.blocks,
            self.waiting,
            token_budget=budget,
            scheduling=scheduling,
            speculation=speculation,
            max_hold_s=max_hold_s,
            counters=self.counters,
            events=self.events,
            clock=self.clock,
        )
        self.pipeline.executor = self.executor
        if swap:
            self.blocks.tier = self._tier(swap, swap_path, block_size)
        self.sequences = {}
        self.handles = []
        self._arrivals = 0

    def _states(self, pool, rows, num_slots, interval):
        states = RecurrentStates(
            num_slots=num_slots,
            max_rows=rows,
            allocator=pool,
            block_size=pool.block_size,
            interval=interval,
            state_bytes=self.executor.state_bytes,
            control_ids=ToyTokenizer.special_ids,
            keeps_checkpoints=self.blocks.prefixes is not None,
        )
        states.keeper = self.executor
        return states

    def _windows(self, pool, rows, interval):
        windows = SlidingWindows(
            num_blocks=len(self.executor.window_kv),
            window=self.executor.window,
            chunk=self.executor.chunk,
            max_rows=rows,
            token_budget=self.budget,
            allocator=pool,
            block_size=pool.block_size,
            interval=interval,
            block_bytes=self.executor.window_block_bytes,
            control_ids=ToyTokenizer.special_ids,
            keeps_checkpoints=self.blocks.prefixes is not None,
        )
        windows.keeper = self.executor
        return windows

    def _store(self, state_bytes, states, swap_path):
        return StateStore(
            None if swap_path is None else Path(f"{swap_path}.states"),
            state_bytes=state_bytes,
            capacity_bytes=states * (state_bytes + 64),
            threaded=False,
        )

    def _tier(self, entries, path, block_size):
        store = SwapStore(
            path,
            identity=b"toy" + bytes(29),
            block_size=block_size,
            block_bytes=self.executor.block_bytes,
            capacity_bytes=(entries + 1) * 4096,
        )
        self.store = store
        return SwapTier(store, self.trie, self.executor, salt=b"toy", threaded=False)

    @property
    def tier(self):
        return self.blocks.tier

    def submit(self, request, parent=None, choice_of=None):
        sequence, detokenizer = make_sequence(
            request,
            self.opened,
            now=self.clock(),
            draw_seed=lambda: 7,
            parent=parent,
            choice_of=None if choice_of is None else self.sequences[choice_of.request_id],
        )
        sequence.record["arrival"] = self._arrivals
        self._arrivals += 1
        self.waiting.put(sequence)
        self.sequences[request.request_id] = sequence
        handle = RequestHandle(
            request,
            sequence.mailbox,
            seed=int(sequence.sampling["seed"]),
            detokenizer=None if sequence.detokenizer is detokenizer else detokenizer,
            abort=lambda: self._abort(sequence),
            hub=WakeHub(),
        )
        self.handles.append(handle)  # a handle without references aborts its request
        return handle

    def submit_choices(self, *requests):
        """Submit the choices of one call, as `AsyncPravahaEngine.submit_all` does."""
        handles = []
        for request in requests:
            handles.append(self.submit(request, choice_of=handles[-1] if handles else None))
        return handles

    def fork(self, handle, *, at=None, n=1, sampling=None):
        """Fork as `AsyncPravahaEngine.fork` does."""
        parent = self.sequences[handle.request_id]
        first, parent.forks = parent.forks + 1, parent.forks + n
        tokens = prompt_and_output_ids(parent)
        tokens = tokens[: fork_point(parent, len(tokens), at)]
        return [
            self.submit(
                child_request(parent, tokens, number=number, sampling=sampling), parent=parent
            )
            for number in range(first, first + n)
        ]

    def step(self, count=1):
        for _ in range(count):
            self.pipeline.step()
            self.deliver()
            self.check()
            # The engine's thread sleeps while all requests are held.
            self.clock.now = max(self.clock.now, self.pipeline.idle_until or 0.0)

    def _abort(self, sequence):
        self.pipeline.abort(sequence)
        self.deliver()

    def deliver(self):
        """Publish finished requests to readers, as the engine does after each step."""
        for finished in self.pipeline.take_finished():
            sequence = finished.sequence
            assert sequence.finished
            assert (sequence.row, sequence.queue_index) == (NO_ROW, NOT_QUEUED)
            self.ended.append(sequence)
            finished.deliver(self.events)

    def run(self, limit=10_000):
        """Step until there is no work; fails if that takes too long."""
        for _ in range(limit):
            if not self.pipeline.has_work:
                return
            self.step()
        raise AssertionError(f"still busy after {limit} steps")

    def row(self, handle):
        return self.sequences[handle.request_id].row

    def check(self):
        """Check the pool, the states, and that each row's blocks hold the KV of its tokens."""
        self.blocks.check_integrity(self.table)
        self.check_states()
        table = self.table
        for row in np.flatnonzero(table.num_computed).tolist():
            places = np.arange(int(table.num_computed[row]))
            blocks = table.block_tables[row, places // table.block_size]
            stored = self.executor.kv[blocks, places % table.block_size]
            expected = self.executor.stored(row, table.token_table[row, places], places)
            assert (stored == expected).all(), f"row {row} reads others' KV"

    def check_states(self):
        """Check that every sequence is where its state says: in the queue, in a row, or in neither."""
        table, waiting, running = self.table, self.waiting, self.pipeline.scheduler.running.tolist()
        num_queued = num_running = 0
        for sequence in self.sequences.values():
            if sequence.finished:  # checked when it was delivered
                continue
            state, row, queue_index = sequence.state, sequence.row, sequence.queue_index
            if state is SequenceState.RUNNING:
                num_running += 1
                assert queue_index == NOT_QUEUED
                assert row in running
                assert table.sequences[row] is sequence
                continue
            num_queued += 1
            assert row == NO_ROW
            assert waiting.at(queue_index) is sequence
            assert state in (SequenceState.WAITING, SequenceState.PREEMPTED)
            assert (state is SequenceState.PREEMPTED) == (sequence.preemptions > 0)
        assert len(waiting) == num_queued
        assert len(running) == num_running == table.max_rows - table.num_free

    def assert_idle(self):
        assert not self.pipeline.has_work
        assert self.blocks.num_free == self.blocks.num_blocks
        assert self.table.num_free == self.table.max_rows
        assert self.blocks.state_counts().active == self.blocks.window_counts().active == 0


def shape_of(steps):
    """Recorded steps as lists of query lengths."""
    return [SimpleNamespace(rows=r.tolist(), lengths=n.tolist()) for r, n in steps]

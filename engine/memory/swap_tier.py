"""`SwapTier`: KV blocks that left the pool, and how they get there and back.

*Out.* Whatever the prefix trie names is worth keeping. It is copied when the engine idles, and
before an allocation evicts it; so a preempted request's blocks are copied when somebody really
needs their room, and not before. *Back.* At admission, where the trie's prefix ends, the tier's goes
on: those blocks are copied in instead of being computed, and are the trie's from then on.

A file keeps the tier across restarts; for a GPU's pool it is main memory. The engine's thread alone
calls this, but for `find` and `seconds_for`, which any may. Nothing here ends a request: what cannot
be copied is computed.
"""

import logging
import time
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.api.errors import ExecutorError
from engine.api.snapshot import SwapCounts
from engine.memory.swap_writer import BUFFERS, SwapWriter
from engine.observability.rates import Speed

if TYPE_CHECKING:
    from engine._core import PrefixTrie, SwapStore
    from engine.executors.base import Executor

_log = logging.getLogger(__name__)

NO_ENTRIES: NDArray[np.int64] = np.zeros(0, np.int64)

FLUSH_S = 10.0
"""Longest that shutting down goes on saving."""


class SwapTier:
    """The tier of one pool and one model.

    Attributes:
        swapped_in, swapped_out: blocks copied back and out.
        dropped: blocks that were evicted unsaved, because the tier could not keep up.
        victims_swapped, victims_recomputed: preempted requests by what was chosen for them.
    """

    def __init__(
        self,
        store: "SwapStore",
        index: "PrefixTrie",
        executor: "Executor",
        *,
        threaded: bool = True,
    ) -> None:
        """Keep `index`'s blocks in `store`.

        Args:
            store: where blocks are kept; closed by `close`.
            index: which tokens the pool's blocks hold.
            executor: has the blocks' bytes.
            threaded: write on a thread of its own.
        """
        self._store = store
        self._index = index
        self._executor = executor
        self._block_bytes = executor.block_bytes
        self._block_size = index.block_size
        self._writer = SwapWriter(store, self._block_bytes, threaded=threaded)
        self._read_speed = Speed()
        self._read_buffer = np.empty((self._writer.blocks, self._block_bytes), np.uint8)
        self.swapped_in = 0
        self.swapped_out = 0
        self.dropped = 0
        self.victims_swapped = 0
        self.victims_recomputed = 0

    # ---- out ----

    def save_victims(self, count: int) -> None:
        """Save what the next `count` allocations would evict, as far as buffers are free."""
        for _ in range(BUFFERS):
            if not self._save(count, wait=False):
                break
        self.dropped += self._store.count_unsaved_victims(self._index, count)

    def save_idle(self) -> bool:
        """Save a buffer's worth of what is not saved yet; False if there was nothing."""
        return self._save(None, wait=True)

    def flush(self, seconds: float = FLUSH_S) -> None:
        """Save everything, for at most this long, and wait until it is written."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.save_idle():
            pass
        self._writer.settle()

    def _save(self, victims: int | None, *, wait: bool) -> bool:
        """Copy one buffer's worth of blocks out; False if there was nothing, or no buffer."""
        buffer = self._writer.buffer(wait=wait)
        if buffer is None:
            return False
        most = self._writer.blocks
        if victims is None:
            blocks, entries = self._store.save_indexed(self._index, most)
        else:
            blocks, entries = self._store.save_victims(self._index, victims, most)
        if not len(blocks):
            self._writer.give_back(buffer)
            return False
        started = time.perf_counter()
        try:
            self._executor.read_blocks(blocks, buffer[: len(blocks)])
        except ExecutorError as error:
            _log.warning("KV blocks could not be swapped out: %s", error)
            self._store.abandon(entries.tolist())
            self._writer.give_back(buffer)
            return False
        self._writer.write(entries.tolist(), buffer, time.perf_counter() - started)
        self.swapped_out += len(blocks)
        return True

    # ---- back ----

    def find(self, tokens: NDArray[np.int32], first: int, last: int) -> NDArray[np.int64]:
        """Entries of the blocks [first, last) of `tokens`, as far as they follow each other."""
        if last <= first:
            return NO_ENTRIES
        try:
            return self._store.match_prefix(tokens[: last * self._block_size])[first:]
        except ValueError:  # closed meanwhile, when another thread asks
            return NO_ENTRIES

    def load(self, entries: NDArray[np.int64], blocks: NDArray[np.int32]) -> int:
        """Copy entries into blocks that the caller holds and nobody else reads.

        Returns:
            How many of the first are loaded; the rest is gone or damaged.
        """
        started = time.perf_counter()
        loaded = 0
        buffer = self._read_buffer
        try:
            while loaded < len(entries):
                part = entries[loaded : loaded + len(buffer)].tolist()
                read = self._store.read(part, buffer[: len(part)])
                if read:
                    self._executor.write_blocks(
                        np.ascontiguousarray(blocks[loaded : loaded + read]), buffer[:read]
                    )
                loaded += read
                if read < len(part):
                    break
        except ExecutorError as error:
            _log.warning("KV blocks could not be swapped in: %s", error)
        if loaded:
            self._read_speed.add(loaded * self._block_bytes, time.perf_counter() - started)
        self.swapped_in += loaded
        return loaded

    def note_loaded(self, entries: NDArray[np.int64], blocks: NDArray[np.int32]) -> None:
        """Remember that these blocks, indexed by now, came from these entries."""
        self._store.note_saved(self._index, blocks, entries.tolist())

    # ---- what it costs ----

    def is_cheaper(self, blocks: NDArray[np.int32], recompute: float | None) -> bool:
        """Whether to swap blocks, full and indexed and held by one row alone, or to compute them.

        Args:
            blocks: what would be swapped.
            recompute: seconds to compute their tokens again; None if that was never measured.

        Returns:
            Whether copying out what the tier lacks, and all of it back, takes no longer. Without
            figures yes: that is what gets them.
        """
        unsaved = len(blocks) - self._store.count_saved(self._index, blocks)
        out, back = self._writer.speed.per_second, self._read_speed.per_second
        out, back = out or back, back or out
        if out is None or back is None or recompute is None:
            return True
        return (unsaved / out + len(blocks) / back) * self._block_bytes <= recompute

    def leave_out(self, blocks: NDArray[np.int32]) -> None:
        """Do not save these blocks when they are evicted; until somebody holds them again."""
        self._store.note_unwanted(self._index, blocks)

    def seconds_for(self, blocks: int) -> float | None:
        """What copying so many blocks back would take, or None if that was never measured."""
        speed = self._read_speed.per_second
        return None if speed is None else blocks * self._block_bytes / speed

    # ---- seen from outside ----

    @property
    def num_blocks(self) -> int:
        """Blocks in the tier."""
        return self._store.stats().entries

    def counts(self) -> SwapCounts:
        """The tier in numbers."""
        stats = self._store.stats()
        return SwapCounts(
            blocks=stats.entries,
            capacity=stats.capacity,
            swapped_in=self.swapped_in,
            swapped_out=self.swapped_out,
            dropped=self.dropped,
            evicted=stats.evicted_total,
            damaged=stats.damaged_total,
            victims_swapped=self.victims_swapped,
            victims_recomputed=self.victims_recomputed,
            out_bytes_per_second=self._writer.speed.per_second,
            in_bytes_per_second=self._read_speed.per_second,
        )

    def check_integrity(self) -> None:
        """Raise if the books do not balance; for tests."""
        self._store.check_integrity()

    def close(self, flush_seconds: float = FLUSH_S) -> None:
        """Save what is not saved and give the file back. The executor is still open."""
        try:
            self.flush(flush_seconds)
        finally:
            self._writer.close()
            self._store.close()

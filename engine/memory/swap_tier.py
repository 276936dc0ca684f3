"""`SwapTier`: keeps KV blocks that were evicted from the pool, in a file or in main memory.

*Swap-out.* Every block in the prefix trie is a candidate. It is copied while the engine is idle, or
just before an allocation evicts it; so blocks of a preempted request are copied only when their
memory is needed. *Swap-in.* At admission, blocks that continue the prefix found in the trie are
copied into the pool instead of being computed, and are then indexed by the trie.

A file keeps the tier across restarts; the tier of a GPU pool is in main memory. Called by the
engine's thread only, except `find` and `swap_in_seconds`, which any thread may call. A failed copy
never fails a request: the tokens are computed instead.
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
"""Time limit for saving blocks at shutdown, in seconds."""


class SwapTier:
    """The swap tier of one pool and one model.

    Attributes:
        swapped_in, swapped_out: blocks copied into the pool and out of it.
        dropped: blocks evicted without being saved, because no staging buffer was free.
        victims_swapped, victims_recomputed: preempted requests for which swapping, or recomputing,
            was chosen.
    """

    def __init__(
        self,
        store: "SwapStore",
        index: "PrefixTrie",
        executor: "Executor",
        *,
        salt: bytes,
        threaded: bool = True,
    ) -> None:
        """Save the blocks of `index` in `store`.

        Args:
            store: storage of the tier; closed by `close`.
            index: the pool's prefix trie.
            executor: copies block contents from and to the pool.
            salt: `engine.memory.kv_identity.kv_salt`, under which `index` holds the blocks.
            threaded: write on a separate thread; False for deterministic tests.
        """
        self._store = store
        self._index = index
        self._executor = executor
        self._salt = salt
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

    # ---- swap-out ----

    def save_victims(self, count: int) -> None:
        """Save the blocks that the next `count` allocations would evict, while buffers are free."""
        for _ in range(BUFFERS):
            if not self._save(count, wait=False):
                break
        self.dropped += self._store.count_unsaved_victims(self._index, count)

    def save_idle(self) -> bool:
        """Save up to one buffer of unsaved blocks; False if there are none."""
        return self._save(None, wait=True)

    def flush(self, seconds: float = FLUSH_S) -> None:
        """Save all unsaved blocks for at most `seconds`, then wait until they are written."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.save_idle():
            pass
        self._writer.wait_until_written()

    def _save(self, victims: int | None, *, wait: bool) -> bool:
        """Copy up to one buffer of blocks out; False if nothing was copied."""
        buffer = self._writer.buffer(wait=wait)
        if buffer is None:
            return False
        most = self._writer.blocks
        if victims is None:
            blocks, entries = self._store.save_indexed(self._index, most)
        else:
            blocks, entries = self._store.save_victims(self._index, victims, most)
        if not len(blocks):
            self._writer.return_buffer(buffer)
            return False
        started = time.perf_counter()
        try:
            self._executor.read_blocks(blocks, buffer[: len(blocks)])
        except ExecutorError as error:
            _log.warning("KV blocks could not be swapped out: %s", error)
            self._store.abandon(entries.tolist())
            self._writer.return_buffer(buffer)
            return False
        self._writer.write(entries.tolist(), buffer, time.perf_counter() - started)
        self.swapped_out += len(blocks)
        return True

    # ---- swap-in ----

    def find(
        self, tokens: NDArray[np.int32], first: int, last: int, cache_salt: bytes
    ) -> NDArray[np.int64]:
        """[S] int64, entries of the blocks [first, last) of `tokens`, up to the first one missing.

        Any thread.
        """
        if last <= first:
            return NO_ENTRIES
        try:
            prefix = tokens[: last * self._block_size]
            return self._store.match_prefix(self._salt + cache_salt, prefix)[first:]
        except ValueError:  # closed in the meantime by the engine's thread
            return NO_ENTRIES

    def load(self, entries: NDArray[np.int64], blocks: NDArray[np.int32]) -> int:
        """Copy entries into the pool.

        Args:
            entries: [S] int64, from `find`.
            blocks: [S] int32, blocks that only the caller holds.

        Returns:
            Number of leading entries that were copied; the next one was evicted or is damaged.
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
        """Record that these indexed blocks were loaded from these entries, and so are saved."""
        self._store.note_saved(self._index, blocks, entries.tolist())

    # ---- cost ----

    def is_cheaper(self, blocks: NDArray[np.int32], recompute: float | None) -> bool:
        """Whether swapping blocks out and in takes no longer than recomputing their tokens.

        Args:
            blocks: [n] int32, full and indexed blocks that one row alone holds.
            recompute: seconds to recompute their tokens; None if that was never measured.

        Returns:
            Whether copying out the unsaved blocks and copying all of them in takes at most
            `recompute`. True while nothing is measured, so that a measurement is made.
        """
        unsaved = len(blocks) - self._store.count_saved(self._index, blocks)
        speeds = self._speeds()
        if speeds is None or recompute is None:
            return True
        out, back = speeds
        return (unsaved / out + len(blocks) / back) * self._block_bytes <= recompute

    def round_trip_seconds(self, size: int) -> float:
        """Predicted seconds to copy `size` bytes out and in; 0 while nothing is measured."""
        speeds = self._speeds()
        return 0.0 if speeds is None else size / speeds[0] + size / speeds[1]

    def _speeds(self) -> tuple[float, float] | None:
        """Bytes per second out and in, either for the other one that was not measured; None for neither."""
        out, back = self._writer.speed.per_second, self._read_speed.per_second
        out, back = out or back, back or out
        return None if out is None or back is None else (out, back)

    def skip_saving(self, blocks: NDArray[np.int32]) -> None:
        """Do not save these blocks on eviction, until they are retained again."""
        self._store.note_unwanted(self._index, blocks)

    def swap_in_seconds(self, blocks: int) -> float | None:
        """Predicted seconds to swap in so many blocks; None before the first swap-in. Any thread."""
        speed = self._read_speed.per_second
        return None if speed is None else blocks * self._block_bytes / speed

    # ---- counters ----

    @property
    def num_blocks(self) -> int:
        """Blocks in the tier."""
        return self._store.stats().entries

    def counts(self) -> SwapCounts:
        """The tier's counters and measured speeds."""
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
        """Raise if an invariant of the store is violated; for tests."""
        self._store.check_integrity()

    def close(self, flush_seconds: float = FLUSH_S) -> None:
        """Flush and close the store. Call it before the executor is closed."""
        try:
            self.flush(flush_seconds)
        finally:
            self._writer.close()
            self._store.close()

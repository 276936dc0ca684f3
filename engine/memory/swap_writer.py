"""`SwapWriter`: a background thread that writes blocks to the swap store through staging buffers.

The engine's thread copies blocks from the pool into a buffer, which is fast, and continues. Slow work
(checksums, page faults, disk writes) runs on the writer's thread without the GIL. If no buffer is
free, the disk cannot keep up; then blocks are dropped rather than a step delayed.
"""

import logging
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.observability.rates import Speed

_log = logging.getLogger(__name__)

Buffer = NDArray[np.uint8]
"""[blocks, block_bytes]."""

BUFFERS = 4
BUFFER_BYTES = 8 << 20
MIN_BUFFER_BLOCKS = 4
"""Minimum number of blocks in a buffer, even if that exceeds `BUFFER_BYTES`."""


class EntryFiller(Protocol):
    """The part of `engine._core.SwapStore` that the writer uses."""

    def fill(self, entries: list[int], data: Buffer, /) -> int:
        """Copy blocks into reserved entries."""
        ...

    def abandon(self, entries: list[int], /) -> None:
        """Free reserved entries without filling them."""
        ...


class SwapWriter:
    """The writer's thread and its buffers. Public methods are called by the engine's thread only.

    Attributes:
        speed: measured bytes per second from the pool to the store, both copies included.
        blocks: blocks per buffer.
    """

    def __init__(self, store: EntryFiller, block_bytes: int, *, threaded: bool = True) -> None:
        """Write into `store`; with `threaded=False`, `write` is synchronous, for tests."""
        self._store = store
        self.blocks = max(MIN_BUFFER_BLOCKS, min(64, BUFFER_BYTES // block_bytes))
        self._shape = (self.blocks, block_bytes)
        self._made = 0
        self._free: SimpleQueue[Buffer] = SimpleQueue()
        self._jobs: SimpleQueue[tuple[list[int], Buffer, float] | None] = SimpleQueue()
        self._threaded = threaded
        self._thread: threading.Thread | None = None
        self.speed = Speed()

    def buffer(self, *, wait: bool) -> Buffer | None:
        """A free buffer, or None if there is none and `wait` is False."""
        if self._made < BUFFERS and self._free.empty():
            self._made += 1
            return np.empty(self._shape, np.uint8)
        try:
            return self._free.get(wait)
        except Empty:
            return None

    def return_buffer(self, buffer: Buffer) -> None:
        """Return a buffer without writing it."""
        self._free.put(buffer)

    def write(self, entries: list[int], buffer: Buffer, seconds: float) -> None:
        """Fill entries from the first blocks of a buffer. The caller must not use it any more.

        Args:
            entries: reserved entries.
            buffer: from the method `buffer`.
            seconds: time that copying the blocks out of the pool took.
        """
        if not self._threaded:
            self._fill(entries, buffer, seconds)
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="pravaha-swap", daemon=True)
            self._thread.start()
        self._jobs.put((entries, buffer, seconds))

    def wait_until_written(self) -> None:
        """Block until all pending writes are done."""
        buffers = [self._free.get() for _ in range(self._made)]
        for buffer in buffers:
            self._free.put(buffer)

    def close(self) -> None:
        """Finish the pending writes and stop the thread."""
        self.wait_until_written()
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._fill(*job)

    def _fill(self, entries: list[int], buffer: Buffer, seconds: float) -> None:
        started = time.perf_counter()
        data = buffer[: len(entries)]
        try:
            self._store.fill(entries, data)
            self.speed.add(data.nbytes, seconds + time.perf_counter() - started)
        except OSError as error:  # the blocks stay unsaved; their tokens can be recomputed
            _log.warning("KV blocks could not be written to the swap tier: %s.", error)
            self._store.abandon(entries)
        except Exception:  # a defect; without this thread, later writes would wait forever
            _log.exception("KV blocks could not be written to the swap tier.")
            with suppress(Exception):
                self._store.abandon(entries)
        finally:
            self._free.put(buffer)

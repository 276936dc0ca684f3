"""`SwapWriter`: fills swap entries beside the engine's thread, through a few staging buffers.

The engine's thread copies blocks out of the pool into a buffer, which is quick, and goes on. What
may take long (checksums, page faults, a disk that falls behind) happens on the writer's thread,
without the GIL. No buffer left means that the disk cannot keep up: then nothing is saved rather
than a step delayed.
"""

import logging
import threading
import time
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
LEAST_BLOCKS = 4
"""A buffer holds so many blocks, however large they are."""


class EntryFiller(Protocol):
    """What the writer asks of `engine._core.SwapStore`."""

    def fill(self, entries: list[int], data: Buffer, /) -> int:
        """Copy blocks into reserved entries."""
        ...

    def abandon(self, entries: list[int], /) -> None:
        """Give up reserved entries."""
        ...


class SwapWriter:
    """One thread and its buffers. Everything but the thread's own work is the engine's thread's.

    Attributes:
        speed: bytes a second from the pool to the store, both halves of the way.
        blocks: how many blocks a buffer holds.
    """

    def __init__(self, store: EntryFiller, block_bytes: int, *, threaded: bool = True) -> None:
        """Without a thread, `write` does the work: for tests that step by hand."""
        self._store = store
        self.blocks = max(LEAST_BLOCKS, min(64, BUFFER_BYTES // block_bytes))
        self._shape = (self.blocks, block_bytes)
        self._made = 0
        self._free: SimpleQueue[Buffer] = SimpleQueue()
        self._jobs: SimpleQueue[tuple[list[int], Buffer, float] | None] = SimpleQueue()
        self._threaded = threaded
        self._thread: threading.Thread | None = None
        self.speed = Speed()

    def buffer(self, *, wait: bool) -> Buffer | None:
        """A free buffer, or None if there is none and `wait` is false."""
        if self._made < BUFFERS and self._free.empty():
            self._made += 1
            return np.empty(self._shape, np.uint8)
        try:
            return self._free.get(wait)
        except Empty:
            return None

    def give_back(self, buffer: Buffer) -> None:
        """Return a buffer that is not written."""
        self._free.put(buffer)

    def write(self, entries: list[int], buffer: Buffer, seconds: float) -> None:
        """Fill entries from the first blocks of a buffer, which is not the caller's any more.

        Args:
            entries: reserved ones.
            buffer: from `buffer`.
            seconds: what copying them out of the pool took.
        """
        if not self._threaded:
            self._fill(entries, buffer, seconds)
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="pravaha-swap", daemon=True)
            self._thread.start()
        self._jobs.put((entries, buffer, seconds))

    def settle(self) -> None:
        """Wait until everything handed over is written."""
        buffers = [self._free.get() for _ in range(self._made)]
        for buffer in buffers:
            self._free.put(buffer)

    def close(self) -> None:
        """Write what was handed over and end the thread."""
        self.settle()
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
        except OSError as error:  # the tier gives up what it cannot hold
            _log.warning("KV blocks could not be written to the swap tier: %s.", error)
            self._store.abandon(entries)
        finally:
            self._free.put(buffer)

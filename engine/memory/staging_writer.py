"""`StagingWriter`: a background thread that stores what was copied into staging buffers.

The engine's thread copies from the pool into a buffer, which is fast, and continues. Slow work
(checksums, page faults, disk writes) runs on the writer's thread without the GIL. If no buffer is
free, the disk cannot keep up; then the caller drops what it would store rather than delay a step.
"""

import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

import numpy as np
from numpy.typing import NDArray

_log = logging.getLogger(__name__)

Buffer = NDArray[np.uint8]


class StagingWriter:
    """The thread and its buffers. Public methods are called by the engine's thread only."""

    def __init__(
        self, shape: tuple[int, ...], *, buffers: int, name: str, threaded: bool = True
    ) -> None:
        """No buffer is made and no thread runs before it is needed.

        Args:
            shape: of a buffer.
            buffers: how many there are at most.
            name: of the thread.
            threaded: False runs all work in `submit`, for deterministic tests.
        """
        self._shape = shape
        self._most = buffers
        self._name = name
        self._threaded = threaded
        self._made = 0
        self._free: SimpleQueue[Buffer] = SimpleQueue()
        self._jobs: SimpleQueue[tuple[Buffer, Callable[[], None]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def buffer(self, *, wait: bool) -> Buffer | None:
        """A free buffer, or None if there is none and `wait` is False."""
        if self._made < self._most and self._free.empty():
            self._made += 1
            return np.empty(self._shape, np.uint8)
        try:
            return self._free.get(wait)
        except Empty:
            return None

    def return_buffer(self, buffer: Buffer) -> None:
        """Return a buffer without storing what is in it."""
        self._free.put(buffer)

    def submit(self, buffer: Buffer, work: Callable[[], None]) -> None:
        """Run `work`, which stores what is in a buffer. The caller must not use the buffer any more."""
        if not self._threaded:
            self._do(buffer, work)
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._jobs.put((buffer, work))

    def wait_until_written(self) -> None:
        """Block until all submitted work is done."""
        buffers = [self._free.get() for _ in range(self._made)]
        for buffer in buffers:
            self._free.put(buffer)

    def close(self) -> None:
        """Finish the submitted work and stop the thread."""
        self.wait_until_written()
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._do(*job)

    def _do(self, buffer: Buffer, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:  # a defect; without this thread, later work would wait forever
            _log.exception("What was copied into a staging buffer could not be written.")
        finally:
            self._free.put(buffer)

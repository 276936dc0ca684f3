"""`SwapWriter`: writes blocks to the swap store on a background thread, through staging buffers."""

import logging
import time
from contextlib import suppress
from functools import partial
from typing import Protocol

from engine.memory.staging_writer import Buffer, StagingWriter
from engine.observability.rates import Speed

_log = logging.getLogger(__name__)

BUFFERS = 4
BUFFER_BYTES = 8 << 20
MIN_BUFFER_BLOCKS = 4
"""Minimum number of blocks in a buffer, even if that exceeds `BUFFER_BYTES`."""


class EntryFiller(Protocol):
    """The part of `engine._core.SwapStore` that the writer uses."""

    def fill(self, entries: list[int], data: Buffer, /) -> int:
        """Copy blocks, [n, block_bytes], into reserved entries."""
        ...

    def abandon(self, entries: list[int], /) -> None:
        """Free reserved entries without filling them."""
        ...


class SwapWriter(StagingWriter):
    """Writes buffers of blocks, [blocks, block_bytes].

    Attributes:
        speed: measured bytes per second from the pool to the store, both copies included.
        blocks: blocks per buffer.
    """

    def __init__(self, store: EntryFiller, block_bytes: int, *, threaded: bool = True) -> None:
        """Write into `store`; with `threaded=False`, `write` is synchronous, for tests."""
        self._store = store
        self.blocks = max(MIN_BUFFER_BLOCKS, min(64, BUFFER_BYTES // block_bytes))
        self.speed = Speed()
        super().__init__(
            (self.blocks, block_bytes), buffers=BUFFERS, name="pravaha-swap", threaded=threaded
        )

    def write(self, entries: list[int], buffer: Buffer, seconds: float) -> None:
        """Fill entries from the first blocks of a buffer. The caller must not use it any more.

        Args:
            entries: reserved entries.
            buffer: from the method `buffer`.
            seconds: time that copying the blocks out of the pool took.
        """
        self.submit(buffer, partial(self._fill, entries, buffer, seconds))

    def _fill(self, entries: list[int], buffer: Buffer, seconds: float) -> None:
        started = time.perf_counter()
        data = buffer[: len(entries)]
        try:
            self._store.fill(entries, data)
            self.speed.add(data.nbytes, seconds + time.perf_counter() - started)
        except OSError as error:  # the blocks stay unsaved; their tokens can be recomputed
            _log.warning("KV blocks could not be written to the swap tier: %s.", error)
            self._store.abandon(entries)
        except Exception:
            with suppress(Exception):
                self._store.abandon(entries)
            raise

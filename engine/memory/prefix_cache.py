"""`PrefixCache`: finds KV blocks by the tokens they hold, and makes full blocks findable.

Invariants: only full blocks whose KV was computed are indexed; a row holds every node above the
ones it adds, because a duplicate is swapped for the indexed copy before anything hangs below it.
Cost: a lookup takes one hash for each block of the prompt; indexing is one call into the core for
the rows that filled a block in this step, and nothing for the others.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.batch.rows import RowTable


class PrefixIndex(Protocol):
    """What the cache asks of `engine._core.PrefixTrie`."""

    def match_prefix(
        self, salt: bytes, tokens: NDArray[np.int32] | Sequence[int], /
    ) -> NDArray[np.int32]:
        """Blocks of the longest indexed prefix; they gain no holder. Any thread."""
        ...

    def index_rows(
        self,
        salt: bytes,
        token_table: NDArray[np.int32],
        block_tables: NDArray[np.int32],
        rows: NDArray[np.int32],
        start: NDArray[np.int32],
        stop: NDArray[np.int32],
        /,
    ) -> int:
        """Index blocks [start, stop) of each row; duplicates are swapped in `block_tables`."""
        ...


class PrefixCache:
    """The index of one pool, as seen by one model."""

    def __init__(self, index: PrefixIndex, salt: bytes, *, block_size: int) -> None:
        """Look up and index under `salt`, which stands for all else that changes KV bytes."""
        self._index = index
        self._salt = salt
        self._block_size = block_size

    def match(self, tokens: NDArray[np.int32]) -> NDArray[np.int32]:
        """[B] int32, blocks of the longest cached prefix. Any thread.

        They gain no holder: retain them before anything is allocated.
        """
        return self._index.match_prefix(self._salt, tokens)

    def index(self, table: RowTable, rows: NDArray[np.int32]) -> int:
        """Index what `rows` have computed by now. No step may be in flight.

        Returns:
            Blocks that turned out to be duplicates of indexed ones and were given back.
        """
        full = table.num_computed[rows] // self._block_size
        begun = table.num_indexed[rows]
        grown = full > begun
        if not np.count_nonzero(grown):
            return 0
        return self.index_blocks(table, rows[grown], begun[grown], full[grown])

    def index_blocks(
        self,
        table: RowTable,
        rows: NDArray[np.int32],
        start: NDArray[np.int32],
        stop: NDArray[np.int32],
    ) -> int:
        """Index what is known to be full: blocks [start, stop) of each row, [N] int32 each.

        Returns:
            Blocks that turned out to be duplicates of indexed ones and were given back.
        """
        duplicates = self._index.index_rows(
            self._salt, table.token_table, table.block_tables, rows, start, stop
        )
        table.num_indexed[rows] = stop
        return duplicates

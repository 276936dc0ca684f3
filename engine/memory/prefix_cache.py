"""`PrefixCache`: an index from token prefixes to the KV blocks that hold them.

Invariants: only full blocks whose KV was computed are indexed. A row holds all ancestors of the
nodes it adds: a duplicate block is replaced by the indexed one before a child is added to it.
Cost: a lookup computes one hash per block of the prompt. Indexing is one call into the core, or one
for each cache salt, for all rows that filled a block in this step, and one for each of them that has
images; other rows cost nothing.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.batch.rows import RowTable
from engine.memory.image_identity import identity_tokens
from engine.memory.kv_identity import NO_CACHE_SALT

if TYPE_CHECKING:
    from engine.memory.sliding_windows import SlidingWindows


class PrefixIndex(Protocol):
    """The part of `engine._core.PrefixTrie` that the cache uses."""

    def match_prefix(
        self, salt: bytes, tokens: NDArray[np.int32] | Sequence[int], /
    ) -> NDArray[np.int32]:
        """Blocks of the longest indexed prefix; refcounts are unchanged. Any thread."""
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
        """Index blocks [start, stop) of each row; replace duplicates in `block_tables`."""
        ...

    def node(
        self, block: int, /
    ) -> tuple[int, int | None, NDArray[np.int32], NDArray[np.int32]] | None:
        """Depth, parent block, child blocks and tokens of an indexed block. Any thread."""
        ...

    def chains(
        self, limit: int, /
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], bool]:
        """Parents, lengths and blocks of runs without a fork; whether some were left out. Any thread."""
        ...


class PrefixCache:
    """The prefix index of one pool for one model.

    Attributes:
        windows: the window blocks of a model with sliding windows, which follow rows to other blocks.
    """

    def __init__(self, index: PrefixIndex, salt: bytes, *, block_size: int) -> None:
        """Look up and index under `salt` (`engine.memory.kv_identity.kv_salt`) and cache salts."""
        self._index = index
        self._salt = salt
        self._block_size = block_size
        self.windows: SlidingWindows | None = None

    def match(self, tokens: NDArray[np.int32], cache_salt: bytes) -> NDArray[np.int32]:
        """[B] int32, blocks of the longest prefix cached under a cache salt. Any thread.

        References are not incremented; call `retain` before the next allocation.
        """
        return self._index.match_prefix(self._salt + cache_salt, tokens)

    def node(
        self, block: int
    ) -> tuple[int, int | None, NDArray[np.int32], NDArray[np.int32]] | None:
        """Number of blocks up to this one, its parent, children and tokens; None if not indexed.

        Any thread.
        """
        return self._index.node(block)

    def chains(
        self, limit: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], bool]:
        """At most `limit` runs of blocks without a fork; see `engine._core.PrefixTrie.chains`.

        Any thread.
        """
        return self._index.chains(limit)

    def index(self, table: RowTable, rows: NDArray[np.int32]) -> int:
        """Index the blocks that `rows` have filled so far. No step may be in flight.

        Returns:
            Number of blocks that duplicated an indexed one and were released.
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
        """Index the full blocks [start, stop) of each row. No step may be in flight.

        Args:
            table: the row table; duplicates are replaced in its block tables.
            rows: [N] int32.
            start: [N] int32, first block of each row.
            stop: [N] int32, end of each row's blocks.

        Returns:
            Number of blocks that duplicated an indexed one and were released.
        """
        before = None if self.windows is None else table.block_tables[rows]
        duplicates, indexed = 0, rows
        if table.images:
            seeing = np.array([row in table.images for row in rows.tolist()], np.bool_)
            for row, first, end in zip(rows[seeing], start[seeing], stop[seeing], strict=True):
                duplicates += self._index_images(table, int(row), int(first), int(end))
                table.num_indexed[row] = end
            rows, start, stop = rows[~seeing], start[~seeing], stop[~seeing]
        for cache_salt, part in self._by_cache_salt(table, rows):
            duplicates += self._index.index_rows(
                self._salt + cache_salt,
                table.token_table,
                table.block_tables,
                rows[part],
                start[part],
                stop[part],
            )
        table.num_indexed[rows] = stop
        if duplicates and self.windows is not None and before is not None:
            self.windows.replace(table, before, indexed)
        return duplicates

    def _index_images(self, table: RowTable, row: int, start: int, stop: int) -> int:
        """Index the full blocks [start, stop) of a row with images."""
        tokens = table.token_table[row, : stop * self._block_size]
        identity = identity_tokens(tokens, table.images[row], self._block_size)
        return self._index.index_rows(
            self._salt + table.cache_salts.get(row, NO_CACHE_SALT),
            identity[None],
            table.block_tables[row : row + 1],
            np.zeros(1, np.int32),
            np.array([start], np.int32),
            np.array([stop], np.int32),
        )

    def _by_cache_salt(
        self, table: RowTable, rows: NDArray[np.int32]
    ) -> list[tuple[bytes, slice | list[int]]]:
        """The cache salts of `rows`, each with the positions of its rows in `rows`."""
        if not table.cache_salts:
            return [(NO_CACHE_SALT, slice(None))]
        parts: dict[bytes, list[int]] = {}
        for position, row in enumerate(rows.tolist()):
            parts.setdefault(table.cache_salts.get(row, NO_CACHE_SALT), []).append(position)
        return list(parts.items())

"""Tiling of attention into Triton programs: tiles of queries and splits of keys."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_SPLIT_QUERIES = 8
"""Maximum number of queries per row (decode, verification of drafts) for which keys are split."""

MAX_SPLITS = 16
_TILE_ROWS = 64
_MAX_TILE_KEYS = 64
_TILE_KEY_BYTES = 16 << 10  # with V and pipelining: 50 to 100 KB of shared memory
_MIN_SPLIT_KEYS = 256  # a split below this costs more to merge than it saves


@dataclass(frozen=True, slots=True)
class Tiling:
    """Tiles of a step's queries.

    Attributes:
        batch: [tiles] int32, tile → batch.
        first: [tiles] int32, tile → its first query within the row's run.
        queries: queries per tile.
    """

    batch: NDArray[np.int32]
    first: NDArray[np.int32]
    queries: int


def tile_queries(query_start: NDArray[np.int32], *, group: int) -> Tiling:
    """Divide each row's queries into tiles of about 64 (query, head) pairs.

    Args:
        query_start: [R + 1] int32, batch → first flat token.
        group: query heads per KV head.
    """
    lengths = np.diff(query_start)
    longest = int(lengths.max())
    queries = max(1, min(_TILE_ROWS // group, 1 << (longest - 1).bit_length()))
    tiles = -(-lengths // queries)
    batch = np.repeat(np.arange(len(lengths), dtype=np.int32), tiles)
    before = np.concatenate([[0], np.cumsum(tiles)[:-1]])
    first = (np.arange(len(batch)) - before[batch]) * queries
    return Tiling(batch, first.astype(np.int32), queries)


def tile_keys(*, key_bytes: int) -> int:
    """Number of keys that a program loads at once, so that they fit into shared memory.

    Args:
        key_bytes: bytes of one head's key, padded.
    """
    return max(16, min(_MAX_TILE_KEYS, _TILE_KEY_BYTES // key_bytes))


def split_count(*, tiles: int, kv_heads: int, longest_context: int, processors: int) -> int:
    """Number of splits of the keys, so that every multiprocessor has work.

    It depends on the number of tiles, the *layer's* KV heads and the context lengths, not on the
    batch size alone (vLLM #48076, #51995; sglang #27786).

    Args:
        tiles: number of query tiles.
        kv_heads: KV heads of the layer.
        longest_context: number of keys of the longest row.
        processors: streaming multiprocessors of the GPU.
    """
    wanted = -(-2 * processors // (tiles * kv_heads))
    useful = -(-longest_context // _MIN_SPLIT_KEYS)
    count = max(1, min(wanted, useful, MAX_SPLITS))
    return 1 << (count - 1).bit_length()  # few compiled variants

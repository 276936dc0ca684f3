"""How attention work is cut into Triton programs: tiles of queries, and splits of keys."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_SPLIT_QUERIES = 8
"""Runs of up to this many queries a row (decode, verification of drafts) have their keys split."""

MAX_SPLITS = 16
_TILE_ROWS = 64
_MAX_TILE_KEYS = 64
_TILE_KEY_BYTES = 16 << 10  # with V, buffered ahead: 50 to 100 KB of shared memory
_LEAST_KEYS = 256  # a split below this costs more to merge than it saves


@dataclass(frozen=True, slots=True)
class Tiling:
    """Tiles of a step's queries.

    Attributes:
        batch: [tiles] int32, tile to batch.
        first: [tiles] int32, tile to its first query within the row's run.
        queries: queries a tile.
    """

    batch: NDArray[np.int32]
    first: NDArray[np.int32]
    queries: int


def tile_queries(query_start: NDArray[np.int32], *, group: int) -> Tiling:
    """Cut every row's queries into tiles of about 64 (query, head) pairs.

    Args:
        query_start: [R + 1] int32, batch to first flat token.
        group: query heads a KV head.
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
    """Keys a program loads at a time, so that they fit into shared memory.

    Args:
        key_bytes: bytes of one head's key, padded.
    """
    return max(16, min(_MAX_TILE_KEYS, _TILE_KEY_BYTES // key_bytes))


def split_count(*, tiles: int, kv_heads: int, longest_context: int, processors: int) -> int:
    """How many parts the keys are cut into, so that every processor has work.

    It follows from the work there is: from the tiles, the *layer's* KV heads and the contexts,
    never from the batch size alone (vLLM #48076, #51995; sglang #27786).

    Args:
        tiles: tiles of queries.
        kv_heads: KV heads of the layer.
        longest_context: keys of the longest row.
        processors: streaming multiprocessors of the GPU.
    """
    wanted = -(-2 * processors // (tiles * kv_heads))
    useful = -(-longest_context // _LEAST_KEYS)
    count = max(1, min(wanted, useful, MAX_SPLITS))
    return 1 << (count - 1).bit_length()  # few compiled variants

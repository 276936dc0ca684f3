"""`Slots`: which rows of a collection's vector file are chunks that may be found."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Slots:
    """The rows of a vector file at one generation of its collection; arrays are read-only.

    Attributes:
        generation: the collection's, at which this holds.
        rewrites: of the vectors; a rewrite gives every chunk another slot.
        chunk_ids: [slots] chunk of each row; -1 for rows without a chunk.
        document_ids: [slots] document of each row; -1 for rows without a chunk.
        allowed: [slots] bool: rows that a search may return.
    """

    generation: int
    rewrites: int
    chunk_ids: NDArray[np.int64]
    document_ids: NDArray[np.int64]
    allowed: NDArray[np.bool_]

    def within(self, document_ids: NDArray[np.int64]) -> "Slots":
        """The same rows, of which only those of the documents may be returned."""
        allowed = np.isin(self.document_ids, document_ids)
        allowed.flags.writeable = False
        return Slots(self.generation, self.rewrites, self.chunk_ids, self.document_ids, allowed)


def slots_of(generation: int, rewrites: int, rows: int, ranges: NDArray[np.int64]) -> Slots:
    """Build the slots from documents.

    Args:
        generation: the collection's.
        rewrites: the collection's.
        rows: number of rows of the vector file.
        ranges: [documents, 4] id, first slot, first chunk, number of chunks.
    """
    chunk_ids = np.full(rows, -1, np.int64)
    document_ids = np.full(rows, -1, np.int64)
    ids, first_slots, first_chunks, counts = ranges.T
    total = int(counts.sum())
    # Position of each chunk within its document.
    offsets = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    slots = np.repeat(first_slots, counts) + offsets
    chunk_ids[slots] = np.repeat(first_chunks, counts) + offsets
    document_ids[slots] = np.repeat(ids, counts)
    allowed = chunk_ids >= 0
    for array in (chunk_ids, document_ids, allowed):
        array.flags.writeable = False
    return Slots(generation, rewrites, chunk_ids, document_ids, allowed)

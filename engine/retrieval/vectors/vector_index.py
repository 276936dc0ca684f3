"""`VectorIndex`: where the vectors of a collection are; `VectorFile` is the default."""

from typing import Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

StoreKind = Literal["auto", "exact", "hnsw", "pgvector"]
"""What a collection is created with; docs/retrieval.md has what each means."""


class VectorIndex(Protocol):
    """Rows of vectors; a row's number is its *slot*.

    The collection's database is the truth about which slots are live, and commits after `sync`. So a store
    may have more rows than the database knows of, which the next writer truncates, and never fewer.

    One writer at a time, which the caller ensures and which uses the store from one thread. Readers in any
    thread and process see a row from its `sync` on, at the latest. Every method may raise `OSError` or a
    `PravahaError` with one sentence.
    """

    @property
    def rows(self) -> int:
        """The number of rows, cleared ones included."""

    def append(self, vectors: NDArray[np.float32]) -> range:
        """Append [n, dimensions] vectors; returns their slots. Durable after `sync`."""

    def append_copies(self, source: Self, slots: NDArray[np.int64]) -> range:
        """Append rows of another store of the same kind, as they are stored; returns their slots."""

    def write(self, slots: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Replace rows that exist, also cleared ones. Durable after `sync`."""

    def sync(self) -> None:
        """Make everything durable that was changed."""

    def clear(self, slots: NDArray[np.int64]) -> None:
        """Forget the vectors of rows. After `sync` no byte of them is left in the store's own files."""

    def truncate(self, rows: int) -> None:
        """Drop the rows from this number on. Durable after `sync`."""

    def maintain(self, live: int) -> None:
        """Do what later searches profit from, after a commit, for so many live rows; may take minutes."""

    def read(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """[n, dimensions] vectors; zeros where a row was cleared."""

    def search(
        self, queries: NDArray[np.float32], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The allowed rows with the largest dot products.

        Args:
            queries: [q, dimensions].
            k: rows for each query.
            allowed: [slots] which may be found; slots beyond its end may not. None allows all.

        Returns:
            [q, k] slots and scores, best first; slot -1 and score -inf where fewer rows are found.
        """

    def close(self) -> None:
        """Close it. What was not synced may be lost. Idempotent."""

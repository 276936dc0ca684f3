"""A vector file of float32 rows, searched with numpy."""

import os
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

_HEADER = 16


class PlainVectorFile:
    """Rows of vectors in a file: 16 bytes of header (the number of dimensions), then float32 values."""

    def __init__(self, path: Path, dimensions: int) -> None:
        self._path, self.dimensions = path, dimensions
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    @classmethod
    def create(cls, path: Path, dimensions: int, dtype: str = "f32") -> Self:
        """Create an empty file."""
        if dtype != "f32":
            raise ValueError("only f32")
        with path.open("wb") as file:
            file.write(dimensions.to_bytes(_HEADER, "little"))
        return cls(path, dimensions)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open an existing file."""
        with path.open("rb") as file:
            return cls(path, int.from_bytes(file.read(_HEADER), "little"))

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return (os.fstat(self._descriptor).st_size - _HEADER) // (4 * self.dimensions)

    def append(self, vectors: NDArray[np.float32]) -> range:
        """Add rows; returns their slots."""
        first = self.rows
        os.pwrite(self._descriptor, vectors.astype("<f4").tobytes(), self._at(first))
        return range(first, first + len(vectors))

    def clear(self, slots: range) -> None:
        """Zero rows."""
        if len(slots):
            os.pwrite(self._descriptor, bytes(4 * self.dimensions * len(slots)), self._at(slots[0]))

    def truncate(self, rows: int) -> None:
        """Drop the rows from `rows` on."""
        os.ftruncate(self._descriptor, self._at(rows))

    def sync(self) -> None:
        """Make everything durable."""
        os.fsync(self._descriptor)

    def read(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of some rows."""
        return self._matrix()[slots]

    def search(
        self, queries: NDArray[np.float32], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The best k rows of each query; -1 where there are fewer."""
        matrix = self._matrix()
        if allowed is not None:
            matrix = matrix[: len(allowed)]
        scores = queries @ matrix.T
        if allowed is not None:
            scores[:, ~allowed[: scores.shape[1]]] = -np.inf
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        best = np.take_along_axis(scores, order, 1).astype(np.float32)
        return np.where(np.isinf(best), -1, order), best

    def _matrix(self) -> NDArray[np.float32]:
        data = os.pread(self._descriptor, 4 * self.dimensions * self.rows, _HEADER)
        return np.frombuffer(data, "<f4").reshape(-1, self.dimensions)

    def _at(self, row: int) -> int:
        return _HEADER + 4 * self.dimensions * row

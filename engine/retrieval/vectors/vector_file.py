"""`VectorFile`: vectors in a memory-mapped file, with exact search.

Invariants:
* Rows are appended; a row's number is its *slot*. Slots below `rows` are readable in every process that
  has the file open, without locks: a row is written before the number of rows that includes it.
* A file never shrinks, because reading a mapped page beyond the end of a file is fatal (SIGBUS).
  `truncate` only lowers the number of rows and overwrites what it drops with zeros. Nothing else may
  shorten the file while it is open. The room of dead rows comes back by copying the live ones to another
  file (`append_copies`).
* Rows are written with `pwrite`, so that a full disk is an `OSError`.

Cost: `append` writes the rows, `search` reads all allowed rows once for all queries of the call.

One writer at a time, which the caller ensures; any number of readers, in any thread and process.
"""

import mmap
import os
import threading
import weakref
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from engine import _core
from engine.api.config import DispatchLevel
from engine.api.errors import InvalidRequest
from engine.retrieval.vectors.errors import DamagedVectors
from engine.retrieval.vectors.header import HEADER_BYTES, ROWS_OFFSET, Header, VectorType

DEFAULT_TYPE: VectorType = "f16"
"""See docs/embeddings.md for what each type costs."""

MAX_RESULTS = 10_000
"""Upper bound of `k`."""

_ROWS_FIELD = slice(ROWS_OFFSET, ROWS_OFFSET + 8)
_ZEROS_BYTES = 1 << 20


class VectorFile:
    """Vectors of one length and one element type. Thread-safe, except that there is one writer.

    Attributes:
        path: the file.
        dimensions: length of a vector.
        dtype: element type of the stored vectors.
    """

    def __init__(self, path: Path, descriptor: int, header: Header) -> None:
        """Use an open file; `create` and `open` are the ways to get one.

        Args:
            path: the file.
            descriptor: the file, open for reading and writing or for reading; owned from now on.
            header: its header.
        """
        self.path, self.dimensions, self.dtype = path, header.dimensions, header.dtype
        self._descriptor = descriptor
        self._layout = _core.VectorLayout(header.dtype, header.dimensions)
        self._row_bytes = self._layout.row_bytes
        self._closed = False
        self._lock = threading.Lock()  # guards remapping
        self._map = self._map_file()
        # A reader that has been told of a rewritten file drops this one, perhaps during a search.
        self._close_descriptor = weakref.finalize(self, os.close, descriptor)

    @classmethod
    def create(cls, path: Path, dimensions: int, dtype: VectorType = DEFAULT_TYPE) -> Self:
        """Create a file without rows; it and its name are durable.

        Args:
            path: where; its directory exists.
            dimensions: length of a vector.
            dtype: element type: "f32", "f16", or "int8" with a scale for each vector.

        Raises:
            FileExistsError: there is a file.
            OSError: it cannot be written.
            InvalidRequest: there is no such type, or dimensions are not from 1 to 16,384.
        """
        try:
            _core.VectorLayout(dtype, dimensions)
        except (ValueError, OverflowError) as error:
            raise InvalidRequest(str(error)) from error
        header = Header(dimensions, dtype)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            _write_all(descriptor, header.pack(), 0)
            os.fsync(descriptor)
            sync_directory(path.parent)
            return cls(path, descriptor, header)
        except BaseException:
            os.close(descriptor)
            path.unlink()
            raise

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a file for reading and, where permissions allow it, for writing.

        Raises:
            FileNotFoundError: there is no file.
            OSError: it cannot be read.
            DamagedVectors: it is not a vector file, or shorter than it says.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except PermissionError:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            header = Header.unpack(os.pread(descriptor, HEADER_BYTES, 0), path)
            return cls(path, descriptor, header)
        except ValueError as error:  # dimensions that the checksum covers, but no layout has
            os.close(descriptor)
            raise DamagedVectors(f"The vector file {path} cannot be used: {error}") from error
        except BaseException:
            os.close(descriptor)
            raise

    @property
    def rows(self) -> int:
        """The number of rows now, those appended by other processes included."""
        return int.from_bytes(self._current_map()[_ROWS_FIELD].tobytes(), "little")

    def append(self, vectors: NDArray[np.float32]) -> range:
        """Append vectors. They are durable after `sync`.

        Args:
            vectors: [n, dimensions] float32.

        Returns:
            Their slots.

        Raises:
            InvalidRequest: the array has another shape, or a value that cannot be stored.
            OSError: the file cannot be written; it has the rows that it had.
        """
        first = self.rows
        rows = self._encode(vectors)
        _write_all(self._descriptor, rows.data, self._offset(first))
        slots = range(first, first + len(rows) // self._row_bytes)
        self._set_rows(slots.stop)
        return slots

    def append_copies(self, source: Self, slots: NDArray[np.int64]) -> range:
        """Append rows of another file of the same type and length, bit for bit; returns their slots.

        Raises:
            InvalidRequest: the files differ in type or length, or a slot does not exist.
            OSError: the file cannot be written; it has the rows that it had.
        """
        if (source.dtype, source.dimensions) != (self.dtype, self.dimensions):
            raise InvalidRequest(f"The vectors of {source.path} do not fit into {self.path}.")
        first = self.rows
        rows = source._stored_rows().reshape(-1, self._row_bytes)[source._checked(slots)]
        _write_all(self._descriptor, rows.reshape(-1).data, self._offset(first))
        copies = range(first, first + len(rows))
        self._set_rows(copies.stop)
        return copies

    def write(self, slots: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Replace rows, durable after `sync`. A search meanwhile may see parts of both.

        Args:
            slots: [n] rows that exist.
            vectors: [n, dimensions] float32.

        Raises:
            InvalidRequest: a slot does not exist, or the array cannot be stored.
            OSError: the file cannot be written.
        """
        wanted, rows = self._checked(slots), self._encode(vectors).reshape(-1, self._row_bytes)
        for slot, row in zip(wanted.tolist(), rows, strict=True):
            _write_all(self._descriptor, row.data, self._offset(slot))

    def sync(self) -> None:
        """Write what was changed to the disk.

        Raises:
            OSError: the disk failed.
        """
        os.fdatasync(self._descriptor)

    def clear(self, slots: NDArray[np.int64]) -> None:
        """Overwrite rows with zeros, for deletion; durable after `sync`. A cleared row scores 0.

        Raises:
            InvalidRequest: a slot does not exist; nothing was changed.
        """
        zeros = bytes(self._row_bytes)
        for slot in self._checked(slots).tolist():
            _write_all(self._descriptor, zeros, self._offset(slot))

    def truncate(self, rows: int) -> None:
        """Drop the rows from this number on and overwrite them with zeros; durable after `sync`.

        Rows that an interrupted writer left beyond the number of rows are overwritten too.

        Raises:
            InvalidRequest: there are fewer rows.
        """
        if not 0 <= rows <= self.rows:
            raise InvalidRequest(f"{self.path} has {self.rows} vectors, so not {rows} can be kept.")
        self._set_rows(rows)
        at, end = self._offset(rows), os.fstat(self._descriptor).st_size
        zeros = bytes(min(_ZEROS_BYTES, max(end - at, 0)))
        while at < end:
            _write_all(self._descriptor, zeros[: end - at], at)
            at += len(zeros)

    def maintain(self, live: int) -> None:
        """See `VectorIndex`: nothing is to be done."""

    def read(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """The stored vectors: [n, dimensions] float32. What the element type cannot hold is lost.

        Raises:
            InvalidRequest: a slot does not exist.
        """
        wanted = self._checked(slots)
        rows = self._stored_rows().reshape(-1, self._row_bytes)[wanted]
        return self._layout.decode(rows.reshape(-1)).reshape(len(wanted), self.dimensions)

    def search(
        self,
        queries: NDArray[np.float32],
        k: int,
        *,
        allowed: NDArray[np.bool_] | NDArray[np.uint8] | None = None,
        threads: int | None = None,
        dispatch: DispatchLevel = "auto",
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The rows with the largest dot products; the GIL is released meanwhile.

        A score depends on the row and the query only, bit for bit.

        Args:
            queries: [q, dimensions] float32.
            k: number of rows to find for each query, from 1 to `MAX_RESULTS`.
            allowed: which slots may be found: a bool each, or their bits in bytes
                (`np.packbits(…, bitorder="little")`). Slots beyond its end are not allowed. None allows
                all, cleared rows included.
            threads: the most compute threads; None for the default.
            dispatch: instruction-set level.

        Returns:
            Slots int64 and scores float32, both [q, k], best first; equal scores by slot. Slot -1 and
            score -inf follow where fewer rows are allowed.

        Raises:
            InvalidRequest: an argument has another shape or type, or a query is not finite.
        """
        if not 1 <= k <= MAX_RESULTS:
            raise InvalidRequest(f"{k} results were asked for; it must be from 1 to {MAX_RESULTS}.")
        rows, queries = self._stored_rows(), self._checked_vectors(queries)
        try:
            return self._layout.search(
                rows,
                queries,
                k,
                allowed=_bits(allowed),
                threads=threads,
                dispatch=dispatch,
            )
        except ValueError as error:
            raise InvalidRequest(str(error)) from error

    def close(self) -> None:
        """Close the file. Idempotent; searches that run end normally."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._close_descriptor()
                self._map = np.zeros(0, np.uint8)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _offset(self, slot: int) -> int:
        return HEADER_BYTES + slot * self._row_bytes

    def _set_rows(self, rows: int) -> None:
        _write_all(self._descriptor, rows.to_bytes(8, "little"), ROWS_OFFSET)

    def _map_file(self) -> NDArray[np.uint8]:
        """Map the whole file as it is now. Arrays keep their map alive, so old ones stay valid."""
        # Before mapping: rows that another process appends in between are not in the map.
        rows = os.pread(self._descriptor, 8, ROWS_OFFSET)
        mapped = mmap.mmap(self._descriptor, 0, access=mmap.ACCESS_READ)
        array = np.frombuffer(mapped, np.uint8)
        end = self._offset(int.from_bytes(rows, "little"))
        if end > len(array):
            raise DamagedVectors(
                f"The vector file {self.path} has {len(array)} bytes, but its rows need {end}."
            )
        return array

    def _current_map(self) -> NDArray[np.uint8]:
        if self._closed:
            raise ValueError(f"The vector file {self.path} is closed.")
        return self._map

    def _stored_rows(self) -> NDArray[np.uint8]:
        """The bytes of all rows, after mapping the file again if it has grown beyond its map."""
        end = self._offset(self.rows)
        with self._lock:
            if end > len(self._current_map()):
                self._map = self._map_file()
            return self._map[HEADER_BYTES:end]

    def _checked(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        wanted = np.asarray(slots, np.int64).reshape(-1)
        if len(wanted) and not 0 <= wanted.min() <= wanted.max() < self.rows:
            raise InvalidRequest(f"A slot is not among the {self.rows} of {self.path}.")
        return wanted

    def _checked_vectors(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        if vectors.ndim != 2 or vectors.shape[1] != self.dimensions or vectors.dtype != np.float32:
            raise InvalidRequest(
                f"Vectors of {self.path} are float32 arrays [n, {self.dimensions}], not "
                f"{vectors.dtype} {list(vectors.shape)}."
            )
        return np.ascontiguousarray(vectors)

    def _encode(self, vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
        try:
            return self._layout.encode(self._checked_vectors(vectors).reshape(-1))
        except ValueError as error:
            raise InvalidRequest(str(error)) from error


def _bits(allowed: NDArray[np.bool_] | NDArray[np.uint8] | None) -> NDArray[np.uint8] | None:
    """One bit for each slot, the lowest first."""
    if allowed is None:
        return None
    if allowed.ndim == 1 and allowed.dtype == np.bool_:
        return np.packbits(allowed, bitorder="little")
    if allowed.ndim == 1 and allowed.dtype == np.uint8:
        return np.ascontiguousarray(allowed, np.uint8)
    raise InvalidRequest(
        f"Allowed slots are a bool each or bits in bytes, not {allowed.dtype} "
        f"{list(allowed.shape)}."
    )


def sync_directory(directory: Path) -> None:
    """Make the names of new files durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes | memoryview, offset: int) -> None:
    """`os.pwrite` until everything is written: one call may write less."""
    rest = memoryview(data)
    while rest:
        written = os.pwrite(descriptor, rest, offset)
        rest, offset = rest[written:], offset + written

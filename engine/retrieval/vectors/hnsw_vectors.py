"""`HnswVectors`: a vector file with an HNSW index beside it (usearch), for many vectors.

The vector file is the truth. The index only proposes rows: each proposal is scored by the file, so scores are
those of an exact search, and rows that are not allowed never appear. Rows that are not in the index yet are
searched exactly. Where filters leave few rows, or the index proposes too few, the search is exact.

How much a graph finds depends on the data. So each index is compared with the exact search on a sample of its
rows, and not used if it misses too many.

The index is a file of its own with a description that is written after it and names its length and hash. An
index that does not fit its description is not used, and built anew by the next writer: a crash at any moment
costs time, never results. Deleted vectors are removed from the index by the `clear` that zeroes them in the
file; their places are filled with random vectors, because a removed entry keeps its bytes otherwise.
"""

import hashlib
import os
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import orjson
from numpy.typing import NDArray

from engine.api.errors import InvalidRequest
from engine.retrieval.vectors.vector_file import VectorFile, sync_directory

if TYPE_CHECKING:
    from usearch.index import Index

MIN_ROWS = 500_000
"""Rows from which a collection gets an index by itself."""

MIN_INDEXED_ROWS = 1_000
"""Fewer rows are searched exactly even where an index is asked for."""

MAX_UNINDEXED_SHARE = 0.05
"""The index is extended when a larger share of the rows is not in it."""

MIN_ALLOWED_SHARE = 0.1
"""Where a filter leaves a smaller share, the search is exact."""

MIN_RECALL = 0.95
"""Share of the ten nearest rows that an index must find on a sample, to be used."""

_SAMPLE_ROWS = 128
_SAMPLE_K = 10
_SAME_SCORE = 1e-5
_GROWTH = 1.5
"""An index that was not good enough is tried again when there are so many times as many rows."""

_CONNECTIVITY = 16
_EXPANSION_ADD = 128
_EXPANSION_SEARCH = 256
_MAX_K = 1_000
"""More results are searched exactly."""

_FIRST_FILLER = 1 << 48
"""Keys of random vectors; slots are smaller."""

_ADDED_ROWS = 16_384
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class _Description:
    """What an index file must be.

    Attributes:
        rows: rows of the vector file that are in it.
        fillers: random vectors in it.
        recall: share of the nearest rows that it finds, on a sample.
        size: its length.
        digest: its hash.
    """

    rows: int
    fillers: int
    recall: float
    size: int
    digest: str


_NOTHING = _Description(0, 0, 0.0, 0, "")


class HnswVectors:
    """See `VectorIndex`.

    Args:
        file: the vectors; closed with this.
        min_rows: live rows from which `maintain` builds an index.
    """

    def __init__(self, file: VectorFile, *, min_rows: int) -> None:
        self.file = file
        self._min_rows = min_rows
        self._path = file.path.with_suffix(".hnsw")
        self._lock = threading.Lock()  # guards the three below
        self._index: Index | None = None
        self._described = _NOTHING
        self._seen: tuple[int, int] | None = None

    @property
    def rows(self) -> int:
        """See `VectorIndex`."""
        return self.file.rows

    @property
    def indexed_rows(self) -> int:
        """Rows that are in the index."""
        return self._current()[1].rows

    def append(self, vectors: NDArray[np.float32]) -> range:
        """See `VectorIndex`; the index follows in `maintain`."""
        return self.file.append(vectors)

    def append_copies(self, source: Self, slots: NDArray[np.int64]) -> range:
        """See `VectorIndex`; the index follows in `maintain`."""
        return self.file.append_copies(source.file, slots)

    def write(self, slots: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """See `VectorIndex`; an index that has one of the rows is dropped."""
        if len(slots) and slots.min() < self.indexed_rows:
            self._drop()
        self.file.write(slots, vectors)

    def sync(self) -> None:
        """See `VectorIndex`."""
        self.file.sync()

    def clear(self, slots: NDArray[np.int64]) -> None:
        """See `VectorIndex`. The index is written anew at once."""
        self.file.clear(slots)
        current, described = self._current()
        if current is None:
            self._remove_files()  # of an index that is damaged or cannot be used here
            return
        removed = slots[slots < described.rows]
        if not len(removed):
            return
        index, _ = self._open(writable=True)
        if index is None:
            self._drop()
            return
        fillers = described.fillers
        random = np.random.default_rng(fillers)
        for slot in removed.tolist():
            if slot in index:
                index.remove(slot)
                vector = random.standard_normal(self.file.dimensions).astype(np.float32)
                index.add(_FIRST_FILLER + fillers, vector / np.linalg.norm(vector))
                fillers += 1
        self._save(index, described.rows, fillers, described.recall)

    def truncate(self, rows: int) -> None:
        """See `VectorIndex`."""
        if rows < self.indexed_rows:
            self._drop()
        self.file.truncate(rows)

    def maintain(self, live: int) -> None:
        """See `VectorIndex`: build or extend the index, at about 1,500 rows a second on two cores."""
        rows = self.rows
        if live < max(self._min_rows, MIN_INDEXED_ROWS) or not is_available():
            return
        current, described = self._current()
        if current is not None and rows - described.rows <= MAX_UNINDEXED_SHARE * rows:
            return
        if current is None and rows < _GROWTH * self._insufficient_rows():
            return
        index, described = self._open(writable=True)
        if index is None:
            index = self._new_index()
        for at in range(described.rows, rows, _ADDED_ROWS):
            slots = np.arange(at, min(at + _ADDED_ROWS, rows))
            vectors = self.file.read(slots)
            present = np.any(vectors != 0, axis=1)  # cleared rows are not indexed
            if present.any():
                index.add(slots[present].astype(np.uint64), vectors[present])
        self._save(index, rows, described.fillers, self._recall(index, rows))

    def read(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """See `VectorIndex`."""
        return self.file.read(slots)

    def search(
        self, queries: NDArray[np.float32], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """See `VectorIndex`. Approximate; docs/retrieval.md has the recall."""
        rows = self.rows if allowed is None else len(allowed)
        live = rows if allowed is None else int(np.count_nonzero(allowed))
        index, described = self._current()
        if index is None or k > _MAX_K or live < MIN_ALLOWED_SHARE * rows or live <= k:
            return self.file.search(queries, k, allowed=allowed)
        # All that the search has visited: of nearly equal rows the index does not know the order.
        wanted = min(max(k * -(-rows // live) + k, _EXPANSION_SEARCH), len(index))
        if queries.ndim != 2 or queries.shape[1] != self.file.dimensions:
            raise InvalidRequest(f"Queries must have {self.file.dimensions} dimensions.")
        proposed = index.search(np.ascontiguousarray(queries, np.float32), wanted)
        keys = np.asarray(proposed.keys).reshape(len(queries), -1).astype(np.int64)
        found = [
            self._scored(query, row, k, rows, described.rows, allowed)
            for query, row in zip(queries, keys, strict=True)
        ]
        return np.stack([one for one, _ in found]), np.stack([one for _, one in found])

    def close(self) -> None:
        """See `VectorIndex`."""
        with self._lock:
            self._index = None
        self.file.close()

    def _scored(
        self,
        query: NDArray[np.float32],
        proposed: NDArray[np.int64],
        k: int,
        rows: int,
        indexed: int,
        allowed: NDArray[np.bool_] | None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The best of the proposed and of the rows that are not indexed, by their stored vectors."""
        candidates = np.zeros(rows, np.bool_)
        candidates[proposed[proposed < rows]] = True
        if allowed is not None:
            candidates &= allowed
        enough = np.count_nonzero(candidates) >= k
        candidates[indexed:] = True if allowed is None else allowed[indexed:]
        mask = candidates if enough else allowed
        slots, scores = self.file.search(query[None], k, allowed=mask)
        return slots[0], scores[0]

    def _current(self) -> "tuple[Index | None, _Description]":
        """The index as its description says now; None, and no rows, if there is none that can be used."""
        try:
            status = self._description_path.stat()
        except OSError:
            with self._lock:
                self._index, self._seen, self._described = None, None, _NOTHING
            return None, _NOTHING
        with self._lock:
            seen = status.st_mtime_ns, status.st_ino
            if seen != self._seen:
                self._seen = seen
                self._index, self._described = self._open(writable=False)
            return self._index, self._described

    def _open(self, *, writable: bool) -> "tuple[Index | None, _Description]":
        nothing = None, _NOTHING
        if not is_available():
            return nothing
        try:
            described = self._read_description()
            if described.recall < MIN_RECALL:
                return nothing
            if (self._path.stat().st_size, _digest(self._path)) != (
                described.size,
                described.digest,
            ):
                return nothing
        except (OSError, ValueError, TypeError):
            return nothing
        index = self._new_index()
        index.load(os.fspath(self._path)) if writable else index.view(os.fspath(self._path))
        if described.rows > self.file.rows:
            return nothing
        return index, described

    def _new_index(self) -> "Index":
        from usearch.index import Index

        return Index(
            ndim=self.file.dimensions,
            metric="ip",
            dtype="f16",
            connectivity=_CONNECTIVITY,
            expansion_add=_EXPANSION_ADD,
            expansion_search=_EXPANSION_SEARCH,
        )

    def _read_description(self) -> _Description:
        return _Description(**orjson.loads(self._description_path.read_bytes()))

    def _insufficient_rows(self) -> int:
        """Rows of the last index that was not good enough; 0 if there was none."""
        try:
            described = self._read_description()
        except (OSError, ValueError, TypeError):
            return 0
        return described.rows if described.recall < MIN_RECALL else 0

    def _recall(self, index: "Index", rows: int) -> float:
        """How many of the nearest rows of a sample the index finds, compared with the exact search."""
        sample = np.random.default_rng(rows).integers(0, rows, _SAMPLE_ROWS)
        queries = self.file.read(sample)
        queries = np.ascontiguousarray(queries[np.any(queries != 0, axis=1)])
        if not len(queries):
            return 0.0
        k = min(_SAMPLE_K, len(index))
        _, exact = self.file.search(queries, k)
        keys = np.asarray(index.search(queries, min(_EXPANSION_SEARCH, len(index))).keys).reshape(
            len(queries), -1
        )
        found = 0
        for query, scores, proposed in zip(queries, exact, keys, strict=True):
            # By scores: of rows with the same vector any may be found.
            own = self.file.read(np.unique(proposed[proposed < rows]).astype(np.int64)) @ query
            found += min(k, int(np.count_nonzero(own >= scores[-1] - _SAME_SCORE)))
        return found / exact.size

    def _save(self, index: "Index", rows: int, fillers: int, recall: float) -> None:
        """Replace the index, which is used when its description is there; a bad one is not kept."""
        self._drop()
        new = self._path.with_suffix(".hnsw.new")
        if recall >= MIN_RECALL:
            index.save(os.fspath(new))
            described = _Description(rows, fillers, recall, new.stat().st_size, _digest(new))
            _sync(new)
            new.replace(self._path)
        else:
            described = _Description(rows, fillers, recall, 0, "")
        description = self._path.with_suffix(".hnsw.json.new")
        description.write_bytes(orjson.dumps(asdict(described)))
        _sync(description)
        description.replace(self._description_path)
        sync_directory(self._path.parent)

    @property
    def _description_path(self) -> Path:
        return self._path.with_suffix(".hnsw.json")

    def _drop(self) -> None:
        with self._lock:
            self._index, self._seen, self._described = None, None, _NOTHING
        self._remove_files()

    def _remove_files(self) -> None:
        for path in (self._description_path, self._path):
            path.unlink(missing_ok=True)


def is_available() -> bool:
    """Whether usearch is installed."""
    from importlib.util import find_spec

    return find_spec("usearch") is not None


def _digest(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=20)
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())

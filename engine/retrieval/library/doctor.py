"""Examines a collection: whether its files fit each other, and its documents the user's files."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from engine.retrieval.indexing.collection_writer import open_vectors
from engine.retrieval.indexing.preparing import content_hash
from engine.retrieval.store.errors import RetrievalStoreError
from engine.retrieval.store.records import CollectionRecord, DocumentRecord
from engine.retrieval.store.store import Store
from engine.retrieval.store.store_writer import StoreWriter

_BLOCK_ROWS = 8192
_ADVICE = "remove the collection and add its documents again"


@dataclass(slots=True)
class DoctorReport:
    """What was found.

    Attributes:
        damage: what is broken inside, one sentence each with what to do.
        outdated: documents whose file has changed or is gone: a refresh brings them up to date.
        unreadable: files that cannot be read.
        documents: documents that can be found.
        chunks: their chunks.
        database_bytes: size of the database of all collections.
        vector_bytes: size of the vector file.
        dead_slots: rows of the vector file without a chunk.
    """

    damage: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)
    unreadable: list[DocumentRecord] = field(default_factory=list)
    documents: int = 0
    chunks: int = 0
    database_bytes: int = 0
    vector_bytes: int = 0
    dead_slots: int = 0


def examine(store: Store, name: str, model: str) -> DoctorReport:
    """Examine a collection; its word indexes are built anew if they are damaged.

    Args:
        store: the database.
        name: the collection.
        model: name of the embedding model in use.

    Raises:
        UnknownCollection: there is no such collection.
        LibraryBusy: another process adds or deletes.
    """
    report = DoctorReport()
    record = store.collection(name)
    with StoreWriter.open(store.directory) as writer:
        if not writer.check_indexes(record.id):
            writer.rebuild_indexes(record.id)
            writer.commit(record.id, slots=record.slots, dimensions=record.dimensions)
            report.damage.append("The word indexes were damaged: they were built anew.")
    if record.model != model:
        report.damage.append(
            f"The vectors are those of the embedding model {record.model}, and {model} is in use: create "
            "another collection."
        )
    documents = store.documents(record.id)
    ready = [one for one in documents if one.status == "ready"]
    report.unreadable = [one for one in documents if one.status == "failed"]
    report.documents, report.chunks = len(ready), sum(one.chunks for one in ready)
    report.outdated = [one.path for one in documents if _is_outdated(one)]
    report.database_bytes = _size(store.path)
    report.vector_bytes = _size(store.vector_path(record.id))
    _check_chunks(store, ready, report)
    _check_vectors(store, record, report)
    return report


def _is_outdated(document: DocumentRecord) -> bool:
    try:
        return content_hash(document.path) != document.content_hash
    except OSError:
        return document.status == "ready"


def _check_chunks(store: Store, ready: list[DocumentRecord], report: DoctorReport) -> None:
    stored = store.chunk_counts([one.id for one in ready])
    wrong = [one.path for one in ready if stored.get(one.id, 0) != one.chunks]
    report.damage += [f"{path} lacks chunks: remove it and add it again." for path in wrong]


def _check_vectors(store: Store, record: CollectionRecord, report: DoctorReport) -> None:
    if record.dimensions is None:
        return
    try:
        file = open_vectors(store.vector_path(record.id), record)
    except RetrievalStoreError as error:
        report.damage.append(str(error))
        return
    with file:
        if file.rows < record.slots:
            report.damage.append(
                f"The vector file has {file.rows} of {record.slots} vectors: {_ADVICE}."
            )
            return
        slots = store.slots(record.id)
        live = np.flatnonzero(slots.allowed)
        report.dead_slots = record.slots - len(live)
        broken = sum(
            _count_broken(file.read(live[at : at + _BLOCK_ROWS]))
            for at in range(0, len(live), _BLOCK_ROWS)
        )
    if broken:
        report.damage.append(f"{broken} vectors are damaged: {_ADVICE}.")


def _count_broken(vectors: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> int:
    """How many are not of unit length; the largest error is that of int8."""
    lengths = np.linalg.norm(vectors, axis=1)
    return int(np.count_nonzero(~(np.abs(lengths - 1) < 0.05)))


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0

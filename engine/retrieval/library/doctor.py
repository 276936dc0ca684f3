"""Examines a collection: whether its files fit each other, and its documents the user's files."""

from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from engine.retrieval.indexing.collection_writer import CollectionWriter
from engine.retrieval.indexing.preparing import content_hash
from engine.retrieval.indexing.vector_restoring import broken_slots
from engine.retrieval.store.collection_vectors import lost_vectors, open_vectors
from engine.retrieval.store.errors import RetrievalStoreError, store_errors
from engine.retrieval.store.records import CollectionRecord, DocumentRecord
from engine.retrieval.store.store import Store
from engine.retrieval.store.store_writer import StoreWriter


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
        vector_bytes: size of the vector file; 0 where vectors are in another database.
        dead_slots: rows of the vector file without a chunk, which were removed from it.
        lost_vectors: chunks whose vector is missing or damaged; `Collection.restore_vectors` computes them.
    """

    damage: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)
    unreadable: list[DocumentRecord] = field(default_factory=list)
    documents: int = 0
    chunks: int = 0
    database_bytes: int = 0
    vector_bytes: int = 0
    dead_slots: int = 0
    lost_vectors: int = 0


def examine(store: Store, name: str, model: str) -> DoctorReport:
    """Examine a collection; its word indexes are built anew if they are damaged.

    The rows of deleted chunks are removed from a vector file that is not damaged.

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
    _check_chunks(store, ready, report)
    if record.dimensions is not None:
        _check_vectors(store, record, report)
        if not report.lost_vectors:
            with CollectionWriter.opened(store, name) as vectors, store_errors(store.path):
                report.dead_slots = vectors.compact()
                vectors.purge()
                vectors.maintain()
        record = store.collection(name)
        report.vector_bytes = _size(store.vector_path(record.id, record.rewrites))
    return report


def _is_outdated(document: DocumentRecord) -> bool:
    if not document.content_hash:  # it was refused without reading it
        return False
    try:
        return content_hash(document.path) != document.content_hash
    except OSError:
        return document.status == "ready"


def _check_chunks(store: Store, ready: list[DocumentRecord], report: DoctorReport) -> None:
    stored = store.chunk_counts([one.id for one in ready])
    wrong = [one.path for one in ready if stored.get(one.id, 0) != one.chunks]
    report.damage += [f"{path} lacks chunks: remove it and add it again." for path in wrong]


def _check_vectors(store: Store, record: CollectionRecord, report: DoctorReport) -> None:
    slots = store.slots(record.id)
    live = np.flatnonzero(slots.allowed)
    try:
        if record.vectors_lost:
            raise lost_vectors(record, "not all of them are computed")
        with closing(open_vectors(store, record, rewrites=record.rewrites)) as file:
            if file.rows < record.slots:
                raise lost_vectors(record, f"it has {file.rows} of {record.slots}")
            report.lost_vectors = len(broken_slots(file, live))
    except RetrievalStoreError as error:
        report.damage.append(str(error))
        report.lost_vectors = len(live)
        return
    if report.lost_vectors:
        report.damage.append(f"{report.lost_vectors} vectors are damaged.")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0

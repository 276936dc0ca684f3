"""Computes lost vectors anew from the stored chunks.

Vectors are replaced in place, in the order of their slots. A row that is missing is zero until then, so a run
that was killed is continued by the next one, which finds the rows that are still broken.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import numpy as np
from numpy.typing import NDArray

from engine.api.embeddings import Embeddings
from engine.api.errors import QueueFull
from engine.retrieval.indexing.batches import BATCH_CHUNKS
from engine.retrieval.indexing.collection_writer import CollectionWriter
from engine.retrieval.indexing.index_run import TextEmbedder
from engine.retrieval.indexing.report import Cancelled, IndexProgress, Progress
from engine.retrieval.store.errors import store_errors
from engine.retrieval.store.store import Store
from engine.retrieval.vectors.vector_index import VectorIndex

_BLOCK_ROWS = 8192
_MAX_LENGTH_ERROR = 0.05
"""Of a stored vector of unit length; the largest is that of int8."""
_RETRY_S = 0.05


def broken_slots(file: VectorIndex, live: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those of the slots whose vector is not of unit length; reads all of them."""
    broken = [np.zeros(0, np.int64)]
    for at in range(0, len(live), _BLOCK_ROWS):
        slots = live[at : at + _BLOCK_ROWS]
        lengths = np.linalg.norm(file.read(slots), axis=1)
        broken.append(slots[~(np.abs(lengths - 1) < _MAX_LENGTH_ERROR)])
    return np.concatenate(broken)


def restore_vectors(
    writer: CollectionWriter,
    store: Store,
    embedder: TextEmbedder,
    *,
    progress: Progress | None = None,
    cancelled: Cancelled = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Compute the vectors of a collection anew that are missing or damaged.

    Args:
        writer: of a collection that has vectors; opened with `usable=False`.
        store: the database.
        embedder: embeds the chunks as before.
        progress: called on the caller's thread after each batch.
        cancelled: asked often; ends the run early, and the next one goes on.
        clock: seconds.

    Returns:
        How many were computed.

    Raises:
        RetrievalStoreError: the disk is full, or the database cannot be used.
        PravahaError: the embedder failed.
    """
    with store_errors(store.path):
        file = writer.replace_lost()
        slots = store.slots(writer.record.id)
        broken = broken_slots(file, np.flatnonzero(slots.allowed))
        sizes = {one.id: one.size for one in store.documents(writer.record.id)}
        documents, ends = _documents(slots.document_ids[broken])
        total = sum(sizes.get(one, 0) for one in documents.tolist())
        started, done = clock(), 0
        batches = _embedded(store, slots.chunk_ids, broken, embedder, cancelled)
        for rows, future in batches:
            file.write(rows, future.result().vectors)
            done += len(rows)
            if progress is not None:
                finished = int(np.searchsorted(ends, done, "right"))
                size = sum(sizes.get(one, 0) for one in documents[:finished].tolist())
                seconds = clock() - started
                progress(IndexProgress(finished, len(documents), size, total, done, 0, seconds))
        file.sync()
        if done == len(broken):
            writer.finish_restoring()
            writer.maintain()
        return done


def _documents(ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different documents of a list that names each in one run, and how many entries end with each."""
    ends = np.append(np.flatnonzero(np.diff(ids)) + 1, len(ids)) if len(ids) else ids
    return ids[ends - 1], ends


def _embedded(
    store: Store,
    chunk_ids: NDArray[np.int64],
    broken: NDArray[np.int64],
    embedder: TextEmbedder,
    cancelled: Cancelled,
) -> "Iterator[tuple[NDArray[np.int64], Future[Embeddings]]]":
    """Slots with their vectors, in batches; one is computed while the caller stores the one before."""
    waiting: list[tuple[NDArray[np.int64], Future[Embeddings]]] = []
    for at in range(0, len(broken), BATCH_CHUNKS):
        if cancelled():
            return
        rows = broken[at : at + BATCH_CHUNKS]
        waiting.append((rows, _submit(embedder, store.texts(chunk_ids[rows].tolist()))))
        if len(waiting) > 1:
            yield waiting.pop(0)
    yield from waiting


def _submit(embedder: TextEmbedder, texts: list[str]) -> "Future[Embeddings]":
    while True:
        try:
            return embedder.submit(texts)
        except QueueFull:  # other callers' requests fill the queue; they are answered in turn
            time.sleep(_RETRY_S)

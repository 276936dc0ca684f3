"""`IndexRun`: brings documents of a collection up to date.

One thread reads and cuts files while the embedder computes and the caller's thread stores, so the
processor is never idle for want of the next batch. Documents are stored in the order of their paths and
committed in groups; a run that is killed is continued by the next, which finds the committed ones unchanged.
"""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from engine.api.embeddings import Embeddings
from engine.retrieval.api.chunk import Chunk
from engine.retrieval.indexing.collection_writer import CollectionWriter
from engine.retrieval.indexing.preparing import Parser, Prepared, prepare
from engine.retrieval.indexing.report import AddReport, Cancelled, Failure, IndexProgress, Progress
from engine.retrieval.indexing.walking import FoundFile
from engine.retrieval.store.records import DocumentRecord

BATCH_CHUNKS = 256
"""Chunks embedded in one call; long enough that texts of like length can be computed together."""
_BATCHES_AHEAD = 2
_COMMIT_CHUNKS = 4096
_COMMIT_S = 5.0
_READ_AHEAD = 64


class TextEmbedder(Protocol):
    """Embeds texts; `Embedder` is one."""

    name: str

    def submit(self, texts: Sequence[str]) -> "Future[Embeddings]":
        """Embed texts asynchronously."""

    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer, without padding and truncation."""


@dataclass(slots=True)
class _Piece:
    """Chunks of one document that are embedded together."""

    prepared: Prepared
    chunks: Sequence[Chunk]
    more: bool


@dataclass(slots=True)
class _Batch:
    """Pieces whose texts are embedded in one call."""

    pieces: list[_Piece] = field(default_factory=list)
    chunks: int = 0
    future: "Future[Embeddings] | None" = None


class IndexRun:
    """One run; `run` may be called once.

    Args:
        writer: where to store.
        known: the collection's documents by path.
        parser: reads files.
        embedder: embeds chunks.
        progress: called on the caller's thread after each stored batch.
        cancelled: asked often; ends the run early, with what is stored committed.
        clock: seconds, for the report.
    """

    def __init__(
        self,
        writer: CollectionWriter,
        known: Mapping[str, DocumentRecord],
        *,
        parser: Parser,
        embedder: TextEmbedder,
        progress: Progress | None = None,
        cancelled: Cancelled = lambda: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._writer, self._known = writer, known
        self._parser, self._embedder = parser, embedder
        self._progress, self._cancelled, self._clock = progress, cancelled, clock
        self._report = AddReport()
        self._files = self._files_done = self._bytes = self._bytes_done = 0
        self._uncommitted = 0
        self._started = self._committed_at = clock()
        self._waiting: deque[_Batch] = deque()

    def run(self, files: Sequence[FoundFile]) -> AddReport:
        """Index files.

        Raises:
            RetrievalStoreError: the store cannot be written; what was committed stays.
            PravahaError: the embedder failed.
        """
        self._files, self._bytes = len(files), sum(one.size for one in files)
        batch = _Batch()
        for prepared in self._prepared(files):
            if self._cancelled():
                self._report.cancelled = True
                break
            for piece in _pieces(prepared):
                batch.pieces.append(piece)
                batch.chunks += len(piece.chunks)
                if batch.chunks >= BATCH_CHUNKS or len(batch.pieces) >= BATCH_CHUNKS:
                    self._submit(batch)
                    batch = _Batch()
        self._submit(batch)
        while self._waiting:
            self._store(self._waiting.popleft())
        self._commit()
        self._report.seconds = self._clock() - self._started
        return self._report

    def _submit(self, batch: _Batch) -> None:
        texts = [one.text for piece in batch.pieces for one in piece.chunks]
        if texts:
            batch.future = self._embedder.submit(texts)
        self._waiting.append(batch)
        while len(self._waiting) > _BATCHES_AHEAD:
            self._store(self._waiting.popleft())

    def _store(self, batch: _Batch) -> None:
        vectors = (
            np.empty((0, 0), np.float32) if batch.future is None else batch.future.result().vectors
        )
        row = 0
        for piece in batch.pieces:
            end = row + len(piece.chunks)
            self._store_piece(piece, vectors[row:end])
            row = end
        self._report.embedded += row
        if self._uncommitted >= _COMMIT_CHUNKS or self._clock() - self._committed_at >= _COMMIT_S:
            self._commit()
        self._tell()

    def _store_piece(self, piece: _Piece, vectors: NDArray[np.float32]) -> None:
        prepared = piece.prepared
        known = self._known.get(prepared.file.path)
        if prepared.unchanged:
            self._keep(prepared, known)
        elif prepared.chunks is None:
            self._writer.add_failed(prepared.document)
            self._report.failed.append(
                Failure(prepared.file.path, prepared.document.reason or "It cannot be read.")
            )
        else:
            self._writer.add(prepared.document, piece.chunks, vectors, more=piece.more)
            self._report.chunks += len(piece.chunks)
            self._uncommitted += len(piece.chunks)
            if not piece.more:
                self._report.added += known is None
                self._report.updated += known is not None
        if not piece.more:
            self._files_done += 1
            self._bytes_done += prepared.file.size

    def _keep(self, prepared: Prepared, known: DocumentRecord | None) -> None:
        if known is None:
            raise RuntimeError("an unknown document cannot be unchanged")
        if known.attributes != prepared.document.attributes:
            self._writer.rows.set_attributes(known.id, prepared.document.attributes)
        if known.status == "failed":
            self._report.failed.append(Failure(known.path, known.reason or "It cannot be read."))
        else:
            self._report.unchanged += 1

    def _commit(self) -> None:
        self._writer.commit()
        self._uncommitted = 0
        self._committed_at = self._clock()

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(
                IndexProgress(
                    self._files_done, self._files, self._bytes_done, self._bytes, self._report.chunks,
                    len(self._report.failed), self._clock() - self._started,
                )
            )  # fmt: skip

    def _prepared(self, files: Sequence[FoundFile]) -> Iterator[Prepared]:
        """Files in order, read ahead on another thread."""
        tokenizer = self._embedder.tokenizer()
        ready: queue.Queue[Prepared | BaseException | None] = queue.Queue(_READ_AHEAD)
        stopped = threading.Event()

        def read() -> None:
            try:
                for file in files:
                    known = self._known.get(file.path)
                    one = prepare(file, known and known.content_hash, self._parser, tokenizer)
                    if not _put(ready, one, stopped):
                        return
                _put(ready, None, stopped)
            except BaseException as error:  # raised again on the caller's thread
                _put(ready, error, stopped)

        reader = threading.Thread(target=read, name="pravaha-read", daemon=True)
        reader.start()
        try:
            while (one := ready.get()) is not None:
                if isinstance(one, BaseException):
                    raise one
                yield one
        finally:
            stopped.set()
            reader.join()


def _put(
    ready: "queue.Queue[Prepared | BaseException | None]",
    one: Prepared | BaseException | None,
    stopped: threading.Event,
) -> bool:
    while not stopped.is_set():
        try:
            ready.put(one, timeout=0.1)
        except queue.Full:
            continue
        return True
    return False


def _pieces(prepared: Prepared) -> Iterator[_Piece]:
    chunks = prepared.chunks or ()
    if len(chunks) <= BATCH_CHUNKS:
        yield _Piece(prepared, chunks, more=False)
        return
    for first in range(0, len(chunks), BATCH_CHUNKS):
        end = first + BATCH_CHUNKS
        yield _Piece(prepared, chunks[first:end], more=end < len(chunks))

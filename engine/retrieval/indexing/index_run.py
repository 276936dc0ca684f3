"""`IndexRun`: brings documents of a collection up to date.

Other threads read and cut files while the embedder computes and the caller's thread stores, so the embedder
never waits for its next batch. Documents are stored in the order of their paths and committed in groups. A
run that was killed is continued by the next one: it finds the committed documents unchanged, and takes over
the vectors of the chunks that were committed of a long one.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from engine.api.embeddings import Embeddings
from engine.api.errors import QueueFull
from engine.retrieval.chunking.token_counter import TokenCounter
from engine.retrieval.indexing.batches import Batch, Piece, pieces_of
from engine.retrieval.indexing.collection_writer import CollectionWriter
from engine.retrieval.indexing.preparing import Parser, Prepared, prepare_files
from engine.retrieval.indexing.report import AddReport, Cancelled, Failure, IndexProgress, Progress
from engine.retrieval.indexing.walking import FoundFile, stored_path
from engine.retrieval.store.new_document import NewDocument
from engine.retrieval.store.records import DocumentRecord

PARSER_PROCESSES = min(4, os.cpu_count() or 1)
"""Files that are read at a time."""
COMMIT_CHUNKS = 4096
COMMIT_S = 5.0
"""How much work a crash may cost at most: a group is committed after this many chunks or seconds."""
_BATCHES_AHEAD = 2
_RETRY_S = 0.05
_ASK_S = 0.05
"""Seconds after which a run that waits for vectors asks again whether it is cancelled."""


class TextEmbedder(Protocol):
    """Embeds texts; `Embedder` is one. Thread-safe."""

    @property
    def name(self) -> str:
        """Name of the model."""

    def submit(self, texts: Sequence[str], *, truncate: int | None = None) -> "Future[Embeddings]":
        """Embed texts asynchronously; with `truncate` longer ones are cut to so many tokens."""

    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer, without padding and truncation."""


class IndexRun:
    """One run; `run` may be called once.

    Args:
        writer: where to store.
        known: the collection's documents by path.
        parser: reads files.
        embedder: embeds chunks.
        progress: called on the caller's thread after each stored batch.
        cancelled: asked often; ends the run early, with what is stored committed.
        clock: seconds.
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
        self._uncommitted = self._bytes_of_document = 0
        self._started = self._committed_at = clock()
        self._waiting: deque[Batch] = deque()
        self._hashes: dict[str, str] = {}

    def run(
        self,
        files: Sequence[FoundFile],
        *,
        vanished: Sequence[DocumentRecord] = (),
        retry_failed: bool = False,
    ) -> AddReport:
        """Index files, then delete documents.

        Args:
            files: files that are new or may have changed.
            vanished: documents whose file is gone.
            retry_failed: whether files that could not be read are tried again although their bytes are the
                same.

        Raises:
            RetrievalStoreError: the store cannot be written; what was committed stays.
            PravahaError: the embedder failed.
        """
        files = self._named(files)
        self._files, self._bytes = len(files), sum(one.size for one in files)
        self._hashes = {
            path: one.content_hash
            for path, one in self._known.items()
            if not (retry_failed and one.status == "failed")
        }
        self._tell()
        self._index(files)
        if not self._report.cancelled:
            self._writer.rows.remove_documents([one.id for one in vanished])
            self._writer.rows.remove_stale(self._writer.record.id)
            self._report.removed = len(vanished)
        self._writer.commit()
        self._report.purged = self._writer.purge()
        if not self._report.cancelled:
            self._writer.maintain()
        self._report.seconds = self._clock() - self._started
        return self._report

    def _named(self, files: Sequence[FoundFile]) -> list[FoundFile]:
        """The files whose name can be stored; others are listed as unreadable, with a printable name."""
        named = []
        reason = "Its name is not valid UTF-8."
        for one in files:
            path = stored_path(one.path)
            if path == one.path:
                named.append(one)
                continue
            self._fail(path, reason)
            if path not in self._known:
                attributes = dict(one.source.attributes)
                self._writer.add_failed(
                    NewDocument(path, "", one.size, one.mtime_ns, reason, attributes=attributes)
                )
        return named

    def _index(self, files: Sequence[FoundFile]) -> None:
        batch = Batch()
        for piece in self._pieces(files):
            if self._cancelled():
                break
            batch.add(piece)
            if batch.full:
                self._submit(batch)
                batch = Batch()
        else:
            self._submit(batch)
            while self._waiting and self._store_next():
                pass
        for batch in self._waiting:
            if batch.future is not None:
                batch.future.cancel()
        self._report.cancelled = bool(self._waiting) or self._files_done < self._files

    def _pieces(self, files: Sequence[FoundFile]) -> Iterator[Piece]:
        counter = TokenCounter(self._embedder.tokenizer())
        for prepared in prepare_files(
            files,
            self._hashes,
            self._parser,
            counter,
            threads=PARSER_PROCESSES,
            cancelled=self._cancelled,
        ):
            stored = (
                None if prepared.chunks is None else self._writer.stored_texts(prepared.document)
            )
            for piece in pieces_of(prepared):
                if stored is not None:
                    piece.stored_slots = stored.find(piece.texts())
                yield piece

    def _submit(self, batch: Batch) -> None:
        while batch.texts and batch.future is None:
            try:
                batch.future = self._embedder.submit(batch.texts)
            except QueueFull:  # other callers' requests fill the queue; they are answered in turn
                time.sleep(_RETRY_S)
        self._waiting.append(batch)
        while len(self._waiting) > _BATCHES_AHEAD and self._store_next():
            pass

    def _store_next(self) -> bool:
        """Store the first of the waiting batches; False if that was cancelled before it was embedded."""
        if self._cancelled():
            return False
        future = self._waiting[0].future
        while future is not None and not wait_for([future], _ASK_S).done:
            if self._cancelled():
                return False
        self._store(self._waiting.popleft())
        return True

    def _store(self, batch: Batch) -> None:
        vectors = (
            np.empty((0, 0), np.float32) if batch.future is None else batch.future.result().vectors
        )
        row = 0
        for piece in batch.pieces:
            end = row + len(piece.chunks) - len(piece.stored_slots)
            self._store_piece(piece, vectors[row:end])
            row = end
        self._report.embedded += row
        if self._uncommitted >= COMMIT_CHUNKS or self._clock() - self._committed_at >= COMMIT_S:
            self._writer.commit()
            self._uncommitted, self._committed_at = 0, self._clock()
        self._tell()

    def _store_piece(self, piece: Piece, vectors: NDArray[np.float32]) -> None:
        prepared = piece.prepared
        known = self._known.get(prepared.file.path)
        if prepared.unchanged and known is not None:
            self._keep(prepared, known)
        elif prepared.chunks is None or piece.failure is not None:
            reason = piece.failure or prepared.document.reason
            self._writer.add_failed(replace(prepared.document, reason=reason))
            self._fail(prepared.file.path, reason)
        else:
            self._writer.add(
                prepared.document, piece.chunks, self._complete(piece, vectors), more=piece.more
            )
            self._report.chunks += len(piece.chunks)
            self._uncommitted += len(piece.chunks)
            if not piece.more:
                self._report.added += known is None
                self._report.updated += known is not None
        if not piece.more:
            self._files_done += 1
            self._bytes_done += prepared.file.size
            self._bytes_of_document = 0
        elif prepared.document.spans_of == "file":
            self._bytes_of_document = min(piece.chunks[-1].end, prepared.file.size)

    def _complete(self, piece: Piece, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Vectors of all chunks of a piece: computed ones and those taken over."""
        if not piece.stored_slots:
            return vectors
        stored = self._writer.read_vectors(list(piece.stored_slots.values()))
        taken = np.zeros(len(piece.chunks), np.bool_)
        taken[list(piece.stored_slots)] = True
        complete = np.empty((len(taken), stored.shape[1]), np.float32)
        complete[taken] = stored
        if len(vectors):
            complete[~taken] = vectors
        return complete

    def _keep(self, prepared: Prepared, known: DocumentRecord) -> None:
        if known.attributes != prepared.document.attributes:
            self._writer.rows.set_attributes(known.id, prepared.document.attributes)
        if known.status == "failed":
            self._fail(known.path, known.reason)
        else:
            self._report.unchanged += 1

    def _fail(self, path: str, reason: str | None) -> None:
        self._report.failed.append(Failure(path, reason or "It cannot be read."))

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(
                IndexProgress(
                    self._files_done,
                    self._files,
                    self._bytes_done + self._bytes_of_document,
                    self._bytes,
                    self._report.chunks,
                    len(self._report.failed),
                    self._clock() - self._started,
                )
            )

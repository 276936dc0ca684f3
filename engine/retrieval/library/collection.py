"""`Collection`: documents that are found by their words and their meaning."""

import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.api.embeddings import Embeddings
from engine.api.errors import InvalidRequest, ModelError
from engine.embedding.text_encoder import TRAINED_TOKENS
from engine.retrieval.api.errors import UnknownDocument
from engine.retrieval.api.passage import AttributeValue, Mode, Passage
from engine.retrieval.indexing.collection_writer import CollectionWriter
from engine.retrieval.indexing.index_run import IndexRun, TextEmbedder
from engine.retrieval.indexing.preparing import Parser
from engine.retrieval.indexing.reachability import Reachability, mount_points, still_missing
from engine.retrieval.indexing.report import AddReport, Cancelled, Progress, Unreachable
from engine.retrieval.indexing.vector_restoring import restore_vectors
from engine.retrieval.indexing.walking import (
    FoundFile,
    absolute_pattern,
    find_all_files,
    is_glob,
    is_inside,
    stored_path,
)
from engine.retrieval.indexing.watching import watch_changes
from engine.retrieval.library.doctor import DoctorReport, examine
from engine.retrieval.library.sections import document_text, section_text
from engine.retrieval.library.vector_files import VectorFiles
from engine.retrieval.search.hybrid import search
from engine.retrieval.store.collection_index import CollectionIndex
from engine.retrieval.store.errors import LibraryBusy
from engine.retrieval.store.filters import FILE_KEY, Where
from engine.retrieval.store.records import CollectionRecord, Counts, DocumentRecord, Source
from engine.retrieval.store.store import Store
from engine.retrieval.store.store_writer import check_attributes


class Collection:
    """One collection of a `Library`, which creates it. Thread-safe."""

    def __init__(
        self,
        store: Store,
        vectors: VectorFiles,
        name: str,
        embedder: TextEmbedder,
        open_parser: Callable[[], Parser],
    ) -> None:
        self.name = name
        self._store, self._vectors, self._embedder = store, vectors, embedder
        self._open_parser = open_parser

    @property
    def record(self) -> CollectionRecord:
        """The collection as it is stored now.

        Raises:
            UnknownCollection: it was removed.
        """
        return self._store.collection(self.name)

    @property
    def counts(self) -> Counts:
        """How much it holds."""
        return self._store.counts(self.record.id)

    def documents(self, where: Where | None = None) -> list[DocumentRecord]:
        """The documents and the files that cannot be read, by path.

        Raises:
            InvalidRequest: the filter is malformed.
        """
        return self._store.documents(self.record.id, where)

    def sources(self) -> list[Source]:
        """What was added, in that order."""
        return self._store.sources(self.record.id)

    def add(
        self,
        paths: Sequence[str | Path],
        *,
        exclude: Sequence[str] = (),
        attributes: Mapping[str, AttributeValue] | None = None,
        progress: Progress | None = None,
        cancelled: Cancelled = lambda: False,
    ) -> AddReport:
        """Add files and folders; files that have changed since they were added are read again.

        A run that was interrupted goes on where it was when the same paths are added again.

        Args:
            paths: files, folders and glob patterns.
            exclude: patterns, as in a `.gitignore`, of files in folders that are left out.
            attributes: values for each document, for filters.
            progress: called on this thread after each stored batch.
            cancelled: asked often; ends the run early.

        Raises:
            InvalidRequest: a path does not exist, or an attribute or a pattern is malformed.
            LibraryBusy: another process adds or deletes.
            RetrievalStoreError: the disk is full, or the files cannot be used.
            ModelError: the embedding model is not installed, or another one than the collection's.
        """
        given = dict(attributes or {})
        check_attributes(given)
        sources = [Source(_existing(path), tuple(exclude), given) for path in paths]
        files = find_all_files(sources)
        with self._writing() as writer:
            former = {one.pattern: one.mounts for one in self.sources()}
            for source in sources:
                source = replace(source, mounts=former.get(source.pattern, ()))
                writer.rows.add_source(writer.record.id, source)
                _note_mounts(writer, source, files)
            return self._run(writer, files, (), progress, cancelled, retry_failed=True)

    def add_text(
        self,
        text: bytes,
        name: str,
        *,
        attributes: Mapping[str, AttributeValue] | None = None,
        progress: Progress | None = None,
        cancelled: Cancelled = lambda: False,
    ) -> AddReport:
        """Add a document that is in no file; the library keeps it in one.

        Args:
            text: its bytes, of any type that can be read from a file.
            name: file name, without a folder; the document of the same name is replaced.
            attributes: values for filters.
            progress: as in `add`.
            cancelled: as in `add`.

        Raises:
            InvalidRequest: the name is not that of a file.
            PravahaError: as in `add`.
        """
        if os.path.basename(name) != name or name in ("", ".", "..") or "\0" in name:
            raise InvalidRequest(f"{name!r} is not the name of a file.", param="name")
        path = self._store.keep_file(self.record.id, name, text)
        return self.add([path], attributes=attributes, progress=progress, cancelled=cancelled)

    def refresh(
        self,
        *,
        changed: frozenset[str] | None = None,
        progress: Progress | None = None,
        cancelled: Cancelled = lambda: False,
    ) -> AddReport:
        """Bring all documents up to date: changed and new files are read, vanished ones deleted.

        A file has changed if the hash of its bytes has. Documents in a folder that cannot be reached, such as
        a drive that is not mounted, are kept and named in the report.

        Args:
            changed: paths to look at, files or folders; None looks at all.
            progress: as in `add`.
            cancelled: as in `add`.

        Raises:
            PravahaError: as in `add`.
        """
        sources = self.sources()
        files = find_all_files(sources)
        present = {stored_path(one.path) for one in files}
        with self._writing() as writer:
            documents = self._store.documents(writer.record.id)
            missing = [one for one in documents if one.path not in present]
            vanished, unreachable = _divide(missing, Reachability(sources))
            for source in sources:
                _note_mounts(writer, source, files)
            if changed is not None:
                known = {one.path for one in documents}  # a changed .gitignore may reveal others
                files = [
                    one
                    for one in files
                    if stored_path(one.path) not in known or _concerns(one.path, changed)
                ]
            report = self._run(writer, files, vanished, progress, cancelled)
            report.unreachable = unreachable
            return report

    def watch(
        self,
        stop: threading.Event,
        *,
        on_report: Callable[[AddReport], None],
        progress: Progress | None = None,
        refresh: Callable[[frozenset[str] | None], AddReport] | None = None,
    ) -> None:
        """Refresh now, and whenever files change, until `stop` is set.

        While another process adds or deletes, changes are put off.

        Args:
            stop: ends the call within about a second, also in the middle of a refresh.
            on_report: called after each refresh that did something.
            progress: as in `add`.
            refresh: does the refreshes, with the changed paths as in `refresh`, for a caller that changes
                the library on one thread; None does them here.

        Raises:
            PravahaError: as in `refresh`, but for `LibraryBusy`.
        """
        pending: frozenset[str] | None = None  # everything
        unreachable: list[Unreachable] = []
        for changes in watch_changes(self.sources, stop):
            if pending is not None:
                pending |= changes
                if not pending:
                    continue
            try:
                report = (
                    self.refresh(changed=pending, progress=progress, cancelled=stop.is_set)
                    if refresh is None
                    else refresh(pending)
                )
            except LibraryBusy:
                continue
            pending = frozenset()
            news = report.unreachable != unreachable
            unreachable = report.unreachable
            if report.added or report.updated or report.removed or report.failed or news:
                on_report(report)

    def remove(self, path: str | Path) -> int:
        """Delete a document, or all documents of a folder; a refresh does not add them again.

        Returns:
            How many documents were deleted.

        Raises:
            UnknownDocument: there is no such document.
            LibraryBusy: another process adds or deletes.
        """
        wanted = stored_path(absolute_pattern(os.fspath(path)))
        with CollectionWriter.opened(self._store, self.name) as writer:
            collection_id = writer.record.id
            found = [
                one.id
                for one in self._store.documents(collection_id)
                if is_inside(one.path, wanted)
            ]
            if not found:
                raise UnknownDocument(f"{self.name} has no document {wanted}.", param="path")
            writer.rows.remove_documents(found)
            for source in self._store.sources(collection_id):
                if is_inside(source.pattern, wanted):
                    writer.rows.remove_source(collection_id, source.pattern)
                else:
                    writer.rows.exclude_from_source(collection_id, source, wanted)
            writer.commit()
            writer.purge()
            writer.maintain()
            self._store.forget_file(collection_id, wanted)
            return len(found)

    def reconcile(self, wanted: Mapping[str, Mapping[str, AttributeValue]]) -> None:
        """Delete the documents that are not wanted, and give the others their attributes. Reads no file.

        Args:
            wanted: attributes by the absolute path of the file. What is wanted and not there is not added.

        Raises:
            InvalidRequest: an attribute cannot be stored.
            LibraryBusy: another process adds or deletes.
            RetrievalStoreError: the disk is full, or the files cannot be used.
        """
        documents = self.documents()
        surplus = [one for one in documents if one.path not in wanted]
        changed = [
            one
            for one in documents
            if one.path in wanted and _typed(one.attributes) != _typed(wanted[one.path])
        ]
        if not surplus and not changed:
            return
        for one in changed:
            check_attributes(wanted[one.path])
        with CollectionWriter.opened(self._store, self.name) as writer:
            writer.rows.remove_documents([one.id for one in surplus])
            for one in surplus:
                writer.rows.remove_source(writer.record.id, one.path)
            for one in changed:
                writer.rows.set_attributes(one.id, wanted[one.path])
            writer.commit()
            if surplus:
                writer.purge()
                writer.maintain()

    def search(
        self, query: str, *, k: int = 8, mode: Mode = "hybrid", where: Where | None = None
    ) -> list[Passage]:
        """The passages that fit a query best, best first.

        Args:
            query: words or a sentence.
            k: the largest number of passages.
            mode: by words (`lexical`), by meaning (`dense`) or by both.
            where: only passages of documents that this filter matches.

        Raises:
            InvalidRequest: the filter is malformed.
            ModelError: the embedding model is not installed, or another one than the collection's.
        """
        return search(self.index(mode), query, k=k, mode=mode, where=where)

    def mentions(self, words: str, *, where: Where | None = None) -> bool:
        """Whether a document, or a heading of it, has one of the words.

        Raises:
            InvalidRequest: the filter is malformed.
        """
        return bool(self.index("lexical").lexical(words, 1, where))

    def index(self, mode: Mode = "hybrid") -> CollectionIndex:
        """What a search reads, as it is stored now; without vectors where the mode needs none."""
        record = self.record
        found = None if mode == "lexical" else self._vectors.get(record)
        vectors, live = (None, None) if found is None else found
        return CollectionIndex(self._store, record.id, vectors, live, self._submit)

    def passage(self, chunk_id: int) -> Passage | None:
        """The chunk of this id; None if it was deleted or is in another collection."""
        return next(iter(self._store.passages([chunk_id], collection_id=self.record.id)), None)

    def section(self, passage: Passage) -> str:
        """The text of the section around a passage.

        Raises:
            UnknownDocument: the document was deleted.
        """
        return section_text(self._store, passage)

    def document(self, path: str | Path) -> DocumentRecord:
        """The document of a file.

        Raises:
            UnknownDocument: there is none, or the file cannot be read.
        """
        wanted = absolute_pattern(os.fspath(path))
        for one in self.documents({"type": "eq", "key": FILE_KEY, "value": wanted}):
            if one.status == "ready":
                return one
        raise UnknownDocument(f"{self.name} has no document {wanted}.", param="path")

    def text(self, path: str | Path) -> str:
        """The text of a document: that of its file, or the text extracted from it.

        Raises:
            UnknownDocument: there is no such document.
        """
        return document_text(self._store, self.document(path))

    def doctor(self) -> DoctorReport:
        """Compare the files of the collection with each other and with the documents; reads everything.

        Raises:
            LibraryBusy: another process adds or deletes.
        """
        return examine(self._store, self.name, self._embedder.name)

    def restore_vectors(
        self, *, progress: Progress | None = None, cancelled: Cancelled = lambda: False
    ) -> int:
        """Compute vectors anew that are missing or damaged, from the stored texts.

        Searches by meaning and changes are refused until all are there, if the file itself was lost.

        Args:
            progress: called on this thread after each batch.
            cancelled: asked often; ends the run early, and the next call goes on.

        Returns:
            How many were computed.

        Raises:
            ModelError: the embedding model is not installed, or another one than the collection's.
            LibraryBusy: another process adds or deletes.
            RetrievalStoreError: the disk is full, or the database cannot be used.
        """
        self._check_model()
        with CollectionWriter.opened(self._store, self.name, usable=False) as writer:
            if writer.record.dimensions is None:
                return 0
            return restore_vectors(
                writer, self._store, self._embedder, progress=progress, cancelled=cancelled
            )

    def _writing(self) -> AbstractContextManager[CollectionWriter]:
        self._check_model()
        return CollectionWriter.opened(self._store, self.name)

    def _check_model(self) -> None:
        model = self.record.model
        if model != self._embedder.name:
            raise ModelError(
                f"The vectors of {self.name} are those of the embedding model {model}, not of "
                f"{self._embedder.name}: create another collection."
            )

    def _run(
        self,
        writer: CollectionWriter,
        files: Sequence[FoundFile],
        vanished: Sequence[DocumentRecord],
        progress: Progress | None,
        cancelled: Cancelled,
        *,
        retry_failed: bool = False,
    ) -> AddReport:
        known = {one.path: one for one in self._store.documents(writer.record.id)}
        parser = self._open_parser()
        try:
            run = IndexRun(
                writer,
                known,
                parser=parser,
                embedder=self._embedder,
                progress=progress,
                cancelled=cancelled,
            )
            return run.run(files, vanished=vanished, retry_failed=retry_failed)
        finally:
            parser.close()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[texts, dimensions] vectors of unit length, comparable with those of the chunks.

        Longer texts than the embedding model takes are cut.

        Raises:
            InvalidRequest: a text is empty.
            ModelError: the embedding model is not installed, or another one than the collection's.
        """
        return self._submit(texts).result().vectors

    def _submit(self, texts: Sequence[str]) -> Future[Embeddings]:
        self._check_model()
        return self._embedder.submit(texts, truncate=TRAINED_TOKENS)


def _divide(
    missing: Sequence[DocumentRecord], reachability: Reachability
) -> tuple[list[DocumentRecord], list[Unreachable]]:
    """Documents whose files were deleted, and the folders of the others."""
    vanished: list[DocumentRecord] = []
    kept: Counter[str] = Counter()
    for one in missing:
        folder = reachability.unreachable_folder(one.path)
        if folder is None:
            vanished.append(one)
        else:
            kept[folder] += 1
    return vanished, [Unreachable(folder, count) for folder, count in sorted(kept.items())]


def _note_mounts(writer: CollectionWriter, source: Source, files: Sequence[FoundFile]) -> None:
    """Remember on which mount points a source's files are, those that are not mounted now included."""
    folders = {os.path.dirname(one.path) for one in files if one.source.pattern == source.pattern}
    mounts = tuple(sorted(mount_points(folders) | still_missing(source.mounts)))
    if mounts != source.mounts:
        writer.rows.set_mounts(writer.record.id, source.pattern, mounts)


def _typed(attributes: Mapping[str, AttributeValue]) -> dict[str, tuple[bool, AttributeValue]]:
    """Attributes that are equal only if their types are: True equals 1."""
    return {key: (isinstance(value, bool), value) for key, value in attributes.items()}


def _existing(path: str | Path) -> str:
    pattern = absolute_pattern(os.fspath(path))
    if pattern.encode("utf-8", "ignore").decode() != pattern:
        raise InvalidRequest("The path is not valid UTF-8.", param="paths")
    if is_glob(pattern):
        if not find_all_files([Source(pattern)]):
            raise InvalidRequest(f"No file fits {pattern}.", param="paths")
    elif not os.path.exists(pattern):
        raise InvalidRequest(f"There is no file {pattern}.", param="paths")
    return pattern


def _concerns(path: str, changed: frozenset[str]) -> bool:
    """Whether a file, or one of the folders that it is in, is among the changed paths."""
    while path not in changed:
        parent = os.path.dirname(path)
        if parent == path:
            return False
        path = parent
    return True

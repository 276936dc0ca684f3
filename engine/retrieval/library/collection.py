"""`Collection`: documents that are found by their words and their meaning."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.api.errors import InvalidRequest
from engine.retrieval.api.passage import AttributeValue, Mode, Passage
from engine.retrieval.indexing import plain_reader
from engine.retrieval.indexing.collection_writer import CollectionWriter
from engine.retrieval.indexing.index_run import IndexRun, TextEmbedder
from engine.retrieval.indexing.report import AddReport, Cancelled, Progress
from engine.retrieval.indexing.walking import FoundFile, absolute_pattern, find_files
from engine.retrieval.search.hybrid import search
from engine.retrieval.store.collection_index import CollectionIndex
from engine.retrieval.store.filters import FILE_KEY, Where
from engine.retrieval.store.plain_vector_file import PlainVectorFile
from engine.retrieval.store.records import CollectionRecord, DocumentRecord, Source
from engine.retrieval.store.store import Store
from engine.retrieval.store.store_writer import check_attributes


class _PlainParser:
    def parse(self, path: Path) -> "plain_reader.ParsedDocument":
        return plain_reader.parse(path)


class Collection:
    """One collection of a `Library`. Thread-safe."""

    def __init__(self, store: Store, name: str, embedder: TextEmbedder) -> None:
        self.name = name
        self._store, self._embedder = store, embedder

    @property
    def record(self) -> CollectionRecord:
        """The collection as it is stored now.

        Raises:
            UnknownCollection: it was removed.
        """
        return self._store.collection(self.name)

    def documents(self, where: Where | None = None) -> list[DocumentRecord]:
        """The documents and the files that cannot be read, by path."""
        return self._store.documents(self.record.id, where)

    def add(
        self,
        paths: Sequence[str | Path],
        *,
        exclude: Sequence[str] = (),
        attributes: Mapping[str, AttributeValue] | None = None,
        progress: Progress | None = None,
        cancelled: Cancelled = lambda: False,
    ) -> AddReport:
        """Add files and folders, or bring them up to date.

        A run that was interrupted goes on where it was when the same paths are added again.

        Args:
            paths: files, folders and glob patterns.
            exclude: patterns, as in a `.gitignore`, of files in folders that are left out.
            attributes: values for each document, for filters.
            progress: called after each stored batch.
            cancelled: asked often; ends the run early.

        Raises:
            InvalidRequest: a path does not exist, or an attribute or pattern is malformed.
            LibraryBusy: another process adds or deletes.
            RetrievalStoreError: the disk is full or the files cannot be used.
        """
        given = dict(attributes or {})
        check_attributes(given)
        sources = [
            Source(absolute_pattern(os.fspath(path)), tuple(exclude), given) for path in paths
        ]
        files = _files(sources)
        with CollectionWriter.opened(self._store, self.name) as writer:
            for source in sources:
                writer.rows.add_source(writer.record.id, source)
            known = {one.path: one for one in self._store.documents(writer.record.id)}
            run = IndexRun(
                writer, known, parser=_PlainParser(), embedder=self._embedder,
                progress=progress, cancelled=cancelled,
            )  # fmt: skip
            report = run.run(files)
            report.purged = writer.purge()
            return report

    def remove(self, path: str | Path) -> int:
        """Delete a document, or all documents of a folder; returns how many.

        Raises:
            InvalidRequest: there is no such document.
            LibraryBusy: another process adds or deletes.
        """
        wanted = absolute_pattern(os.fspath(path))
        with CollectionWriter.opened(self._store, self.name) as writer:
            found = [
                one.id
                for one in self._store.documents(writer.record.id)
                if one.path == wanted or one.path.startswith(wanted.rstrip("/") + "/")
            ]
            if not found:
                raise InvalidRequest(f"{self.name} has no document {wanted}.", param="path")
            writer.rows.remove_documents(found)
            sources = [one.pattern for one in self._store.sources(writer.record.id)]
            writer.rows.remove_sources(
                writer.record.id,
                [
                    one
                    for one in sources
                    if one == wanted or one.startswith(wanted.rstrip("/") + "/")
                ],
            )
            writer.commit()
            writer.purge()
            return len(found)

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
            ModelError: the embedding model is not installed.
        """
        record = self.record
        vectors = None
        if record.dimensions is not None:
            vectors = PlainVectorFile.open(self._store.vector_path(record.id))
        try:
            index = CollectionIndex(self._store, record.id, vectors, self._embed)
            return search(index, query, k=k, mode=mode, where=where)
        finally:
            if vectors is not None:
                vectors.close()

    def passage(self, chunk_id: int) -> Passage | None:
        """The chunk of this id; None if it was deleted or is in another collection."""
        documents = {one.id for one in self.documents()}
        found = self._store.passages([chunk_id])
        return found[0] if found and found[0].document_id in documents else None

    def section(self, passage: Passage) -> str:
        """The text of the section around a passage.

        Raises:
            UnknownCollection: the document was deleted.
        """
        text = self._store.extracted_text(passage.document_id)
        data = Path(passage.file).read_bytes() if text is None else text.encode()
        return data[passage.section_start : passage.section_end].decode("utf-8", "replace")

    def text(self, path: str | Path) -> str:
        """The text of a document as it was indexed.

        Raises:
            InvalidRequest: there is no such document.
        """
        wanted = absolute_pattern(os.fspath(path))
        found = self.documents({"type": "eq", "key": FILE_KEY, "value": wanted})
        if not found or found[0].status != "ready":
            raise InvalidRequest(f"{self.name} has no document {wanted}.", param="path")
        text = self._store.extracted_text(found[0].id)
        if text is not None:
            return text
        return Path(wanted).read_bytes().decode(found[0].encoding, "replace")

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._embedder.submit(texts).result().vectors


def _files(sources: Sequence[Source]) -> list[FoundFile]:
    found: dict[str, FoundFile] = {}
    for source in sources:
        files = find_files(source)
        if not files and not os.path.isdir(source.pattern):
            raise InvalidRequest(f"There is no file {source.pattern}.", param="paths")
        found.update((one.path, one) for one in files)
    return [found[path] for path in sorted(found)]

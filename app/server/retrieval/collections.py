"""`StoreCollections`: the vector stores as collections of a library of their own.

The library is beside the user's, not the same: clients of the API see none of the user's collections, and
neither waits for the other's writer. A collection is created with its first file.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from app.server.retrieval.errors import NotErasedYet
from app.server.retrieval.kept_parser import KeptParser
from app.server.retrieval.records import AttributeValue
from engine.retrieval.api.errors import UnknownCollection, Unreadable
from engine.retrieval.api.passage import Passage
from engine.retrieval.indexing.index_run import TextEmbedder
from engine.retrieval.library.collection import Collection
from engine.retrieval.library.library import Library
from engine.retrieval.store.filters import FILE_KEY
from engine.retrieval.store.records import DocumentRecord

_VECTOR_BYTES = {"f32": 4, "f16": 2, "int8": 1}


class StoreCollections:
    """Thread-safe; one thread at a time may change collections."""

    def __init__(self, directory: Path, embedder: TextEmbedder) -> None:
        """Open the library in a directory, which is created with the first collection."""
        self._parser = KeptParser()
        self._library = Library(directory, embedder, open_parser=lambda: self._parser)

    def rest(self) -> None:
        """Free what indexing uses until the next file."""
        self._parser.rest()

    def close(self) -> None:
        """Close the library."""
        self._parser.rest()
        self._library.close()

    def add(
        self,
        store_id: str,
        path: Path,
        attributes: Mapping[str, AttributeValue],
        *,
        cancelled: Callable[[], bool],
    ) -> int | None:
        """Index a file.

        Args:
            store_id: the vector store.
            path: the file.
            attributes: its attributes.
            cancelled: asked often; ends it early.

        Returns:
            The bytes that the file and its vectors take; None if it was cancelled.

        Raises:
            Unreadable: the file has no text that can be indexed.
            PravahaError: the library or the embedding model cannot be used.
        """
        collection = self._open(store_id) or self._library.create(store_id)
        report = collection.add([path], attributes=attributes, cancelled=cancelled)
        if report.cancelled:
            return None
        if report.failed:
            raise Unreadable(report.failed[0].reason)
        (document,) = _documents(collection, path)
        record = collection.record
        vector = (record.dimensions or 0) * _VECTOR_BYTES[record.vector_type]
        return document.size + document.chunks * vector

    def set_attributes(
        self, store_id: str, path: Path, attributes: Mapping[str, AttributeValue]
    ) -> None:
        """Replace the attributes of a file; no effect on one that is not indexed."""
        collection = self._open(store_id)
        if collection is not None:
            for document in _documents(collection, path):
                collection.set_attributes(document.id, attributes)

    def remove(self, store_id: str, path: Path) -> None:
        """Erase a file from every index. Idempotent.

        Raises:
            NotErasedYet: its bytes are still on disk; call it again.
        """
        collection = self._open(store_id)
        if collection is not None and _documents(collection, path):
            collection.remove(path)
        self._purge()

    def drop(self, store_id: str) -> None:
        """Erase a collection. Idempotent.

        Raises:
            NotErasedYet: its bytes are still on disk; call it again.
        """
        if self._open(store_id) is not None:
            self._library.remove(store_id)
        self._purge()

    def search(
        self, store_id: str, query: str, *, k: int, where: Mapping[str, object] | None
    ) -> list[Passage]:
        """The passages that fit a query best, best first; none in a store without a file."""
        collection = self._open(store_id)
        return [] if collection is None else collection.search(query, k=k, where=where)

    def mentions(self, store_id: str, words: str, *, where: Mapping[str, object] | None) -> bool:
        """Whether a file has one of the words."""
        collection = self._open(store_id)
        return collection is not None and collection.mentions(words, where=where)

    def section(self, store_id: str, passage: Passage) -> str:
        """The text of the section around a passage.

        Raises:
            UnknownCollection, UnknownDocument: it was deleted.
        """
        return self._library.open(store_id).section(passage)

    def text(self, store_id: str, path: Path) -> str:
        """The text of a file as it was indexed."""
        collection = self._open(store_id)
        return "" if collection is None else collection.text(path)

    def _purge(self) -> None:
        if not self._library.purge():
            raise NotErasedYet("A search that runs at present keeps what was deleted on disk.")

    def _open(self, store_id: str) -> Collection | None:
        try:
            return self._library.open(store_id)
        except UnknownCollection:
            return None


def _documents(collection: Collection, path: Path) -> list[DocumentRecord]:
    """The document of a file, if there is one."""
    return collection.documents({"type": "eq", "key": FILE_KEY, "value": str(path)})

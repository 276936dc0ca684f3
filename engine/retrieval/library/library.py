"""`Library`: the collections in a directory."""

import re
from pathlib import Path

from engine.api.errors import InvalidRequest
from engine.retrieval.indexing.index_run import TextEmbedder
from engine.retrieval.library.collection import Collection
from engine.retrieval.store.errors import store_errors
from engine.retrieval.store.records import CollectionRecord
from engine.retrieval.store.store import Store
from engine.retrieval.store.store_writer import StoreWriter

VECTOR_TYPE = "f32"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class Library:
    """Collections of documents in a directory, which is created with the first. Thread-safe.

    One process at a time adds and deletes; any number search at the same time.

    Args:
        directory: where the database and the vector files are.
        embedder: embeds documents and queries; the caller closes it.
    """

    def __init__(self, directory: Path, embedder: TextEmbedder) -> None:
        self._store = Store(directory)
        self._embedder = embedder

    def __enter__(self) -> "Library":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        self._store.close()

    def collections(self) -> list[CollectionRecord]:
        """All collections, by name."""
        return self._store.collections()

    def create(self, name: str) -> Collection:
        """Create an empty collection.

        Raises:
            InvalidRequest: the name is malformed or taken.
            LibraryBusy: another process adds or deletes.
        """
        if not _NAME.fullmatch(name):
            raise InvalidRequest(
                f"A collection cannot be named {name!r}: use 1 to 64 letters, digits, - and _, with a letter "
                "or digit first.",
                param="name",
            )
        with StoreWriter.open(self._store.directory) as writer:
            collection_id = writer.create_collection(
                name, model=self._embedder.name, vector_type=VECTOR_TYPE
            )
            writer.commit(collection_id, slots=0, dimensions=None)
        return self.open(name)

    def open(self, name: str) -> Collection:
        """A collection by its name.

        Raises:
            UnknownCollection: there is none.
        """
        self._store.collection(name)
        return Collection(self._store, name, self._embedder)

    def remove(self, name: str) -> bool:
        """Delete a collection with its documents and vectors.

        Returns:
            Whether the bytes have left the files; a query of another process delays it to the next deletion.

        Raises:
            UnknownCollection: there is none.
            LibraryBusy: another process adds or deletes.
        """
        record = self._store.collection(name)
        with StoreWriter.open(self._store.directory) as writer:
            writer.remove_collection(record.id)
            writer.commit(record.id, slots=0, dimensions=None)
            path = self._store.vector_path(record.id)
            with store_errors(path):
                path.unlink(missing_ok=True)
            return writer.purge(None)

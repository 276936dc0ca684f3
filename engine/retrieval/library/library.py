"""`Library`: the collections in a directory."""

import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Self

from engine.api.errors import InvalidRequest
from engine.retrieval.api.errors import UnknownCollection
from engine.retrieval.indexing.index_run import PARSER_PROCESSES, TextEmbedder
from engine.retrieval.indexing.preparing import Parser
from engine.retrieval.library.collection import Collection
from engine.retrieval.library.vector_files import VectorFiles
from engine.retrieval.library.vector_index_choice import check_vector_index
from engine.retrieval.parsing.parser_pool import ParserPool
from engine.retrieval.store.collection_vectors import delete_unused_files, delete_unused_tables
from engine.retrieval.store.errors import store_errors
from engine.retrieval.store.records import CollectionRecord, Counts
from engine.retrieval.store.store import Store
from engine.retrieval.store.store_writer import StoreWriter
from engine.retrieval.vectors.header import VectorType
from engine.retrieval.vectors.vector_file import DEFAULT_TYPE
from engine.retrieval.vectors.vector_index import StoreKind

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class Library:
    """Collections of documents in a directory, which is created with the first. Thread-safe.

    One process at a time adds and deletes; any number search at the same time.

    Args:
        directory: where the database and the vector files are.
        embedder: embeds documents and queries; the caller closes it.
        open_parser: opens what reads files, for each run; None takes `ParserPool`.
    """

    def __init__(
        self,
        directory: Path,
        embedder: TextEmbedder,
        *,
        open_parser: Callable[[], Parser] | None = None,
    ) -> None:
        self._store = Store(directory)
        self._vectors = VectorFiles(self._store)
        self._embedder = embedder
        self._open_parser = open_parser or (lambda: ParserPool(PARSER_PROCESSES))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files; the library and its collections must not be used afterwards."""
        self._vectors.close()
        self._store.close()

    def collections(self) -> list[CollectionRecord]:
        """All collections, by name."""
        return self._store.collections()

    def counts(self, record: CollectionRecord) -> Counts:
        """How much a collection holds."""
        return self._store.counts(record.id)

    def create(
        self,
        name: str,
        *,
        vector_type: VectorType = DEFAULT_TYPE,
        vector_store: StoreKind = "auto",
        dsn_env: str | None = None,
    ) -> Collection:
        """Create an empty collection.

        Args:
            name: 1 to 64 letters, digits, `-` and `_`, with a letter or digit first.
            vector_type: how vectors are stored; see docs/retrieval.md for what each costs.
            vector_store: where they are, and how they are searched.
            dsn_env: for "pgvector", the environment variable that has the address of the database. It is read
                whenever the collection is used; its value is not stored.

        Raises:
            InvalidRequest: the name is malformed or taken, or the vectors cannot be kept there.
            VectorIndexUnavailable: the database server cannot be reached.
            LibraryBusy: another process adds or deletes.
        """
        if not _NAME.fullmatch(name):
            raise InvalidRequest(
                f"A collection cannot be named {name!r}: use 1 to 64 letters, digits, - and _, "
                "with a letter or digit first.",
                param="name",
            )
        check_vector_index(vector_store, vector_type, dsn_env)
        with StoreWriter.open(self._store.directory) as writer:
            collection_id = writer.create_collection(
                name,
                model=self._embedder.name,
                vector_type=vector_type,
                vector_store=vector_store,
                dsn_env=dsn_env,
                vector_table=f"pravaha_{secrets.token_hex(8)}" if dsn_env else None,
            )
            writer.commit(collection_id, slots=0, dimensions=None)
        return self.open(name)

    def open(self, name: str) -> Collection:
        """A collection by its name.

        Raises:
            UnknownCollection: there is none.
        """
        self._store.collection(name)
        return Collection(self._store, self._vectors, name, self._embedder, self._open_parser)

    def find(self, name: str) -> Collection | None:
        """A collection by its name; None if there is none."""
        try:
            return self.open(name)
        except UnknownCollection:
            return None

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
            delete_unused_tables(record, all_of_them=True)
            writer.remove_collection(record.id)
            writer.commit(record.id, slots=0, dimensions=None)
            self._vectors.close(record.id)
            with store_errors(self._store.path):
                delete_unused_files(self._store)
            return writer.purge(None)

    def purge(self) -> bool:
        """Remove the bytes of deleted documents from the files, where a search had delayed that.

        Returns:
            Whether none is left.

        Raises:
            LibraryBusy: another process adds or deletes.
        """
        if not self._store.path.exists():
            return True
        with StoreWriter.open(self._store.directory) as writer:
            return writer.purge(None) if writer.purge_pending else True

"""`RetrievalService`: the files and vector stores of one data folder, for one server process.

Nothing is opened or created before the first use, unless a former process left something: indexing that
was interrupted goes on at `start`, and what has expired meanwhile is erased.
"""

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.server.retrieval.catalogue import Catalogue
from app.server.retrieval.database import CatalogueDatabase
from app.server.retrieval.errors import (
    EmbeddingModelMissing,
    NoSuchObject,
    RetrievalUnavailable,
)
from app.server.retrieval.file_folder import FileFolder, PartialFile
from app.server.retrieval.indexing_thread import IndexingThread
from app.server.retrieval.kept_parser import KeptParser
from app.server.retrieval.parted_uploads import PartedUploads
from app.server.retrieval.records import UploadedFile
from app.server.retrieval.wanted_contents import WantedContents
from engine.embedding.embedder import Embedder
from engine.embedding.text_encoder import TRAINED_TOKENS
from engine.files.file_lock import try_hold
from engine.retrieval.library.library import Library

SPECIAL_TOKENS = 2
"""Tokens that the embedding model's tokenizer puts around a text."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What the folder holds. Methods of all of them block: call them off the event loop.

    The library is beside the user's, not the same: clients of the API see none of the user's collections, and
    neither waits for the other's writer. A vector store's collection has its id as its name, and is created
    with its first file.
    """

    catalogue: Catalogue
    folder: FileFolder
    library: Library
    indexing: IndexingThread
    uploads: PartedUploads


class RetrievalService:
    """Thread-safe. `start` and `close` it once."""

    def __init__(
        self, directory: Path, embedder: Embedder, *, clock: Callable[[], float] = time.time
    ) -> None:
        """Nothing is opened yet.

        Args:
            directory: holds the catalogue, the files and the collections.
            embedder: embeds texts and queries.
            clock: Unix time in seconds.
        """
        self._directory, self._embedder, self._clock = directory.absolute(), embedder, clock
        self._lock = threading.Lock()
        self._resources = ExitStack()
        self._opened: Opened | None = None
        self._closed = False

    def start(self) -> None:
        """Go on with what a former process left. Another process that has the folder is left alone."""
        if self._catalogue_path.exists():
            try:
                self.open()
            except RetrievalUnavailable:
                pass  # the requests that need it are told

    def open(self) -> Opened:
        """The contents of the folder. Blocks, the first time.

        Raises:
            RetrievalUnavailable: another process has it, it cannot be opened, or the service is closed.
        """
        with self._lock:
            if self._closed:
                raise RetrievalUnavailable("The server is shutting down.")
            if self._opened is None:
                with ExitStack() as resources:
                    self._opened = self._open(resources)
                    self._resources = resources.pop_all()
            return self._opened

    def require_embedder(self) -> None:
        """Check that texts can be embedded.

        Raises:
            EmbeddingModelMissing: the model is not installed.
        """
        if not self._embedder.installed:
            raise EmbeddingModelMissing(
                "Vector stores need the embedding model: run "
                f"`pravaha models add {self._embedder.name}` on the server."
            )

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of texts, [texts, dimensions], of length 1; of a long text its beginning. Blocks.

        Raises:
            PravahaError: the model cannot be used, or too many texts wait.
        """
        return self._embedder.submit(texts, truncate=TRAINED_TOKENS).result().vectors

    def shortened(self, text: str) -> str:
        """The end of a text, as much as the embedding model reads. Blocks.

        Raises:
            EmbeddingModelMissing: the model is not installed.
        """
        self.require_embedder()
        encoding = self._embedder.tokenizer().encode(text, add_special_tokens=False)
        excess = len(encoding.ids) - (TRAINED_TOKENS - SPECIAL_TOKENS)
        return text if excess <= 0 else text[encoding.offsets[excess][0] :]

    def text(self, store_id: str, file_id: str) -> str:
        """The text of a file in a vector store, as it was indexed.

        Raises:
            NoSuchObject: the file is not there, or not indexed.
        """
        parts = self.open()
        if parts.catalogue.store_file(store_id, file_id).state != "completed":
            raise NoSuchObject("indexed file", file_id, within=f"the vector store {store_id!r}")
        path = parts.folder.path(parts.catalogue.file(file_id))
        collection = parts.library.find(store_id)
        return "" if collection is None else collection.text(path)

    def new_file(
        self,
        upload: PartialFile,
        *,
        file_id: str,
        filename: str,
        purpose: str,
        lifetime_s: int | None,
    ) -> UploadedFile:
        """Keep a file that was written completely.

        Args:
            upload: the bytes.
            file_id: its id.
            filename: the client's name.
            purpose: what it is for.
            lifetime_s: seconds until it expires; None for never.

        Raises:
            OutOfDisk: there is no room.
        """
        now = int(self._clock())
        file = UploadedFile(
            id=file_id,
            filename=filename,
            stored_as=upload.finish(filename),
            purpose=purpose,
            size=upload.size,
            created_at=now,
            expires_at=None if lifetime_s is None else now + lifetime_s,
        )
        opened = self.open()
        try:
            opened.catalogue.add_file(file)
        except BaseException:
            opened.folder.erase(opened.folder.path(file))
            raise
        if lifetime_s is not None:
            opened.indexing.wake()  # it waits until the next expiry
        return file

    def close(self) -> None:
        """Interrupt indexing, and close everything. Idempotent."""
        with self._lock:
            self._closed = True
            self._opened = None
            resources, self._resources = self._resources, ExitStack()
        resources.close()

    @property
    def _catalogue_path(self) -> Path:
        return self._directory / "catalogue.db"

    def _open(self, resources: ExitStack) -> Opened:
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not resources.enter_context(try_hold(self._directory / "server.lock")):
                raise RetrievalUnavailable(
                    "Another Pravāha server has the files of this data folder; use that one or stop it."
                )
            database = CatalogueDatabase(self._catalogue_path)
            resources.callback(database.close)
            catalogue = Catalogue(database, clock=self._clock)
            folder = FileFolder(self._directory / "files")
            folder.erase_all_but(catalogue.stored_names())
            uploads = PartedUploads(FileFolder(self._directory / "uploads"), clock=self._clock)
            parser = KeptParser()
            resources.callback(parser.rest)
            library = Library(
                self._directory / "library", self._embedder, open_parser=lambda: parser
            )
            resources.callback(library.close)
        except OSError as error:
            raise RetrievalUnavailable(
                f"The folder {self._directory} cannot be used: {error.strerror}."
            ) from error
        wanted = WantedContents(database, clock=self._clock)
        indexing = IndexingThread(wanted, folder, library, parser, clock=self._clock)
        indexing.start()
        resources.callback(indexing.stop)
        return Opened(catalogue, folder, library, indexing, uploads)


def new_file_id() -> str:
    """An id for a file."""
    return f"file-{uuid.uuid4().hex}"

"""Pravāha through its public interface: `Library`, `Collection` and `Embedder`, run by this checkout's interpreter."""

import hashlib
import json
import shutil
import sqlite3
import sys
from collections.abc import Sequence
from concurrent.futures import Future
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from calls import CALLS, DIMENSIONS, MOST_TOKENS, Peer, serve
from numpy.typing import NDArray
from options import options

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from engine.api.embeddings import Embeddings
from engine.embedding.embedder import Embedder
from engine.retrieval.library.library import Library

settings = options()
COLLECTION = "texts"
PERTURBATION = 0.02
"""Standard deviation of the noise in each element of a stand-in vector; an element of a vector is about 0.05."""


class StandInEmbedder:
    """Embeds documents with stand-in vectors once it has some, and everything else with the model.

    A stand-in is a real vector plus noise that depends on the text: 100,000 chunks are indexed without
    computing their embeddings, while queries are embedded as always.
    """

    name = Embedder.name

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.vectors: NDArray[np.float32] | None = None

    def submit(self, texts: Sequence[str], **more: Any) -> "Future[Embeddings]":
        if self.vectors is None:
            return self._embedder.submit(texts, **more)
        future: Future[Embeddings] = Future()
        found = np.stack([self._stand_in(text, self.vectors) for text in texts])
        future.set_result(Embeddings(self.name, found, len(texts)))
        return future

    def _stand_in(self, text: str, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        digest = hashlib.sha256(text.encode()).digest()
        random = np.random.default_rng(int.from_bytes(digest[:8], "little"))
        vector = vectors[int(random.integers(len(vectors)))]
        vector = vector + random.normal(0, PERTURBATION, DIMENSIONS).astype(np.float32)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


class PravahaPeer(Peer):
    """A library with one collection."""

    name = "Pravāha"
    modes = ("dense", "lexical", "hybrid", "hybrid + rerank")

    def __init__(self) -> None:
        self._embedder = Embedder(threads=settings.threads)
        self._stand_in = StandInEmbedder(self._embedder)
        self._library: Library | None = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._embedder.submit(texts, truncate=MOST_TOKENS).result().vectors

    def search(self, query: str, k: int, mode: str) -> list[int]:
        collection = self._collection
        if mode == "hybrid + rerank":
            found = collection.search(query, k=k, mode="hybrid", rerank=True)
        else:
            found = collection.search(query, k=k, mode=mode, rerank=False)
        return [self._numbers[one.chunk_id] for one in found]

    def pipeline(self, files: Sequence[Path], folder: Path, settings: str) -> int:
        self.close()
        shutil.rmtree(folder, ignore_errors=True)
        self._library = Library(folder, self._stand_in)
        self._collection = self._library.create(COLLECTION)
        report = self._collection.add(files)
        rows = self._rows(folder)
        self._numbers = {row[0]: at for at, row in enumerate(rows)}
        return len(rows)

    def close(self) -> None:
        if self._library is not None:
            self._library.close()
            self._library = None

    def stand_in(self, vectors: NDArray[np.float32] | None) -> None:
        """Index with stand-ins for the vectors of documents, or with the model again."""
        self._stand_in.vectors = vectors

    def stand_ins(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors with which the texts were indexed."""
        return self._stand_in.submit(texts).result().vectors

    @staticmethod
    def _rows(folder: Path) -> list[tuple[int, str, int, int, str]]:
        """Id, file, span and text of each chunk, in the order of their ids."""
        with sqlite3.connect(f"file:{folder / 'retrieval.db'}?mode=ro", uri=True) as database:
            return database.execute(
                "SELECT chunk.id, document.path, chunk.start, chunk.end, chunk.text FROM chunk"
                " JOIN document ON document.id = chunk.document_id ORDER BY chunk.id"
            ).fetchall()


def _chunks(peer: PravahaPeer, folder: str, texts: str, places: str) -> dict[str, Any]:
    """Write the texts of the collection's chunks, and their places."""
    rows = peer._rows(Path(folder))
    with open(texts, "w") as to_texts, open(places, "w") as to_places:
        for _, file, start, end, text in rows:
            print(json.dumps(text), file=to_texts)
            print(json.dumps([file, start, end]), file=to_places)
    return {"seconds": 0.0, "chunks": len(rows), "bytes": sum(len(row[4].encode()) for row in rows)}


def _stand_in(peer: PravahaPeer, vectors: str | None) -> dict[str, Any]:
    peer.stand_in(np.load(vectors) if vectors else None)
    return {"seconds": 0.0}


def _stand_ins(peer: PravahaPeer, texts: str, vectors: str) -> dict[str, Any]:
    with open(texts) as lines:
        np.save(vectors, peer.stand_ins([json.loads(line) for line in lines]))
    return {"seconds": 0.0}


CALLS |= {"chunks": _chunks, "stand_in": _stand_in, "stand_ins": _stand_ins}
serve(PravahaPeer(), version("pravaha"))

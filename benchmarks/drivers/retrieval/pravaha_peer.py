"""Pravāha through its public interface, `Library` and `Embedder`, run by this checkout's interpreter."""

import json
import shutil
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from calls import CALLS, MOST_TOKENS, Peer, read_texts, serve
from numpy.typing import NDArray
from options import options

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from answering_calls import AnsweringModel, kept_citations
from substituted_embedder import RememberedVectors, Source, StandIns, SubstitutedEmbedder

from engine.embedding.embedder import Embedder
from engine.retrieval.library.library import Library

settings = options()
COLLECTION = "texts"


class PravahaPeer(Peer):
    """A library with one collection."""

    name = "Pravāha" if settings.weights == "f32" else f"Pravāha {settings.weights}"
    modes = ("dense", "lexical", "hybrid")

    def __init__(self) -> None:
        self.embedder = Embedder(precision=settings.weights, threads=settings.threads)
        self._substituted = SubstitutedEmbedder(self.embedder)
        self._library: Library | None = None
        self._model: AnsweringModel | None = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.embedder.submit(texts, truncate=MOST_TOKENS).result().vectors

    def search(self, query: str, k: int, mode: str) -> list[int]:
        found = self._collection.search(query, k=k, mode=mode)
        return [self._numbers[one.chunk_id] for one in found]

    def pipeline(self, files: Sequence[Path], folder: Path, settings: str) -> int:
        self.close()
        shutil.rmtree(folder, ignore_errors=True)
        self._library = Library(folder, self._substituted)
        self._collection = self._library.create(COLLECTION)
        self._collection.add(files)
        chunks = rows(folder)
        self._numbers = {chunk[0]: at for at, chunk in enumerate(chunks)}
        return len(chunks)

    def close(self) -> None:
        if self._library is not None:
            self._library.close()
            self._library = None

    def substitute(self, source: Source | None) -> None:
        """Take vectors from elsewhere, or from the model again."""
        if isinstance(self._substituted.source, RememberedVectors):
            self._substituted.source.save()
        self._substituted.source = source

    def answers(self, questions: Sequence[str], *, ask_always: bool) -> list[dict[str, Any]]:
        """Answers of the demo model, which is loaded for the first."""
        if self._model is None:
            model = settings.models / "smollm2.gguf"
            self._model = AnsweringModel.loaded(model, settings.threads)
        return self._model.answers(self._collection, questions, ask_always=ask_always)

    def kept(self, sentences: Sequence[str], passages: Sequence[str]) -> list[bool]:
        """Whether each sentence may cite its passage."""
        return kept_citations(sentences, passages, self.embed)

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors with which the texts are indexed now."""
        return self._substituted.submit(texts).result().vectors


def rows(folder: Path) -> list[tuple[int, str, int, int, str]]:
    """Id, file, span and text of each chunk, in the order of their ids."""
    name = f"file:{folder / 'retrieval.db'}?mode=ro"
    with closing(sqlite3.connect(name, uri=True)) as database:
        return database.execute(
            "SELECT chunk.id, document.path, chunk.start, chunk.end, chunk.text FROM chunk"
            " JOIN document ON document.id = chunk.document_id ORDER BY chunk.id"
        ).fetchall()


def chunks(peer: PravahaPeer, folder: str, texts: str, places: str) -> dict[str, Any]:
    """Write the texts of the collection's chunks, and their places."""
    found = rows(Path(folder))
    with open(texts, "w") as to_texts, open(places, "w") as to_places:
        for _, file, start, end, text in found:
            print(json.dumps(text), file=to_texts)
            print(json.dumps([file, start, end]), file=to_places)
    return {"chunks": len(found), "bytes": sum(len(row[4].encode()) for row in found)}


def stand_in(peer: PravahaPeer, vectors: str) -> dict[str, Any]:
    """Index with stand-ins made of these vectors."""
    peer.substitute(StandIns(np.load(vectors)))
    return {}


def remember(peer: PravahaPeer, path: str) -> dict[str, Any]:
    """Embed each text once and keep its vector in a file."""
    peer.substitute(RememberedVectors(peer.embedder, Path(path)))
    return {}


def embed_again(peer: PravahaPeer) -> dict[str, Any]:
    """Embed every text again."""
    peer.substitute(None)
    return {}


def vectors(peer: PravahaPeer, texts: str, out: str) -> dict[str, Any]:
    """Write the vectors with which the texts are indexed now."""
    np.save(out, peer.vectors(read_texts(texts)))
    return {}


def answers(peer: PravahaPeer, questions: list[str], ask_always: bool = False) -> dict[str, Any]:
    """Answer questions from the collection."""
    return {"answers": peer.answers(questions, ask_always=ask_always)}


def kept(peer: PravahaPeer, sentences: list[str], passages: list[str]) -> dict[str, Any]:
    """Check sentences that cite passages."""
    return {"kept": peer.kept(sentences, passages)}


OURS = (chunks, stand_in, remember, embed_again, vectors, answers, kept)
CALLS |= {one.__name__: one for one in OURS}
serve(PravahaPeer(), version("pravaha"))

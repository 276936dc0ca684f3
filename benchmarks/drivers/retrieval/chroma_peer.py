"""chromadb: a persistent collection with its HNSW index, cosine distance, other settings by default."""

from collections.abc import Sequence
from pathlib import Path

import chromadb
import numpy as np
from calls import serve
from numpy.typing import NDArray
from sentence_encoder import SentencePeer, encode, encode_query

ADDED = 5_000
"""Chunks added per call; the client states a limit of about this size."""


class ChromaPeer(SentencePeer):
    """A collection in a folder."""

    name = "chromadb"
    modes = ("dense",)
    client = None

    def index(
        self, texts: Sequence[str], vectors: NDArray[np.float32] | None, folder: Path
    ) -> None:
        vectors = encode(texts) if vectors is None else vectors
        self.client = chromadb.PersistentClient(
            str(folder), chromadb.Settings(anonymized_telemetry=False)
        )
        self.collection = self.client.create_collection(
            "texts", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )
        for first in range(0, len(texts), ADDED):
            last = min(len(texts), first + ADDED)
            self.collection.add(
                ids=[str(one) for one in range(first, last)],
                embeddings=vectors[first:last],
                documents=list(texts[first:last]),
            )

    def search(self, query: str, k: int, mode: str) -> list[int]:
        found = self.collection.query(query_embeddings=encode_query(query)[None], n_results=k)
        return [int(one) for one in found["ids"][0]]


serve(ChromaPeer(), chromadb.__version__)

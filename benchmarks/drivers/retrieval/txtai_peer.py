"""txtai: an embeddings database with content; hybrid adds its BM25 index with equal weights, its default."""

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from calls import serve
from numpy.typing import NDArray
from sentence_encoder import SentencePeer, encode, encode_query
from txtai import Embeddings

DENSE = {"dense": 1.0, "hybrid": 0.5}
"""Mode → weight of the dense score."""


class TxtaiPeer(SentencePeer):
    """Vectors come from `encode`, which is also what txtai calls for a local sentence-transformers model."""

    name = "txtai"
    modes = ("dense", "hybrid")
    embeddings = None

    def index(
        self, texts: Sequence[str], vectors: NDArray[np.float32] | None, folder: Path
    ) -> None:
        given = {} if vectors is None else dict(zip(texts, vectors, strict=True))

        def transform(inputs: Sequence[str]) -> NDArray[np.float32]:
            if len(inputs) == 1 and inputs[0] not in given:
                return encode_query(inputs[0])[None]
            if all(text in given for text in inputs):
                return np.stack([given[text] for text in inputs])
            return encode(inputs)

        self.embeddings = Embeddings(
            {"method": "external", "transform": transform, "content": True, "hybrid": True}
        )
        self.embeddings.index((at, text, None) for at, text in enumerate(texts))

    def search(self, query: str, k: int, mode: str) -> list[int]:
        return [int(one["id"]) for one in self.embeddings.search(query, k, weights=DENSE[mode])]

    def close(self) -> None:
        if self.embeddings is not None:
            self.embeddings.close()


serve(TxtaiPeer(), importlib.metadata.version("txtai"))

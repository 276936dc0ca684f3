"""The encoder of every peer that embeds with sentence-transformers."""

from collections.abc import Sequence

import numpy as np
import torch
from calls import BATCH, DIMENSIONS, Peer
from numpy.typing import NDArray
from options import options
from sentence_transformers import SentenceTransformer

settings = options()
torch.set_num_threads(settings.threads)
model = SentenceTransformer(str(settings.models / "minilm"), device="cpu", local_files_only=True)


queries: dict[str, NDArray[np.float32]] = {}
"""Queries whose vectors are known: ranks are measured without embedding each query for each peer."""


class SentencePeer(Peer):
    """A peer whose queries and documents are embedded by sentence-transformers."""

    def know_queries(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        queries.clear()
        queries.update(zip(texts, vectors, strict=True))


def encode_query(query: str) -> NDArray[np.float32]:
    """The vector of a query."""
    known = queries.get(query)
    return encode([query])[0] if known is None else known


def encode(texts: Sequence[str]) -> NDArray[np.float32]:
    """Vectors of length 1; sentence-transformers sorts by length and pads each batch."""
    if not texts:
        return np.zeros((0, DIMENSIONS), np.float32)
    return model.encode(list(texts), batch_size=BATCH, show_progress_bar=False)

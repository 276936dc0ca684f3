"""sentence-transformers with faiss: an exact index of inner products."""

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path

import faiss
import numpy as np
from calls import serve
from numpy.typing import NDArray
from sentence_encoder import SentencePeer, encode, encode_query, settings

faiss.omp_set_num_threads(settings.threads)


class FaissPeer(SentencePeer):
    """`IndexFlatIP` and a list of texts."""

    name = "sentence-transformers + faiss"
    modes = ("dense",)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return encode(texts)

    def index(
        self, texts: Sequence[str], vectors: NDArray[np.float32] | None, folder: Path
    ) -> None:
        vectors = encode(texts) if vectors is None else vectors
        self.index_ = faiss.IndexFlatIP(vectors.shape[1])
        self.index_.add(vectors)
        faiss.write_index(self.index_, str(folder / "index.faiss"))
        self.texts = list(texts)

    def search(self, query: str, k: int, mode: str) -> list[int]:
        _, ids = self.index_.search(encode_query(query)[None], k)
        return [int(one) for one in ids[0] if self.texts[one]]


serve(
    FaissPeer(),
    f"{importlib.metadata.version('sentence-transformers')} + {faiss.__version__}",
)

"""LanceDB: exact vectors and its full-text index, fused by its reciprocal-rank reranker (its default)."""

from collections.abc import Sequence
from pathlib import Path

import lancedb
import numpy as np
import pyarrow as pa
from calls import DIMENSIONS, serve
from lancedb.rerankers import RRFReranker
from numpy.typing import NDArray
from sentence_encoder import SentencePeer, encode, encode_query


class LancePeer(SentencePeer):
    """A table in a folder."""

    name = "LanceDB"
    modes = ("dense", "hybrid", "lexical")

    def index(
        self, texts: Sequence[str], vectors: NDArray[np.float32] | None, folder: Path
    ) -> None:
        vectors = encode(texts) if vectors is None else vectors
        columns = {
            "number": pa.array(range(len(texts)), pa.int64()),
            "text": pa.array(texts, pa.string()),
            "vector": pa.FixedSizeListArray.from_arrays(
                pa.array(np.ascontiguousarray(vectors).reshape(-1), pa.float32()), DIMENSIONS
            ),
        }
        self.table = lancedb.connect(str(folder)).create_table("texts", pa.table(columns))
        self.table.create_fts_index("text")
        self.reranker = RRFReranker()

    def search(self, query: str, k: int, mode: str) -> list[int]:
        if mode == "lexical":
            found = self.table.search(query, query_type="fts")
        elif mode == "dense":
            found = self.table.search(encode_query(query)).distance_type("cosine")
        else:
            found = self.table.search(query_type="hybrid").vector(encode_query(query)).text(query)
            found = found.distance_type("cosine").rerank(self.reranker)
        return found.limit(k).to_arrow()["number"].to_pylist()


serve(LancePeer(), lancedb.__version__)

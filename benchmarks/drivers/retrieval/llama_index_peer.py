"""llama-index: its default vector index in memory; hybrid adds its BM25 retriever by reciprocal rank."""

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from calls import BATCH, MOST_TOKENS, serve
from llama_index.core import Settings, SimpleDirectoryReader, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import QueryBundle, TextNode
from llama_index.embeddings.huggingface import HuggingFaceEmbedding
from llama_index.retrievers.bm25 import BM25Retriever
from numpy.typing import NDArray
from sentence_encoder import SentencePeer, model, queries, settings

Settings.llm = MockLLM()
Settings.embed_model = HuggingFaceEmbedding(
    str(settings.models / "minilm"), device="cpu", embed_batch_size=BATCH, local_files_only=True
)


class LlamaIndexPeer(SentencePeer):
    """`VectorStoreIndex` over nodes; `pipeline` also reads and splits."""

    name = "llama-index"
    modes = ("dense", "hybrid")

    def index(
        self, texts: Sequence[str], vectors: NDArray[np.float32] | None, folder: Path
    ) -> None:
        nodes = [TextNode(text=text, id_=str(at)) for at, text in enumerate(texts)]
        if vectors is not None:
            for node, vector in zip(nodes, vectors.tolist(), strict=True):
                node.embedding = vector
        self.nodes, self.index_, self.retrievers = nodes, VectorStoreIndex(nodes), {}

    def search(self, query: str, k: int, mode: str) -> list[int]:
        if (k, mode) not in self.retrievers:
            self.retrievers[k, mode] = self._retriever(k, mode)
        known = queries.get(query)
        asked = QueryBundle(query, embedding=None if known is None else known.tolist())
        return [int(one.node.node_id) for one in self.retrievers[k, mode].retrieve(asked)]

    def pipeline(self, files: Sequence[Path], folder: Path, settings: str) -> int:
        if settings == "256 tokens":
            tokenizer = model.tokenizer
            splitter = SentenceSplitter(
                chunk_size=MOST_TOKENS - 2,
                chunk_overlap=32,
                tokenizer=lambda text: tokenizer.encode(text, add_special_tokens=False),
            )
        else:
            splitter = SentenceSplitter()
        documents = SimpleDirectoryReader(input_files=files).load_data()
        index = VectorStoreIndex.from_documents(documents, transformations=[splitter])
        index.storage_context.persist(str(folder))
        return len(index.docstore.docs)

    def _retriever(self, k: int, mode: str) -> BaseRetriever:
        dense = self.index_.as_retriever(similarity_top_k=k)
        if mode == "dense":
            return dense
        words = BM25Retriever.from_defaults(nodes=self.nodes, similarity_top_k=k)
        return QueryFusionRetriever(
            [dense, words],
            similarity_top_k=k,
            num_queries=1,
            mode="reciprocal_rerank",
            use_async=False,
        )


serve(LlamaIndexPeer(), importlib.metadata.version("llama-index-core"))

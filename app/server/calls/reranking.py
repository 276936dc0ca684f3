"""`rerank`: how well documents fit a query, by the embedding model.

The score of a document is the cosine of its vector and the query's, 0 if it is negative. A document that is
longer than the model reads is cut into chunks, and its best chunk counts.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.server.wire.errors import bad_request
from engine.api.errors import InvalidRequest
from engine.embedding.embedder import Embedder
from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.chunking.split import split
from engine.retrieval.chunking.token_counter import TokenCounter

MAX_CHUNKS = 2048
BATCH_CHUNKS = 64
"""Chunks that are embedded at a time; other callers of the model wait for one batch, not for all."""


@dataclass(frozen=True, slots=True)
class Reranked:
    """Scores of documents.

    Attributes:
        scores: one for each document, from 0 to 1, in their order.
        tokens: tokens that the model read.
    """

    scores: list[float]
    tokens: int


async def rerank(embedder: Embedder, query: str, documents: Sequence[str]) -> Reranked:
    """Score documents. Cancel it to stop after the current batch.

    Raises:
        ApiError: 400 for a query that is too long, or too much text.
        ModelError: the model is not installed or cannot be used.
        QueueFull, EngineUnavailable: from the embedder.
    """
    try:
        asked = await asyncio.wrap_future(embedder.submit([query]))
    except InvalidRequest as error:
        raise bad_request(str(error).replace("Text 0", "The query"), param="query") from error
    owners, texts = await asyncio.to_thread(_chunks, embedder, documents)
    scores = np.zeros(len(documents), np.float32)
    tokens = asked.tokens
    for first in range(0, len(texts), BATCH_CHUNKS):
        batch = await asyncio.wrap_future(embedder.submit(texts[first : first + BATCH_CHUNKS]))
        tokens += batch.tokens
        np.maximum.at(
            scores, owners[first : first + BATCH_CHUNKS], batch.vectors @ asked.vectors[0]
        )
    return Reranked([min(1.0, float(one)) for one in scores], tokens)


def _chunks(embedder: Embedder, documents: Sequence[str]) -> tuple[list[int], list[str]]:
    """The chunks of all documents, and for each the number of its document."""
    counter = TokenCounter(embedder.tokenizer())
    owners: list[int] = []
    texts: list[str] = []
    for number, text in enumerate(documents):
        parsed = ParsedDocument("text/plain", text, "text")
        chunks = split(parsed, counter, overlap_tokens=0)
        owners += [number] * len(chunks)
        texts += [one.text for one in chunks]
        if len(texts) > MAX_CHUNKS:
            raise bad_request(
                f"The documents have more than {MAX_CHUNKS} chunks of 256 tokens; send fewer.",
                param="documents",
            )
    return owners, texts

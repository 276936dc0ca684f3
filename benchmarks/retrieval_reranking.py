"""Part *rerank* of `benchmarks/retrieval_answers.py`: orders of what hybrid search finds, and what they cost.

MaxSim compares every token of the query with every token of a passage. Its vectors are those of
`token_vectors.py`; what they would cost in the engine is the embedding of the same passages, which is timed.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from app.runtime.opening import open_client, wait_loaded
from app.settings.sources import load_settings
from benchmarks.token_vectors import TokenVectors
from engine.clients.batch_reader import BatchReader
from engine.embedding.embedder import installed_encoder
from engine.retrieval.answering.reranking import RERANKED, rerank_by_likelihood
from engine.retrieval.api.passage import Passage
from engine.retrieval.library.collection import Collection
from engine.text.chat_encoding import ChatEncoder

FOUND = 10
Asked = tuple[str, Callable[[Passage], bool]]
"""A question, and whether a passage is right."""
Order = Callable[[str, Sequence[Passage]], list[Passage]]


def measure_reranking(
    collection: Collection,
    kinds: Mapping[str, Sequence[Asked]],
    ranking: Callable[[list[list[bool]]], dict[str, float]],
) -> dict[str, Any]:
    """hit@1, hit@5 and nDCG@10 of each order; seconds a question for those that cost something."""
    settings = load_settings({})
    tokens = TokenVectors(installed_encoder(settings.models))
    found = {
        kind: [(query, fits, collection.search(query, k=FOUND)) for query, fits in asked]
        for kind, asked in kinds.items()
    }

    def by(score: Callable[[str, Passage], float], first: int = FOUND) -> Order:
        def order(query: str, passages: Sequence[Passage]) -> list[Passage]:
            head = sorted(passages[:first], key=lambda one: -score(query, one))
            return [*head, *passages[first:]]

        return order

    orders: dict[str, Order] = {
        "none": lambda query, passages: list(passages),
        "cosine of 10": by(lambda query, one: one.dense or 0.0),
        "MaxSim of 10": by(lambda query, one: tokens.max_sim(query, one.text)),
        "MaxSim of 10, plus score": by(
            lambda query, one: one.score + tokens.max_sim(query, one.text)
        ),
        "MaxSim of 5, plus score": by(
            lambda query, one: one.score + tokens.max_sim(query, one.text), RERANKED
        ),
    }
    with open_client(settings) as opened:
        opened.start()
        wait_loaded(opened.client)
        client = opened.client
        encoder = ChatEncoder(client.tokenize, client.render_chat, client.control_tokens())
        reader = BatchReader(client)
        orders["likelihood of 5, plus cosine"] = lambda query, passages: rerank_by_likelihood(
            client, reader, encoder, query, passages
        )
        return {name: _measured(order, found, ranking) for name, order in orders.items()} | {
            "seconds to embed 10 passages": _embedding_seconds(collection, found)
        }


def _measured(
    order: Order,
    found: Mapping[str, Sequence[tuple[str, Callable[[Passage], bool], list[Passage]]]],
    ranking: Callable[[list[list[bool]]], dict[str, float]],
) -> dict[str, Any]:
    results: dict[str, Any] = {}
    seconds: list[float] = []
    for kind, rows in found.items():
        ranked = []
        for query, fits, passages in rows:
            began = time.monotonic()
            ordered = order(query, passages)
            seconds.append(time.monotonic() - began)
            ranked.append([fits(one) for one in ordered])
        results[kind] = ranking(ranked)
    return results | {"median seconds": round(float(np.median(seconds)), 4)}


def _embedding_seconds(
    collection: Collection,
    found: Mapping[str, Sequence[tuple[str, Callable[[Passage], bool], list[Passage]]]],
) -> float:
    """Median over 20 questions."""
    rows = [passages for kind in found.values() for _, _, passages in kind][:20]
    seconds = []
    for passages in rows:
        began = time.monotonic()
        collection.embed([one.text for one in passages])
        seconds.append(time.monotonic() - began)
    return round(float(np.median(seconds)), 4)

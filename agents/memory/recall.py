"""`recall`: the memories that matter for a query, under a token cap.

score = relevance · importance · recency. Relevance fuses the ranks of up to three searches (words, trigrams,
embeddings) by reciprocal rank (Cormack et al. 2009): the sum of 1 / (60 + rank), divided by its maximum.
Importance counts from 0.5 to 1.5; recency halves in 90 days and ends at 0.25, so that old facts are found.
Cost: two index searches, and one dot product for each entry with an embedding in the scopes.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.memory.entry import MemoryEntry, Scope
from agents.memory.store import MemoryStore, scope_condition
from agents.text.text_embedder import TextEmbedder
from engine.api.errors import PravahaError

RANK_CONSTANT = 60
HALF_LIFE_S = 90 * 86_400.0
MIN_RECENCY = 0.25
CANDIDATES = 50
"""Entries that each search contributes."""
MIN_SIMILARITY = 0.25
"""Cosine below which MiniLM's embeddings say nothing (all-MiniLM-L6-v2: unrelated sentences reach 0.2)."""
MAX_TERMS = 32
EMBED_BATCH = 64
MAX_EMBED = 512
"""Entries that one recall embeds, at most."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Recalled:
    """One recalled entry and its score."""

    entry: MemoryEntry
    score: float


@dataclass(frozen=True, slots=True)
class Recall:
    """The result of a recall.

    Attributes:
        memories: the best first.
        tokens: estimated tokens of their texts.
        notes: what the user should know, such as that meaning was not searched.
    """

    memories: tuple[Recalled, ...]
    tokens: int
    notes: tuple[str, ...] = ()


def estimate_tokens(text: str) -> int:
    """Tokens of a text, rather too many: English has four characters a token, code three."""
    return len(text) // 3 + 8


def recall(
    store: MemoryStore,
    query: str,
    *,
    scopes: Sequence[Scope] | None,
    now: float,
    max_tokens: int = 1000,
    embedder: TextEmbedder | None = None,
    model: str = "minilm",
    count_tokens: Callable[[str], int] = estimate_tokens,
) -> Recall:
    """The memories that fit a query.

    Args:
        store: where they are.
        query: words or a sentence.
        scopes: whose memories; None searches all.
        now: Unix seconds, for recency.
        max_tokens: cap over all returned texts; entries that do not fit are left out.
        embedder: searches meaning; None searches words alone. Blocks until the embeddings are there.
        model: name of the embedder's model; vectors of other models are not compared.
        count_tokens: tokens of a text.

    Raises:
        MemoryStoreError: the database cannot be read.
    """
    rankings = [_by_words(store, query, scopes), _by_trigrams(store, query, scopes)]
    notes: list[str] = []
    if embedder is None:
        notes.append("Memories were searched by words, without embeddings.")
    else:
        try:
            rankings.append(_by_meaning(store, query, scopes, embedder, model))
        except PravahaError as error:
            notes.append(f"Memories were searched by words, without embeddings: {error}")
    relevance = fuse(rankings)
    scored = [
        Recalled(entry, relevance[number] * (0.5 + entry.importance) * recency(now - entry.created))
        for number, entry in store.numbered(list(relevance)).items()
    ]
    scored.sort(key=lambda one: (-one.score, one.entry.id))
    return _capped(scored, max_tokens, count_tokens, tuple(notes))


def fuse(rankings: Sequence[Sequence[int]]) -> dict[int, float]:
    """Reciprocal rank fusion: relevance from 0 to 1 by number, for rankings with the best first."""
    best = len(rankings) / (RANK_CONSTANT + 1)
    relevance: dict[int, float] = {}
    for ranking in rankings:
        for rank, number in enumerate(ranking, start=1):
            relevance[number] = relevance.get(number, 0.0) + 1 / (RANK_CONSTANT + rank) / best
    return relevance


def recency(age_s: float) -> float:
    """The factor of an entry's age, from 1 to `MIN_RECENCY`."""
    return max(MIN_RECENCY, math.exp2(-max(0.0, age_s) / HALF_LIFE_S))


def _capped(
    scored: Sequence[Recalled], max_tokens: int, count: Callable[[str], int], notes: tuple[str, ...]
) -> Recall:
    chosen: list[Recalled] = []
    total = 0
    for one in scored:
        tokens = count(one.entry.text)
        if total + tokens <= max_tokens:
            chosen.append(one)
            total += tokens
    return Recall(tuple(chosen), total, notes)


def _by_words(store: MemoryStore, query: str, scopes: Sequence[Scope] | None) -> list[int]:
    words = list(dict.fromkeys(_WORD.findall(query.casefold())))[:MAX_TERMS]
    return _match(store, "words", words, scopes)


def _by_trigrams(store: MemoryStore, query: str, scopes: Sequence[Scope] | None) -> list[int]:
    """Parts of words: a query for `config` finds `reconfigure`."""
    words = list(dict.fromkeys(word for word in _WORD.findall(query) if len(word) >= 4))[:MAX_TERMS]
    return _match(store, "trigrams", words, scopes)


def _match(
    store: MemoryStore, index: str, terms: Sequence[str], scopes: Sequence[Scope] | None
) -> list[int]:
    if not terms:
        return []
    condition, values = scope_condition(scopes)
    # Quoted terms are literal text: nothing in a query is an operator of the full-text search.
    expression = " OR ".join(f'"{term}"' for term in terms)
    rows = store.rows(
        f"SELECT {index}.rowid FROM {index} JOIN entry ON entry.number = {index}.rowid "  # noqa: S608
        f"WHERE {index} MATCH ? AND {condition} ORDER BY bm25({index}), {index}.rowid LIMIT ?",
        [expression, *values, CANDIDATES],
    )
    return [row[0] for row in rows]


def _by_meaning(
    store: MemoryStore,
    query: str,
    scopes: Sequence[Scope] | None,
    embedder: TextEmbedder,
    model: str,
) -> list[int]:
    if not query.strip():
        return []
    query = query.encode("utf-8", "replace").decode()
    target = embedder.submit([query], truncate=256).result().vectors[0]
    _embed_missing(store, scopes, embedder, model)
    condition, values = scope_condition(scopes)
    rows: list[tuple[Any, ...]] = store.rows(
        "SELECT vector.number, vector.vector FROM vector JOIN entry USING (number) "  # noqa: S608
        f"WHERE vector.model = ? AND length(vector.vector) = ? AND {condition}",
        [model, target.nbytes, *values],
    )
    if not rows:
        return []
    matrix = np.frombuffer(b"".join(row[1] for row in rows), "<f4").reshape(len(rows), -1)
    similarities = matrix @ target
    order = np.argsort(-similarities, kind="stable")[:CANDIDATES]
    return [rows[index][0] for index in order if similarities[index] >= MIN_SIMILARITY]


def _embed_missing(
    store: MemoryStore, scopes: Sequence[Scope] | None, embedder: TextEmbedder, model: str
) -> None:
    """Embed current entries that have no vector of this model, the newest first."""
    condition, values = scope_condition(scopes)
    missing = store.rows(
        "SELECT number, path, text FROM entry WHERE current = 1 AND redacted = 0 "  # noqa: S608
        f"AND number NOT IN (SELECT number FROM vector WHERE model = ?) AND {condition} "
        "ORDER BY number DESC LIMIT ?",
        [model, *values, MAX_EMBED],
    )
    for first in range(0, len(missing), EMBED_BATCH):
        batch = missing[first : first + EMBED_BATCH]
        texts = [f"{path.replace('/', ' ')} {text}".strip() for _, path, text in batch]
        vectors = embedder.submit(texts, truncate=256).result().vectors
        pairs = zip(batch, vectors, strict=True)
        store.set_vectors(model, {row[0]: vector.astype("<f4").tobytes() for row, vector in pairs})

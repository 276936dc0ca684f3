"""Passages and vectors for tests of answers."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.retrieval.answering.terms import content_terms
from engine.retrieval.api.passage import Passage


def passage(text: str, *, file: str = "/docs/a.md", start: int = 0, **fields: object) -> Passage:
    values: dict[str, object] = {
        "chunk_id": 1, "document_id": 1, "file": file, "title": None, "start": start,
        "end": start + len(text.encode()), "spans_of": "file", "text": text, "tokens": len(text.split()),
        "heading_path": (), "section_start": start, "section_end": start + len(text.encode()), "page": None,
        "line": 1, "rank": 1, "score": 1.0, "dense": 0.9,
    }  # fmt: skip
    return Passage(**{**values, **fields})  # type: ignore[arg-type]


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """Vectors of words: texts with the same content words have cosine 1, with none in common about 0."""
    vectors = np.zeros((len(texts), 256), np.float32)
    for row, text in zip(vectors, texts, strict=True):
        for term in content_terms(text):
            row[int.from_bytes(hashlib.blake2b(term.encode(), digest_size=2).digest()) % 256] += 1
        row /= np.linalg.norm(row) or 1
    return vectors

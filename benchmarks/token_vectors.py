"""Token vectors of all-MiniLM-L6-v2 in numpy, and MaxSim over them, to measure reranking.

The executor of the engine returns pooled vectors only, and MaxSim did not earn its place there
(docs/retrieval.md), so this is a plain implementation: f32, one text at a time.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from engine.embedding.text_encoder import TRAINED_TOKENS, load_tokenizer

HEADS = 12
LAYERS = 6
Vectors = NDArray[np.float32]


class TokenVectors:
    """The vectors of a text's tokens, remembered by text."""

    def __init__(self, directory: Path) -> None:
        """Load the weights."""
        self._weights = load_file(directory / "model.safetensors")
        self._tokenizer = load_tokenizer(directory)
        self._known: dict[str, Vectors] = {}

    def of(self, text: str) -> Vectors:
        """[tokens, dimensions], of unit length, without those of [CLS] and [SEP]."""
        if text not in self._known:
            ids = self._tokenizer.encode(text).ids
            if len(ids) > TRAINED_TOKENS:
                ids[TRAINED_TOKENS - 1 : -1] = []
            self._known[text] = self._encoded(ids)
        return self._known[text]

    def pooled(self, text: str) -> Vectors:
        """[dimensions]: the mean over all tokens, as the embedding model has it."""
        hidden = self._hidden(self._tokenizer.encode(text).ids)
        mean = hidden.mean(axis=0)
        return np.asarray(mean / np.linalg.norm(mean), np.float32)

    def max_sim(self, query: str, text: str) -> float:
        """Mean over the query's tokens of the highest cosine with a token of the text."""
        return float((self.of(query) @ self.of(text).T).max(axis=1).mean())

    def _encoded(self, ids: Sequence[int]) -> Vectors:
        hidden = self._hidden(ids)[1:-1]
        return hidden / np.linalg.norm(hidden, axis=1, keepdims=True)

    def _hidden(self, ids: Sequence[int]) -> Vectors:
        weights = self._weights
        hidden = (
            weights["embeddings.word_embeddings.weight"][list(ids)]
            + weights["embeddings.position_embeddings.weight"][: len(ids)]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        hidden = self._norm(hidden, "embeddings.LayerNorm")
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}"
            attended = self._linear(self._attention(hidden, name), f"{name}.attention.output.dense")
            hidden = self._norm(hidden + attended, f"{name}.attention.output.LayerNorm")
            inner = _gelu(self._linear(hidden, f"{name}.intermediate.dense"))
            hidden = self._norm(
                hidden + self._linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm"
            )
        return np.asarray(hidden, np.float32)

    def _attention(self, hidden: Vectors, name: str) -> Vectors:
        tokens, width = hidden.shape
        query, key, value = (
            self._linear(hidden, f"{name}.attention.self.{one}")
            .reshape(tokens, HEADS, width // HEADS)
            .transpose(1, 0, 2)
            for one in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(np.float32(width // HEADS))
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        return np.asarray((scores @ value).transpose(1, 0, 2).reshape(tokens, width), np.float32)

    def _linear(self, hidden: Vectors, name: str) -> Vectors:
        weights = self._weights
        return np.asarray(hidden @ weights[f"{name}.weight"].T + weights[f"{name}.bias"])

    def _norm(self, hidden: Vectors, name: str) -> Vectors:
        weights = self._weights
        centred = hidden - hidden.mean(axis=-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        return np.asarray(centred / scale * weights[f"{name}.weight"] + weights[f"{name}.bias"])


def _gelu(values: Vectors) -> Vectors:
    """GELU, x · Φ(x), with an error function that is exact to 1.5e-7 (Abramowitz and Stegun 7.1.26)."""
    scaled = np.abs(values) / np.float32(np.sqrt(2))
    t = 1 / (1 + np.float32(0.3275911) * scaled)
    series = np.zeros_like(t)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = series * t + np.float32(factor)
    error = 1 - series * t * np.exp(-scaled * scaled)
    return np.asarray(values * 0.5 * (1 + np.sign(values) * error), np.float32)

"""`SubstitutedEmbedder`: an embedder whose vectors can come from elsewhere for a while."""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from engine.api.embeddings import Embeddings
from engine.embedding.embedder import Embedder

PERTURBATION = 0.02
"""Standard deviation of the noise in each element of a stand-in; an element of a vector is about 0.05."""

SAVED_EVERY = 200
"""New vectors after which they are written."""

Source = Callable[[Sequence[str]], NDArray[np.float32]]


class SubstitutedEmbedder:
    """Embeds with the model unless `source` is set."""

    name = Embedder.name

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.source: Source | None = None

    def tokenizer(self) -> Tokenizer:
        return self._embedder.tokenizer()

    def submit(self, texts: Sequence[str], **more: Any) -> "Future[Embeddings]":
        if self.source is None:
            return self._embedder.submit(texts, **more)
        future: Future[Embeddings] = Future()
        future.set_result(Embeddings(self.name, self.source(texts), len(texts)))
        return future


class StandIns:
    """A real vector plus noise that depends on the text, so that 100,000 chunks need no embedding."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self._vectors = vectors

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([self._of(text) for text in texts])

    def _of(self, text: str) -> NDArray[np.float32]:
        random = np.random.default_rng(int.from_bytes(_digest(text)[:8], "little"))
        vector = self._vectors[int(random.integers(len(self._vectors)))]
        vector = vector + random.normal(0, PERTURBATION, len(vector)).astype(np.float32)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


class RememberedVectors:
    """The embedder's own vectors, computed once for each text: they depend on the text only, bit for bit.

    For stages that measure no time. They are kept in a file between runs.
    """

    def __init__(self, embedder: Embedder, path: Path) -> None:
        self._embedder, self._path = embedder, path
        self._vectors: dict[bytes, NDArray[np.float32]] = {}
        self._unsaved = 0
        if path.exists():
            with np.load(path) as kept:
                keys = [key.tobytes() for key in kept["keys"]]
                self._vectors = dict(zip(keys, kept["vectors"], strict=True))

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        keys = [_digest(text) for text in texts]
        new = [at for at, key in enumerate(keys) if key not in self._vectors]
        if new:
            made = self._embedder.submit([texts[at] for at in new]).result().vectors
            self._vectors.update(zip((keys[at] for at in new), made, strict=True))
            self._unsaved += len(new)
        if self._unsaved >= SAVED_EVERY:
            self.save()
        return np.stack([self._vectors[key] for key in keys])

    def save(self) -> None:
        """Write all vectors, if there are new ones."""
        if not self._unsaved:
            return
        part = self._path.with_name("part-" + self._path.name)
        keys = np.stack([np.frombuffer(key, np.uint8) for key in self._vectors])
        np.savez(part, keys=keys, vectors=np.stack(list(self._vectors.values())))
        part.replace(self._path)
        self._unsaved = 0


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()

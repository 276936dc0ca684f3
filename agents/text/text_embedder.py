"""`TextEmbedder`: what classifiers and memory need of an embedding model."""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol

from engine.api.embeddings import Embeddings


class TextEmbedder(Protocol):
    """Vectors of texts; `engine.embedding.embedder.Embedder` is one."""

    def submit(self, texts: Sequence[str], *, truncate: int | None = None) -> "Future[Embeddings]":
        """Embed texts asynchronously.

        Args:
            texts: non-empty texts.
            truncate: number of tokens after which a text is cut.

        Returns:
            A future, which raises `ModelError` if the model is not installed.
        """
        ...

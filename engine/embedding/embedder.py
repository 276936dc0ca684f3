"""`Embedder`: the engine's encoder, loaded when the first text comes.

Embedding neither waits for the engine's steps nor they for it: calls run one after another in a
thread of the embedder's own, whose workers are nicer than the executor's.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from engine.api.config import DispatchLevel
from engine.api.embeddings import Embeddings
from engine.api.errors import EngineUnavailable, ModelError, ModelNotFound, QueueFull
from engine.models.demo import MINILM

if TYPE_CHECKING:
    from engine.embedding.text_encoder import TextEncoder

MAX_PENDING = 64


def installed_encoder(models: Path | None = None) -> Path:
    """Where the embedding model is, in the store at `models` or the user's own.

    Raises:
        ModelNotFound: it is not installed.
    """
    from engine.models.store import ModelStore

    try:
        return ModelStore(models).get(MINILM.name).path
    except ModelNotFound as error:
        raise ModelNotFound(
            f"The embedding model is not installed: run `pravaha models add {MINILM.name}`."
        ) from error


class Embedder:
    """Embeds texts with all-MiniLM-L6-v2. Any thread."""

    name = MINILM.name

    def __init__(
        self,
        find: Callable[[], Path] = installed_encoder,
        *,
        threads: int | None = None,
        dispatch: DispatchLevel = "auto",
    ) -> None:
        """Nothing is looked for until a text is to be embedded."""
        self._find, self._threads, self._dispatch = find, threads, dispatch
        self._encoder: TextEncoder | None = None  # the pool's thread alone
        self._pool: ThreadPoolExecutor | None = None
        self._pending = 0
        self._closed = False
        self._lock = threading.Lock()  # guards the three above

    @property
    def installed(self) -> bool:
        """Whether the model is in the store."""
        try:
            self._find()
        except ModelError:
            return False
        return True

    def submit(
        self, texts: Sequence[str], *, truncate: int | None = None, dimensions: int | None = None
    ) -> "Future[Embeddings]":
        """Begin to embed; never waits.

        The future raises `InvalidRequest` for texts that cannot be embedded, and `ModelError` if
        there is no model or it cannot be used.

        Raises:
            QueueFull: too many calls are pending.
            EngineUnavailable: closed.
        """
        with self._lock:
            if self._closed:
                raise EngineUnavailable("The engine has stopped.")
            if self._pending >= MAX_PENDING:
                raise QueueFull(f"{self._pending} calls for embeddings are waiting; try later.")
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, "pravaha-embed")
            self._pending += 1
            future = self._pool.submit(self._embed, tuple(texts), truncate, dimensions)
        future.add_done_callback(lambda _: self._done())
        return future

    def close(self) -> None:
        """Drop what waits and free the weights. Waits for the call that runs. Idempotent."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)
        self._encoder = None

    def _embed(
        self, texts: tuple[str, ...], truncate: int | None, dimensions: int | None
    ) -> Embeddings:
        if self._encoder is None:
            from engine.embedding.text_encoder import TextEncoder

            self._encoder = TextEncoder(
                self._find(), name=self.name, threads=self._threads, dispatch=self._dispatch
            )
        return self._encoder.embed(texts, truncate=truncate, dimensions=dimensions)

    def _done(self) -> None:
        with self._lock:
            self._pending -= 1

"""`Embedder`: the engine's text encoder, loaded on first use.

Calls run one after another on the embedder's own thread, concurrently with the engine's steps. Its
compute threads have a lower priority (higher niceness) than the executor's.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from engine.api.config import DispatchLevel, EmbeddingPrecision
from engine.api.embeddings import Embeddings
from engine.api.errors import EngineUnavailable, ModelError, ModelNotFound, QueueFull
from engine.models.demo import MINILM

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from engine.embedding.text_encoder import TextEncoder

_Result = TypeVar("_Result")

MAX_PENDING = 64
"""Maximum number of calls that wait or run."""


def installed_encoder(models: Path | None = None) -> Path:
    """The directory of the embedding model.

    Args:
        models: the model store; None for the user's store.

    Raises:
        ModelNotFound: the model is not installed.
    """
    from engine.models.store import ModelStore

    try:
        return ModelStore(models).get(MINILM.name).path
    except ModelNotFound as error:
        raise ModelNotFound(
            f"The embedding model is not installed: run `pravaha models add {MINILM.name}`."
        ) from error


class Embedder:
    """Embeds texts with all-MiniLM-L6-v2. Thread-safe."""

    name = MINILM.name

    def __init__(
        self,
        find: Callable[[], Path] = installed_encoder,
        *,
        precision: EmbeddingPrecision = "f32",
        threads: int | None = None,
        dispatch: DispatchLevel = "auto",
    ) -> None:
        """Create an embedder; no weights are read before the first call of `submit`.

        Args:
            find: returns the model's directory.
            precision: see `TextEncoder`. f32 for what `/v1/embeddings` answers, int8 for indexing.
            threads: compute threads; None for the default.
            dispatch: instruction-set level.
        """
        self._find, self._precision = find, precision
        self._threads, self._dispatch = threads, dispatch
        self._encoder: TextEncoder | None = None  # used by the pool's thread only
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
        """Embed texts asynchronously; does not block.

        Args:
            texts: see `TextEncoder.embed`.
            truncate: see `TextEncoder.embed`.
            dimensions: see `TextEncoder.embed`.

        Returns:
            A future. It raises `InvalidRequest` for texts that cannot be embedded, and `ModelError`
            if the model is not installed or cannot be loaded.

        Raises:
            QueueFull: `MAX_PENDING` calls are pending.
            EngineUnavailable: the embedder is closed.
        """
        return self._submit(partial(self._embed, tuple(texts), truncate, dimensions))

    @property
    def loaded(self) -> bool:
        """Whether the weights are in memory."""
        return self._encoder is not None

    def load(self) -> "Future[None]":
        """Read the weights now instead of at the first text.

        Returns:
            A future, done when they are read. It raises `ModelError` if they cannot be.

        Raises:
            QueueFull, EngineUnavailable: as `submit`.
        """
        return self._submit(self._load)

    def unload(self) -> "Future[None]":
        """Free the weights once the calls so far have run; a later call reads them again.

        Raises:
            QueueFull, EngineUnavailable: as `submit`.
        """
        return self._submit(self._unload)

    def tokenizer(self) -> "Tokenizer":
        """The model's tokenizer, a new one, without padding and truncation; no weights are read.

        Raises:
            ModelError: the model is not installed, or its tokenizer cannot be used.
        """
        from engine.embedding.text_encoder import load_tokenizer

        return load_tokenizer(self._find())

    def close(self) -> None:
        """Cancel pending calls, wait for the running one, and free the weights. Idempotent."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)
        self._encoder = None

    def _submit(self, work: Callable[[], _Result]) -> "Future[_Result]":
        """Run work on the embedder's thread after what was submitted before."""
        with self._lock:
            if self._closed:
                raise EngineUnavailable("The engine has stopped.")
            if self._pending >= MAX_PENDING:
                raise QueueFull(f"{self._pending} embedding calls are pending; try again later.")
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, "pravaha-embed")
            self._pending += 1
            future = self._pool.submit(work)
        future.add_done_callback(lambda _: self._done())
        return future

    def _embed(
        self, texts: tuple[str, ...], truncate: int | None, dimensions: int | None
    ) -> Embeddings:
        return self._load_encoder().embed(texts, truncate=truncate, dimensions=dimensions)

    def _load(self) -> None:
        self._load_encoder()

    def _unload(self) -> None:
        self._encoder = None

    def _load_encoder(self) -> "TextEncoder":
        if self._encoder is None:
            from engine.embedding.text_encoder import TextEncoder

            self._encoder = TextEncoder(
                self._find(),
                name=self.name,
                precision=self._precision,
                threads=self._threads,
                dispatch=self._dispatch,
            )
        return self._encoder

    def _done(self) -> None:
        with self._lock:
            self._pending -= 1

"""Opens the user's document collections."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.settings.settings import Settings
    from engine.embedding.embedder import Embedder
    from engine.models.progress import ProgressCallback
    from engine.retrieval.library.library import Library


def has_collections(settings: "Settings") -> bool:
    """Whether the user has ever created a collection."""
    return any(settings.retrieval.glob("*.db"))


def fetch_encoder(settings: "Settings", progress: "ProgressCallback") -> None:
    """Fetch the embedding model if it is not installed.

    Raises:
        ModelError: it could not be fetched.
    """
    from engine.api.errors import ModelNotFound
    from engine.models.demo import MINILM
    from engine.models.store import ModelStore

    store = ModelStore(settings.models)
    try:
        store.get(MINILM.name)
    except ModelNotFound:
        store.add(MINILM.name, progress=progress)


@contextmanager
def open_library(settings: "Settings", embedder: "Embedder | None" = None) -> "Iterator[Library]":
    """The user's library, closed at the end.

    Args:
        settings: the settings.
        embedder: an embedding model that is open already; None opens one on first use, in int8, which
            embeds four times as many texts a second (docs/embeddings.md).
    """
    from app.runtime.opening import embedder as new_embedder
    from engine.retrieval.library.library import Library

    with ExitStack() as stack:
        encoder = embedder or stack.enter_context(closing(new_embedder(settings, precision="int8")))
        yield stack.enter_context(Library(settings.retrieval, encoder))

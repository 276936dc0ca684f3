"""Opens the user's document collections."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.settings.settings import Settings
    from engine.embedding.embedder import Embedder
    from engine.retrieval.library.library import Library


def has_collections(settings: "Settings") -> bool:
    """Whether the user has ever created a collection."""
    return any(settings.retrieval.glob("*.db"))


@contextmanager
def open_library(settings: "Settings", embedder: "Embedder | None" = None) -> "Iterator[Library]":
    """The user's library, closed at the end.

    Args:
        settings: the settings.
        embedder: an embedding model that is open already; None opens one on first use.
    """
    from app.runtime.opening import embedder as new_embedder
    from engine.retrieval.library.library import Library

    with ExitStack() as stack:
        encoder = embedder or stack.enter_context(closing(new_embedder(settings)))
        yield stack.enter_context(Library(settings.retrieval, encoder))

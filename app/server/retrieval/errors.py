"""Errors of files and vector stores; each message is one sentence that a client can act on."""

from typing import Literal


class RetrievalError(Exception):
    """Base of the errors here."""


class NoSuchObject(RetrievalError):
    """There is no object of this id, or it is gone."""

    def __init__(self, kind: str, object_id: str, *, within: str | None = None) -> None:
        where = "" if within is None else f" in {within[:80]}"
        super().__init__(f"There is no {kind} {object_id[:80]!r}{where}.")


class InvalidCursor(RetrievalError):
    """A list is to be continued at an object that is not in it."""

    def __init__(self, name: Literal["after", "before"], object_id: str) -> None:
        super().__init__(f"`{name}` names {object_id[:80]!r}, which is not in this list.")
        self.param = name


class StoreExpired(RetrievalError):
    """The vector store has expired and its contents are deleted."""


class BeingChanged(RetrievalError):
    """The object is being changed at present."""


class NotErasedYet(RetrievalError):
    """Something is deleted, but a search that runs at present keeps its bytes on disk."""


class TooManyUploads(RetrievalError):
    """As many uploads in parts are pending as this server keeps."""


class OutOfDisk(RetrievalError):
    """The disk has no room for the file."""


class RetrievalUnavailable(RetrievalError):
    """Files and vector stores cannot be used in this process at present."""


class EmbeddingModelMissing(RetrievalError):
    """The embedding model is not installed."""

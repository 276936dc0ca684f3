"""What the catalogue says that the collections do not yet: one piece of work for the indexing thread.

The catalogue is written first, so that work which a stop or a crash interrupts is found again at the
next start. Each piece can be repeated.
"""

from dataclasses import dataclass

from app.server.retrieval.records import AttributeValue, UploadedFile


@dataclass(frozen=True, slots=True)
class RemoveStoreFile:
    """Remove a file from a vector store."""

    store_id: str
    file: UploadedFile


@dataclass(frozen=True, slots=True)
class EraseFile:
    """Erase the bytes of a file that no vector store holds any more."""

    file: UploadedFile


@dataclass(frozen=True, slots=True)
class EraseStore:
    """Erase the contents of a vector store.

    Attributes:
        keep: whether the vector store itself stays, as an expired one.
    """

    store_id: str
    keep: bool


@dataclass(frozen=True, slots=True)
class SetAttributes:
    """Give a file that is indexed other attributes."""

    store_id: str
    file: UploadedFile
    attributes: dict[str, AttributeValue]


@dataclass(frozen=True, slots=True)
class IndexFile:
    """Index a file."""

    store_id: str
    file: UploadedFile
    attributes: dict[str, AttributeValue]


Work = RemoveStoreFile | EraseFile | EraseStore | SetAttributes | IndexFile

"""What front ends show of collections: values that are passed between threads."""

from dataclasses import dataclass
from typing import Literal, NamedTuple


@dataclass(frozen=True, slots=True)
class CollectionView:
    """A collection in the list.

    Attributes:
        name: its name.
        documents: number of documents that can be found.
        chunks: number of chunks of these.
        failed: number of files that cannot be read.
    """

    name: str
    documents: int
    chunks: int
    failed: int


@dataclass(frozen=True, slots=True)
class DocumentView:
    """A document, or a file that cannot be read.

    Attributes:
        path: absolute path of the file.
        chunks: number of its chunks.
        problem: why it cannot be read, in one sentence; empty if it can.
        attributes: such as `year=2026`, for filters.
    """

    path: str
    chunks: int
    problem: str = ""
    attributes: str = ""


@dataclass(frozen=True, slots=True)
class IndexJob:
    """What is being done to a collection.

    Attributes:
        name: the collection.
        doing: `refreshing` reads again what has changed.
        done: number of files that are stored, or the downloaded bytes.
        total: number of files, or bytes; 0 until it is known.
        chunks: chunks stored so far.
        failed: files that could not be read so far.
        chunks_per_s: chunks stored per second.
        seconds_left: an estimate; None if there is none yet.
    """

    name: str
    doing: Literal["adding", "refreshing", "removing", "downloading"]
    done: int = 0
    total: int = 0
    chunks: int = 0
    failed: int = 0
    chunks_per_s: float = 0.0
    seconds_left: float | None = None


class Piece(NamedTuple):
    """A part of a text: around a passage, of the passage, or the words of it that are cited."""

    text: str
    part: Literal["around", "passage", "cited"]


@dataclass(frozen=True, slots=True)
class OpenedPassage:
    """A passage with the text of its document around it.

    Attributes:
        pieces: in the order of the text.
        note: one sentence if this is not what the file contains now; empty otherwise.
    """

    pieces: tuple[Piece, ...]
    note: str = ""

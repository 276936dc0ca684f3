"""Rows of the database as values."""

from dataclasses import dataclass, field
from typing import Literal

from engine.retrieval.api.parsed_document import SpansOf
from engine.retrieval.api.passage import AttributeValue
from engine.retrieval.vectors.header import VectorType
from engine.retrieval.vectors.vector_index import StoreKind

Status = Literal["ready", "failed", "partial", "stale"]


@dataclass(frozen=True, slots=True)
class CollectionRecord:
    """A collection.

    Attributes:
        id: its key in the database.
        name: its name.
        model: name of the embedding model of its vectors.
        vector_type: how its vectors are stored.
        dimensions: length of its vectors; None before the first.
        slots: rows of its vector file that belong to committed documents.
        generation: changes with each commit that changes its documents.
        created: seconds since the epoch.
        rewrites: how often its vectors were rewritten; names their file.
        vectors_lost: whether its vectors were lost and are not yet all computed anew.
        vector_store: where its vectors are.
        dsn_env: of pgvector, the environment variable with the address of the database.
        vector_table: of pgvector, how the names of its tables begin.
    """

    id: int
    name: str
    model: str
    vector_type: VectorType
    dimensions: int | None
    slots: int
    generation: int
    created: float
    rewrites: int
    vectors_lost: int
    vector_store: StoreKind
    dsn_env: str | None
    vector_table: str | None


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document of a collection; its chunks have consecutive ids and slots.

    Attributes:
        id: its key in the database.
        path: absolute path of the file.
        status: `ready`, or `failed` if it could not be read; others are never returned.
        reason: why it failed, or which parts could not be read.
        content_hash: hash of the file's bytes.
        size: size of the file in bytes.
        mtime_ns: time of the file's last change.
        media_type: type by content; None if it failed.
        title: the document's own title.
        spans_of: whether offsets refer to the file or to its extracted text.
        encoding: Python's name of the file's encoding.
        added: seconds since the epoch.
        first_chunk: id of its first chunk.
        first_slot: row of its first vector.
        chunks: number of chunks.
        attributes: values that the user gave it.
    """

    id: int
    path: str
    status: Status
    reason: str | None
    content_hash: str
    size: int
    mtime_ns: int
    media_type: str | None
    title: str | None
    spans_of: SpansOf
    encoding: str
    added: float
    first_chunk: int
    first_slot: int
    chunks: int
    attributes: dict[str, AttributeValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Source:
    """What the user asked to add.

    Attributes:
        pattern: absolute path of a file or folder, or an absolute glob pattern.
        exclude: patterns of files that are left out.
        attributes: values for each of its documents.
        removed: files and folders in it that the user has removed since.
        mounts: mount points in it or around it where its documents are.
    """

    pattern: str
    exclude: tuple[str, ...] = ()
    attributes: dict[str, AttributeValue] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Counts:
    """How much a collection holds.

    Attributes:
        documents: documents that can be found.
        failed: files that cannot be read.
        chunks: chunks of the documents.
        bytes: size of the documents' files.
    """

    documents: int
    failed: int
    chunks: int
    bytes: int

"""Answers of files, uploads and vector stores, in OpenAI's shapes."""

from typing import Literal

from app.server.wire.answers.base import Answer

IndexState = Literal["in_progress", "completed", "failed", "cancelled"]


class FileObject(Answer):
    """An uploaded file."""

    id: str
    object: Literal["file"]
    bytes: int
    created_at: int
    expires_at: int | None
    filename: str
    purpose: str
    status: Literal["processed"]
    status_details: None


class UploadObject(Answer):
    """An upload in parts; once it is completed it has the file."""

    id: str
    object: Literal["upload"]
    bytes: int
    created_at: int
    expires_at: int
    filename: str
    purpose: str
    status: Literal["pending", "completed", "cancelled", "expired"]
    file: FileObject | None


class UploadPartObject(Answer):
    """A part of an upload."""

    id: str
    object: Literal["upload.part"]
    created_at: int
    upload_id: str


class StoreFileCounts(Answer):
    """Files by their state."""

    in_progress: int
    completed: int
    failed: int
    cancelled: int
    total: int


class StoreExpiry(Answer):
    """When the contents are erased."""

    anchor: Literal["last_active_at"]
    days: int


class VectorStoreObject(Answer):
    """A vector store."""

    id: str
    object: Literal["vector_store"]
    created_at: int
    name: str
    description: str | None
    usage_bytes: int
    file_counts: StoreFileCounts
    status: Literal["in_progress", "completed", "expired"]
    expires_after: StoreExpiry | None
    expires_at: int | None
    last_active_at: int | None
    metadata: dict[str, str]


class StoreFileError(Answer):
    """Why a file could not be indexed."""

    code: Literal["server_error", "unsupported_file", "invalid_file"]
    message: str


class StoreFileObject(Answer):
    """A file of a vector store."""

    id: str
    object: Literal["vector_store.file"]
    usage_bytes: int
    created_at: int
    vector_store_id: str
    status: IndexState
    last_error: StoreFileError | None
    attributes: dict[str, str | bool | int | float]


class FileBatchObject(Answer):
    """Files that were added together."""

    id: str
    object: Literal["vector_store.files_batch"]
    created_at: int
    vector_store_id: str
    status: IndexState
    file_counts: StoreFileCounts


class FileText(Answer):
    """A text."""

    type: Literal["text"]
    text: str


class StoreFileContent(Answer):
    """The text of a file as it was indexed."""

    object: Literal["vector_store.file_content.page"]
    data: list[FileText]
    has_more: Literal[False]
    next_page: None


class FoundPassage(Answer):
    """A passage, and where in its file it is."""

    file_id: str
    filename: str
    score: float
    attributes: dict[str, str | bool | int | float]
    content: list[FileText]
    chunk_id: int
    start: int
    end: int
    spans_of: str
    page: int | None
    line: int | None
    heading_path: list[str]


class FoundPassages(Answer):
    """Passages, best first."""

    object: Literal["vector_store.search_results.page"]
    search_query: list[str]
    data: list[FoundPassage]
    has_more: Literal[False]
    next_page: None

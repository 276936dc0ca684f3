"""What the catalogue holds: files, vector stores, the files in them, and batches of those."""

from dataclasses import dataclass, field
from typing import Literal

AttributeValue = str | float | bool
FileState = Literal["in_progress", "completed", "failed", "cancelled"]
StoreState = Literal["in_progress", "completed", "expired"]
ErrorCode = Literal["server_error", "unsupported_file", "invalid_file"]

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """A file that a client uploaded.

    Attributes:
        id: `file-` and 32 hexadecimal digits.
        filename: the client's name of it; only shown, never a path.
        stored_as: name of the file with its bytes, in the folder of uploaded files.
        purpose: what the client uploaded it for.
        size: in bytes.
        created_at: Unix time in seconds.
        expires_at: Unix time from which on it is gone; None for never.
    """

    id: str
    filename: str
    stored_as: str
    purpose: str
    size: int
    created_at: int
    expires_at: int | None


@dataclass(frozen=True, slots=True)
class FileCounts:
    """Files of a vector store, or of a batch, by state."""

    in_progress: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.in_progress + self.completed + self.failed + self.cancelled


@dataclass(frozen=True, slots=True)
class VectorStore:
    """A collection of files that is searched as one.

    Attributes:
        id: `vs_` and 32 hexadecimal digits, also the name of the collection.
        created_at: Unix time in seconds.
        last_active_at: Unix time of the last search or change of its files, within a minute.
        expires_days: days after `last_active_at` until its contents are deleted; None for never.
        expired: whether that has happened.
        counts: its files by state.
        usage_bytes: sum of its files' `usage_bytes`.
    """

    id: str
    name: str
    description: str | None
    metadata: dict[str, str]
    created_at: int
    last_active_at: int
    expires_days: int | None
    expired: bool
    counts: FileCounts
    usage_bytes: int

    @property
    def expires_at(self) -> int | None:
        """Unix time from which on its contents are gone; None for never."""
        if self.expires_days is None:
            return None
        return self.last_active_at + self.expires_days * DAY_S

    @property
    def state(self) -> StoreState:
        """Whether it is gone, still indexing, or ready."""
        if self.expired:
            return "expired"
        return "in_progress" if self.counts.in_progress else "completed"


@dataclass(frozen=True, slots=True)
class StoreFile:
    """A file in a vector store.

    Attributes:
        store_id: the vector store.
        file_id: the file.
        state: of its indexing.
        attributes: values that filters refer to.
        created_at: Unix time at which it was added.
        error_code: why indexing failed, in OpenAI's words; None unless `failed`.
        error: the same as one sentence.
        usage_bytes: bytes of its chunks' texts and vectors; 0 until it is `completed`.
        batch_id: the batch that it was added by, or None.
    """

    store_id: str
    file_id: str
    state: FileState
    created_at: int
    attributes: dict[str, AttributeValue] = field(default_factory=dict)
    error_code: ErrorCode | None = None
    error: str | None = None
    usage_bytes: int = 0
    batch_id: str | None = None


@dataclass(frozen=True, slots=True)
class FileBatch:
    """Files that were added to a vector store by one call.

    Attributes:
        id: `vsfb_` and 32 hexadecimal digits.
        cancelled: whether a client cancelled it.
        counts: those of its files that are still in the vector store.
    """

    id: str
    store_id: str
    created_at: int
    cancelled: bool
    counts: FileCounts

    @property
    def state(self) -> FileState:
        """`failed` if every file failed."""
        if self.counts.in_progress:
            return "in_progress"
        if self.cancelled:
            return "cancelled"
        all_failed = self.counts.failed and self.counts.failed == self.counts.total
        return "failed" if all_failed else "completed"

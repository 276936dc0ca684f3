"""What an index run did, and how far it is."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Failure:
    """A file that could not be read.

    Attributes:
        path: the file.
        reason: one sentence.
    """

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A folder that cannot be reached, so that nothing is known about files in it.

    Attributes:
        folder: the folder.
        documents: how many documents are kept although their files are not found.
    """

    folder: str
    documents: int


@dataclass(slots=True)
class AddReport:
    """What an index run did.

    Attributes:
        added: documents that are new.
        updated: documents whose bytes had changed.
        unchanged: documents whose bytes are the same.
        removed: documents whose file is gone.
        failed: files that cannot be read, those known from former runs included.
        unreachable: folders that cannot be reached.
        chunks: chunks that were stored.
        embedded: chunks of these whose vector was computed; that of others is taken over.
        seconds: how long it took.
        cancelled: whether it was stopped before the end; the next run goes on from there.
        purged: whether the bytes of deleted documents have left the files.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    failed: list[Failure] = field(default_factory=list)
    unreachable: list[Unreachable] = field(default_factory=list)
    chunks: int = 0
    embedded: int = 0
    seconds: float = 0.0
    cancelled: bool = False
    purged: bool = True


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """How far an index run is.

    Attributes:
        files_done: files that are stored, unchanged or failed.
        files: all files of the run.
        bytes_done: size of the former, and of what is stored of a document that is not complete.
        bytes: size of the latter.
        chunks: chunks stored so far.
        failed: files that could not be read so far.
        seconds: since the start.
    """

    files_done: int
    files: int
    bytes_done: int
    bytes: int
    chunks: int
    failed: int
    seconds: float

    @property
    def chunks_per_s(self) -> float:
        """Chunks stored per second."""
        return self.chunks / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """An estimate by bytes; None before the first file is done."""
        if self.bytes_done <= 0:
            return None
        return self.seconds * (self.bytes - self.bytes_done) / self.bytes_done


Progress = Callable[[IndexProgress], None]
Cancelled = Callable[[], bool]

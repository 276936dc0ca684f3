"""Reads files: hash, text and chunks. Several at a time, handed on in their order."""

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from engine.api.error_text import first_line
from engine.retrieval.api.chunk import Chunk
from engine.retrieval.api.errors import Unreadable
from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.chunking.split import split
from engine.retrieval.chunking.split_large import split_large
from engine.retrieval.chunking.token_counter import TokenCounter
from engine.retrieval.indexing.walking import FoundFile
from engine.retrieval.parsing.large_text import LargeText
from engine.retrieval.store.new_document import NewDocument

_BLOCK = 1 << 20
_FILES_AHEAD = 64
_BYTES_AHEAD = 32 << 20
_POLL_S = 0.1


class Parser(Protocol):
    """Reads the text of files. Thread-safe. `ParserPool` is one."""

    def parse(self, path: Path) -> ParsedDocument:
        """The text of a file.

        Raises:
            Unreadable: it has none; the message says why.
        """

    @property
    def longest(self) -> int:
        """Length of the longest file that `parse` reads."""

    def open_large(self, path: Path) -> LargeText:
        """A longer text, to be read in segments.

        Raises:
            Unreadable: it cannot be; the message says why.
        """

    def close(self) -> None:
        """Free what it uses."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A file that was read.

    Attributes:
        file: where it is.
        document: what the store keeps of it.
        chunks: its chunks; None if it cannot be read, or is unchanged. Those of a long file are cut while
            they are taken, once, and end with `Unreadable` or `OSError` if the file cannot be read to its
            end.
        unchanged: whether its bytes are those of the stored document.
    """

    file: FoundFile
    document: NewDocument
    chunks: Iterable[Chunk] | None
    unchanged: bool = False


def prepare_files(
    files: Sequence[FoundFile],
    known_hashes: Mapping[str, str],
    parser: Parser,
    counter: TokenCounter,
    *,
    threads: int,
    cancelled: Callable[[], bool],
) -> Iterator[Prepared]:
    """Read files on other threads, some ahead of the caller; in their order.

    Args:
        files: the files.
        known_hashes: hashes of the stored documents by path.
        parser: reads their text.
        counter: counts tokens as the embedding model does.
        threads: how many files are read at a time.
        cancelled: asked while the next file is waited for; ends the iteration.
    """
    todo = iter(files)
    ahead: deque[tuple[FoundFile, Future[Prepared]]] = deque()
    ahead_bytes = 0
    pool = ThreadPoolExecutor(threads, "pravaha-read")
    try:
        while True:
            while len(ahead) < _FILES_AHEAD and (ahead_bytes < _BYTES_AHEAD or not ahead):
                file = next(todo, None)
                if file is None:
                    break
                known = known_hashes.get(file.path)
                ahead.append((file, pool.submit(prepare, file, known, parser, counter)))
                ahead_bytes += file.size
            if not ahead:
                return
            file, future = ahead.popleft()
            ahead_bytes -= file.size
            while not future.done():
                wait([future], timeout=_POLL_S)
                if cancelled():
                    return
            yield future.result()
    finally:
        # A caller that stops early does not wait for the files that are being read.
        pool.shutdown(wait=False, cancel_futures=True)


def prepare(
    file: FoundFile, known_hash: str | None, parser: Parser, counter: TokenCounter
) -> Prepared:
    """Read a file; never raises for what is wrong with it.

    Args:
        file: the file.
        known_hash: hash of the stored document of this path.
        parser: reads its text.
        counter: counts tokens as the embedding model does.
    """
    digest = ""
    try:
        if file.size > parser.longest:
            return _prepare_large(file, known_hash, parser, counter)
        digest = content_hash(file.path)
        if digest == known_hash:
            return Prepared(file, _document(file, digest), None, unchanged=True)
        parsed = parser.parse(Path(file.path))
        return Prepared(file, _document(file, digest, parsed), split(parsed, counter))
    except Unreadable as error:
        return Prepared(file, _document(file, digest, reason=str(error)), None)
    except OSError as error:
        return Prepared(file, _document(file, digest, reason=unreadable_reason(error)), None)


def _prepare_large(
    file: FoundFile, known_hash: str | None, parser: Parser, counter: TokenCounter
) -> Prepared:
    """Hash a long file and prepare to cut it.

    Raises:
        Unreadable: it is no text that can be read in segments.
        OSError: it cannot be read.
    """
    text = parser.open_large(Path(file.path))
    digest = text.content_hash()
    if digest == known_hash:
        return Prepared(file, _document(file, digest), None, unchanged=True)
    first = text.segment(text.start).document
    return Prepared(file, _document(file, digest, first), split_large(text, counter))


def unreadable_reason(error: Unreadable | OSError) -> str:
    """Why a file cannot be read, as one sentence."""
    if isinstance(error, Unreadable):
        return str(error)
    return f"It cannot be read: {error.strerror or first_line(error)}."


def content_hash(path: str) -> str:
    """Hash of a file's bytes.

    Raises:
        OSError: it cannot be read.
    """
    digest = hashlib.blake2b(digest_size=20)
    # A file that a pipe has replaced since it was found is not waited for.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb", buffering=0) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _document(
    file: FoundFile, digest: str, parsed: ParsedDocument | None = None, *, reason: str | None = None
) -> NewDocument:
    attributes = dict(file.source.attributes)
    if parsed is None:
        return NewDocument(
            file.path, digest, file.size, file.mtime_ns, reason=reason, attributes=attributes
        )
    return NewDocument(
        file.path,
        digest,
        file.size,
        file.mtime_ns,
        reason=" ".join(parsed.notes) or None,
        media_type=parsed.media_type,
        title=parsed.title,
        spans_of=parsed.spans_of,
        encoding=parsed.encoding,
        text=parsed.text if parsed.spans_of == "text" else None,
        attributes=attributes,
    )

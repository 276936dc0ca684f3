"""`ParserPool`: files to documents.

Plain text, Markdown, reStructuredText and CSV are decoded in this process, by code that is linear in
their length. Everything else is parsed in processes that can do nothing else (`confinement`). They start
when they are first needed, are used for many files, and are replaced when a file has brought one down.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.parsing.code_outline import has_outline
from engine.retrieval.parsing.documents import extracted_document, file_document
from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.file_type import FileType, detect_type
from engine.retrieval.parsing.large_text import LargeText, open_large_text
from engine.retrieval.parsing.outline import Outline
from engine.retrieval.parsing.parser_limits import ParserLimits
from engine.retrieval.parsing.parser_worker import ParserWorker, WorkerDied
from engine.retrieval.parsing.regular_file import read_regular_file
from engine.retrieval.parsing.text_encoding import DecodedText, decode_text
from engine.retrieval.parsing.text_outline import text_outline


class ParserPool:
    """Parses files. Thread-safe; at most `max_processes` files are in parser processes at a time."""

    def __init__(self, max_processes: int = 1, limits: ParserLimits | None = None) -> None:
        """Create a pool; no process is started yet.

        Args:
            max_processes: parser processes, at least 1.
            limits: for each file.
        """
        self._limits = limits or ParserLimits()
        self._idle: list[ParserWorker] = []
        self._closed = False
        self._lock = threading.Lock()  # guards the two above
        self._slots = threading.BoundedSemaphore(max_processes)

    def parse(self, path: Path) -> ParsedDocument:
        """The document in a file.

        Raises:
            Unreadable: there is none, with the reason in one sentence.
        """
        return self.parse_bytes(path.name, read_regular_file(path, self._limits.file_bytes))

    @property
    def longest(self) -> int:
        """Length of the longest file that `parse` reads."""
        return self._limits.file_bytes

    def open_large(self, path: Path) -> LargeText:
        """A text that is longer than that, to be read in segments; nothing but its beginning is read here.

        Raises:
            Unreadable: it is of a type that is read at once only, or no text.
        """
        return open_large_text(path, self._limits)

    def parse_bytes(self, name: str, data: bytes) -> ParsedDocument:
        """The document in a file that has been read.

        Args:
            name: of the file, without its folder.
            data: its bytes.

        Raises:
            Unreadable: there is none, with the reason in one sentence.
        """
        if not data.strip():
            raise Unreadable("It is empty.")
        file_type = detect_type(name, data)
        match file_type.format:
            case "text" | "markdown" | "rst" | "rows" | "code" | "json":
                decoded = decode_text(data)
                if not decoded.text.strip():
                    raise Unreadable("It is empty.")
                return file_document(decoded, file_type, self._outline(file_type, decoded))
            case _:
                extracted = self._extract(file_type.format, data)
                if not extracted.text.strip():
                    raise Unreadable("It has no text.")
                return extracted_document(extracted, file_type)

    def close(self) -> None:
        """End the idle processes; busy ones end with their file. Idempotent."""
        with self._lock:
            self._closed = True
        self.rest()

    def rest(self) -> None:
        """End the idle processes; the next file starts another one."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.stop()

    def _outline(self, file_type: FileType, decoded: DecodedText) -> Outline:
        if file_type.format in ("code", "json"):
            return self._code_outline(file_type.language or "json", decoded.text)
        return text_outline(decoded.text, file_type)

    def _code_outline(self, language: str, text: str) -> Outline:
        """The definitions; none where there is no grammar, or it cannot cope: the text is still read."""
        if not has_outline(language):
            return Outline()
        try:
            found = self._extract(f"code/{language}", text.encode())
        except Unreadable:
            return Outline()
        return Outline(found.headings, found.breaks)

    def _extract(self, kind: str, data: bytes) -> Extracted:
        try:
            try:
                with self._worker() as worker:
                    return worker.extract(kind, data)
            except (
                WorkerDied
            ):  # perhaps it was not the file's fault: the system may be short of memory
                with self._worker() as worker:
                    return worker.extract(kind, data)
        except WorkerDied as error:
            raise Unreadable(f"Its parser did not survive it: {error}.") from error
        except OSError as error:
            raise Unreadable(
                f"Its parser could not be started: {error.strerror or error}."
            ) from error

    @contextmanager
    def _worker(self) -> Iterator[ParserWorker]:
        """A process for one file: an idle one, or a new one."""
        with self._slots:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            if worker is not None and not worker.alive:
                worker.stop()
                worker = None
            worker = worker or ParserWorker(self._limits)
            try:
                yield worker
            finally:
                with self._lock:
                    keep = worker.alive and not self._closed
                    if keep:
                        self._idle.append(worker)
                if not keep:
                    worker.stop()

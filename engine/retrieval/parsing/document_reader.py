"""`DocumentReader`: the text of files that a message names or has, in every format that collections read.

Texts and source code are taken as they are. Everything else is parsed in the confined parser process, which
ends with the last file that waits. One file is read at a time, on threads that the program does not wait for.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from engine.api.errors import InvalidRequest
from engine.retrieval.api.errors import Unreadable
from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.parsing.parser_limits import MIB, ParserLimits

MAX_TEXT_BYTES = 4 * MIB
"""The longest text; no context has room for a longer one."""
_MAX_KEPT_CHARS = 8 * MIB
_LIMITS = ParserLimits(text_bytes=MAX_TEXT_BYTES, wall_s=90.0, ocr_factor=3)
"""Shorter than for collections, because somebody waits."""
_AS_THEY_ARE = frozenset(("text", "markdown", "rst", "rows", "code", "json", "html"))


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file.

    Attributes:
        name: of the file, without its folder.
        text: its text, never blank.
        pages: number of its pages; 0 if it has none.
        notes: one sentence each about parts that could not be read.
    """

    name: str
    text: str
    pages: int = 0
    notes: tuple[str, ...] = ()


class Parser(Protocol):
    """What `ParserPool` does with files."""

    def parse_bytes(self, name: str, data: bytes) -> ParsedDocument:
        """See `ParserPool.parse_bytes`."""
        ...

    def rest(self) -> None:
        """End the idle processes."""
        ...


def _open_pool() -> Parser:
    # Imported with the first file: a screen starts without the parsers.
    from engine.retrieval.parsing.parser_pool import ParserPool

    return ParserPool(limits=_LIMITS)


class DocumentReader:
    """Thread-safe. What was read is kept until the file changes.

    Args:
        parser: opens the parser, when it is first needed.
    """

    def __init__(self, parser: Callable[[], Parser] = _open_pool) -> None:
        self._new_parser = parser
        self._parser: Parser | None = None
        self._turn = (
            threading.Lock()
        )  # held while a file is read; guards the parser and what is kept
        self._lock = threading.Lock()  # guards the next one
        self._waiting = 0
        self._kept: OrderedDict[tuple[object, ...], FileText] = OrderedDict()
        self._kept_chars = 0

    def read(self, path: Path) -> "Future[FileText]":
        """Begin to read a file. A future that is cancelled before its turn is not read.

        The future fails with `InvalidRequest`, in one sentence, if the file has no text that can be read.
        """
        return self._begin(path.name, partial(self._read, path))

    def read_bytes(self, name: str, data: bytes) -> "Future[FileText]":
        """As `read`, of a file that is not on disk.

        Args:
            name: of the file; its ending decides where its contents do not.
            data: its contents.
        """
        return self._begin(name, partial(self._read_data, name, data))

    def _begin(self, name: str, read: Callable[[], FileText]) -> "Future[FileText]":
        future: Future[FileText] = Future()
        with self._lock:
            self._waiting += 1
        threading.Thread(
            target=self._run, args=(name, read, future), name="pravaha-documents", daemon=True
        ).start()
        return future

    def _run(self, name: str, read: Callable[[], FileText], future: "Future[FileText]") -> None:
        try:
            with self._turn:
                if future.set_running_or_notify_cancel():
                    self._finish(name, read, future)
                with self._lock:
                    last = self._waiting == 1
                if last and self._parser is not None:
                    self._parser.rest()
        finally:
            with self._lock:
                self._waiting -= 1

    def _finish(self, name: str, read: Callable[[], FileText], future: "Future[FileText]") -> None:
        try:
            future.set_result(read())
        except Unreadable as error:
            reason = str(error)
            future.set_exception(
                InvalidRequest(f"{name} can't be attached: {reason[:1].lower()}{reason[1:]}")
            )
        except Exception as error:
            future.set_exception(error)

    def _read(self, path: Path) -> FileText:
        from engine.retrieval.parsing.regular_file import read_regular_file

        try:
            status = path.stat()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise Unreadable(f"It cannot be read: {reason}.") from error
        key = (path, status.st_mtime_ns, status.st_size)
        known = self._kept.get(key)
        if known is not None:
            return known
        return self._parsed(key, path.name, read_regular_file(path, _LIMITS.file_bytes))

    def _read_data(self, name: str, data: bytes) -> FileText:
        if len(data) > _LIMITS.file_bytes:
            raise Unreadable(f"It has more than {_LIMITS.file_bytes // MIB} MiB.")
        key = (name, sha256(data).digest())
        return self._kept.get(key) or self._parsed(key, name, data)

    def _parsed(self, key: tuple[object, ...], name: str, data: bytes) -> FileText:
        from engine.retrieval.parsing.file_type import detect_type
        from engine.retrieval.parsing.text_encoding import decode_text

        if not data.strip():
            raise Unreadable("It is empty.")
        kind = detect_type(name, data).format
        if kind in _AS_THEY_ARE:
            if len(data) > MAX_TEXT_BYTES:
                raise Unreadable(f"It is a text of more than {MAX_TEXT_BYTES // MIB} MiB.")
            decoded = decode_text(data)
            found = FileText(name, decoded.text, notes=decoded.notes)
        else:
            if self._parser is None:
                self._parser = self._new_parser()
            parsed = self._parser.parse_bytes(name, data)
            found = FileText(name, parsed.text, len(parsed.pages), parsed.notes)
        if not found.text.strip():
            raise Unreadable("It is empty.")
        self._keep(key, found)
        return found

    def _keep(self, key: tuple[object, ...], found: FileText) -> None:
        self._kept[key] = found
        self._kept_chars += len(found.text)
        while self._kept_chars > _MAX_KEPT_CHARS and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._kept_chars -= len(dropped.text)

"""`OutputCapture`: head and tail of a stream, however long it is, and the whole in a file up to a bound."""

import contextlib
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

HEAD_BYTES = 64 << 10
TAIL_BYTES = 64 << 10
MAX_ARTIFACT_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class CapturedOutput:
    """What a command wrote.

    Attributes:
        head: the first bytes, at most `HEAD_BYTES`.
        tail: the last bytes after the head, at most `TAIL_BYTES`.
        size: of everything.
        artifact: file with everything, or its first `MAX_ARTIFACT_BYTES`; None if head and tail have all.
    """

    head: bytes = b""
    tail: bytes = b""
    size: int = 0
    artifact: Path | None = None

    @property
    def left_out(self) -> int:
        """Bytes between head and tail."""
        return self.size - len(self.head) - len(self.tail)

    @property
    def text(self) -> str:
        """Head and tail as text, with a notice where bytes are left out."""
        notice = f"\n[… {self.left_out:,} bytes left out …]\n" if self.left_out else ""
        return (
            self.head.decode("utf-8", "replace") + notice + self.tail.decode("utf-8", "replace")
            if notice
            else (self.head + self.tail).decode("utf-8", "replace")
        )


class OutputCapture:
    """Collects a stream with bounded memory and disk. Close it before the artifact is read.

    Without an artifact, or if it cannot be written, what lies between head and tail is dropped.
    """

    def __init__(self, artifact: Path | None = None) -> None:
        """`artifact`, which must not exist, is created when head and tail no longer hold everything."""
        self._artifact = artifact
        self._file: BinaryIO | None = None
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._size = 0
        self._spooled = 0

    def add(self, data: bytes) -> None:
        """Take the next piece of the stream."""
        self._size += len(data)
        if self._file is not None:
            self._spool(data)
        room = HEAD_BYTES - len(self._head)
        self._head += data[:room]
        rest = data[room:] if room < len(data) else b""
        if not rest:
            return
        self._tail.append(rest)
        self._tail_size += len(rest)
        if self._tail_size > TAIL_BYTES and self._file is None and self._artifact is not None:
            self._open(self._artifact)
        while self._tail_size - len(self._tail[0]) >= TAIL_BYTES:
            self._tail_size -= len(self._tail.popleft())

    def _open(self, artifact: Path) -> None:
        try:
            self._file = artifact.open("xb")
        except OSError:
            self._artifact = None
            return
        self._spool(bytes(self._head) + b"".join(self._tail))

    def _spool(self, data: bytes) -> None:
        if self._file is None:
            return
        try:
            self._file.write(data[: max(0, MAX_ARTIFACT_BYTES - self._spooled)])
            self._spooled += len(data)
        except OSError:  # the disk is full: head and tail are kept
            self._drop()

    def _drop(self) -> None:
        with contextlib.suppress(OSError):
            if self._file is not None:
                self._file.close()
        if self._artifact is not None:
            self._artifact.unlink(missing_ok=True)
        self._file = self._artifact = None

    def close(self) -> CapturedOutput:
        """What was collected."""
        try:
            if self._file is not None:
                self._file.close()
        except OSError:
            self._drop()
        spooled = self._file is not None
        return CapturedOutput(
            bytes(self._head),
            b"".join(self._tail)[-TAIL_BYTES:],
            self._size,
            self._artifact if spooled else None,
        )

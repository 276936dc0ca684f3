"""`OutputCapture`: head and tail of a stream, however long it is, and the whole in a file up to a bound."""

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
    """Collects a stream with bounded memory and disk. Close it before the artifact is read."""

    def __init__(self, artifact: Path | None = None) -> None:
        """`artifact` is created when head and tail no longer hold everything."""
        self._artifact = artifact
        self._file: BinaryIO | None = None
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._size = 0

    def add(self, data: bytes) -> None:
        """Take the next piece of the stream.

        Raises:
            OSError: the artifact cannot be written.
        """
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
            self._file = self._artifact.open("wb")
            self._spool(bytes(self._head) + b"".join(self._tail))
        while self._tail_size - len(self._tail[0]) >= TAIL_BYTES:
            self._tail_size -= len(self._tail.popleft())

    def _spool(self, data: bytes) -> None:
        if self._file is not None:
            self._file.write(data[: max(0, MAX_ARTIFACT_BYTES - self._file.tell())])

    def close(self) -> CapturedOutput:
        """What was collected."""
        spooled = self._file is not None
        if self._file is not None:
            self._file.close()
        return CapturedOutput(
            bytes(self._head),
            b"".join(self._tail)[-TAIL_BYTES:],
            self._size,
            self._artifact if spooled else None,
        )

"""`FileAccess`: where tools read and write files: on the disk, or in an editor that has unsaved text."""

from pathlib import Path
from typing import Protocol

from agents.tools.beneath import read_beneath, write_beneath


class FileAccess(Protocol):
    """Files beneath a root. The calls may block, so tools make them on threads."""

    def read(self, root: Path, path: str) -> bytes:
        """The contents of a file; `path` is relative.

        Raises:
            InvalidTask: as `read_beneath`.
        """
        ...

    def write(self, root: Path, path: str, data: bytes, *, replace: bool) -> None:
        """Write a file; arguments as `write_beneath`.

        Raises:
            InvalidTask: as `write_beneath`.
        """
        ...


class DiskFiles:
    """Files as they are on the disk."""

    def read(self, root: Path, path: str) -> bytes:
        """See `FileAccess.read`."""
        return read_beneath(root, path)

    def write(self, root: Path, path: str, data: bytes, *, replace: bool) -> None:
        """See `FileAccess.write`."""
        write_beneath(root, path, data, replace=replace)

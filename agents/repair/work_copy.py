"""`WorkCopy`: a throw-away copy of a folder in which patches are tried.

Symbolic links are not copied, so nothing outside of the copy is read or changed through it.
"""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from agents.procedures.audit.unified_diff import apply_diff, make_diff, parse_diff
from agents.workspace.workspace import Workspace, list_files, open_workspace


class WorkCopy:
    """A copy; the original is never changed. Use as a context manager."""

    def __init__(self, original: Path) -> None:
        """Copy the files that git does not ignore, with their modes.

        Raises:
            OSError: a file cannot be read, or the disk is full.
        """
        self.original = original
        self._folder = tempfile.TemporaryDirectory(prefix="pravaha-repair-")
        self.root = Path(self._folder.name) / original.name
        self.root.mkdir()
        for name in list_files(original):
            source, target = original / name, self.root / name
            if source.is_file() and not source.is_symlink():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)

    def __enter__(self) -> Self:
        """The copy."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Remove the copy."""
        self._folder.cleanup()

    def workspace(self) -> Workspace:
        """The copy's files as they are now."""
        return open_workspace([self.root])

    def apply(self, diff: str) -> dict[str, str | None]:
        """Apply a unified diff; the texts before, by path, for `restore`.

        Raises:
            InvalidTask: it does not apply exactly; nothing was changed.
            OSError: a file cannot be written.
        """
        before = {file.path: self._text(file.path) for file in parse_diff(diff)}
        texts = {path: text for path, text in before.items() if text is not None}
        self.restore(apply_diff(diff, texts))
        return before

    def restore(self, texts: Mapping[str, str | None]) -> None:
        """Write texts by path; None removes the file."""
        for path, text in texts.items():
            target = self.root / path
            if text is None:
                target.unlink(missing_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(text.encode("utf-8"))

    def diff(self) -> str:
        """What differs from the original, as one unified diff."""
        names = sorted({*list_files(self.original), *list_files(self.root)})
        parts = []
        for name in names:
            old, new = _read(self.original / name), _read(self.root / name)
            if old != new:
                parts.append(make_diff(name, old, new))
        return "".join(parts)

    def _text(self, path: str) -> str | None:
        return _read(self.root / path)


def _read(path: Path) -> str | None:
    """The text, or None if there is no regular UTF-8 file."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return None

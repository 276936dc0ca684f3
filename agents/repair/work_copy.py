"""`WorkCopy`: a throw-away copy of a folder in which patches are tried.

Symbolic links are not copied, so nothing outside of the copy is read or changed through it. A second copy
keeps the files as they should be: what a test run leaves behind is taken back (`undo_side_effects`), so that
one run does not decide the next.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from agents.api.errors import InvalidTask
from agents.text.unified_diff import apply_diff, make_diff, parse_diff
from agents.workspace.workspace import Workspace, list_files, open_workspace

MAX_COPY_BYTES = 1 << 30
_PREFIX = "pravaha-repair-"

Signature = tuple[int, int]
"""Modification time in ns, and size."""


class WorkCopy:
    """A copy; the original is never changed. Use as a context manager."""

    def __init__(self, original: Path) -> None:
        """Copy the files that git does not ignore, with their modes.

        Raises:
            InvalidTask: the folder is larger than `MAX_COPY_BYTES`.
            OSError: a file cannot be read, or the disk is full.
        """
        self.original = original
        _remove_stale()
        self._folder = tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-")
        top = Path(self._folder.name)
        self.root = top / "tree" / original.name
        self._clean = top / "clean"
        self._signatures: dict[str, Signature] = {}
        self._first: dict[str, str | None] = {}
        try:
            self._copy()
        except BaseException:
            self._folder.cleanup()
            raise

    def _copy(self) -> None:
        self.root.mkdir(parents=True)
        total = 0
        for name in list_files(self.original):
            source = self.original / name
            if not source.is_file() or source.is_symlink():
                continue
            total += source.stat().st_size
            if total > MAX_COPY_BYTES:
                raise InvalidTask(
                    f"{self.original} has more than {MAX_COPY_BYTES >> 20} MiB that git does not ignore: "
                    "it is too large to be repaired in a copy."
                )
            for target in (self._clean / name, self.root / name):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
            self._signatures[name] = _signature(self.root / name)

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
        before = {file.path: _read(self.root / file.path) for file in parse_diff(diff)}
        texts = {path: text for path, text in before.items() if text is not None}
        self.restore(apply_diff(diff, texts))
        return before

    def restore(self, texts: Mapping[str, str | None]) -> None:
        """Write texts by path; None removes the file."""
        for path, text in texts.items():
            self._first.setdefault(path, _read(self.root / path))
            for target in (self._clean / path, self.root / path):
                if text is None:
                    target.unlink(missing_ok=True)
                else:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(text.encode("utf-8"))
            if text is None:
                self._signatures.pop(path, None)
            else:
                self._signatures[path] = _signature(self.root / path)

    def undo_side_effects(self) -> None:
        """Remove and put back what something else than `restore` changed, such as the tests."""
        kept = set()
        for folder, folders, names in os.walk(self.root):
            for name in [one for one in folders if (Path(folder) / one).is_symlink()]:
                folders.remove(name)
                names.append(name)
            for name in names:
                path = Path(folder) / name
                relative = path.relative_to(self.root).as_posix()
                if relative not in self._signatures or path.is_symlink():
                    path.unlink()
                else:
                    kept.add(relative)
        for name, signature in self._signatures.items():
            target = self.root / name
            if name not in kept or _signature(target) != signature:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self._clean / name, target)
                self._signatures[name] = _signature(target)

    def changes(self) -> dict[str, tuple[str | None, str | None]]:
        """The text before and now of each file that `restore` changed, by path; None for no file."""
        now = {name: _read(self._clean / name) for name in sorted(self._first)}
        return {
            name: (self._first[name], text)
            for name, text in now.items()
            if text != self._first[name]
        }

    def diff(self) -> str:
        """The changes as one unified diff."""
        return "".join(make_diff(name, old, new) for name, (old, new) in self.changes().items())


def _signature(path: Path) -> Signature:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _read(path: Path) -> str | None:
    """The text, or None if there is no regular UTF-8 file."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return None


def _remove_stale() -> None:
    """Remove this user's copies whose process was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        match = re.match(rf"{_PREFIX}(\d+)-", folder.name)
        try:
            if match and folder.lstat().st_uid == os.getuid() and not _alive(int(match[1])):
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # another process was faster


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True

"""`FileEdit`: a file before and after an edit. Applying it, and taking it back.

Both compare the whole file first: an edit applies to the bytes that it was made from, and is taken back from
those that it wrote. Files are replaced atomically beneath a folder (`agents/tools/beneath.py`).
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agents.api.errors import InvalidTask
from agents.text.unified_diff import make_diff
from agents.tools.beneath import open_root, parts_of, read_beneath, write_beneath


@dataclass(frozen=True)  # no slots: the diff is kept
class FileEdit:
    """An edit of one file.

    Attributes:
        path: relative to the folder.
        before: None if the file does not exist yet.
        after: what it has afterwards.
        names: the definitions that change, such as `Queue.position`; empty if that is not known.
        left_out: statements of the answer that are not taken over, such as examples.
    """

    path: str
    before: bytes | None
    after: bytes
    names: tuple[str, ...] = ()
    left_out: int = 0

    @cached_property
    def diff(self) -> str:
        """A unified diff with LF only: for display."""
        before = None if self.before is None else _shown(self.before)
        return make_diff(self.path, before, _shown(self.after))

    @property
    def counts(self) -> tuple[int, int]:
        """Lines added and removed."""
        body = self.diff.split("\n")[2:]  # below the names of the file
        return sum(line[:1] == "+" for line in body), sum(line[:1] == "-" for line in body)


def apply_edits(root: Path, edits: Sequence[FileEdit]) -> None:
    """Write edits; all files or, if one is refused, none.

    Raises:
        InvalidTask: a file is not as the edit was made from, or cannot be written.
    """
    for one in edits:
        if read_file(root, one.path) != one.before:
            raise InvalidTask(
                f"{one.path} has changed since the edit was made: nothing was written."
            )
    _write_all(root, [(one.path, one.before, one.after) for one in edits])


def take_back(root: Path, edits: Sequence[FileEdit]) -> None:
    """Restore the files as they were before edits; all or none.

    Raises:
        InvalidTask: a file is not as the edit left it, or cannot be written.
    """
    for one in edits:
        if read_file(root, one.path) != one.after:
            raise InvalidTask(
                f"{one.path} has changed since the edit was applied: it is not taken back."
            )
    _write_all(root, [(one.path, one.after, one.before) for one in edits])


def read_file(root: Path, path: str) -> bytes | None:
    """The bytes of a file beneath a folder; None if there is none.

    Raises:
        InvalidTask: it is no regular file, or too large.
    """
    if not os.path.lexists(root.joinpath(*parts_of(path))):
        return None
    return read_beneath(root, path)


def _write_all(root: Path, changes: Sequence[tuple[str, bytes | None, bytes | None]]) -> None:
    done: list[tuple[str, bytes | None, bytes | None]] = []
    try:
        for path, before, after in changes:
            _write(root, path, before, after)
            done.append((path, before, after))
    except InvalidTask:
        for path, before, after in reversed(done):
            with suppress(InvalidTask):
                _write(root, path, after, before)
        raise


def _write(root: Path, path: str, before: bytes | None, after: bytes | None) -> None:
    if after is not None:
        write_beneath(root, path, after, replace=before is not None)
        return
    with open_root(root) as folder:
        try:
            os.unlink("/".join(parts_of(path)), dir_fd=folder)
        except OSError as error:
            raise InvalidTask(f"{path} cannot be removed: {error.strerror}.") from error


def _shown(data: bytes) -> str:
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n")

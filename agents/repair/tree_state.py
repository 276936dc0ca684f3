"""`TreeState`: which files a folder has and what is in them, to notice that it changed meanwhile.

Costs one read of every file that git does not ignore.
"""

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from agents.workspace.workspace import list_files

MAX_NAMED = 5
"""Changed files that a message names."""


@dataclass(frozen=True, slots=True)
class TreeState:
    """The files of a folder at one time.

    Attributes:
        digests: digest of kind, mode and contents by relative path.
    """

    digests: Mapping[str, str]

    @classmethod
    def of(cls, root: Path) -> Self:
        """Read the state of a folder.

        Raises:
            OSError: a file cannot be read.
        """
        found = {}
        for name in list_files(root):
            digest = _digest(root / name)
            if digest:
                found[name] = digest
        return cls(found)

    def changed(self, later: "TreeState") -> list[str]:
        """The paths that differ, were added or removed, sorted."""
        names = {*self.digests, *later.digests}
        return sorted(one for one in names if self.digests.get(one) != later.digests.get(one))


def named(paths: list[str]) -> str:
    """Some of the paths in words, such as `a.py, b.py and 3 more`."""
    more = len(paths) - MAX_NAMED
    return ", ".join(paths[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _digest(path: Path) -> str:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return ""  # tracked by git, deleted in the working tree
    if stat.S_ISLNK(status.st_mode):
        return f"link {os.readlink(path)}"
    if not stat.S_ISREG(status.st_mode):
        return ""
    digest = hashlib.blake2b(f"{stat.S_IMODE(status.st_mode):o}\n".encode(), digest_size=16)
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()

"""Tells deleted files from files that cannot be reached, for example on a drive that is not mounted.

A missing file was deleted if the folder around it can be listed, and lies on the same mounted file systems as
when the file was indexed. Otherwise nothing is known about it, and its document is kept.
"""

import os
from collections.abc import Iterable, Sequence
from functools import cache

from engine.retrieval.indexing.walking import fixed_folder, is_inside
from engine.retrieval.store.records import Source


def mount_points(folders: Iterable[str]) -> set[str]:
    """The mount points on which folders lie, without `/`."""
    mount_of = cache(_mount_of)
    found = {mount_of(os.path.realpath(one)) for one in folders}
    return found - {"/"}


def still_missing(mounts: Iterable[str]) -> set[str]:
    """Those of the mount points on which nothing is mounted now."""
    return {one for one in mounts if not os.path.ismount(one)}


class Reachability:
    """Answers for one refresh; folders are looked at once.

    Args:
        sources: what was added, with the mount points of the last time.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._roots = [fixed_folder(one.pattern) for one in sources]
        self._named = frozenset(one.pattern for one in sources)
        self._missing = still_missing({one for source in sources for one in source.mounts})
        self._listed = cache(_can_be_listed)
        self._of_folder = cache(self._unreachable_folder)

    def unreachable_folder(self, path: str) -> str | None:
        """The folder that keeps one from knowing whether a missing file was deleted; None if it was."""
        return self._of_folder(os.path.dirname(path), path in self._named)

    def _unreachable_folder(self, folder: str, is_named: bool) -> str | None:
        real = os.path.realpath(folder)
        for mount in self._missing:
            if is_inside(real, mount):
                return mount
        roots = [*self._roots, folder] if is_named else self._roots
        around = [one for one in roots if is_inside(folder, one)]
        for root in around:
            if not self._listed(root):
                return root
        while around and not os.path.lexists(folder):
            folder = os.path.dirname(folder)
        return None if not around or self._listed(folder) else folder


def _mount_of(folder: str) -> str:
    while not os.path.ismount(folder):
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    return folder


def _can_be_listed(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            next(entries, None)
    except NotADirectoryError:
        return True  # a file is in its place: what was below it is gone
    except OSError:
        return False
    return True

"""Waits for changes in the folders of a collection's sources.

The kernel watches a folder itself, not its path: when another one takes its place, nothing is heard of it.
About every second, and after each change, each path is therefore looked up again; where it leads to another
folder, that one is watched. A folder that is deleted and made again can have the inode number of the old one;
its deletion is an event.
"""

import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from stat import S_ISDIR
from typing import NamedTuple

import watchfiles

from engine.retrieval.indexing.walking import is_glob, watched_folder
from engine.retrieval.store.records import Source

_DEBOUNCE_MS = 1000
"""How long a group of changes is collected at most."""
_STEP_MS = 50
_WAKE_MS = 1000


class _Identity(NamedTuple):
    """What a path leads to."""

    device: int
    inode: int
    is_readable: bool


class _Group(NamedTuple):
    """Changes that were noticed together.

    Attributes:
        paths: what was changed.
        loses_folder: whether a watched folder was deleted, or the permissions of a folder changed: what is in
            it must be watched anew.
    """

    paths: frozenset[str]
    loses_folder: bool


def watch_changes(
    sources: Callable[[], Sequence[Source]], stop: threading.Event
) -> Iterator[frozenset[str]]:
    """Absolute paths that were changed, in groups, until `stop` is set.

    An empty group is given about every second without changes, so that the caller can do what it had to put
    off. With the first group, whatever it holds, everything that changes from then on is noticed. Where the
    folders of the sources have become others, also at the same path, all of them are given: changes may have
    been missed in between.

    Args:
        sources: where to look; asked about every second. What does not exist is left out until it
            does.
        stop: ends the iteration within a second.
    """
    folders = now = _folders(sources())
    missed: frozenset[str] = frozenset()
    while not stop.is_set():
        is_lost = False
        if folders:
            with closing(_changes(folders, stop)) as groups:
                for group in groups:
                    yield group.paths | missed
                    missed = frozenset()
                    # One look decides both here and below: by a second one, the folder may be back.
                    now = _folders(sources())
                    is_lost = group.loses_folder
                    if is_lost or now != folders:
                        break
                else:
                    now = _folders(sources())  # a folder vanished before it was watched
        else:
            yield missed
            missed = frozenset()
            stop.wait(_WAKE_MS / 1000)
            now = _folders(sources())
        if is_lost or now != folders:
            # A folder that has vanished counts as changed, too.
            missed |= {*folders, *now}
            folders = now


def _folders(sources: Iterable[Source]) -> dict[str, _Identity]:
    """The folders to watch that exist."""
    wanted = {
        watched_folder(one.pattern)
        for one in sources
        if os.path.lexists(one.pattern) or is_glob(one.pattern)
    }
    found: dict[str, _Identity] = {}
    for folder in sorted(wanted):
        try:
            status = os.stat(folder)
        except OSError:
            continue
        if S_ISDIR(status.st_mode):
            is_readable = os.access(folder, os.R_OK | os.X_OK)
            found[folder] = _Identity(status.st_dev, status.st_ino, is_readable)
    return found


def _changes(folders: Mapping[str, _Identity], stop: threading.Event) -> Generator[_Group]:
    """The changes in folders; ends at once if one of them does not exist any more."""
    try:
        for changes in watchfiles.watch(
            *folders,
            watch_filter=None,  # the sources decide which files count
            debounce=_DEBOUNCE_MS,
            step=_STEP_MS,
            stop_event=stop,
            rust_timeout=_WAKE_MS,
            yield_on_timeout=True,
            raise_interrupt=True,
            ignore_permission_denied=True,
        ):
            yield _Group(
                frozenset(path for _, path in changes),
                any(_loses_folder(change, path, folders) for change, path in changes),
            )
    except FileNotFoundError:
        return


def _loses_folder(change: watchfiles.Change, path: str, folders: Mapping[str, _Identity]) -> bool:
    if change is watchfiles.Change.deleted:
        return path in folders
    return change is watchfiles.Change.modified and os.path.isdir(path)

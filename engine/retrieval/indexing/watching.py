"""Waits for changes in the folders of a collection's sources."""

import os
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing

import watchfiles

from engine.retrieval.indexing.walking import is_glob, watched_folder
from engine.retrieval.store.records import Source

_DEBOUNCE_MS = 1000
"""How long a group of changes is collected at most."""
_STEP_MS = 50
_WAKE_MS = 1000


def watch_changes(
    sources: Callable[[], Sequence[Source]], stop: threading.Event
) -> Iterator[frozenset[str]]:
    """Absolute paths that were changed, in groups, until `stop` is set.

    An empty group is given about every second without changes, so that the caller can do what it had to put
    off. With the first group, whatever it holds, everything that changes from then on is noticed. Where the
    folders of the sources have become others, all of them are given: changes may have been missed in between.

    Args:
        sources: where to look; asked about every second. What does not exist is left out until it
            does.
        stop: ends the iteration within a second.
    """
    folders = now = _folders(sources())
    missed: frozenset[str] = frozenset()
    while not stop.is_set():
        if folders:
            with closing(_changes(folders, stop)) as groups:
                for group in groups:
                    yield group | missed
                    missed = frozenset()
                    # One look decides both here and below: by a second one, the folder may be back.
                    now = _folders(sources())
                    if now != folders:
                        break
        else:
            yield missed
            missed = frozenset()
            stop.wait(_WAKE_MS / 1000)
            now = _folders(sources())
        if now != folders:
            # A folder that has vanished counts as changed, too.
            folders, missed = now, frozenset({*folders, *now})


def _folders(sources: Sequence[Source]) -> list[str]:
    found = {
        watched_folder(one.pattern)
        for one in sources
        if os.path.lexists(one.pattern) or is_glob(one.pattern)
    }
    return sorted(one for one in found if os.path.isdir(one))


def _changes(folders: Sequence[str], stop: threading.Event) -> Generator[frozenset[str]]:
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
        yield frozenset(path for _, path in changes)

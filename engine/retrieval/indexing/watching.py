"""Waits for changes in the folders of a collection's sources."""

import threading
from collections.abc import Iterator, Sequence

import watchfiles

from engine.retrieval.indexing.walking import watched_folder
from engine.retrieval.store.records import Source

_DEBOUNCE_MS = 1000
"""How long a group of changes is collected at most."""
_STEP_MS = 50
_WAKE_MS = 1000


def watch_changes(sources: Sequence[Source], stop: threading.Event) -> Iterator[frozenset[str]]:
    """Absolute paths that were changed, in groups, until `stop` is set.

    An empty group is given about every second without changes, so that the caller can do what it had to put
    off. With the first group, whatever it holds, everything that changes from then on is noticed.

    Args:
        sources: where to look; folders that do not exist are left out.
        stop: ends the iteration within a second.
    """
    folders = sorted({watched_folder(one.pattern) for one in sources})
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

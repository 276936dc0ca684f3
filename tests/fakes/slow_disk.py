"""A disk whose next write takes long: a job of the store's writer thread that waits."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from engine.conversations.storage.store import Store

LONGEST_S = 60.0
"""Seconds after which the write is done even if the test waits for it."""


@contextmanager
def slow_disk(store: Store) -> Iterator[threading.Event]:
    """No write is committed inside the context; the event is set when one was, because of `LONGEST_S`."""
    proceed, waited_too_long = threading.Event(), threading.Event()

    def write(_: object) -> None:
        if not proceed.wait(LONGEST_S):
            waited_too_long.set()

    store.writes._writer.submit(write)
    try:
        yield waited_too_long
    finally:
        proceed.set()

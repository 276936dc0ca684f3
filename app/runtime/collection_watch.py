"""`CollectionWatch`: a collection is refreshed whenever its files change, until that is stopped."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING

from engine.api.errors import PravahaError

if TYPE_CHECKING:
    from engine.retrieval.indexing.report import AddReport
    from engine.retrieval.library.collection import Collection

_log = logging.getLogger(__name__)


class CollectionWatch:
    """Waits for changes on a thread of its own."""

    def __init__(
        self,
        collection: "Collection",
        *,
        refresh: "Callable[[frozenset[str] | None], AddReport]",
        on_report: "Callable[[AddReport], None]",
        on_end: Callable[[str], None],
    ) -> None:
        """Nothing is watched before `start`.

        Args:
            collection: what is watched.
            refresh: reads what has changed; called on the watch's thread.
            on_report: called with what a refresh did, if it did something.
            on_end: called last, with one sentence that says why it ended, empty if it was stopped.
        """
        self._collection = collection
        self._refresh, self._on_report, self._on_end = refresh, on_report, on_end
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"pravaha-watch-{collection.name}", daemon=True
        )

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @property
    def stopping(self) -> bool:
        """Whether it was stopped."""
        return self._stop.is_set()

    def stop(self) -> None:
        """End it within about a second; returns at once."""
        self._stop.set()

    def join(self) -> None:
        """Wait for its end, after `stop`."""
        self._thread.join()

    def _run(self) -> None:
        reason = ""
        try:
            self._collection.watch(self._stop, on_report=self._on_report, refresh=self._refresh)
        except PravahaError as error:
            reason = str(error)
        except CancelledError:
            pass  # the library is closing
        except Exception as error:
            _log.exception("watching %s failed", self._collection.name)
            reason = f"{self._collection.name} cannot be watched: {error}."
        self._on_end("" if self._stop.is_set() else reason)

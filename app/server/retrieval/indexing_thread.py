"""`IndexingThread`: carries out what the catalogue says, one piece of work at a time.

The only writer of the collections and the only one that erases files. Deletions come first: a file that is
being indexed gives way to them and is taken up again afterwards. What fails for a reason of this machine,
such as a full disk, is tried again after `RETRY_S`.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future

from app.server.retrieval.catalogue import Catalogue
from app.server.retrieval.collections import StoreCollections
from app.server.retrieval.file_folder import FileFolder
from app.server.retrieval.work import (
    EraseFile,
    EraseStore,
    IndexFile,
    RemoveStoreFile,
    SetAttributes,
    Work,
)
from engine.api.errors import PravahaError
from engine.retrieval.api.errors import Unreadable

log = logging.getLogger(__name__)

RETRY_S = 30.0
LONGEST_WAIT_S = 3600.0
"""The clock may be set, and waiting must notice: expiry is looked at this often."""

Pending = tuple[str, ...]
"""Arguments of `Catalogue.is_pending`."""


class IndexingThread:
    """The thread; `start` and `stop` it once."""

    def __init__(
        self,
        catalogue: Catalogue,
        folder: FileFolder,
        collections: StoreCollections,
        *,
        clock: Callable[[], float],
    ) -> None:
        """Nothing runs before `start`.

        Args:
            catalogue: what is to be done.
            folder: the files.
            collections: what is searched.
            clock: Unix time in seconds, the catalogue's.
        """
        self._catalogue, self._folder, self._collections = catalogue, folder, collections
        self._clock = clock
        self._changed = threading.Condition()
        self._news = 0
        self._stopping = False
        self._waiting: list[tuple[Pending, Future[None]]] = []
        self._thread = threading.Thread(target=self._run, name="pravaha-index", daemon=True)

    def start(self) -> None:
        """Begin with what a former process left."""
        self._thread.start()

    def stop(self) -> None:
        """Interrupt the work, which is found again at the next start, and wait for the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join()

    def wake(self) -> None:
        """The catalogue has changed."""
        with self._changed:
            self._news += 1
            self._changed.notify_all()

    def when_settled(self, *pending: str) -> "Future[None]":
        """A future that is done once `Catalogue.is_pending` says no; it raises if the work failed.

        Args:
            *pending: arguments of `is_pending`.
        """
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()  # who waits may leave: a cancelled future takes no result
        with self._changed:
            self._waiting.append((pending, future))
            self._news += 1
            self._changed.notify_all()
        return future

    # On the thread.

    def _run(self) -> None:
        failed: Exception | None = None
        while not self._stopping:
            with self._changed:
                news = self._news
            try:
                worked = self._work_once()
                failed = None
            except Exception as error:
                log.exception("work on a vector store failed and is tried again later")
                worked, failed = False, error
            self._settle(failed)
            if not worked:
                self._wait(news, failed)
        self._settle(InterruptedError("The server is shutting down."))

    def _work_once(self) -> bool:
        work = self._catalogue.next_work()
        if work is None:
            return False
        self._carry_out(work)
        return True

    def _carry_out(self, work: Work) -> None:
        match work:
            case IndexFile():
                self._index(work)
                return
            case SetAttributes(store_id, file, attributes):
                # Nothing is embedded again, because the bytes are the same.
                path = self._folder.path(file)
                self._collections.add(store_id, path, attributes, cancelled=lambda: self._stopping)
            case RemoveStoreFile(store_id, file):
                self._collections.remove(store_id, self._folder.path(file))
            case EraseStore(store_id):
                self._collections.drop(store_id)
            case EraseFile(file):
                self._folder.erase(file)
        self._catalogue.done(work)

    def _index(self, work: IndexFile) -> None:
        path = self._folder.path(work.file)
        try:
            added = self._collections.add(
                work.store_id, path, work.attributes, cancelled=lambda: self._gives_way(work)
            )
        except Unreadable as error:
            self._catalogue.failed(work, "unsupported_file", str(error))
            return
        except (OSError, PravahaError):
            raise  # of this machine, not of this file
        except Exception:
            log.exception("the file %s cannot be indexed", work.file.id)
            self._catalogue.failed(work, "server_error", "The server failed on this file.")
            return
        if added is None:
            return  # it gave way: what is wanted of it now is what the catalogue says
        if not self._catalogue.done(work, usage_bytes=added):
            self._collections.remove(work.store_id, path)  # cancelled or removed meanwhile

    def _gives_way(self, work: IndexFile) -> bool:
        return self._stopping or not self._catalogue.is_wanted(work)

    def _settle(self, failed: Exception | None) -> None:
        """Finish the futures of what is done; with an error, those of what is not."""
        with self._changed:
            waiting, self._waiting = self._waiting, []
        for pending, future in waiting:
            if not self._catalogue.is_pending(*pending):
                future.set_result(None)
            elif failed is not None:
                future.set_exception(failed)
            else:
                with self._changed:
                    self._waiting.append((pending, future))

    def _wait(self, news: int, failed: Exception | None) -> None:
        """Wait for news, the next expiry, or the next try."""
        seconds = LONGEST_WAIT_S
        if failed is not None:
            seconds = RETRY_S
        elif (due := self._catalogue.next_expiry()) is not None:
            seconds = min(seconds, max(0.0, due - self._clock()))
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._news != news, seconds)

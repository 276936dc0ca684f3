"""`IndexingThread`: carries out what the catalogue says, one piece of work at a time.

The only writer of the collections and the only one that erases files. Deletions come first: a file that is
being indexed gives way to them and is taken up again afterwards. What fails for a reason of this machine,
such as a full disk, is tried again after `RETRY_S`, and does not hold up the rest.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future

from app.server.retrieval.collections import StoreCollections
from app.server.retrieval.errors import RetrievalUnavailable
from app.server.retrieval.file_folder import FileFolder
from app.server.retrieval.work import (
    EraseFile,
    EraseStore,
    IndexFile,
    RemoveStoreFile,
    SetAttributes,
    Work,
)
from app.server.retrieval.work_list import WorkList
from engine.api.errors import PravahaError
from engine.retrieval.api.errors import Unreadable

log = logging.getLogger(__name__)

RETRY_S = 30.0
LONGEST_WAIT_S = 3600.0
"""The clock may be set, and waiting must notice: expiry is looked at this often."""

Pending = tuple[str, ...]
"""Arguments of `WorkList.is_pending`."""


class IndexingThread:
    """The thread; `start` and `stop` it once."""

    def __init__(
        self,
        work_list: WorkList,
        folder: FileFolder,
        collections: StoreCollections,
        *,
        clock: Callable[[], float],
    ) -> None:
        """Nothing runs before `start`.

        Args:
            work_list: what is to be done.
            folder: the files.
            collections: what is searched.
            clock: Unix time in seconds, the catalogue's.
        """
        self._work_list, self._folder, self._collections = work_list, folder, collections
        self._clock = clock
        self._changed = threading.Condition()  # guards the three below
        self._news = 0
        self._stopping = False
        self._waiting: list[tuple[Pending, Future[None]]] = []
        self._failed: list[tuple[Work, float]] = []  # with the time of the next try
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
        """A future that is done once `WorkList.is_pending` says no; it raises if the work failed.

        Args:
            *pending: arguments of `is_pending`.
        """
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()  # who waits may leave: a cancelled future takes no result
        with self._changed:
            self._waiting.append((pending, future))
        self.wake()
        return future

    # On the thread.

    def _run(self) -> None:
        while not self._stopping:
            with self._changed:
                news = self._news
            error = None
            try:
                work = self._next()
                if work is not None:
                    error = self._try(work)
            except Exception as failure:  # the catalogue itself cannot be read or written
                log.exception("the catalogue of vector stores cannot be used")
                work, error = None, failure
            self._settle(error)
            if work is None:
                self._collections.rest()
                self._wait(news, failed=error is not None)
        self._settle(RetrievalUnavailable("The server is shutting down."))

    def _next(self) -> Work | None:
        """The next piece of work that has not failed lately."""
        now = self._clock()
        self._failed = [(work, due) for work, due in self._failed if due > now]
        put_off = [work for work, _ in self._failed]
        return next((one for one in self._work_list.pending() if one not in put_off), None)

    def _try(self, work: Work) -> Exception | None:
        """Carry out a piece of work; the error if it failed."""
        try:
            self._carry_out(work)
        except Exception as error:
            log.exception("%s failed and is tried again later", type(work).__name__)
            self._failed.append((work, self._clock() + RETRY_S))
            return error
        return None

    def _carry_out(self, work: Work) -> None:
        match work:
            case IndexFile():
                self._index(work)
                return
            case SetAttributes(store_id, file, attributes):
                self._collections.set_attributes(store_id, self._folder.path(file), attributes)
            case RemoveStoreFile(store_id, file):
                self._collections.remove(store_id, self._folder.path(file))
            case EraseStore(store_id):
                self._collections.drop(store_id)
            case EraseFile(file):
                self._folder.erase(file)
        self._work_list.done(work)

    def _index(self, work: IndexFile) -> None:
        path = self._folder.path(work.file)
        try:
            added = self._collections.add(
                work.store_id, path, work.attributes, cancelled=lambda: self._gives_way(work)
            )
        except Unreadable as error:
            self._work_list.failed(work, "unsupported_file", str(error))
            return
        except (OSError, PravahaError):
            raise  # of this machine, not of this file
        except Exception:
            log.exception("the file %s cannot be indexed", work.file.id)
            self._work_list.failed(work, "server_error", "The server failed on this file.")
            return
        if added is None:
            return  # it gave way: what is wanted of it now is what the catalogue says
        if not self._work_list.done(work, usage_bytes=added):
            self._collections.remove(work.store_id, path)  # cancelled or removed meanwhile

    def _gives_way(self, work: IndexFile) -> bool:
        return (
            self._stopping
            or not self._work_list.is_wanted(work)
            or (not self._failed and self._work_list.has_erasures())
        )

    def _settle(self, error: Exception | None) -> None:
        """Finish the futures of what is done; with an error, those of what is not."""
        with self._changed:
            waiting, self._waiting = self._waiting, []
        for pending, future in waiting:
            if not self._work_list.is_pending(*pending):
                future.set_result(None)
            elif error is not None:
                future.set_exception(error)
            else:
                with self._changed:
                    self._waiting.append((pending, future))

    def _wait(self, news: int, *, failed: bool) -> None:
        """Wait for news, the next expiry, or the next try."""
        now, seconds = self._clock(), RETRY_S if failed else LONGEST_WAIT_S
        dues = [due for _, due in self._failed]
        if not failed and (expiry := self._work_list.next_expiry()) is not None:
            dues.append(expiry)
        seconds = min([seconds, *(max(0.0, due - now) for due in dues)])
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._news != news, seconds)

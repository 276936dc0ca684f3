"""`IndexingThread`: the library follows the catalogue.

The only writer of the library and the only one that erases files. Nothing is stored of what is to be done: a
vector store is compared with its collection as a whole (`Collection.reconcile`), after each change and, for
what a stop or a crash interrupted, at each start. Comparisons come first: a file that is being indexed gives
way to them and is taken up again afterwards. What fails for a reason of this machine, such as a full disk, is
tried again after `RETRY_S`, and does not hold up the rest.
"""

import logging
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from pathlib import Path

from app.server.retrieval.errors import NotErasedYet, RetrievalUnavailable
from app.server.retrieval.file_folder import FileFolder
from app.server.retrieval.kept_parser import KeptParser
from app.server.retrieval.wanted_contents import Gone, WaitingFile, WantedContents
from engine.api.errors import PravahaError
from engine.retrieval.api.errors import Unreadable
from engine.retrieval.library.library import Library

log = logging.getLogger(__name__)

RETRY_S = 30.0
LONGEST_WAIT_S = 3600.0
"""The clock may be set, and waiting must notice: expiry is looked at this often."""

_STOPPING = "The server is shutting down."
_VECTOR_BYTES = {"f32": 4, "f16": 2, "int8": 1}

Target = str | Path
"""What is to be compared: a vector store by its id, or a file by its place on disk."""


class IndexingThread:
    """The thread; `start` and `stop` it once."""

    def __init__(
        self,
        wanted: WantedContents,
        folder: FileFolder,
        library: Library,
        parser: KeptParser,
        *,
        clock: Callable[[], float],
    ) -> None:
        """Nothing runs before `start`.

        Args:
            wanted: what the library is to hold.
            folder: the files.
            library: what is searched, with a collection for each vector store.
            parser: the library's, which rests while there is nothing to index.
            clock: Unix time in seconds, the catalogue's.
        """
        self._wanted, self._folder, self._library = wanted, folder, library
        self._parser, self._clock = parser, clock
        self._changed = threading.Condition()  # guards the four below
        self._news = 0
        self._stopping = False
        self._behind: dict[Target, list[Future[None]]] = {}  # with who waits for it
        self._put_off: dict[Hashable, float] = {}  # what failed, with the time of the next try
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
        """The catalogue has a file to index, or something that expires."""
        with self._changed:
            self._news += 1
            self._changed.notify_all()

    def follow(self, target: Target) -> "Future[None]":
        """Compare a vector store or a file; the future is done once the library has what is wanted."""
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()  # who waits may leave: a cancelled future takes no result
        with self._changed:
            if self._stopping:
                future.set_exception(RetrievalUnavailable(_STOPPING))
                return future
            self._behind.setdefault(target, []).append(future)
            self._put_off.pop(target, None)
        self.wake()
        return future

    def follow_gone(self, gone: Gone) -> "list[Future[None]]":
        """`follow` what left the catalogue."""
        targets: list[Target] = [*gone.store_ids, *map(self._folder.file, gone.names)]
        return [self.follow(one) for one in targets]

    @property
    def is_behind(self) -> bool:
        """Whether something is still to be compared."""
        return bool(self._behind)

    # On the thread.

    def _run(self) -> None:
        is_begun = False
        while not self._stopping:
            with self._changed:
                news = self._news
            has_worked, has_failed = False, False
            try:
                if not is_begun:
                    for collection in self._library.collections():
                        self.follow(collection.name)
                    is_begun = True
                has_worked = self._work()
            except Exception as error:  # the catalogue itself cannot be read or written
                log.exception("the catalogue of vector stores cannot be used")
                has_failed = True
                self._fail_all(error)
            if not has_worked:
                self._parser.rest()
                self._wait(news, failed=has_failed)
        self._fail_all(RetrievalUnavailable(_STOPPING))

    def _work(self) -> bool:
        """Do one thing; False if there is nothing to do."""
        self.follow_gone(self._wanted.expire())
        target = self._next_target()
        if target is not None:
            self._compare(target)
            return True
        file = next(
            (one for one in self._wanted.waiting() if not self._is_put_off(_key(one))), None
        )
        if file is not None:
            self._index(file)
        return file is not None

    def _next_target(self) -> Target | None:
        with self._changed:
            return next((one for one in self._behind if not self._is_put_off(one)), None)

    def _is_put_off(self, key: Hashable) -> bool:
        return self._put_off.get(key, 0.0) > self._clock()

    def _compare(self, target: Target) -> None:
        with self._changed:  # who changes it from now on is followed once more
            waiting = self._behind.pop(target)
            self._put_off.pop(target, None)
        try:
            if isinstance(target, Path):
                self._folder.erase(target)
            else:
                self._compare_store(target)
            self._wanted.forget_deleted()
        except Exception as error:
            log.exception("%s cannot be brought up to date and is tried again later", target)
            with self._changed:
                self._behind.setdefault(target, [])
                self._put_off[target] = self._clock() + RETRY_S
            for future in waiting:
                future.set_exception(error)
        else:
            for future in waiting:
                future.set_result(None)

    def _compare_store(self, store_id: str) -> None:
        wanted = self._wanted.of_store(store_id)
        collection = self._library.find(store_id)
        if collection is not None and wanted is None:
            self._library.remove(store_id)
        elif collection is not None and wanted is not None:
            collection.reconcile({str(self._folder.file(name)): wanted[name] for name in wanted})
        if not self._library.purge():
            raise NotErasedYet("A search that runs at present keeps what was deleted on disk.")

    def _index(self, work: WaitingFile) -> None:
        store_id, file_id = work.store_id, work.file.id
        try:
            usage_bytes = self._add(work)
        except Unreadable as error:
            self._wanted.note_failed(store_id, file_id, "unsupported_file", str(error))
        except (OSError, PravahaError):  # of this machine, not of this file
            log.exception("the file %s cannot be indexed and is tried again later", file_id)
            with self._changed:
                self._put_off[_key(work)] = self._clock() + RETRY_S
        except Exception:
            log.exception("the file %s cannot be indexed", file_id)
            reason = "The server failed on this file."
            self._wanted.note_failed(store_id, file_id, "server_error", reason)
        else:
            if usage_bytes is not None and not self._wanted.note_indexed(
                store_id, file_id, usage_bytes
            ):
                self.follow(store_id)  # cancelled or removed meanwhile

    def _add(self, work: WaitingFile) -> int | None:
        """Index a file; the bytes that it and its vectors take, or None if it gave way."""
        path = self._folder.path(work.file)
        collection = self._library.find(work.store_id) or self._library.create(work.store_id)
        report = collection.add(
            [path], attributes=work.attributes, cancelled=lambda: self._gives_way(work)
        )
        if report.cancelled:
            return None
        if report.failed:
            raise Unreadable(report.failed[0].reason)
        document, record = collection.document(path), collection.record
        vector_bytes = (record.dimensions or 0) * _VECTOR_BYTES[record.vector_type]
        return document.size + document.chunks * vector_bytes

    def _gives_way(self, work: WaitingFile) -> bool:
        return (
            self._stopping
            or not self._wanted.is_waiting(work.store_id, work.file.id)
            or self._next_target() is not None
        )

    def _fail_all(self, error: Exception) -> None:
        with self._changed:
            waiting = [future for futures in self._behind.values() for future in futures]
            self._behind = {target: [] for target in self._behind}
        for future in waiting:
            future.set_exception(error)

    def _wait(self, news: int, *, failed: bool) -> None:
        """Wait for news, the next expiry, or the next try."""
        now, seconds = self._clock(), RETRY_S if failed else LONGEST_WAIT_S
        with self._changed:
            self._put_off = {key: due for key, due in self._put_off.items() if due > now}
            dues = list(self._put_off.values())
        if not failed and (expiry := self._wanted.next_expiry()) is not None:
            dues.append(expiry)
        seconds = min([seconds, *(max(0.0, due - now) for due in dues)])
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._news != news, seconds)


def _key(work: WaitingFile) -> tuple[str, str]:
    return work.store_id, work.file.id

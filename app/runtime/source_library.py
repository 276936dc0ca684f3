"""`SourceLibrary`: the user's collections of documents for one front end.

It is the `PassageSource` of a session and what `/sources` works on. Two threads of its own do the work: one
searches and reads, one indexes, so that a question is answered while a folder is being added. Methods
return at once unless they say otherwise; `engine.retrieval` is imported by the first of them.
"""

import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from app.runtime.opened_passage import open_passage
from app.runtime.source_views import CollectionView, DocumentView, IndexJob, OpenedPassage
from app.runtime.stored_passages import (
    StoredCitation,
    StoredPassage,
    dump_citations,
    dump_passages,
    load_passages,
)
from engine.api.errors import EngineUnavailable, InvalidRequest, PravahaError
from engine.api.grammar import Grammar
from engine.conversations.passage_source import FoundPassages

if TYPE_CHECKING:
    from engine.embedding.embedder import Embedder
    from engine.retrieval.answering.source import Source
    from engine.retrieval.api.passage import Passage
    from engine.retrieval.indexing.report import AddReport, IndexProgress
    from engine.retrieval.library.library import Library

T = TypeVar("T")

PASSAGES = 5
"""Most passages for one message: with more, small models answer worse and take longer to begin."""
_TOKENS_PER_TOKEN = 1.4
"""Tokens of a generating model per token of the embedding model, an estimate that is rarely exceeded."""
_HEAD_TOKENS = 24
"""Tokens of a passage's head in the prompt."""
_SHORT_WORDS = 5
"""A question with fewer words than this is searched for together with the one before it."""
_NOTHING = (
    "Nothing was found about this in the documents that the user attached. Say so in one sentence.\n\n"
    "Question: "
)
_MENTION = re.compile(r"(?<!\S)@([A-Za-z0-9][A-Za-z0-9_-]{0,63})(?!\S)")


class SourceLibrary:
    """The collections in a directory. Used by one thread.

    Args:
        directory: where they are; created with the first one.
        embedder: embeds documents and questions; the caller closes it, after this.
        install: fetches the embedding model, calling its argument with the bytes that are there and all.
    """

    def __init__(
        self,
        directory: Path,
        embedder: "Embedder",
        *,
        install: Callable[[Callable[[int, int], None]], None],
    ) -> None:
        self._directory = directory
        self._embedder = embedder
        self._install = install
        self._lock = threading.Lock()  # guards `_library`
        self._library: Library | None = None
        self._searching = ThreadPoolExecutor(1, thread_name_prefix="pravaha-sources")
        self._indexing = ThreadPoolExecutor(1, thread_name_prefix="pravaha-index")
        self._stopping = threading.Event()
        self._wakers: list[Callable[[], None]] = []
        self._listing: Future[tuple[CollectionView, ...]] | None = None
        self._job: IndexJob | None = None
        self.collections: tuple[CollectionView, ...] | None = None

    def on_wake(self, callback: Callable[[], None]) -> None:
        """Call `callback`, on any thread, after anything has changed."""
        self._wakers.append(callback)

    @property
    def job(self) -> IndexJob | None:
        """What is being added or removed now; None if nothing is."""
        return self._job

    @property
    def has_model(self) -> bool:
        """Whether the embedding model is installed, without which nothing can be added."""
        return self._embedder.installed

    # Collections.

    def refresh(self) -> "Future[tuple[CollectionView, ...]]":
        """Read the list of collections, which `collections` then is."""
        if self._listing is None or self._listing.done():
            self._listing = self._search_thread(self._list)
        return self._listing

    def create(self, name: str) -> "Future[None]":
        """Create an empty collection. Fails with one sentence if the name is malformed or taken."""
        return self._index_thread(lambda: self._create(name))

    def add(self, name: str, paths: Sequence[str]) -> "Future[AddReport]":
        """Add files and folders. `job` is the progress; `cancel` ends it, and what is stored stays.

        The same call goes on where an earlier one was interrupted.
        """
        return self._index_thread(lambda: self._add(name, paths))

    def remove(self, name: str, path: str | None = None) -> "Future[int]":
        """Delete a collection, or the documents of a path in it; the number of documents."""
        return self._index_thread(lambda: self._remove(name, path))

    def fetch_model(self) -> "Future[None]":
        """Fetch the embedding model; `job` is the progress."""
        return self._index_thread(self._fetch_model)

    def cancel(self) -> None:
        """End what is being added, at the next batch."""
        self._stopping.set()

    def documents(self, name: str) -> "Future[tuple[DocumentView, ...]]":
        """The documents of a collection, those that cannot be read first."""
        return self._search_thread(lambda: self._documents(name))

    def open(
        self, passage: StoredPassage, cited: tuple[int, int] | None
    ) -> "Future[OpenedPassage]":
        """A passage with the text around it; see `open_passage`."""
        return self._search_thread(lambda: self._open(passage, cited))

    # PassageSource.

    def find(
        self, names: Sequence[str], question: str, *, earlier: Sequence[str], room: int | None
    ) -> "Future[FoundPassages]":
        """See `PassageSource.find`."""
        query = query_of(question, earlier)
        return self._search_thread(lambda: self._find(tuple(names), query, room))

    def grammar(self, found: FoundPassages) -> Grammar | None:
        """See `PassageSource.grammar`."""
        from engine.retrieval.answering.citation_grammar import citation_grammar

        return citation_grammar(found.count)

    def check(self, answer: str, found: FoundPassages) -> "Future[str]":
        """See `PassageSource.check`."""
        return self._search_thread(lambda: self._check(answer, load_passages(found.passages)))

    def close(self) -> None:
        """End what is being added, and wait for it. Idempotent."""
        self.cancel()
        for pool in (self._searching, self._indexing):
            pool.shutdown(wait=True, cancel_futures=True)
        if self._library is not None:
            self._library.close()
            self._library = None

    # Threads.

    def _search_thread(self, work: Callable[[], T]) -> "Future[T]":
        return self._on(self._searching, work)

    def _index_thread(self, work: Callable[[], T]) -> "Future[T]":
        def job() -> T:
            self._stopping.clear()
            try:
                return work()
            finally:
                self._job = None
                self.collections = None

        return self._on(self._indexing, job)

    def _on(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> "Future[T]":
        try:
            future = pool.submit(work)
        except RuntimeError:  # closed
            future = Future()
            future.set_exception(EngineUnavailable("The collections are closed."))
        future.add_done_callback(lambda _: self._wake())
        return future

    def _wake(self) -> None:
        for callback in self._wakers:
            callback()

    # On the threads.

    def _opened(self) -> "Library":
        from engine.retrieval.library.library import Library

        with self._lock:
            if self._library is None:
                self._library = Library(self._directory, self._embedder)
            return self._library

    def _list(self) -> tuple[CollectionView, ...]:
        if not self._directory.exists():
            self.collections = ()
            return ()
        library = self._opened()
        found = []
        for record in library.collections():
            documents = library.open(record.name).documents()
            failed = sum(one.status == "failed" for one in documents)
            chunks = sum(one.chunks for one in documents)
            found.append(CollectionView(record.name, len(documents) - failed, chunks, failed))
        self.collections = tuple(found)
        return self.collections

    def _create(self, name: str) -> None:
        self._opened().create(name)

    def _add(self, name: str, paths: Sequence[str]) -> "AddReport":
        collection = self._opened().open(name)
        self._show(IndexJob(name, "adding"))

        def progress(now: "IndexProgress") -> None:
            self._show(
                IndexJob(
                    name,
                    "adding",
                    now.files_done,
                    now.files,
                    now.chunks,
                    now.failed,
                    now.chunks_per_s,
                    now.seconds_left,
                )
            )

        return collection.add(paths, progress=progress, cancelled=self._stopping.is_set)

    def _remove(self, name: str, path: str | None) -> int:
        library = self._opened()
        self._show(IndexJob(name, "removing"))
        collection = library.open(name)
        if path is not None:
            return collection.remove(path)
        count = len(collection.documents())
        library.remove(name)
        return count

    def _fetch_model(self) -> None:
        self._show(IndexJob("", "downloading"))
        self._install(lambda done, total: self._show(IndexJob("", "downloading", done, total)))

    def _show(self, job: IndexJob) -> None:
        self._job = job
        self._wake()

    def _documents(self, name: str) -> tuple[DocumentView, ...]:
        found = [
            DocumentView(one.path, one.chunks, (one.reason or "") if one.status == "failed" else "")
            for one in self._opened().open(name).documents()
        ]
        return tuple(sorted(found, key=lambda one: (not one.problem, one.path)))

    def _open(self, passage: StoredPassage, cited: tuple[int, int] | None) -> OpenedPassage:
        extracted = None
        if passage.spans_of == "text":
            extracted = self._extracted(passage)
        return open_passage(passage, cited, extracted=extracted)

    def _extracted(self, passage: StoredPassage) -> bytes | None:
        """The extracted text of a passage's document, if it is still there."""
        try:
            text = self._opened().open(passage.collection).text(passage.file)
        except PravahaError:
            return None
        return text.encode("utf-8", "surrogatepass")

    def _find(self, names: Sequence[str], query: str, room: int | None) -> FoundPassages:
        library = self._opened()
        results: list[tuple[str, Passage]] = []
        for name in names:
            try:
                collection = library.open(name)
            except PravahaError as error:
                raise InvalidRequest(
                    f"{error} /sources detach {name} goes on without it."
                ) from error
            results += [(name, one) for one in collection.search(query, k=PASSAGES)]
        # Scores of different collections cannot be compared: the best of each come first.
        results.sort(key=lambda one: one[1].rank)
        return found_passages(_that_fit(results[:PASSAGES], room))

    def _check(self, answer: str, passages: Sequence[StoredPassage]) -> str:
        citations: list[StoredCitation] = []
        return dump_citations(citations)


def query_of(question: str, earlier: Sequence[str]) -> str:
    """What is searched for: the question without names of collections; a short one after its forerunner."""
    words = _MENTION.sub(" ", question).split()
    before = _MENTION.sub(" ", earlier[-1]).split() if earlier and len(words) < _SHORT_WORDS else []
    return " ".join([*before, *words]) or question


def found_passages(results: "Sequence[tuple[str, Passage]]") -> FoundPassages:
    """Passages with the names of their collections, as the model reads them and as they are stored."""
    from engine.retrieval.answering.prompt import INSTRUCTION, passage_block
    from engine.retrieval.answering.source import number_passages

    sources = number_passages(passage for _, passage in results)
    if not sources:
        return FoundPassages(_NOTHING, dump_passages(()), 0)
    before = f"{INSTRUCTION}\n\n"
    stored = [
        _stored(name, source, len(before) + len(passage_block(sources[: source.n])))
        for (name, _), source in zip(results, sources, strict=True)
    ]
    context = f"{before}{passage_block(sources)}\n\nQuestion: "
    return FoundPassages(context, dump_passages(stored), len(stored))


def _stored(collection: str, source: "Source", prompt_end: int) -> StoredPassage:
    passage = source.passage
    return StoredPassage(
        n=source.n,
        collection=collection,
        chunk_id=passage.chunk_id,
        file=passage.file,
        title=passage.title or "",
        start=source.start,
        end=source.end,
        spans_of=passage.spans_of,
        text=source.text,
        tokens=passage.tokens,
        headings=passage.heading_path,
        page=passage.page,
        line=passage.line,
        rank=passage.rank,
        score=passage.score,
        prompt_end=prompt_end,
    )


def _that_fit(
    results: "Sequence[tuple[str, Passage]]", room: int | None
) -> "list[tuple[str, Passage]]":
    """The best passages whose tokens have room."""
    kept: list[tuple[str, Passage]] = []
    used = 0.0
    for name, passage in results:
        used += passage.tokens * _TOKENS_PER_TOKEN + _HEAD_TOKENS
        if room is not None and used > room:
            break
        kept.append((name, passage))
    return kept


def build_added(name: str, report: "AddReport") -> str:
    """What adding did, in one sentence."""
    stored = report.added + report.updated
    parts = [f"{stored} document{'' if stored == 1 else 's'} added to {name}"]
    if report.unchanged:
        parts.append(f"{report.unchanged} unchanged")
    if report.removed:
        parts.append(f"{report.removed} gone")
    failed = len(report.failed)
    if failed:
        parts.append(f"{failed} cannot be read (/sources shows why)")
    stopped = " Stopped: the same command goes on from there." if report.cancelled else ""
    return f"{', '.join(parts)}.{stopped}"

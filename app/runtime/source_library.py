"""`SourceLibrary`: the user's collections of documents for one front end.

It is the `PassageSource` of a session and what `/sources` works on. Two threads of its own do the work: one
searches and reads, one indexes, so that a question is answered while a folder is being added. Methods
return at once unless they say otherwise; `engine.retrieval` is imported by the first of them.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from app.runtime.attachment import Attachment, attached
from app.runtime.collection_watch import CollectionWatch
from app.runtime.opened_passage import Section, open_passage
from app.runtime.passage_blocks import shared_contexts
from app.runtime.running_check import RunningCheck
from app.runtime.source_views import CollectionView, DocumentView, IndexJob, OpenedPassage
from app.runtime.stored_passages import (
    FoundFor,
    StoredPassage,
    dump_passages,
    load_found_for,
    load_passages,
)
from app.slash.document_attributes import attribute_words
from app.slash.sources import asked_text, without_mentions
from engine.api.chat import ChatMessage
from engine.api.errors import EngineUnavailable, InvalidRequest, PravahaError
from engine.api.grammar import Grammar
from engine.api.snapshot import ModelInfo
from engine.conversations.passage_source import FoundPassages
from engine.retrieval.api.errors import UnknownCollection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from engine.embedding.embedder import Embedder
    from engine.retrieval.answering.cited_text import CitedText
    from engine.retrieval.answering.hops import Hops
    from engine.retrieval.answering.numbered_passage import NumberedPassage
    from engine.retrieval.api.passage import AttributeValue, Passage
    from engine.retrieval.indexing.report import AddReport, IndexProgress
    from engine.retrieval.library.collection import Collection
    from engine.retrieval.library.library import Library
    from engine.retrieval.store.filters import Where

T = TypeVar("T")

NOT_FOUND = "The attached documents do not answer this."
"""The answer to a question for which no passage is near enough; nothing else can then be generated."""
_NOTHING = "Nothing was found about this in the attached documents; say so.\n\nQuestion: "
_TOKENS_PER_TOKEN = 1.3
"""Tokens of a generating model per token of the embedding model, an estimate that is rarely exceeded."""


class SourceLibrary:
    """The collections in a directory. Used by one thread.

    Args:
        directory: where they are; created with the first one.
        embedder: embeds questions; the caller closes it, after this.
        indexer: embeds documents, so that a question does not wait for a batch of them; the caller closes it.
        install: fetches the embedding model, calling its argument with the bytes that are there and all.
        min_evidence: see `AnswerOptions.min_evidence`; it can be changed.
    """

    def __init__(
        self,
        directory: Path,
        embedder: "Embedder",
        indexer: "Embedder",
        *,
        install: Callable[[Callable[[int, int], None]], None],
        min_evidence: float,
    ) -> None:
        self.min_evidence = min_evidence
        self._directory = directory
        self._embedder, self._indexer = embedder, indexer
        self._install = install
        self._library: Library | None = None  # of the thread that searches
        self._written: Library | None = None  # of the thread that indexes
        self._tokenizer: Tokenizer | None = None
        self._searching = ThreadPoolExecutor(1, thread_name_prefix="pravaha-sources")
        self._indexing = ThreadPoolExecutor(1, thread_name_prefix="pravaha-index")
        self._stopping = threading.Event()
        self._closing = threading.Event()
        self._watches: dict[str, CollectionWatch] = {}  # changed by the thread that indexes
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
    def watched(self) -> tuple[str, ...]:
        """The collections that are refreshed when their files change."""
        return tuple(sorted(self._watches))

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

    def add(
        self,
        name: str,
        paths: Sequence[str],
        *,
        exclude: Sequence[str] = (),
        attributes: "Mapping[str, AttributeValue] | None" = None,
    ) -> "Future[AddReport]":
        """Add files and folders. `job` is the progress; `cancel` ends it, and what is stored stays.

        The same call goes on where an earlier one was interrupted. Other arguments: see `Collection.add`.
        """
        return self._index_thread(lambda: self._add(name, paths, exclude, attributes or {}))

    def update(self, name: str) -> "Future[AddReport]":
        """Read again what has changed since it was added, and delete what is gone; as `add` otherwise."""
        return self._index_thread(lambda: self._update(name, None, lambda: False))

    def watch(
        self, name: str, on_report: "Callable[[AddReport | None, str], None]"
    ) -> "Future[None]":
        """Refresh a collection now and whenever its files change, until `unwatch` or `close`.

        The future is done once that has begun. `cancel` during such a refresh ends it, too.

        Args:
            name: the collection.
            on_report: called on any thread with what a refresh did, if it did something; at the end with None
                and the sentence that says why it ended, which is empty if that was asked for.
        """
        return self._index_thread(lambda: self._watch(name, on_report))

    def unwatch(self, name: str) -> bool:
        """End watching a collection; False if it is not watched."""
        watch = self._watches.pop(name, None)
        if watch is None:
            return False
        watch.stop()
        self._wake()
        return True

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

    def count(self, attachment: Attachment) -> "Future[int]":
        """How many documents an attachment stands for now. Fails if a condition is malformed."""
        return self._search_thread(lambda: self._count(attachment))

    def open(
        self, passage: StoredPassage, cited: tuple[int, int] | None
    ) -> "Future[OpenedPassage]":
        """A passage with the text around it; see `open_passage`."""
        return self._search_thread(lambda: self._open(passage, cited))

    # PassageSource.

    def find(
        self,
        names: Sequence[str],
        question: str,
        *,
        earlier: Sequence[str],
        model: ModelInfo | None,
        room: int | None,
        anyway: bool = False,
    ) -> "Future[FoundPassages]":
        """See `PassageSource.find`."""
        small = model is not None and model.is_small
        least = -1.0 if anyway else self.min_evidence
        chosen, before = tuple(names), tuple(earlier)
        return self._search_thread(
            lambda: self._find(chosen, question, before, room, least, small=small)
        )

    def grammar(self, found: FoundPassages) -> Grammar | None:
        """See `PassageSource.grammar`."""
        if not found.count:
            return Grammar.choice([NOT_FOUND])
        from engine.retrieval.answering.citation_grammar import citation_grammar

        return citation_grammar(found.count)

    def begin_check(
        self,
        found: FoundPassages,
        question: str,
        *,
        earlier: Sequence[str],
        model: ModelInfo | None,
    ) -> RunningCheck:
        """See `PassageSource.begin_check`."""
        before = tuple(earlier)
        small = model is not None and model.is_small

        def begin() -> "CitedText":
            from engine.retrieval.answering.cited_text import CitedText
            from engine.retrieval.answering.names import names_of
            from engine.retrieval.answering.support import SupportJudge
            from engine.retrieval.answering.windows import SourcePart

            names = load_found_for(found.passages).names
            passages, query = load_passages(found.passages), query_of(question, before, names)
            judge = SupportJudge(
                [_source(one) for one in passages],
                self._embed,
                [SourcePart(one.n, *one.link) for one in passages if one.link is not None],
                about=names_of(query).certain if small else frozenset(),
            )
            return CitedText(judge, query, small_model=small)

        return RunningCheck(begin, self._search_thread)

    def question(self, found: FoundPassages, text: str) -> str:
        """See `PassageSource.question`."""
        return asked_text(text, load_found_for(found.passages).names) or text

    def contexts(self, given: Sequence[FoundPassages]) -> list[str]:
        """See `PassageSource.contexts`."""
        return shared_contexts(given)

    def close(self) -> None:
        """End what is being added and watched, and wait for it. Idempotent."""
        self._closing.set()
        watches = list(self._watches.values())
        self._watches.clear()
        for watch in watches:
            watch.stop()
        for pool in (self._searching, self._indexing):
            pool.shutdown(wait=True, cancel_futures=True)
        for watch in watches:
            watch.join()
        for library in (self._library, self._written):
            if library is not None:
                library.close()
        self._library = self._written = None

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
        """The library to read, on the thread that searches."""
        from engine.retrieval.library.library import Library

        if self._library is None:
            self._library = Library(self._directory, self._embedder)
        return self._library

    def _opened_to_write(self) -> "Library":
        """The library to change, on the thread that indexes."""
        from engine.retrieval.library.library import Library

        if self._written is None:
            self._written = Library(self._directory, self._indexer)
        return self._written

    def _list(self) -> tuple[CollectionView, ...]:
        if not self._directory.exists():
            self.collections = ()
            return ()
        library = self._opened()
        found = []
        for record in library.collections():
            counts = library.counts(record)
            found.append(
                CollectionView(record.name, counts.documents, counts.chunks, counts.failed)
            )
        self.collections = tuple(found)
        return self.collections

    def _create(self, name: str) -> None:
        self._opened_to_write().create(name)

    def _add(
        self,
        name: str,
        paths: Sequence[str],
        exclude: Sequence[str],
        attributes: "Mapping[str, AttributeValue]",
    ) -> "AddReport":
        collection = self._opened_to_write().open(name)
        progress = self._progress(name, "adding")
        return collection.add(
            paths,
            exclude=exclude,
            attributes=attributes,
            progress=progress,
            cancelled=self._is_cancelled,
        )

    def _update(
        self, name: str, changed: frozenset[str] | None, cancelled: Callable[[], bool]
    ) -> "AddReport":
        collection = self._opened_to_write().open(name)
        progress = self._progress(name, "refreshing")
        return collection.refresh(
            changed=changed,
            progress=progress,
            cancelled=lambda: self._is_cancelled() or cancelled(),
        )

    def _watch(self, name: str, on_report: "Callable[[AddReport | None, str], None]") -> None:
        collection = self._opened_to_write().open(name)
        if name in self._watches:
            raise InvalidRequest(f"{name} is watched already.")
        if not collection.sources():
            raise InvalidRequest(f"{name} is empty: /sources add {name} PATH fills it.")
        if self._closing.is_set():
            raise EngineUnavailable("The collections are closed.")

        def refresh(changed: frozenset[str] | None) -> "AddReport":
            work = self._index_thread(lambda: self._update(name, changed, lambda: watch.stopping))
            report = work.result()
            if report.cancelled and not self._closing.is_set():
                watch.stop()  # by the user: changes that were not read would be missed
            return report

        def end(reason: str) -> None:
            if self._watches.get(name) is watch:
                del self._watches[name]
            on_report(None, reason)
            self._wake()

        watch = CollectionWatch(
            collection, refresh=refresh, on_report=lambda report: on_report(report, ""), on_end=end
        )
        self._watches[name] = watch
        watch.start()

    def _is_cancelled(self) -> bool:
        return self._stopping.is_set() or self._closing.is_set()

    def _progress(
        self, name: str, doing: Literal["adding", "refreshing"]
    ) -> "Callable[[IndexProgress], None]":
        """What shows the progress of work that begins now."""
        self._show(IndexJob(name, doing))

        def show(now: "IndexProgress") -> None:
            self._show(
                IndexJob(
                    name,
                    doing,
                    now.files_done,
                    now.files,
                    now.chunks,
                    now.failed,
                    now.chunks_per_s,
                    now.seconds_left,
                )
            )

        return show

    def _remove(self, name: str, path: str | None) -> int:
        library = self._opened_to_write()
        self._show(IndexJob(name, "removing"))
        collection = library.open(name)
        if path is not None:
            return collection.remove(path)
        count = len(collection.documents())
        self.unwatch(name)
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
            DocumentView(
                one.path,
                one.chunks,
                (one.reason or "") if one.status == "failed" else "",
                attribute_words(one.attributes),
            )
            for one in self._opened().open(name).documents()
        ]
        return tuple(sorted(found, key=lambda one: (not one.problem, one.path)))

    def _count(self, attachment: Attachment) -> int:
        found = self._opened().open(attachment.name).documents(attachment.where)
        return sum(one.status == "ready" for one in found)

    def _open(self, passage: StoredPassage, cited: tuple[int, int] | None) -> OpenedPassage:
        section = self._section(passage) if passage.spans_of == "text" else None
        return open_passage(passage, cited, section=section)

    def _section(self, passage: StoredPassage) -> Section | None:
        """The section of extracted text around a passage, if its document is still there."""
        try:
            collection = self._opened().open(passage.collection)
            chunk = collection.passage(passage.chunk_id)
            if chunk is None or chunk.file != passage.file:
                return None
            return Section(collection.section(chunk).encode(), chunk.section_start)
        except PravahaError:
            return None

    def _find(
        self,
        names: Sequence[str],
        question: str,
        earlier: Sequence[str],
        room: int | None,
        least: float,
        *,
        small: bool,
    ) -> FoundPassages:
        from engine.retrieval.answering.answerer import DEFAULT_K, MAX_PASSAGE_TOKENS
        from engine.retrieval.answering.fitting import fit_sources
        from engine.retrieval.answering.retrieving import retrieve
        from engine.retrieval.library.search_across import mentions_across, search_across

        collections = tuple(attached(names))
        asked = asked_text(question, collections)
        query = query_of(question, earlier, collections)
        attached_here = self._attached(names)
        origin: dict[int, Collection] = {}  # by chunk id, which is unique in the library

        def search(wanted: str) -> "list[Passage]":
            results = search_across(attached_here, [wanted], k=DEFAULT_K)
            origin.update({one.passage.chunk_id: one.collection for one in results})
            return [one.passage for one in results]

        retrieved = retrieve(
            query,
            search(query),
            search,
            lambda words: mentions_across(attached_here, words),
            self._embed,
            asked=query,
            min_evidence=least,
            best=lambda found: found[:DEFAULT_K],
        )
        hops = retrieved.hops
        if hops is None:
            declined = "" if retrieved.declined is None else retrieved.declined.sentence
            return FoundPassages(_NOTHING, dump_passages((), FoundFor(collections, declined)), 0)
        budget = MAX_PASSAGE_TOKENS if room is None else min(room, MAX_PASSAGE_TOKENS)
        sources = fit_sources(
            hops.best(DEFAULT_K),
            self._count_tokens,
            budget=budget,
            # Small models answer worse from longer texts.
            section=None if small else lambda one: origin[one.chunk_id].section(one),
        )
        names_of = {chunk: collection.name for chunk, collection in origin.items()}
        return found_passages(sources, names_of, hops, collections, asked, small=small)

    def _attached(self, names: Sequence[str]) -> "dict[Collection, Where | None]":
        """The attached collections, each with the filter of its attachment."""
        library = self._opened()
        found: dict[Collection, Where | None] = {}
        for name, attachment in attached(names).items():
            try:
                found[library.open(name)] = attachment.where
            except UnknownCollection as error:
                raise InvalidRequest(
                    f"{error} /sources detach {name} goes on without it."
                ) from error
        return found

    def _count_tokens(self, text: str) -> int:
        """About the length of a text in tokens of the generating model, which this thread must not ask."""
        if self._tokenizer is None:
            self._tokenizer = self._embedder.tokenizer()
        return int(len(self._tokenizer.encode(text).ids) * _TOKENS_PER_TOKEN)

    def _embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        from engine.embedding.text_encoder import TRAINED_TOKENS

        return self._embedder.submit(texts, truncate=TRAINED_TOKENS).result().vectors


def query_of(question: str, earlier: Sequence[str], names: Sequence[str]) -> str:
    """What is searched for: the question without names of collections, after the one that it refers to.

    Args:
        question: as it was asked.
        earlier: the messages of the user before it, oldest first.
        names: the attached collections.
    """
    from engine.retrieval.answering.follow_up import standalone_query

    asked, *before = (
        " ".join(without_mentions(one, names).split()).strip(" ,:;")
        for one in (question, *earlier[-1:])
    )
    history: list[ChatMessage] = [{"role": "user", "content": one} for one in before]
    return standalone_query(asked, history) or question


def found_passages(
    sources: "Sequence[NumberedPassage]",
    collections: Mapping[int, str],
    hops: "Hops",
    names: Sequence[str],
    question: str,
    *,
    small: bool,
) -> FoundPassages:
    """Sources as the model reads them and as they are stored.

    Args:
        sources: numbered from 1, at least one.
        collections: the name of the collection of each chunk.
        hops: the searches that found them.
        names: the attached collections.
        question: what is asked, without their names.
        small: whether a small model reads them.
    """
    from engine.retrieval.answering.hops import chain_parts
    from engine.retrieval.answering.prompt import (
        before_passages,
        context_block,
        instruction_for,
        passage_block,
    )

    links = {part.n: (part.start, part.end) for part in chain_parts(hops.chain, sources)}
    told = f"{instruction_for(small=small)}\n\n"
    before = f"{told}{before_passages(question, small=small)}"
    stored = [
        _stored(
            collections[source.passage.chunk_id],
            source,
            len(before) + len(passage_block(sources[: source.n])),
            bridge=hops.bridge_to(source.passage),
            link=links.get(source.n),
        )
        for source in sources
    ]
    context = f"{told}{context_block(sources, question, small=small)}"
    return FoundPassages(context, dump_passages(stored, FoundFor(tuple(names))), len(stored))


def _stored(
    collection: str,
    source: "NumberedPassage",
    prompt_end: int,
    *,
    bridge: str,
    link: tuple[int, int] | None,
) -> StoredPassage:
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
        bridge=bridge,
        link=link,
    )


def _source(stored: StoredPassage) -> "NumberedPassage":
    """A stored passage as the check takes it."""
    from engine.retrieval.answering.numbered_passage import NumberedPassage
    from engine.retrieval.api.passage import Passage

    passage = Passage(
        chunk_id=stored.chunk_id,
        document_id=0,
        file=stored.file,
        title=stored.title or None,
        start=stored.start,
        end=stored.end,
        spans_of=stored.spans_of,
        text=stored.text,
        tokens=stored.tokens,
        heading_path=stored.headings,
        section_start=stored.start,
        section_end=stored.end,
        page=stored.page,
        line=stored.line,
        rank=stored.rank,
        score=stored.score,
    )
    return NumberedPassage(stored.n, passage, stored.text, stored.start, stored.end)


def build_evidence(least: float) -> str:
    """What is asked of passages, in one sentence."""
    if least <= -1:
        return (
            "Every question is answered from the documents, however far the passages are from it."
        )
    return (
        f"A passage must have an evidence of {least:g} for the documents to answer a question. "
        "/sources evidence X changes it until you quit, the setting min_evidence for good."
    )


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


def build_updated(name: str, report: "AddReport") -> str:
    """What a refresh did, in one sentence."""
    counts = (
        (report.added, "new"),
        (report.updated, "changed"),
        (report.removed, "gone"),
        (len(report.failed), "unreadable (/sources shows why)"),
    )
    parts = [f"{count} {word}" for count, word in counts if count]
    done = f"{name}: {', '.join(parts)}." if parts else f"{name} is up to date."
    # A drive may not be mounted.
    kept = "".join(
        f" {one.folder} cannot be reached: its {one.documents} documents are kept."
        for one in report.unreachable
    )
    stopped = f" Stopped: /sources refresh {name} goes on from there." if report.cancelled else ""
    return f"{done}{kept}{stopped}"

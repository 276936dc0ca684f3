"""`SourceLibrary` without files and threads: collections, passages and checks that a test gives."""

import re
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from app.runtime.attachment import attached
from app.runtime.passage_blocks import shared_contexts
from app.runtime.source_views import CollectionView, DocumentView, IndexJob, OpenedPassage, Piece
from app.runtime.stored_passages import (
    FoundFor,
    StoredCitation,
    StoredPassage,
    dump_citations,
    dump_passages,
    load_found_for,
)
from app.slash.sources import asked_text
from engine.api.errors import InvalidRequest
from engine.api.grammar import Grammar
from engine.conversations.passage_source import CheckedAnswer, FoundPassages
from tests.fakes.fake_passages import FakeCheck


@dataclass
class Report:
    """What adding did; see `AddReport`."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    failed: list = field(default_factory=list)
    unreachable: list = field(default_factory=list)
    cancelled: bool = False


def passage(
    n: int, text: str, *, file: str = "/docs/guide.md", start: int = 100, **fields
) -> StoredPassage:
    """A passage of a document."""
    given = StoredPassage(
        n=n, collection="docs", chunk_id=n, file=file, title="Guide", start=start,
        end=start + len(text.encode()), spans_of="file", text=text, tokens=len(text.split()),
        headings=("Install", "Linux"), page=None, line=10 * n, rank=n, score=1 / (60 + n), prompt_end=0,
    )  # fmt: skip
    return replace(given, **fields)


def done(value=None) -> Future:
    future: Future = Future()
    future.set_result(value)
    return future


def failed(sentence: str) -> Future:
    future: Future = Future()
    future.set_exception(InvalidRequest(sentence))
    return future


class FakeSources:
    """Collections in memory. Futures are done at once, those of `add` when a test says so.

    Attributes:
        collections: the list; as in `SourceLibrary`.
        found: the passages of the next searches, in order; without any nothing is found.
        checks: results of the next checks; an answer beyond them is left as it is.
        adding: (name, paths, future) of each call of `add`.
        options: the exclusions and attributes of the last call of `add`.
        watching: by name, what is called with the reports of a watched collection.
        updates: reports of the next calls of `update`.
        searched: (names, question) of each search.
        opened: the passages that were opened, with the cited span.
        declined: why a search without passages found none.
        anyway: of each search, whether its message is answered anyway.
    """

    def __init__(self, *collections: CollectionView) -> None:
        self.collections: tuple[CollectionView, ...] | None = collections
        self.listed: dict[str, tuple[DocumentView, ...]] = {}
        self.found: deque[Sequence[StoredPassage]] = deque()
        self.checks: deque[CheckedAnswer] = deque()
        self.adding: list[tuple[str, tuple[str, ...], Future]] = []
        self.options: tuple[tuple[str, ...], dict] = ((), {})
        self.watching: dict[str, Callable] = {}
        self.updates: deque[Report] = deque()
        self.searched: list[tuple[tuple[str, ...], str]] = []
        self.opened: list[tuple[StoredPassage, tuple[int, int] | None]] = []
        self.job: IndexJob | None = None
        self.has_model = True
        self.fetched = False
        self.min_evidence = 0.44
        self.declined = ""
        self.anyway: list[bool] = []
        self.cancelled = False
        self._wakers: list[Callable[[], None]] = []

    # Called by tests.

    def progress(self, job: IndexJob | None) -> None:
        self.job = job
        for wake in self._wakers:
            wake()

    def added(self, report: Report) -> None:
        """Finish the oldest call of `add`."""
        _, _, future = self.adding.pop(0)
        self.progress(None)
        future.set_result(report)

    # SourceLibrary.

    def on_wake(self, callback: Callable[[], None]) -> None:
        self._wakers.append(callback)

    def refresh(self) -> Future:
        return done(self.collections)

    def create(self, name: str) -> Future:
        if any(one.name == name for one in self.collections or ()):
            return failed(f"There is a collection {name} already.")
        self.collections = (*(self.collections or ()), CollectionView(name, 0, 0, 0))
        return done()

    def add(self, name: str, paths: Sequence[str], *, exclude=(), attributes=None) -> Future:
        self.options = tuple(exclude), dict(attributes or {})
        future: Future = Future()
        self.adding.append((name, tuple(paths), future))
        self.progress(IndexJob(name, "adding"))
        return future

    def remove(self, name: str, path: str | None = None) -> Future:
        if path is None:
            self.collections = tuple(one for one in self.collections or () if one.name != name)
        return done(3)

    def update(self, name: str) -> Future:
        return done(self.updates.popleft() if self.updates else Report())

    @property
    def watched(self) -> tuple[str, ...]:
        return tuple(sorted(self.watching))

    def watch(self, name: str, on_report: Callable) -> Future:
        if name in self.watching:
            return failed(f"{name} is watched already.")
        self.watching[name] = on_report
        return done()

    def unwatch(self, name: str) -> bool:
        on_report = self.watching.pop(name, None)
        if on_report is not None:
            on_report(None, "")
        return on_report is not None

    def count(self, attachment) -> Future:
        return done(next(one.documents for one in self.collections if one.name == attachment.name))

    def fetch_model(self) -> Future:
        self.has_model = self.fetched = True
        return done()

    def cancel(self) -> None:
        self.cancelled = True

    def documents(self, name: str) -> Future:
        return done(self.listed.get(name, ()))

    def open(self, passage: StoredPassage, cited: tuple[int, int] | None) -> Future:
        self.opened.append((passage, cited))
        start, end = (
            (0, len(passage.text)) if cited is None else (one - passage.start for one in cited)
        )
        text = passage.text
        pieces = (
            Piece("Before it.\n", "around"), Piece(text[:start], "passage"), Piece(text[start:end], "cited"),
            Piece(text[end:], "passage"), Piece("\nAfter it.\n", "around"),
        )  # fmt: skip
        return done(OpenedPassage(tuple(one for one in pieces if one.text)))

    def find(self, names, question, *, earlier, model, room, anyway=False) -> Future:
        self.searched.append((tuple(names), question))
        passages = self.found.popleft() if self.found else ()
        context, stored = "", []
        for one in passages:
            context += f"[{one.n}] {one.title}\n> {one.text}"
            stored.append(replace(one, prompt_end=len(context)))
            context += "\n"
        declined = "" if stored else self.declined
        found = FoundFor(tuple(attached(names)), declined)
        self.anyway.append(anyway)
        return done(FoundPassages(f"{context}\n", dump_passages(stored, found), len(stored)))

    def question(self, found: FoundPassages, text: str) -> str:
        return asked_text(text, load_found_for(found.passages).names) or text

    def grammar(self, found: FoundPassages) -> Grammar | None:
        return None

    def begin_check(self, found, question, *, earlier, model) -> FakeCheck:
        return FakeCheck(lambda text: self.checks.popleft() if self.checks else _supported(text))

    def contexts(self, given: Sequence[FoundPassages]) -> list[str]:
        return shared_contexts(given)


def _supported(answer: str) -> CheckedAnswer:
    kept = [StoredCitation(int(n), True, 0, 0) for n in re.findall(r"\[(\d)\]", answer)]
    return CheckedAnswer(answer, dump_citations(kept))

"""Collections of documents in line mode: `/sources`, `@NAME`, and the citations of an answer."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from app.runtime.attachment import Attachment, attached
from app.runtime.source_library import build_added, build_evidence, build_updated
from app.runtime.stored_passages import (
    StoredPassage,
    load_citations,
    load_found_for,
    load_passages,
)
from app.slash.names import meant
from app.slash.sources import (
    NAMING,
    SourcesCall,
    mentioned,
    read_evidence,
    read_sources,
    without_mentions,
)
from app.text.safe_text import safe_line, safe_text
from engine.api.errors import InvalidRequest, PravahaError
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeKind

if TYPE_CHECKING:
    from app.runtime.source_library import SourceLibrary
    from engine.retrieval.indexing.report import AddReport

_DOCUMENTS = 100
"""Most documents of a collection that are printed."""


class PlainSources:
    """Runs the commands over a session; every method waits until it is done.

    Args:
        library: None if there are no collections.
        session: branches of its open conversation are what collections are attached to.
        say: prints a line.
    """

    def __init__(
        self, library: "SourceLibrary | None", session: TreeSession, say: Callable[[str], None]
    ) -> None:
        self._library = library
        self._session = session
        self._say = say
        self._news: deque[str] = deque()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the collections; none if they cannot be read."""
        if self._library is None:
            return ()
        try:
            return self._names(self._library)
        except PravahaError:
            return ()

    def run(self, argument: str) -> None:
        """`/sources …`; see `read_sources`.

        Raises:
            PravahaError: one sentence.
        """
        call = read_sources(argument)
        library = self._required()
        if call.action in NAMING:
            call = replace(call, name=meant(call.name, self._names(library), "collection"))
        match call.action:
            case None:
                self._list(library)
            case "create":
                library.create(call.name).result()
                self._say(f"{call.name} is empty: /sources add {call.name} PATH fills it.")
            case "add":
                self._add(library, call)
            case "refresh":
                self._run(library, library.update(call.name), partial(build_updated, call.name))
            case "watch":
                library.watch(call.name, partial(self._tell_watched, call.name)).result()
                self._say(f"{call.name} is watched until you quit: what changes is read again.")
            case "unwatch":
                if not library.unwatch(call.name):
                    raise InvalidRequest(f"{call.name} is not watched.")
            case "attach":
                self._attach(library, Attachment(call.name, call.conditions))
            case "detach":
                attachment = attached(self._session.sources.names).get(call.name)
                if attachment is None or not self._session.sources.detach(attachment.stored):
                    raise InvalidRequest(f"{call.name} is not attached to this branch.")
                self._say(f"{call.name} is no longer attached to this branch.")
            case "remove":
                path = call.paths[0] if call.paths else None
                count = library.remove(call.name, path).result()
                self._say(f"Documents deleted from the index of {call.name}: {count}.")
                attachment = attached(self._session.sources.names).get(call.name)
                if path is None and attachment is not None:
                    self._session.sources.detach(attachment.stored)
                    self._say(f"{call.name} is no longer attached to this branch.")
            case "show":
                self._show(library, int(call.name))
            case "evidence":
                if call.name:
                    library.min_evidence = read_evidence(call.name)
                self._say(build_evidence(library.min_evidence))
            case "stop":
                raise InvalidRequest("Ctrl+C stops adding.")

    def attach_mentioned(self, text: str) -> bool:
        """Attach the collections that a message names; whether it says nothing else."""
        if self._library is None or "@" not in text:
            return False
        names = mentioned(text, self._names(self._library))
        for name in names:
            if name not in attached(self._session.sources.names):
                self._session.sources.attach(Attachment(name).stored)
        if not names or without_mentions(text, names):
            return False
        self._say(f"{', '.join(names)} attached: answers of this branch are taken from it.")
        return True

    def say_citations(self, node_id: str) -> None:
        """Print what an answer cites and how many citations were dropped, or why it was given no passage."""
        found = self._session.sources.passages_of(node_id)
        if found is not None and not found.count:
            reason = load_found_for(found.passages).declined
            said = f"{reason} /anyway has it answered all the same.".strip()
            self._say(f"({safe_line(said)})")
            return
        citations = load_citations(self._session.view(node_id).citations)
        passages = {one.n: one for one in self._passages(node_id)}
        for n in dict.fromkeys(one.n for one in citations if one.supported):
            if n in passages:
                self._say(f"[{n}] {_place(passages[n])}")
        if passages and not any(one.supported for one in citations):
            self._say("(no passage supports this answer)")
        dropped = [one for one in citations if not one.supported]
        if dropped:
            numbers = ", ".join(f"[{n}]" for n in dict.fromkeys(one.n for one in dropped))
            self._say(f"(citations dropped: {numbers} without support)")

    # Internal.

    def _list(self, library: "SourceLibrary") -> None:
        collections = library.refresh().result()
        here_now = attached(self._session.sources.names)
        for one in collections:
            failed = f", {one.failed} cannot be read" if one.failed else ""
            here = ""
            if one.name in here_now:
                chosen = here_now[one.name].words.removeprefix(one.name)
                here = f", attached to this branch{chosen}"
            here += ", watched" if one.name in library.watched else ""
            self._say(f"{one.name}: {one.documents} documents, {one.chunks} passages{failed}{here}")
            if one.failed:
                self._say_failed(library, one.name)
        if not collections:
            self._say("No collections yet: /sources create NAME makes one.")

    def _say_failed(self, library: "SourceLibrary", name: str) -> None:
        documents = library.documents(name).result()
        for one in [one for one in documents if one.problem][:_DOCUMENTS]:
            self._say(f"  {safe_line(one.path)}: {safe_line(one.problem)}")

    def _add(self, library: "SourceLibrary", call: SourcesCall) -> None:
        if not library.has_model:
            raise InvalidRequest(
                "The embedding model is not installed: run `pravaha models add minilm`."
            )
        adding = library.add(
            call.name, call.paths, exclude=call.exclude, attributes=call.attributes
        )
        self._run(library, adding, partial(build_added, call.name))

    def _run(
        self,
        library: "SourceLibrary",
        work: "Future[AddReport]",
        sentence: "Callable[[AddReport], str]",
    ) -> None:
        """Wait for work and say what it did; Ctrl+C stops it."""
        try:
            report = work.result()
        except KeyboardInterrupt:
            library.cancel()
            report = work.result()
        self._say(sentence(report))

    def _tell_watched(self, name: str, report: "AddReport | None", reason: str) -> None:
        """On another thread: keep what a refresh did until the next command or answer."""
        said = f"{name} is not watched any more. {reason}".rstrip()
        self._news.append(said if report is None else build_updated(name, report))

    def say_news(self) -> None:
        """Print what watching has done since the last call."""
        while self._news:
            self._say(f"({self._news.popleft()})")

    def _attach(self, library: "SourceLibrary", attachment: Attachment) -> None:
        name = attachment.name
        known = self._names(library)
        if name not in known:
            listed = f" There are: {', '.join(known)}." if known else ""
            raise InvalidRequest(f"There is no collection {name}.{listed}")
        fitting = ""
        if attachment.conditions:
            fitting = f" Documents that fit: {library.count(attachment).result()}."
        before = attached(self._session.sources.names).get(name)
        changed = self._session.sources.attach(
            attachment.stored, instead_of=None if before is None else before.stored
        )
        self._say(
            f"{attachment.words} is attached: answers of this branch are taken from it.{fitting}"
            if changed
            else f"{attachment.words} is attached to this branch already.{fitting}"
        )

    def _show(self, library: "SourceLibrary", number: int) -> None:
        """Print a passage of the last answer."""
        answers = [one for one in self._session.path() if one.kind is NodeKind.ASSISTANT]
        passages = self._passages(answers[-1].id) if answers else ()
        passage = next((one for one in passages if one.n == number), None)
        if passage is None:
            raise InvalidRequest(f"The last answer was given no passage {number}.")
        opened = library.open(passage, None).result()
        self._say(f"[{number}] {safe_line(passage.file)}, {_place(passage)}")
        if opened.note:
            self._say(f"({opened.note})")
        self._say(safe_text(passage.text).rstrip("\n"))

    def _passages(self, node_id: str) -> Sequence[StoredPassage]:
        found = self._session.sources.passages_of(node_id)
        return () if found is None else load_passages(found.passages)

    def _names(self, library: "SourceLibrary") -> tuple[str, ...]:
        return tuple(one.name for one in library.refresh().result())

    def _required(self) -> "SourceLibrary":
        if self._library is None:
            raise InvalidRequest("This chat has no collections.")
        return self._library


def _place(passage: StoredPassage) -> str:
    name = safe_line(Path(passage.file).name)
    where = f"{name}, page {passage.page}" if passage.page is not None else f"{name}:{passage.line}"
    headings = " > ".join(map(safe_line, passage.headings))
    via = f"via {safe_line(passage.bridge)}" if passage.bridge else ""
    return ", ".join(filter(None, (where, via, headings)))

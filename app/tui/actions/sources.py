"""Collections of documents on the screen: `/sources`, `@NAME`, the sources pane, and opening citations.

What reads or writes files runs on the threads of `SourceLibrary`; its futures are awaited by workers, so
that the screen and the answers go on.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.runtime.attachment import Attachment, attached
from app.runtime.source_library import SourceLibrary, build_added, build_evidence, build_updated
from app.runtime.source_views import CollectionView, DocumentView
from app.runtime.stored_passages import (
    StoredCitation,
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
    near_misses,
    read_evidence,
    read_sources,
    unknown_mentions,
    without_mentions,
)
from app.tui.actions.files import FileActions
from app.tui.actions.guarded import guarded
from app.tui.chat_screen import ChatScreen
from app.tui.glyphs import Glyphs
from app.tui.keys import hint
from app.tui.passage_residency import PassageResidency
from app.tui.screen_layout import ScreenLayout
from app.tui.selection import Selection
from app.tui.terminal import Terminal
from app.tui.view.citations import build_cited, build_declined, build_found, cited_numbers
from app.tui.view.sources import Prefix, SourcesState, build_job_hint
from app.tui.view.spans import Line
from app.tui.widgets.confirm import ConfirmScreen
from app.tui.widgets.sources_passage import PassageScreen, ShownPassage
from app.tui.widgets.transcript import Transcript
from engine.api.errors import InvalidRequest, PravahaError
from engine.conversations.passage_source import FoundPassages
from engine.conversations.tree import NodeKind, NodeView

if TYPE_CHECKING:
    from engine.retrieval.indexing.report import AddReport

_NOT_SUPPORTED = (
    "this passage does not support the sentence that cited it: the citation was dropped"
)
_NO_SOURCES = "There are no collections here: a replay has none."


class SourceActions:
    """Keys and commands for sources; also what the pane reads.

    Args:
        library: None in a replay.
    """

    def __init__(
        self,
        screen: ChatScreen,
        selection: Selection,
        layout: ScreenLayout,
        *,
        files: FileActions,
        terminal: Terminal,
        glyphs: Glyphs,
        keymap: Mapping[str, str],
        library: SourceLibrary | None,
    ) -> None:
        self._screen = screen
        self._selection = selection
        self._layout = layout
        self._files = files
        self._terminal = terminal
        self._glyphs = glyphs
        self._keymap = keymap
        self._library = library
        self._residency = PassageResidency(screen.session)
        self._documents: dict[str, Future[tuple[DocumentView, ...]]] = {}
        self._collections: Future[tuple[CollectionView, ...]] | None = None
        if library is not None:
            library.on_wake(screen.wake)

    # Names.

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the collections, as far as they are known; begins to read them."""
        if self._library is None:
            return ()
        if self._library.collections is None:
            self._library.refresh()
        return tuple(one.name for one in self._library.collections or ())

    @property
    def reading(self) -> bool:
        """Whether the names are not known yet."""
        return self._library is not None and self._library.collections is None

    @property
    def job_hint(self) -> str:
        """What is being done to a collection, for the status bar; empty if nothing is."""
        library = self._library
        return "" if library is None else build_job_hint(library.job, library.watched)

    @property
    def attached(self) -> Mapping[str, Attachment]:
        """What is attached to the open branch, by the name of the collection."""
        return attached(self._screen.session.sources.names)

    # Commands.

    async def run(self, argument: str) -> None:
        """`/sources …`; see `read_sources`.

        Raises:
            PravahaError: one sentence.
        """
        call = read_sources(argument)
        if call.action in NAMING:
            call = replace(call, name=meant(call.name, await self._known(), "collection"))
        match call.action:
            case None:
                self._layout.open_pane("sources")
            case "create":
                await asyncio.wrap_future(self._required().create(call.name))
                self._screen.notify_safely(
                    f"{call.name} is empty: /sources add {call.name} PATH fills it."
                )
            case "add":
                self._work(self._add(call))
            case "refresh":
                self._work(self._update(call.name))
            case "watch":
                await self._watch(call.name)
            case "unwatch":
                self._unwatch(call.name)
            case "attach":
                await self.attach(Attachment(call.name, call.conditions))
            case "detach":
                self._detach(call.name)
            case "remove":
                self.ask_to_remove(call.name, *call.paths)
            case "show":
                self._open_of_last(int(call.name))
            case "evidence":
                self._tell_evidence(call.name)
            case "stop":
                self.stop()

    def _tell_evidence(self, number: str) -> None:
        library = self._required()
        if number:
            library.min_evidence = read_evidence(number)
        self._screen.notify_safely(build_evidence(library.min_evidence))

    async def _add(self, call: SourcesCall) -> None:
        library = self._required()
        if not library.has_model:
            self._ask_for_model(call)
            return
        adding = library.add(
            call.name, call.paths, exclude=call.exclude, attributes=call.attributes
        )
        report = await asyncio.wrap_future(adding)
        self._documents.pop(call.name, None)
        self._screen.notify_safely(
            build_added(call.name, report), "warning" if report.failed else "information"
        )

    def _ask_for_model(self, call: SourcesCall) -> None:
        """Offer to download the embedding model, then add."""

        async def fetch() -> None:
            await asyncio.wrap_future(self._required().fetch_model())
            await self._add(call)

        def answered(yes: bool | None) -> None:
            if yes:
                self._work(fetch())
            else:
                self._screen.notify_safely(
                    "Nothing was added: run `pravaha models add minilm` to install the embedding model."
                )

        self._screen.open_dialog(
            ConfirmScreen(
                "Download it now (91 MB)?",
                "Documents need the embedding model, which is not installed.",
            ),
            answered,
        )

    async def _update(self, name: str) -> None:
        report = await asyncio.wrap_future(self._required().update(name))
        self._documents.pop(name, None)
        self._tell_updated(name, report)

    def _tell_updated(self, name: str, report: "AddReport") -> None:
        self._screen.notify_safely(
            build_updated(name, report), "warning" if report.failed else "information"
        )

    # Watching.

    async def _watch(self, name: str) -> None:
        library, loop = self._required(), asyncio.get_running_loop()

        def tell(report: "AddReport | None", reason: str) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._tell_watched, name, report, reason)

        await asyncio.wrap_future(library.watch(name, tell))
        self._screen.notify_safely(
            f"{name} is watched until you quit: what changes is read again. "
            f"/sources unwatch {name} ends it."
        )
        self._screen.draw_all()

    def _tell_watched(self, name: str, report: "AddReport | None", reason: str) -> None:
        """What a refresh of a watched collection did, or why it is not watched any more."""
        self._documents.pop(name, None)
        if report is not None:
            self._tell_updated(name, report)
        elif reason:
            self._screen.notify_safely(f"{name} is not watched any more: {reason}", "warning")
        else:
            self._screen.notify_safely(f"{name} is not watched any more.")
        self._screen.draw_all()

    def _unwatch(self, name: str) -> None:
        if not self._required().unwatch(name):
            raise InvalidRequest(f"{name} is not watched.")

    async def toggle_watch(self, name: str) -> None:
        """Watch a collection, or end that."""
        if name in self._required().watched:
            self._unwatch(name)
        else:
            await self._watch(name)

    # Attaching.

    async def attach(self, attachment: Attachment) -> None:
        """Answer the next messages of the branch from a collection, or from some of its documents.

        Raises:
            InvalidRequest: there is none of this name.
        """
        name = attachment.name
        known = await self._known()
        if name not in known:
            listed = f" There are: {', '.join(known)}." if known else ""
            raise InvalidRequest(f"There is no collection {name}.{listed}")
        fitting = ""
        if attachment.conditions:
            count = await asyncio.wrap_future(self._required().count(attachment))
            fitting = f" Documents that fit: {count}."
        before = self.attached.get(name)
        changed = self._screen.session.sources.attach(
            attachment.stored, instead_of=None if before is None else before.stored
        )
        self._screen.notify_safely(
            f"{attachment.words} is attached: answers of this branch are taken from it.{fitting}"
            if changed
            else f"{attachment.words} is attached to this branch already.{fitting}"
        )
        self._screen.draw_all()

    def _detach(self, name: str) -> None:
        attachment = self.attached.get(name)
        if attachment is None or not self._screen.session.sources.detach(attachment.stored):
            raise InvalidRequest(f"{name} is not attached to this branch.")
        self._screen.notify_safely(f"{name} is no longer attached to this branch.")
        self._screen.draw_all()

    async def toggle(self, name: str) -> None:
        """Attach a collection to the branch, or detach it."""
        if name in self.attached:
            self._detach(name)
        else:
            await self.attach(Attachment(name))

    def ask_to_remove(self, name: str, path: str = "") -> None:
        """Delete a collection, or the documents of a path in it, after a question."""

        async def remove() -> None:
            count = await asyncio.wrap_future(self._required().remove(name, path or None))
            self._documents.pop(name, None)
            documents = f"{count} document{'' if count == 1 else 's'}"
            detached = ""
            if not path and name in self.attached:
                self._screen.session.sources.detach(self.attached[name].stored)
                detached = f" {name} is no longer attached to this branch."
            self._screen.notify_safely(f"{documents} of {name} deleted from the index.{detached}")
            self._screen.draw_all()

        def answered(yes: bool | None) -> None:
            if yes:
                self._work(remove())

        what = f"Delete {path} from {name}?" if path else f"Delete the collection {name}?"
        self._screen.open_dialog(ConfirmScreen(what, "Files are not touched."), answered)

    def stop(self) -> None:
        """Stop adding.

        Raises:
            InvalidRequest: nothing is being added.
        """
        library = self._required()
        if library.job is None:
            raise InvalidRequest("Nothing is being added.")
        library.cancel()

    # Sending.

    async def attach_mentioned(self, text: str) -> bool:
        """Attach the collections that a message names; whether it says nothing else."""
        if "@" not in text:
            return False
        if self._library is None:
            for name in unknown_mentions(text):
                self._screen.notify_safely(f"@{name} is sent as text. {_NO_SOURCES}", "warning")
            return False
        try:
            known = await self._known()
        except PravahaError:
            return False  # a file or a word with an @
        for word, name in near_misses(text, known).items():
            self._screen.notify_safely(
                f"@{word} is sent as text: there is a collection {name}, but none of this name.",
                "warning",
            )
        names = mentioned(text, known)
        for name in names:
            if name not in self.attached:
                self._screen.session.sources.attach(Attachment(name).stored)
        if not names or without_mentions(text, names):
            return False
        self._screen.notify_safely(
            f"{', '.join(names)} attached: answers of this branch are taken from it."
        )
        self._screen.draw_all()
        return True

    # The pane.

    def refresh(self) -> None:
        """See `ReadsSources`."""
        self._documents.clear()
        if self._library is not None:
            self._collections = self._library.refresh()

    def read(self, unfolded: frozenset[str]) -> SourcesState:
        """See `ReadsSources`."""
        library = self._library
        if library is None:
            return SourcesState(problem=_NO_SOURCES)
        problem = ""
        if library.collections is None:
            problem = _problem(self._collections)
            if self._collections is None or (self._collections.done() and not problem):
                self._collections = library.refresh()
        answer, passages = self._last_passages()
        citations = (
            None if answer is None or answer.citations is None else load_citations(answer.citations)
        )
        numbers = () if answer is None else cited_numbers(answer.text, len(passages))
        return SourcesState(
            collections=library.collections,
            attached=self.attached,
            watched=library.watched,
            documents={name: self._documents_of(library, name) for name in unfolded},
            job=library.job,
            problem=problem,
            passages=passages,
            citations=citations,
            cited=frozenset(numbers),
            prefixes=self._prefixes(passages),
        )

    def _documents_of(self, library: SourceLibrary, name: str) -> tuple[DocumentView, ...] | None:
        future = self._documents.get(name)
        if future is None:
            future = self._documents[name] = library.documents(name)
        if not future.done():
            return None
        return () if future.exception() is not None else future.result()

    def _last_passages(self) -> tuple[NodeView | None, Sequence[StoredPassage]]:
        """The selected answer, else the last one, and the passages that it was given."""
        answer = self._answer()
        if answer is None:
            return None, ()
        found = self._found(answer.id)
        return answer, () if found is None else load_passages(found.passages)

    def _prefixes(self, passages: Sequence[StoredPassage]) -> Mapping[int, Prefix]:
        answer = self._answer()
        if not passages or answer is None:
            return {}
        found = self._found(answer.id)
        if found is None:
            return {}
        return self._residency.prefixes(answer.id, found.context, passages)

    def _answer(self) -> NodeView | None:
        session = self._screen.session
        selected = self._selection.node_id
        if selected is not None and selected in session.tree:
            view = session.view(selected)
            if view.kind is NodeKind.ASSISTANT:
                return view
        path = session.path()
        return next((one for one in reversed(path) if one.kind is NodeKind.ASSISTANT), None)

    # Messages.

    def rows_below(self, node: NodeView) -> list[Line]:
        """The rows below a message: how many passages were found for it, or what it cites."""
        if node.n_passages is None:
            return []
        found = self._found(node.id)
        passages = () if found is None else load_passages(found.passages)
        glyphs = self._glyphs
        if node.kind is NodeKind.USER:
            if not node.n_passages:
                reason = "" if found is None else load_found_for(found.passages).declined
                return build_declined(
                    node.id, reason, hint("answer_anyway", "", self._keymap)[0], glyphs
                )
            names = tuple(dict.fromkeys(one.collection for one in passages))
            return build_found(names, node.n_passages, glyphs)
        citations = None if node.citations is None else load_citations(node.citations)
        numbers = cited_numbers(node.text, node.n_passages)
        return build_cited(node.id, passages, numbers, citations, glyphs)

    async def answer_anyway(self, node_id: str = "") -> None:
        """Have a message answered that the documents do not seem to answer: the selected one, else the last.

        Raises:
            InvalidRequest: it is no such message.
        """
        session = self._screen.session
        session.branches.ask_anyway(node_id or self._selection.target())
        self._layout.close_overlay()
        await self._screen.show_chat()
        await self._screen.main.query_one(Transcript).select("end")

    # Opening passages.

    def open_cited(self) -> None:
        """Open the passages that the selected answer cites, else those of the last one.

        Raises:
            InvalidRequest: it cites none.
        """
        answer, passages = self._last_passages()
        numbers = () if answer is None else cited_numbers(answer.text, len(passages))
        if answer is None or not numbers:
            raise InvalidRequest("The answer cites no passage.")
        self._open(answer, passages, numbers, numbers[0])

    def open_citation(self, citation: str) -> None:
        """Open a passage that an answer cites.

        Args:
            citation: the id of the answer, a slash, and the number of the passage.
        """
        node_id, _, number = citation.rpartition("/")
        answer = self._screen.session.view(node_id)
        found = self._found(node_id)
        passages = () if found is None else load_passages(found.passages)
        self._open(answer, passages, cited_numbers(answer.text, len(passages)), int(number))

    def open_number(self, number: int) -> None:
        """Open a passage of the pane: `n` goes on to the next one of the list."""
        answer, passages = self._last_passages()
        if answer is not None:
            self._open(answer, passages, [one.n for one in passages], number)

    def _open_of_last(self, number: int) -> None:
        answer, passages = self._last_passages()
        if answer is None or all(one.n != number for one in passages):
            raise InvalidRequest(f"The last answer was given no passage {number}.")
        self._open(answer, passages, [one.n for one in passages], number)

    def _open(
        self,
        answer: NodeView,
        passages: Sequence[StoredPassage],
        numbers: Sequence[int],
        number: int,
    ) -> None:
        library = self._required()
        by_number = {one.n: one for one in passages}
        citations = load_citations(answer.citations)
        shown = [_shown(by_number[n], citations) for n in numbers if n in by_number]
        at = next((at for at, one in enumerate(shown) if one.passage.n == number), None)
        if at is None:
            raise InvalidRequest(f"The passage [{number}] is not stored with this answer.")

        def read(screen: PassageScreen, one: ShownPassage) -> None:
            async def text() -> None:
                opened = await asyncio.wrap_future(library.open(one.passage, one.cited))
                screen.show_text(one, opened)

            self._work(text())

        self._screen.open_dialog(
            PassageScreen(
                shown, at, self._glyphs, read=read, copy=self._terminal.copy_text, edit=self._edit
            )
        )

    def _edit(self, passage: StoredPassage) -> None:
        """Open a document in the editor, at the line of the passage."""
        file = Path(passage.file)
        if file.is_file():
            self._screen.run_worker(
                guarded(self._screen, self._edit_file(file, passage.line)), exit_on_error=False
            )
        else:
            self._screen.notify_safely(f"There is no file {file} any more.", "warning")

    async def _edit_file(self, file: Path, line: int) -> None:
        self._files.edit_file(file, line)

    # Internal.

    def _required(self) -> SourceLibrary:
        if self._library is None:
            raise InvalidRequest(_NO_SOURCES)
        return self._library

    async def current_names(self) -> tuple[str, ...]:
        """The names of the collections now; none if there are none here, or they cannot be read."""
        try:
            return () if self._library is None else await self._known()
        except PravahaError:
            return ()

    async def _known(self) -> tuple[str, ...]:
        """The names of the collections now; another process may have added one."""
        found = await asyncio.wrap_future(self._required().refresh())
        return tuple(one.name for one in found)

    def _found(self, node_id: str) -> FoundPassages | None:
        """The passages of a message or answer; None if none were sought, or they cannot be read now."""
        try:
            return self._screen.session.sources.passages_of(node_id)
        except PravahaError:
            return None

    def _work(self, work: Coroutine[object, object, None]) -> None:
        """Run on the event loop without waiting; an error is a notification."""
        self._screen.run_worker(guarded(self._screen, work), group="sources", exit_on_error=False)


def _shown(passage: StoredPassage, citations: Sequence[StoredCitation]) -> ShownPassage:
    own = [one for one in citations if one.n == passage.n]
    supported = [one for one in own if one.supported]
    if own and not supported:
        return ShownPassage(passage, None, _NOT_SUPPORTED)
    cited = (supported[0].start, supported[0].end) if supported else None
    return ShownPassage(passage, cited)


def _problem(reading: "Future[tuple[CollectionView, ...]] | None") -> str:
    """Why the collections could not be read; empty if that is not known, or they can."""
    if reading is None or not reading.done() or reading.cancelled():
        return ""
    error = reading.exception()
    return "" if error is None else str(error)

"""Collections of documents in line mode: `/sources`, `@NAME`, and the citations of an answer."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.runtime.stored_passages import StoredPassage, load_citations, load_passages
from app.slash.sources import SourcesCall, mentioned, read_sources, without_mentions
from app.text.safe_text import safe_line, safe_text
from engine.api.errors import InvalidRequest
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeKind

if TYPE_CHECKING:
    from app.runtime.source_library import SourceLibrary

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

    def run(self, argument: str) -> None:
        """`/sources …`; see `read_sources`.

        Raises:
            PravahaError: one sentence.
        """
        call = read_sources(argument)
        library = self._required()
        match call.action:
            case None:
                self._list(library)
            case "create":
                library.create(call.name).result()
                self._say(f"{call.name} is empty: /sources add {call.name} PATH fills it.")
            case "add":
                self._add(library, call)
            case "attach":
                self._attach(library, call.name)
            case "detach":
                if not self._session.detach_source(call.name):
                    raise InvalidRequest(f"{call.name} is not attached to this branch.")
                self._say(f"{call.name} is no longer attached to this branch.")
            case "remove":
                path = call.paths[0] if call.paths else None
                count = library.remove(call.name, path).result()
                self._say(f"Documents deleted from the index of {call.name}: {count}.")
            case "show":
                self._show(library, int(call.name))
            case "stop":
                raise InvalidRequest("Ctrl+C stops adding.")

    def takes(self, text: str) -> bool:
        """Attach the collections that a message names; whether it says nothing else."""
        if self._library is None or "@" not in text:
            return False
        names = mentioned(text, self._names(self._library))
        for name in names:
            self._session.attach_source(name)
        if not names or without_mentions(text, names):
            return False
        self._say(f"{', '.join(names)} attached: answers of this branch are taken from it.")
        return True

    def say_citations(self, node_id: str) -> None:
        """Print the passages that an answer cites, and how many citations the check dropped."""
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
        attached = self._session.sources
        for one in collections:
            failed = f", {one.failed} cannot be read" if one.failed else ""
            here = ", attached to this branch" if one.name in attached else ""
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
        from app.runtime.source_library import build_added

        if not library.has_model:
            raise InvalidRequest(
                "The embedding model is not installed: run `pravaha models add minilm`."
            )
        adding = library.add(call.name, call.paths)
        try:
            report = adding.result()
        except KeyboardInterrupt:
            library.cancel()
            report = adding.result()
        self._say(build_added(call.name, report))

    def _attach(self, library: "SourceLibrary", name: str) -> None:
        known = self._names(library)
        if name not in known:
            listed = f" There are: {', '.join(known)}." if known else ""
            raise InvalidRequest(f"There is no collection {name}.{listed}")
        attached = self._session.attach_source(name)
        self._say(
            f"{name} is attached: answers of this branch are taken from it."
            if attached
            else f"{name} is attached to this branch already."
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
        found = self._session.passages_of(node_id)
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

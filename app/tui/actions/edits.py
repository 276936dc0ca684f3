"""Edits from the chat: what an answer changes in files is offered below it, shown, written and tested.

`d` opens the change of an answer as a diff. After it was applied the project's tests can be run; their result
is an exchange of the conversation, from which `d` has the model correct what fails.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from textual.worker import Worker

from agents.api.errors import InvalidTask
from agents.edits import apply_edits, take_back
from agents.edits.file_edit import read_file
from app.runtime.edited_files import Offer, offered_edits
from app.runtime.project_tests import BY_TESTS, ProjectTests, TestsRun, markdown_of_tests
from app.slash.attachments import mention
from app.tui.actions.guarded import guarded
from app.tui.chat_screen import ChatScreen
from app.tui.glyphs import Glyphs
from app.tui.keys import hint
from app.tui.selection import Selection
from app.tui.view.edit_lines import build_offer
from app.tui.view.spans import Line, Span
from app.tui.widgets.edit import EditChoice, EditScreen
from app.tui.widgets.transcript import Transcript
from engine.api.errors import InvalidRequest, PravahaError
from engine.conversations.tree import NodeKind, NodeStatus, NodeView, Verdict

_RECENT = 4
"""Answers whose edits are looked for when they are shown."""


@dataclass(slots=True)
class _State:
    """The offer of one answer, and whether it is written."""

    offer: Offer
    applied: bool = False


class EditActions:
    """The offers of the answers of the open conversation.

    Args:
        root: the folder beneath which files are changed; None in a replay.
        tests: runs the project's tests.
    """

    def __init__(
        self,
        screen: ChatScreen,
        selection: Selection,
        glyphs: Glyphs,
        keymap: Mapping[str, str],
        *,
        root: Path | None,
        tests: ProjectTests,
    ) -> None:
        self._screen = screen
        self._selection = selection
        self._glyphs = glyphs
        self._key = hint("edit.open", "", keymap)[0]
        self._root = root
        self._tests = tests
        self._states: dict[str, _State] = {}
        self._looking: set[str] = set()
        self._one_by_one = asyncio.Lock()
        self._running: dict[str, Worker[None]] = {}
        """The runs of tests, by the node that waits for their result."""
        self._written: set[tuple[str, bytes]] = set()
        self._tested: dict[str, tuple[str, ...]] = {}
        """The files whose change was tested, by the node of the result."""
        self._send: Callable[[str], Awaitable[None]] | None = None

    def send_by(self, send: Callable[[str], Awaitable[None]]) -> None:
        """Use this to send a message: sending is composed after the groups of actions."""
        self._send = send

    # Below an answer.

    def rows_below(self, node: NodeView) -> list[Line]:
        """What the answer changes, or why its code cannot be used."""
        if self._root is None or node.kind is not NodeKind.ASSISTANT:
            return []
        if node.model == BY_TESTS:
            return self._rows_of_tests(node)
        if node.status not in (NodeStatus.DONE, NodeStatus.STOPPED):
            return []
        state = self._states.get(node.id)
        if state is None:
            if ("```" in node.text or "~~~" in node.text) and node.id in self._recent():
                self._look(node.id)
            return []
        click = f"app.perform_later('edits','open',{node.id!r})"
        return build_offer(
            state.offer,
            self._glyphs,
            applied=state.applied,
            key=self._key,
            click=click,
            last=node.id == self._screen.session.head,
        )

    def _recent(self) -> list[str]:
        """The last answers of the open path: earlier ones are looked at when their key is pressed."""
        path = self._screen.session.path()
        return [node.id for node in path if node.kind is NodeKind.ASSISTANT][-_RECENT:]

    def _rows_of_tests(self, node: NodeView) -> list[Line]:
        if node.finish != Verdict.FAILED:
            return []
        click = f"app.perform_later('edits','open',{node.id!r})"
        text = f"{self._glyphs.current} {self._key} has the model correct it"
        return [(Span(text, "$accent", click),)]

    def _look(self, node_id: str) -> None:
        """Find the edits of an answer on a thread, then show them."""
        if node_id in self._looking:
            return
        self._looking.add(node_id)
        self._screen.run_worker(self._find(node_id), group="edits", exit_on_error=False)

    async def _find(self, node_id: str) -> None:
        try:
            async with self._one_by_one:
                offer = await asyncio.to_thread(self._offer_of, self._path_to(node_id))
        finally:
            self._looking.discard(node_id)
        if node_id not in self._states:
            self._states[node_id] = _State(offer)
        self._show(node_id)

    def _path_to(self, node_id: str) -> list[NodeView]:
        tree = self._screen.session.tree
        return [self._screen.session.view(one) for one in tree.path(node_id)]

    def _offer_of(self, path: list[NodeView]) -> Offer:
        root = self._root or Path()
        return offered_edits(root, path, self._written)

    def _show(self, node_id: str) -> None:
        self._screen.main.query_one(Transcript).show_rows(node_id)

    # The key.

    async def open(self, node_id: str | None = None) -> None:
        """Show the change of the selected answer, else of the last one that has one; or mend what fails.

        Raises:
            InvalidRequest: there is none; says why.
        """
        if self._root is None:
            raise InvalidRequest("A replay changes no files.")
        chosen = node_id or self._selection.node_id
        answers = [
            node.id for node in self._screen.session.path() if node.kind is NodeKind.ASSISTANT
        ]
        for one in [chosen] if chosen is not None else answers[::-1]:
            node = self._screen.session.view(one)
            if node.model == BY_TESTS:
                if one in self._running:
                    self._running[one].cancel()
                    return
                if node.finish == Verdict.FAILED:
                    await self._mend(node)
                    return
                continue
            state = await self._current(one)
            if state.offer.edits:
                self._open(one, state)
                return
            if state.offer.refused:
                raise InvalidRequest(state.offer.refused[0])
        raise InvalidRequest(
            "No answer has code for a file that you attached (@file) or named, or the file has it already."
        )

    async def _current(self, node_id: str) -> _State:
        """The state of an answer: an edit that is not on the disk is made anew from the files as they are."""
        state = self._states.get(node_id)
        if state is not None and state.applied and await asyncio.to_thread(_is_there, state.offer):
            return state
        offer = await asyncio.to_thread(self._offer_of, self._path_to(node_id))
        if state is None or not state.applied or offer.edits:
            state = self._states[node_id] = _State(offer)
            self._show(node_id)
        return state

    def _open(self, node_id: str, state: _State) -> None:
        async def chosen(choice: EditChoice | None) -> None:
            if choice is not None:
                await guarded(self._screen, self._do(node_id, state, choice))

        self._screen.open_dialog(EditScreen(state.offer, applied=state.applied), chosen)

    async def _do(self, node_id: str, state: _State, choice: EditChoice) -> None:
        offer = state.offer
        files = ", ".join(one.path for one in offer.edits)
        if choice == "take_back":
            await asyncio.to_thread(take_back, offer.root, offer.edits)
            state.applied = False
            self._screen.notify_safely(f"Taken back: {files}.")
        elif choice in ("apply", "apply_and_test"):
            await asyncio.to_thread(apply_edits, offer.root, offer.edits)
            self._written |= {(one.path, one.after) for one in offer.edits}
            state.applied = True
            self._screen.notify_safely(f"Written: {files}; {self._key} takes it back.")
        self._show(node_id)
        if choice in ("test", "apply_and_test"):
            await self._begin_tests(offer)

    # Tests.

    async def _begin_tests(self, offer: Offer) -> None:
        session = self._screen.session
        files = tuple(one.path for one in offer.edits)
        counts = [one.counts for one in offer.edits]
        added, removed = sum(one for one, _ in counts), sum(one for _, one in counts)
        question = (
            f"I applied the change to {', '.join(files)} (+{added} -{removed}). Run the tests."
        )
        place = session.messages.begin_exchange(question, by=BY_TESTS)
        self._tested[place] = files
        await self._screen.show_chat()
        self._running[place] = self._screen.run_worker(
            self._run_tests(place, session.tree_id, offer.root / files[0]),
            group="tests",
            exit_on_error=False,
        )

    async def _run_tests(self, place: str, tree_id: str, file: Path) -> None:
        session = self._screen.session
        try:
            run = await self._tests(file)
        except PravahaError as error:
            run = TestsRun(problem=str(error))
        except asyncio.CancelledError:
            run = TestsRun(problem="they were stopped.")
        finally:
            self._running.pop(place, None)
        try:
            session.messages.finish_exchange(place, markdown_of_tests(run), verdict=run.verdict)
        except PravahaError as error:
            self._screen.notify_safely(f"{run.sentence} It was not added: {error}", "warning")
            return
        if session.tree_id == tree_id:
            await self._screen.main.query_one(Transcript).finish_awaited(session.path())
            await self._screen.show_chat()
        else:
            self._screen.notify_safely(run.sentence)

    async def _mend(self, node: NodeView) -> None:
        """Ask the model to correct what the tests refute, with the files as they are now."""
        files = self._tested.get(node.id) or self._files_before(node.id)
        named = " and ".join(mention(one) for one in files)
        text = f"Correct {named} so that these tests pass. Write each changed function as a whole."
        if self._send is not None:
            await self._send(text)

    def _files_before(self, node_id: str) -> tuple[str, ...]:
        """The files of the last change before a result, from the message that asked for it."""
        path = self._path_to(node_id)
        asked = path[-2].text if len(path) > 1 else ""
        named, _, _ = asked.removeprefix("I applied the change to ").partition(" (+")
        return tuple(named.split(", "))


def _is_there(offer: Offer) -> bool:
    """Whether the files are as the edits left them."""
    try:
        return all(read_file(offer.root, one.path) == one.after for one in offer.edits)
    except InvalidTask:
        return False

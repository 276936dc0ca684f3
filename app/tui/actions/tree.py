"""Keys that change the conversation tree: fork, edit, regenerate, prune, promote, label, undo.

They act on the selected node (`target`). Moves are in `go.py`.
"""

from dataclasses import replace

from app.slash.attachments import split_attached, with_texts_of
from app.text.safe_text import safe_line, safe_text
from app.tui.actions.documents import DocumentActions
from app.tui.actions.fork_at_token import ForkAtToken
from app.tui.actions.guarded import guarded
from app.tui.chat_screen import ChatScreen
from app.tui.fork_costs import ForkCosts
from app.tui.screen_layout import ScreenLayout
from app.tui.selection import Selection
from app.tui.widgets.ask_text import AskText
from app.tui.widgets.prompt import Prompt
from app.tui.widgets.transcript import Transcript
from engine.api.errors import InvalidRequest, PravahaError
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeKind, NodeView

_NAMED = 3
"""Most branches that the question before pruning names."""
MAX_TEMPERATURE = 2.0


class TreeActions:
    """Operations on the tree of the open conversation."""

    def __init__(
        self,
        screen: ChatScreen,
        selection: Selection,
        layout: ScreenLayout,
        *,
        fork_at_token: ForkAtToken,
        fork_costs: ForkCosts,
        documents: DocumentActions,
    ) -> None:
        self._screen = screen
        self._documents = documents
        self._selection = selection
        self._layout = layout
        self._fork_at_token = fork_at_token
        self._fork_costs = fork_costs
        self._prune_asked: tuple[object, ...] | None = None

    @property
    def _session(self) -> TreeSession:
        return self._screen.session

    # New branches.

    async def fork(self) -> None:
        """Begin a branch at the token cursor, else after the node; after a user message its answer begins."""
        if not self._selection.in_tree and await self._fork_at_token.fork():
            return
        node_id = self._selection.target()
        name = self._session.branches.fork(node_id)
        answered = self._session.tree[node_id].kind is NodeKind.USER
        self._fork_costs.expect("Fork", self._session.head if answered else None)
        if answered:
            await self._show_answer()
            return
        await self._screen.show_chat()
        self._screen.main.query_one(Transcript).clear_selection()
        self._screen.notify_safely(f"Branch {name} begins here: the next message continues it.")
        self._layout.close_overlay()
        self._layout.focus_prompt()

    async def edit(self) -> None:
        """Put the node's text into the prompt, to add a changed version beside it."""
        node_id = self._selection.target()
        node = self._session.view(node_id)
        if node_id in self._session.answers.running:
            raise InvalidRequest("The answer is running: stop it first.")
        if node.kind not in (NodeKind.USER, NodeKind.ASSISTANT):
            raise InvalidRequest("Only messages and answers can be edited.")
        self._layout.close_overlay()
        what = "message" if node.kind is NodeKind.USER else "answer"
        self._prompt.begin_edit(node_id, _typed(node), what)
        self._layout.focus_prompt()

    async def finish_edit(self, node_id: str, text: str) -> bool:
        """Add the edited text as a sibling; if it is refused, the editor stays open.

        Returns:
            False if it was refused, or is no message.
        """
        node = self._session.view(node_id)
        is_message = node.kind is NodeKind.USER
        what = "message" if is_message else "answer"

        async def add(changed: str) -> None:
            self._session.branches.edit(node_id, changed)
            if is_message:
                self._fork_costs.expect("Edit", self._session.head)
            await self._show_answer()

        try:
            if text == _typed(node):
                raise InvalidRequest(f"The {what} is unchanged: change it, or leave with esc.")
            if is_message:
                await self._documents.attach(text, with_texts_of(text, safe_text(node.text)), add)
            else:
                await add(text)
        except PravahaError as error:
            self._screen.notify_safely(str(error), "warning")
            self._prompt.begin_edit(node_id, text, what)
            return False
        return is_message

    def leave_edit(self) -> None:
        """Leave the editing of a message; the draft returns to the prompt."""
        self._prompt.end_edit()

    def leave_lost_edit(self) -> None:
        """Leave the editing of a message that is not in the open conversation."""
        node_id = self._prompt.editing
        tree = self._session.tree
        if node_id is not None and (node_id not in tree or tree[node_id].pruned_at is not None):
            self._prompt.end_edit()

    async def regenerate(self) -> None:
        """Generate the selected answer again, as a sibling with the next seed."""
        await self._regenerate(self._selection.target())

    async def regenerate_by(self, node_id: str, model: str | None) -> None:
        """Generate an answer again by one of several models."""
        answer = self._session.branches.regenerate(node_id, model=model)
        self._fork_costs.expect("Regenerate", answer)
        await self._show_answer()

    async def regenerate_with(self) -> None:
        """Ask for a temperature and generate the selected answer again with it."""
        node_id = self._selection.target()
        if node_id in self._session.answers.running:
            raise InvalidRequest("The answer is running: stop it first.")

        async def given(text: str | None) -> None:
            if text is not None:
                await guarded(self._screen, self._regenerate(node_id, _temperature(text)))

        now = self._session.sampling.current.params.temperature
        dialog = AskText("Regenerate with temperature", f"{now:g}", hint="0 to 2")
        self._screen.open_dialog(dialog, given)

    async def _regenerate(self, node_id: str, temperature: float | str | None = None) -> None:
        if isinstance(temperature, str):
            raise InvalidRequest(temperature)
        sampling = None
        if temperature is not None:
            choice = self._session.sampling.current
            params = replace(choice.params, temperature=temperature)
            sampling = replace(choice, params=params, chosen=choice.chosen | {"temperature"})
        answer = self._session.branches.regenerate(node_id, sampling=sampling)
        self._fork_costs.expect("Regenerate", answer)
        await self._show_answer()

    async def _show_answer(self) -> None:
        """Show the open path, whose end is a new answer, and follow it."""
        self._layout.close_overlay()
        await self._screen.show_chat()
        await self._screen.main.query_one(Transcript).select("end")

    # Flags and pointers.

    async def prune(self) -> None:
        """Hide the node and all below it; asks for a second key if several branches end there."""
        node_id = self._selection.target()
        tree = self._session.tree
        below = set(tree.subtree(node_id))
        names = [name for name, at in tree.branches().items() if at in below]
        asked = (node_id, self._session.version)
        if len(names) > 1 and self._prune_asked != asked:
            self._prune_asked = asked
            shown = ", ".join(names[-_NAMED:])
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            self._screen.notify_safely(
                f"{len(names)} branches would go: {shown}{more}. D again prunes them.", "warning"
            )
            return
        self._prune_asked = None
        count = self._session.branches.prune(node_id)
        await self._screen.show_chat()
        messages = "message" if count == 1 else "messages"
        self._screen.notify_safely(f"{count} {messages} pruned; u restores.")

    def drop_question(self) -> bool:
        """Forget that a second `D` would prune several branches; whether it would have."""
        asked, self._prune_asked = self._prune_asked, None
        return asked is not None and asked[1] == self._session.version

    async def promote(self) -> None:
        """Make the node's branch the main one."""
        self._session.branches.promote(self._selection.target())
        await self._screen.show_chat()
        self._screen.notify_safely("This branch is main now; u restores.")

    async def bookmark(self) -> None:
        """Set the node's bookmark, or remove it."""
        node_id = self._selection.target()
        marked = bool(self._session.tree[node_id].rating)
        self._session.branches.rate(node_id, None if marked else 1)
        await self._screen.show_chat()
        self._screen.notify_safely(
            "Bookmark removed." if marked else "Bookmarked; B lists bookmarks."
        )

    async def label(self) -> None:
        """Ask for the node's label; an empty one removes it."""
        node_id = self._selection.target()

        async def given(text: str | None) -> None:
            if text is not None:
                await guarded(self._screen, self._label(node_id, text))

        now = safe_line(self._session.tree[node_id].label or "")
        self._screen.open_dialog(AskText("Label", now, hint="empty removes it"), given)

    async def _label(self, node_id: str, text: str) -> None:
        self._session.branches.label(node_id, text)
        await self._screen.show_chat()

    async def stop(self) -> None:
        """Stop the selected answer, else the one at the end of the open path."""
        node_id = self._selection.node_id
        if node_id not in self._session.answers.running:
            node_id = None
            if not self._session.answers.generating:
                raise InvalidRequest("No answer is running on the open branch.")
        self._session.answers.stop(node_id)
        self._screen.draw_all()

    async def undo(self) -> None:
        """Undo the last operation."""
        name = self._session.operations.undo()
        self._screen.notify_safely(f"Undone: {name}; U redoes." if name else "Nothing to undo.")
        await self._screen.show_chat()

    async def redo(self) -> None:
        """Redo the operation that was undone last."""
        name = self._session.operations.redo()
        self._screen.notify_safely(f"Redone: {name}." if name else "Nothing to redo.")
        await self._screen.show_chat()

    @property
    def _prompt(self) -> Prompt:
        return self._screen.main.query_one(Prompt)


def _typed(node: NodeView) -> str:
    """A message without the texts of its attached files; of an answer all."""
    text = safe_text(node.text)
    return split_attached(text)[0] if node.kind is NodeKind.USER else text


def _temperature(text: str) -> float | str:
    """A temperature, or why the text is none."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if 0 <= value <= MAX_TEMPERATURE:
        return value
    return f"A temperature is a number from 0 to {MAX_TEMPERATURE:g}."

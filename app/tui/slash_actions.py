"""The slash commands on the screen: one method for each command of the table that is no key's action."""

import asyncio
from typing import TYPE_CHECKING

from app.runtime.imported_passages import build_imported
from app.slash.arguments import change_system, read_expansion
from app.slash.files import import_from_file
from app.slash.memory import run_memory
from app.slash.parse import Invocation, method_name
from app.text.safe_text import safe_line
from app.tui.keys import ALL_KEYS
from app.tui.widgets.text_page import TextPageScreen
from app.tui.widgets.transcript import Transcript
from engine.api.errors import InvalidRequest, PravahaError
from engine.conversations.node_words import find_branch

if TYPE_CHECKING:
    from app.tui.app import PravahaApp


class SlashActions:
    """Runs slash commands of the app. Each method gets the argument text, empty if there is none."""

    def __init__(self, app: "PravahaApp") -> None:
        self._app = app

    async def run(self, invocation: Invocation) -> None:
        """Run a command of the table; shows the error if it fails."""
        command = invocation.command
        try:
            if command.key:
                action = next(key.action for key in ALL_KEYS if key.id == command.key)
                await self._app.run_action(action)
            else:
                await getattr(self, method_name(command.name))(invocation.argument)
        except PravahaError as error:
            self._app.notify_safely(str(error), "warning")

    # Conversations.

    async def new(self, argument: str) -> None:
        """Start a new conversation; send `argument` if it is not empty."""
        await self._app.action_new_chat()
        if argument:
            await self._app.send(argument)

    async def resume(self, argument: str) -> None:
        """Show the list, filtered; a number opens the conversation at that place of the list."""
        trees = self._app.session.trees()
        if argument.isdecimal() and 1 <= int(argument) <= len(trees):
            await self._app.open_chat(trees[int(argument) - 1].id)
        else:
            self._app.show_list(argument)

    async def rename(self, argument: str) -> None:
        """Rename this conversation."""
        self._app.session.rename_tree(self._app.session.tree_id, argument)
        self._app.refresh_list()

    async def delete(self, argument: str) -> None:
        """Archive this conversation, after a question."""
        self._app.ask_delete(self._app.session.tree_id)

    async def archive(self, argument: str) -> None:
        """Show the archived conversations."""
        self._app.archive.toggle()

    async def gc(self, argument: str) -> None:
        """Delete all archived conversations for good, after a question."""
        self._app.archive.ask_erase_all()

    async def search(self, argument: str) -> None:
        """Search every branch of every conversation."""
        self._app.search.open(argument)

    async def export(self, argument: str) -> None:
        """Write the conversation to a file."""
        await self._app.files.export(argument)

    async def import_(self, argument: str) -> None:
        """Read a conversation from a file and open it."""
        session = self._app.session
        import_from_file(session, argument)
        await self._app.open_chat(session.tree_id)
        self._app.notify_safely("Imported; /delete archives this conversation.")
        if notice := build_imported(session):
            self._app.notify_safely(notice)

    # Branches.

    async def fork(self, argument: str) -> None:
        """Begin a branch after the selected message, else after the last one."""
        name = self._app.session.branches.fork(self._node(argument))
        self._app.notify_safely(f"Branch {name} begins here.")
        await self._app.show_chat()

    async def switch(self, argument: str) -> None:
        """Go to a branch by name, or to a message by its number on the open path."""
        session = self._app.session
        named = find_branch(session.tree, argument)
        if named is not None:
            session.branches.rewind(named)
        else:
            session.branches.adopt(self._node(argument))
        await self._app.show_chat()

    async def branch(self, argument: str) -> None:
        """Name the open branch."""
        self._app.session.branches.rename_branch(argument)
        self._app.notify_safely(f"This branch is named {argument}.")

    async def label(self, argument: str) -> None:
        """Label the selected message, else the last one; without a text remove its label."""
        self._app.session.branches.label(self._node(""), argument)
        await self._app.show_chat()

    async def expand(self, argument: str) -> None:
        """Generate several answers side by side."""
        await self._app.compare.expand(read_expansion(argument), self._node(""))

    async def prune(self, argument: str) -> None:
        """Hide the selected message, else the last one, and all below it."""
        count = self._app.session.branches.prune(self._node(argument))
        self._app.notify_safely(f"{count} hidden; /undo brings back what was pruned.")
        await self._app.show_chat()

    async def promote(self, argument: str) -> None:
        """Make the open branch the main one."""
        self._app.session.branches.promote(self._node(argument))
        self._app.notify_safely("This is the main branch now.")
        await self._app.show_chat()

    async def merge(self, argument: str) -> None:
        """Merge another branch into the open one."""
        await self._app.merge.run(argument)

    # Answers.

    async def shorten(self, argument: str) -> None:
        """Leave earlier messages out of the context, or summarise them."""
        await self._app.context.shorten(argument)

    async def system(self, argument: str) -> None:
        """Show, set or clear the system prompt."""
        prompt = change_system(self._app.session, argument)
        self._app.notify_safely(
            f"System prompt: {safe_line(prompt)}" if prompt else "No system prompt."
        )

    async def model(self, argument: str) -> None:
        """Open the model picker, or load the named model."""
        if argument:
            self._app.models.switch(argument)
        else:
            self._app.models.choose()

    async def sampling(self, argument: str) -> None:
        """Edit, set or reset the sampling parameters of this conversation."""
        self._app.sampling.run(argument)

    async def copy(self, argument: str) -> None:
        """Copy the last answer, one of its code blocks, or the whole branch."""
        if argument == "code":
            self._app.files.copy_code()
        elif argument == "branch":
            self._app.files.copy_branch()
        else:
            self._app.files.copy()

    async def sources(self, argument: str) -> None:
        """Show the collections of documents, or create, fill, attach, detach or delete one."""
        await self._app.sources.run(argument)

    async def attach(self, argument: str) -> None:
        """Name a file in the prompt."""
        self._app.files.attach(argument)

    async def agents(self, argument: str) -> None:
        """Show the agents, or run one."""
        await self._app.agents.run(argument)

    async def memory(self, argument: str) -> None:
        """Show, search, forget or export what the agents remember."""
        path = self._app.memory_file
        if path is None:
            raise InvalidRequest("A replay has no memory.")
        lines = await asyncio.to_thread(run_memory, path, argument)
        if len(lines) == 1:
            self._app.notify_safely(lines[0])
        else:
            self._app.open_dialog(TextPageScreen("What the agents remember", lines))

    async def approve(self, argument: str) -> None:
        """Open the oldest tool call that waits."""
        self._app.agents.approve()

    # The screen.

    async def serve(self, argument: str) -> None:
        """Serve the engine over HTTP, or end that."""
        self._app.serving.run(argument)

    async def theme(self, argument: str) -> None:
        """Open the theme list, or switch to the named theme."""
        if argument:
            self._app.use_theme(argument)
        else:
            self._app.action_theme()

    async def mouse(self, argument: str) -> None:
        """Use the mouse, or leave it to the terminal."""
        self._app.report_mouse(argument == "on")
        self._app.notify_safely(
            "The mouse works here; most terminals select text with shift+drag."
            if argument == "on"
            else "The mouse is the terminal's: drag selects text; /mouse on takes it back."
        )

    # Internal.

    def _node(self, argument: str) -> str:
        """The message of a number on the open path, else the selected one, else the last one."""
        path = self._app.session.path()
        if not path:
            raise InvalidRequest("The conversation is empty: send a message first.")
        if not argument:
            selected = self._app.query_one(Transcript).selected
            return selected.id if selected is not None else path[-1].id
        if not argument.isdecimal() or not 1 <= int(argument) <= len(path):
            raise InvalidRequest(f"There is no message {argument}: the last one is {len(path)}.")
        return path[int(argument) - 1].id

"""The slash commands on the screen: one method for each command of the table that is no key's action."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from app.runtime.imported_passages import build_imported
from app.slash.arguments import change_system, find_title, read_branch, read_expansion, read_fork
from app.slash.files import import_from_file
from app.slash.memory import run_memory
from app.slash.parse import Invocation, method_name
from app.text.safe_text import safe_line
from app.tui.action_groups import ActionGroups
from app.tui.chat_screen import ChatScreen
from app.tui.keys import ALL_KEYS
from app.tui.screen_layout import ScreenLayout
from app.tui.sending import Sending
from app.tui.terminal import Terminal
from app.tui.widgets.text_page import TextPageScreen
from app.tui.widgets.transcript import Transcript
from engine.api.errors import InvalidRequest, PravahaError


class SlashActions:
    """Runs slash commands. Each method gets the argument text, empty if there is none.

    Args:
        memory_file: what the agents remember on this machine; None in a replay.
        run_action: runs an action of the key table.
    """

    def __init__(
        self,
        screen: ChatScreen,
        actions: ActionGroups,
        sending: Sending,
        layout: ScreenLayout,
        terminal: Terminal,
        *,
        memory_file: Path | None,
        run_action: Callable[[str], Awaitable[object]],
    ) -> None:
        self._screen = screen
        self._actions = actions
        self._sending = sending
        self._layout = layout
        self._terminal = terminal
        self._memory_file = memory_file
        self._run_action = run_action

    async def run(self, invocation: Invocation) -> bool:
        """Run a command of the table; False after an error, which is shown."""
        command = invocation.command
        try:
            if command.key:
                await self._press(command.key)
            else:
                await getattr(self, method_name(command.name))(invocation.argument)
        except PravahaError as error:
            self._screen.notify_safely(str(error), "warning")
            return False
        return True

    # Conversations.

    async def new(self, argument: str) -> None:
        """Start a new conversation; send `argument` if it is not empty."""
        await self._press("chat.new")
        if argument:
            await self._sending.send(argument)

    async def resume(self, argument: str) -> None:
        """Show the list, filtered; a number or the beginning of only one title opens the conversation."""
        trees = self._screen.session.conversations.find()
        titled = find_title(trees, argument)
        if argument.isdecimal() and 1 <= int(argument) <= len(trees):
            await self._actions.conversations.open(trees[int(argument) - 1].id)
        elif titled is not None:
            await self._actions.conversations.open(titled.id)
        else:
            self._layout.show_list(argument)

    async def rename(self, argument: str) -> None:
        """Rename this conversation."""
        self._screen.session.conversations.rename(self._screen.session.tree_id, argument)
        self._actions.listing.refresh()

    async def delete(self, argument: str) -> None:
        """Archive this conversation, after a question."""
        self._actions.conversations.ask_delete(self._screen.session.tree_id)

    async def archive(self, argument: str) -> None:
        """Show the archived conversations."""
        self._actions.archive.toggle()

    async def gc(self, argument: str) -> None:
        """Delete all archived conversations for good, after a question."""
        self._actions.archive.ask_erase_all()

    async def search(self, argument: str) -> None:
        """Search every branch of every conversation."""
        self._actions.search.open(argument)

    async def export(self, argument: str) -> None:
        """Write the conversation to a file."""
        await self._actions.files.export(argument)

    async def import_(self, argument: str) -> None:
        """Read a conversation from a file and open it."""
        session = self._screen.session
        import_from_file(session, argument)
        await self._actions.conversations.open(session.tree_id)
        self._screen.notify_safely("Imported; /delete archives this conversation.")
        if notice := build_imported(session):
            self._screen.notify_safely(notice)

    # Branches.

    async def fork(self, argument: str) -> None:
        """Begin a branch after the selected message, else after the last one, by another model if named."""
        number, model = read_fork(argument)
        node = self._node(number)
        if model:
            await self._actions.other_model.fork(node, model)
            return
        name = self._screen.session.branches.fork(node)
        self._screen.notify_safely(f"Branch {name} begins here.")
        await self._screen.show_chat()

    async def switch(self, argument: str) -> None:
        """Go to a branch by name, or to a message by its number on the open path."""
        session = self._screen.session
        named = read_branch(session.tree, argument)
        if named is not None:
            session.branches.rewind(named)
        else:
            session.branches.adopt(self._node(argument))
        await self._screen.show_chat()

    async def branch(self, argument: str) -> None:
        """Name the open branch."""
        self._screen.session.branches.rename_branch(argument)
        self._screen.notify_safely(f"This branch is named {argument}.")

    async def label(self, argument: str) -> None:
        """Label the selected message, else the last one; without a text remove its label."""
        self._screen.session.branches.label(self._node(""), argument)
        await self._screen.show_chat()

    async def expand(self, argument: str) -> None:
        """Generate several answers side by side."""
        await self._actions.compare.expand(read_expansion(argument), self._node(""))

    async def prune(self, argument: str) -> None:
        """Hide the selected message, else the last one, and all below it."""
        count = self._screen.session.branches.prune(self._node(argument))
        self._screen.notify_safely(f"{count} hidden; /undo brings back what was pruned.")
        await self._screen.show_chat()

    async def promote(self, argument: str) -> None:
        """Make the open branch the main one."""
        self._screen.session.branches.promote(self._node(argument))
        self._screen.notify_safely("This is the main branch now.")
        await self._screen.show_chat()

    async def merge(self, argument: str) -> None:
        """Merge another branch into the open one."""
        await self._actions.merge.run(argument)

    # Answers.

    async def shorten(self, argument: str) -> None:
        """Leave earlier messages out of the context, or summarise them."""
        await self._actions.context.shorten(argument)

    async def system(self, argument: str) -> None:
        """Show, set or clear the system prompt."""
        prompt = change_system(self._screen.session, argument)
        self._screen.notify_safely(
            f"System prompt: {safe_line(prompt)}" if prompt else "No system prompt."
        )

    async def model(self, argument: str) -> None:
        """Open the model picker, or load the named model."""
        if argument:
            self._actions.models.switch(argument)
        else:
            self._actions.models.choose()

    async def download(self, argument: str) -> None:
        """Search a hub for models, and download one."""
        self._actions.hub.open(argument)

    async def think(self, argument: str) -> None:
        """End the thinking of a model, or say how much of it is asked for."""
        self._actions.thoughts.run(argument)

    async def sampling(self, argument: str) -> None:
        """Edit, set or reset the sampling parameters of this conversation."""
        self._actions.sampling.run(argument)

    async def settings(self, argument: str) -> None:
        """List the settings, or open the named one at its place."""
        self._actions.settings.open(argument)

    async def copy(self, argument: str) -> None:
        """Copy the last answer, one of its code blocks, or the whole branch."""
        if argument == "code":
            self._actions.files.copy_code()
        elif argument == "branch":
            self._actions.files.copy_branch()
        else:
            self._actions.files.copy()

    async def sources(self, argument: str) -> None:
        """Show the collections of documents, or create, fill, attach, detach or delete one."""
        await self._actions.sources.run(argument)

    async def attach(self, argument: str) -> None:
        """Name a file in the prompt."""
        await self._actions.files.attach(argument)

    async def agents(self, argument: str) -> None:
        """Show the agents, or run one."""
        await self._actions.agents.run(argument)

    async def memory(self, argument: str) -> None:
        """Show, search, forget or export what the agents remember."""
        path = self._memory_file
        if path is None:
            raise InvalidRequest("A replay has no memory.")
        lines = await asyncio.to_thread(run_memory, path, argument)
        if len(lines) == 1:
            self._screen.notify_safely(lines[0])
        else:
            self._screen.open_dialog(TextPageScreen("What the agents remember", lines))

    async def tools(self, argument: str) -> None:
        """List the tools that the model may call in the chat, or choose them."""
        await self._actions.tools.run(argument)

    async def approve(self, argument: str) -> None:
        """Open the oldest tool call that waits."""
        self._actions.agents.approve()

    # The screen.

    async def serve(self, argument: str) -> None:
        """Serve the engine over HTTP, or end that."""
        self._actions.serving.run(argument)

    async def theme(self, argument: str) -> None:
        """Open the theme list, or switch to the named theme."""
        if argument:
            self._actions.themes.use(argument)
        else:
            await self._press("theme")

    async def mouse(self, argument: str) -> None:
        """Use the mouse, or leave it to the terminal."""
        self._terminal.report_mouse(argument == "on")
        self._screen.notify_safely(
            "The mouse works here; most terminals select text with shift+drag."
            if argument == "on"
            else "The mouse is the terminal's: drag selects text; /mouse on takes it back."
        )

    # Internal.

    async def _press(self, key_id: str) -> None:
        """Run the action of a key."""
        await self._run_action(next(key.action for key in ALL_KEYS if key.id == key_id))

    def _node(self, argument: str) -> str:
        """The message of a number on the open path, else the selected one, else the last one."""
        path = self._screen.session.path()
        if not path:
            raise InvalidRequest("The conversation is empty: send a message first.")
        if not argument:
            selected = self._screen.main.query_one(Transcript).selected
            return selected.id if selected is not None else path[-1].id
        if not argument.isdecimal() or not 1 <= int(argument) <= len(path):
            raise InvalidRequest(f"There is no message {argument}: the last one is {len(path)}.")
        return path[int(argument) - 1].id

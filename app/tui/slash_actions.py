"""What each slash command does: one method a command, on behalf of the app.

Kept beside `slash.py`, whose table names these methods, and away from the app, which only wires.
"""

from typing import TYPE_CHECKING

from app.text.safe_text import safe_line
from app.tui.numbers import compact, size
from app.tui.slash import Invocation

if TYPE_CHECKING:
    from app.tui.app import PravahaApp


class SlashActions:
    """Runs slash commands."""

    def __init__(self, app: "PravahaApp") -> None:
        self._app = app

    async def run(self, invocation: Invocation) -> None:
        """Run a command of the table."""
        await getattr(self, invocation.command.action)(invocation.argument)

    async def new(self, argument: str) -> None:
        """Start a new conversation; with text, ask it at once."""
        await self._app.action_new_chat()
        if argument:
            await self._app.send(argument)

    async def resume(self, argument: str) -> None:
        """Show the list, filtered."""
        self._app.show_list(argument)

    async def rename(self, argument: str) -> None:
        """Rename this conversation."""
        if not argument:
            self._app.tell("/rename needs a title.", "warning")
            return
        self._app.session.rename_tree(self._app.session.tree_id, argument)
        self._app.refresh_list()

    async def delete(self, argument: str) -> None:
        """Archive this conversation, after a question."""
        self._app.ask_delete(self._app.session.tree_id)

    async def system(self, argument: str) -> None:
        """Show, set or clear the system prompt."""
        session = self._app.session
        if argument:
            session.system_prompt = None if argument == "clear" else argument
        prompt = session.system_prompt
        self._app.tell(f"System prompt: {safe_line(prompt)}" if prompt else "No system prompt.")

    async def model(self, argument: str) -> None:
        """What runs, and how."""
        model = self._app.client.snapshot().model
        if model is None:
            self._app.tell("No model is loaded yet.")
            return
        self._app.tell(
            f"{safe_line(model.name)}: {model.architecture}, {compact(model.parameters)} parameters, "
            f"{model.weight_format} in {size(model.weight_bytes)}, KV {model.kv_dtype}, context "
            f"{model.context_length}; {model.executor} executor, {model.dispatch}, "
            f"{model.threads} threads."
        )

    async def regen(self, argument: str) -> None:
        """Answer the last message again."""
        await self._app.action_regenerate()

    async def stop(self, argument: str) -> None:
        """Stop the answer."""
        self._app.action_stop()

    async def copy(self, argument: str) -> None:
        """Copy the last answer."""
        self._app.action_copy()

    async def kv(self, argument: str) -> None:
        """Show the KV blocks."""
        self._app.action_pane("kv")

    async def stats(self, argument: str) -> None:
        """Show the engine's figures."""
        self._app.action_pane("stats")

    async def theme(self, argument: str) -> None:
        """Choose a theme, or take the named one."""
        if argument:
            self._app.use_theme(argument)
        else:
            self._app.action_theme()

    async def keys(self, argument: str) -> None:
        """Show every key and command."""
        self._app.action_help()

    async def quit(self, argument: str) -> None:
        """Leave."""
        await self._app.action_quit()

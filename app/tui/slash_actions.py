"""The actions of the slash commands, one method for each; the table in `slash.py` names them."""

from typing import TYPE_CHECKING

from app.text.safe_text import safe_line
from app.tui.numbers import compact, size
from app.tui.slash import Invocation

if TYPE_CHECKING:
    from app.tui.app import PravahaApp


class SlashActions:
    """Runs slash commands of the app."""

    def __init__(self, app: "PravahaApp") -> None:
        self._app = app

    async def run(self, invocation: Invocation) -> None:
        """Run a command of the table; one that takes no argument does nothing if it is given one."""
        command = invocation.command
        if invocation.argument and not command.argument:
            self._app.notify_safely(f"/{command.name} takes no argument.", "warning")
            return
        await getattr(self, invocation.command.action)(invocation.argument)

    async def new(self, argument: str) -> None:
        """Start a new conversation; send `argument` if it is not empty."""
        await self._app.action_new_chat()
        if argument:
            await self._app.send(argument)

    async def resume(self, argument: str) -> None:
        """Show the list, filtered."""
        self._app.show_list(argument)

    async def rename(self, argument: str) -> None:
        """Rename this conversation."""
        if not argument:
            self._app.notify_safely("/rename needs a title.", "warning")
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
        self._app.notify_safely(
            f"System prompt: {safe_line(prompt)}" if prompt else "No system prompt."
        )

    async def model(self, argument: str) -> None:
        """Show the model and its executor."""
        model = self._app.client.snapshot().model
        if model is None:
            self._app.notify_safely("No model is loaded yet.")
            return
        self._app.notify_safely(
            f"{safe_line(model.name)}: {model.architecture}, {compact(model.parameters)} parameters, "
            f"{model.weight_format} in {size(model.weight_bytes)}, KV {model.kv_dtype}, context "
            f"{model.context_length}; {model.executor} executor, {model.dispatch}, "
            f"{model.threads} threads."
        )

    async def regen(self, argument: str) -> None:
        """Regenerate the last answer."""
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
        """Open the theme list, or switch to the named theme."""
        if argument:
            self._app.use_theme(argument)
        else:
            self._app.action_theme()

    async def keys(self, argument: str) -> None:
        """Show every key and command."""
        self._app.action_help()

    async def quit(self, argument: str) -> None:
        """Quit."""
        await self._app.action_quit()

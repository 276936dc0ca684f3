"""`SessionTools`: what the model may call in a session: the usual tools, or those that the person chose."""

import asyncio

from agents.api.agent_spec import PermissionMode
from agents.api.errors import AgentError
from app.runtime.chat_tools import ChatTools


class SessionTools:
    """The tools of one session. Use from one event loop.

    Args:
        tools: opens them for each answer.
        usual: names of those that may be called where nothing else is chosen.
        servers: names of the client's MCP servers, which go with the usual ones.
    """

    def __init__(
        self, tools: ChatTools, usual: tuple[str, ...], servers: tuple[str, ...] = ()
    ) -> None:
        self._tools = tools
        self._usual = usual
        self._servers = servers
        self._chosen: tuple[str, ...] | None = None  # None: the usual ones

    @property
    def offered(self) -> tuple[str, ...]:
        """The names of what the model is offered with the next message."""
        return self._tools.chosen

    async def choose(self, argument: str, mode: PermissionMode) -> None:
        """Choose by names, or with `on` the usual tools and with `off` none.

        Raises:
            InvalidTask: a name is unknown, or cannot be used in this mode.
        """
        self._tools.mode = mode
        if argument in ("on", "off"):
            self._chosen = () if argument == "off" else None
        elif argument:
            names = argument.replace(",", " ").split()
            await asyncio.to_thread(self._tools.choose, names)
            self._chosen = tuple(names)

    async def offer(self, mode: PermissionMode) -> str:
        """Offer what can be used in this mode; why there are no tools, or nothing."""
        tools = self._tools
        tools.mode = mode
        wanted = self._usual if self._chosen is None else self._chosen
        servers = self._servers if self._chosen is None and mode != "deny" else ()
        if not wanted and not servers:
            tools.chosen = ()
            return ""
        try:
            choices = await asyncio.to_thread(tools.choices)
        except AgentError as error:
            tools.chosen = ()
            return str(error)
        usable = [
            name
            for name in wanted
            if (name in choices.tools and name not in choices.refused)
            or (name in choices.mcp_servers and mode != "deny")
        ]
        tools.chosen = tuple(dict.fromkeys((*usable, *servers)))
        return ""

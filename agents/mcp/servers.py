"""`McpServers`: the configured servers and what was approved of them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.api.errors import InvalidSpec
from agents.mcp.approved import ApprovedServers
from agents.mcp.definition import ToolDefinition
from agents.mcp.errors import McpError
from agents.mcp.results import CallResult
from agents.mcp.server import McpServer
from agents.mcp.tools import mcp_tool
from agents.text.near import near_matches
from agents.tools.tool import Tool


class McpServers:
    """Servers by name; without any by default."""

    def __init__(self, servers: Sequence[McpServer] = (), approvals: Path | None = None) -> None:
        """`approvals` is the file of approvals; it is needed if there are servers."""
        if servers and approvals is None:
            raise ValueError("servers need a file of approvals")
        self._servers = {one.name: one for one in servers}
        self._approved = None if approvals is None else ApprovedServers(approvals)

    def __contains__(self, name: object) -> bool:
        return name in self._servers

    def __iter__(self) -> Iterator[McpServer]:
        return iter(self._servers.values())

    def get(self, name: str) -> McpServer:
        """The server with this name.

        Raises:
            InvalidSpec: none is configured.
        """
        if name not in self._servers:
            near = near_matches(name, self._servers)
            hint = (
                f"did you mean {near[0]}?" if near else f"add [mcp.servers.{name}] to pravaha.toml."
            )
            raise InvalidSpec(f"There is no MCP server {name!r:.60}: {hint}")
        return self._servers[name]

    @property
    def approved(self) -> ApprovedServers:
        """The approvals.

        Raises:
            McpError: there is no file for them.
        """
        if self._approved is None:
            raise McpError("MCP servers cannot be approved here: there is no file for approvals.")
        return self._approved

    def catalogue(self) -> list[Tool]:
        """The approved tools of all servers, for prompts; they cannot be called.

        A file of approvals that cannot be read counts as empty: the runs that need it say so.
        """
        try:
            return [
                mcp_tool(server, definition, _not_connected)
                for server in self
                for definition in usable(self.approved.tools(server))
            ]
        except McpError:
            return []


def usable(definitions: Sequence[ToolDefinition]) -> list[ToolDefinition]:
    """Those whose arguments can be checked."""
    from agents.mcp.schema import refused_schema

    return [one for one in definitions if not refused_schema(one.schema)]


async def _not_connected(tool: str, arguments: Mapping[str, Any]) -> CallResult:
    raise McpError("The MCP server is not connected.")

"""`RunMcp`: the MCP tools of one run, from the approvals to the end of the servers.

A server is started only if it was approved as it is configured, and a tool is callable only if its
definition is the approved one. What is not approved is asked, like a tool call, whatever the permission
mode is: the mode decides about calls, not about whose code runs. Without anybody to ask, its tools are
missing and a note says so.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from agents.api.agent_spec import AgentSpec
from agents.api.errors import InvalidSpec, PermissionDenied
from agents.api.events import RunEventType
from agents.mcp.definition import Changes, ToolDefinition, changes_of
from agents.mcp.errors import McpChanged, McpError
from agents.mcp.results import CallResult
from agents.mcp.server import McpServer
from agents.mcp.servers import McpServers
from agents.mcp.tools import mcp_tool, tool_name
from agents.runs.approvals import ApprovalRequest, Approvals, new_approval_id
from agents.tools.tool import Effect, Tool

if TYPE_CHECKING:
    from agents.mcp.connection import McpConnection

_STARTING = frozenset({Effect.EXECUTE, Effect.EGRESS})


@dataclass(slots=True)
class RunMcp:
    """The servers of one run. Use from one event loop.

    Attributes:
        spec: the agent.
        servers: what is configured.
        approvals: where approvals are asked.
        record: appends an event to the run's log.
        run: the run's id.
        folder: its working folder, for approvals.
        note: tells the user something once.
    """

    spec: AgentSpec
    servers: McpServers
    approvals: Approvals
    record: Callable[..., None]
    run: str
    folder: str
    note: Callable[[str], None]
    _connections: "list[McpConnection]" = field(default_factory=list)

    async def open(self) -> dict[str, Tool]:
        """Connect the agent's servers; the approved tools that they offer, by name."""
        found: dict[str, Tool] = {}
        opened = await asyncio.gather(*(self._open(name) for name in self.spec.mcp_servers))
        for tools in opened:
            found |= tools
        return found

    async def close(self) -> None:
        """End all servers."""
        await asyncio.gather(*(one.close() for one in self._connections), return_exceptions=True)

    async def _open(self, name: str) -> dict[str, Tool]:
        """The tools of one server; none, and a note, if it cannot be used."""
        try:
            return await self._tools_of(self.servers.get(name))
        except (McpError, InvalidSpec, PermissionDenied) as error:
            self.note(str(error))
            return {}

    async def _tools_of(self, server: McpServer) -> dict[str, Tool]:
        from agents.mcp.connection import McpConnection  # the SDK is needed by few runs
        from agents.mcp.schema import refused_schema

        approved = self.servers.approved
        if not approved.may_start(server):
            await self._ask_start(server)
            approved.approve_start(server)
        connection = McpConnection(server)
        self._connections.append(connection)
        listing = await connection.list_tools()
        for refused in listing.refused:
            self.note(f"MCP server {server.name}: a tool was left out, because {refused}.")
        callable_now = await self._approved_of(server, listing.tools)
        tools = {}
        for definition in callable_now:
            name = tool_name(server.name, definition.name)
            problem = refused_schema(definition.schema)
            if problem:
                self.note(f"The MCP tool {name} was left out: {problem}.")
            elif name not in self.spec.disallowed_tools:
                tools[name] = mcp_tool(server, definition, _checked_call(connection, definition))
        return tools

    async def _approved_of(
        self, server: McpServer, offered: tuple[ToolDefinition, ...]
    ) -> list[ToolDefinition]:
        """Those of the offered tools that are approved, after asking about what is new or changed."""
        approved = self.servers.approved
        changes = changes_of(approved.tools(server), offered)
        if changes.need_approval:
            try:
                await self._ask_tools(server, changes)
            except PermissionDenied as error:
                self.note(
                    f"New and changed tools of the MCP server {server.name} are missing: {error}"
                )
            else:
                approved.approve_tools(server, offered)
        known = {one.digest for one in approved.tools(server)}
        return [one for one in offered if one.digest in known]

    async def _ask_start(self, server: McpServer) -> None:
        others = self.servers.approved.other_configurations(server)
        reason = (
            "another configuration of this MCP server was approved before"
            if others
            else "this MCP server was never approved"
        )
        await self._ask(server, "start", server.shown(), server.launch_digest, reason)

    async def _ask_tools(self, server: McpServer, changes: Changes) -> None:
        known = bool(changes.changed) or bool(self.servers.approved.tools(server))
        reason = "its tools have changed" if known else "its tools were never approved"
        offered = (*changes.added, *(after for _, after in changes.changed))
        digests = "".join(sorted(one.digest for one in offered))
        target = hashlib.sha256(digests.encode()).hexdigest()
        await self._ask(server, "tools", {"tools": changes.shown()}, target, reason)

    async def _ask(
        self,
        server: McpServer,
        what: str,
        members: Mapping[str, Any],
        target: str,
        reason: str,
    ) -> None:
        """Ask like a tool call.

        Raises:
            PermissionDenied: it was denied, or nobody can be asked.
        """
        tool = f"mcp {server.name} {what}"
        if not self.approvals.has_approver:
            raise PermissionDenied(
                f"The MCP server {server.name} was not used: {reason}. `pravaha mcp approve {server.name}` "
                "shows it and asks."
            )
        request = ApprovalRequest(
            id=new_approval_id(),
            run=self.run,
            agent=self.spec.key,
            tool=tool,
            arguments=orjson.dumps(members).decode(),
            target=target,
            effects=_STARTING,
            folder=self.folder,
            reason=reason,
        )
        fields = {"approval": request.id, "tool": tool, "target": reason}
        self.record(RunEventType.APPROVAL_REQUESTED, **fields)
        try:
            await self.approvals.ask(request)
        except PermissionDenied as error:
            self.record(RunEventType.APPROVAL_RESOLVED, **fields, allowed=False, reason=str(error))
            raise
        self.record(RunEventType.APPROVAL_RESOLVED, **fields, allowed=True, reason="")


def _checked_call(
    connection: "McpConnection", definition: ToolDefinition
) -> Callable[[str, Mapping[str, Any]], Any]:
    """Calls the tool while the server offers it as it was approved."""

    async def call(tool: str, arguments: Mapping[str, Any]) -> CallResult:
        if not connection.running or connection.stale:
            await connection.list_tools()
        listing = connection.listing
        offered = {one.name: one.digest for one in listing.tools} if listing else {}
        if offered.get(tool) != definition.digest:
            server = connection.server.name
            raise McpChanged(
                f"The tool {tool} of the MCP server {server} is not the one that was approved: "
                f"`pravaha mcp approve {server}` shows the change."
            )
        return await connection.call(tool, arguments)

    return call

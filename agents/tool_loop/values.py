"""What a tool loop is asked for, and what it reports."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.api.agent_spec import PermissionMode

if TYPE_CHECKING:
    from agents.mcp.servers import McpServers
    from agents.tools.file_access import FileAccess

CHAT = "chat"
"""The key under which approvals and events name who calls: no agent, but the model that answers a person."""
DEFAULT_ROUNDS = 8
MAX_ROUNDS = 64


@dataclass(frozen=True, slots=True)
class ToolLoopRequest:
    """Which tools the model may call, and how often.

    Attributes:
        tools: names of agents' tools; None takes all that only read and can be used here.
        mcp_servers: names of configured MCP servers, all of whose tools are offered.
        max_rounds: answers with calls after which the model must answer without any.
        max_calls: calls of all answers that are made; None sets no limit beside that of the rounds.
        mode: of calls with side effects; may only tighten the cluster's.
        root: folder beneath which files are read and written; None reads none.
        conversation: what an approval given "always" is limited to.
        text: what the person has written; its labels are those of what the loop has read so far.
        has_results: whether the conversation already has results of tools, which may be anybody's text.
        files: where the tools read and write files; None takes the disk.
        mcp: the servers that `mcp_servers` names; None takes the configured ones.
    """

    tools: tuple[str, ...] | None = None
    mcp_servers: tuple[str, ...] = ()
    max_rounds: int = DEFAULT_ROUNDS
    max_calls: int | None = None
    mode: PermissionMode = "deny"
    root: Path | None = None
    conversation: str = ""
    text: str = ""
    has_results: bool = False
    files: "FileAccess | None" = None
    mcp: "McpServers | None" = None


class LoopEventType(StrEnum):
    """What a `LoopEvent` reports."""

    CALL_STARTED = "call_started"
    CALL_PERMITTED = "call_permitted"
    CALL_OUTPUT = "call_output"
    APPROVAL_REQUESTED = "approval_requested"
    APPROVAL_RESOLVED = "approval_resolved"
    CALL_FINISHED = "call_finished"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class LoopEvent:
    """Something that happens between two answers.

    Attributes:
        type: what it is.
        call: the call's id; empty before the first call, while MCP servers are opened.
        data: JSON members that depend on `type`.
    """

    type: LoopEventType
    call: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)

    def fields(self) -> dict[str, Any]:
        """The event as JSON members."""
        call = {"call_id": self.call} if self.call else {}
        return {"type": self.type.value, **call, **self.data}

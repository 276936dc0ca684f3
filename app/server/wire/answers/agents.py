"""Answers about runs of agents."""

from typing import Any, Literal

from app.server.wire.answers.base import Answer, ListAnswer


class AgentEntry(Answer):
    """An agent or a pipeline that can be run."""

    kind: str
    name: str
    category: str
    description: str


class AgentCatalogue(ListAnswer[AgentEntry]):
    """What can be run, and the layers around the commands that agents execute."""

    sandbox_layers: list[str] | None


class AgentRunObject(Answer):
    """A run."""

    object: Literal["agent.run"]
    id: str
    state: str
    summary: str
    result: dict[str, Any] | None
    """Null until the run has ended."""


class AgentRunEvent(Answer):
    """An event of a run."""

    run: str
    sequence: int
    type: str


class ApprovalObject(Answer):
    """A call of a tool that waits for a decision."""

    object: Literal["agent.approval"]
    id: str
    run: str
    agent: str
    tool: str
    arguments: str
    target: str
    effects: list[str]
    folder: str
    reason: str


class ApprovalAnswer(Answer):
    """A decision that was taken."""

    id: str
    decision: str


class AgentToolEntry(Answer):
    """A tool that can be opened."""

    name: str
    description: str
    refused: str | None
    """Why it cannot be used here; null if it can."""


class AgentTools(ListAnswer[AgentToolEntry]):
    """The tools and MCP servers that can be opened."""

    mcp_servers: list[str]


class AgentToolsEvent(Answer):
    """An event of open tools."""

    type: str


class CallResultObject(Answer):
    """The result of a call."""

    call_id: str
    text: str
    state: str
    seconds: float


class CallResults(Answer):
    """The results of the calls of one answer."""

    object: Literal["agent.tool_round"]
    results: list[CallResultObject]
    may_call: bool
    """Whether further calls are left."""

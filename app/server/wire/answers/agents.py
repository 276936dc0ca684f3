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

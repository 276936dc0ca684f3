"""`AgentSpec`: what one specification file says about an agent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal

from agents.api.budget import Budget

Category = Literal["execution", "audit", "security", "design"]
PermissionMode = Literal["auto", "ask", "deny"]
MemoryScope = Literal["none", "user", "project", "agent"]


class Capability(StrEnum):
    """What a model was measured to do well enough, in ascending order."""

    NONE = "none"
    LABELS = "labels"
    TEXT = "text"
    REACT = "react"
    WRITE = "write"

    @property
    def rank(self) -> int:
        """0 for `none` to 4 for `write`."""
        return list(Capability).index(self)


@dataclass(frozen=True, slots=True)
class PlanWords:
    """How the planner knows an agent.

    Attributes:
        verbs: words by which a task asks for it.
        nouns: words that name its subject.
        product: what its output is called.
        done_when: when its step is finished.
        consumes: whether it works on the result before it, if its step names no file.
    """

    verbs: tuple[str, ...] = ()
    nouns: tuple[str, ...] = ()
    product: str = "findings"
    done_when: str = ""
    consumes: bool = False


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """One agent.

    Attributes:
        key: its unique name, such as `security_audit`.
        category: group of the roster.
        description: one sentence: what it does.
        card: the role card, at most 80 tokens, appended to the shared prompt.
        tools: names of the tools it may call, `final_answer` left out.
        detectors: names of the detectors whose findings it collects.
        output_schema: name of its output model in `agents.outputs`.
        requires: the capability below which it runs without the model.
        score_questions: names of the one-token decisions that it asks about each finding.
        permission_mode: for tools with side effects; `ask` and `deny` tighten the run's, `auto` leaves it.
        max_turns: steps of its ReAct loop, the final answer included.
        mcp_servers: names of configured MCP servers whose tools it may call.
        disallowed_tools: names of tools that it may not call, such as `server.tool` of an MCP server.
        memory: scope of the memories that it recalls.
        budget: its bounds.
        sampling: sampling parameters by name, such as `temperature`.
        checks: what it checks instead of doing its task: `output` for the input of that name, or a kind of
            files that belong together by name (`agents.detectors.text.conventions`); empty for nothing.
        plan: how the planner knows it.
        path: the specification file.
    """

    key: str
    category: Category
    description: str
    card: str
    tools: tuple[str, ...]
    detectors: tuple[str, ...]
    output_schema: str = "Findings"
    requires: Capability = Capability.LABELS
    score_questions: tuple[str, ...] = ()
    permission_mode: PermissionMode = "auto"
    max_turns: int = 5
    mcp_servers: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    memory: MemoryScope = "none"
    budget: Budget = field(default_factory=Budget)
    sampling: Mapping[str, float] = field(default_factory=dict)
    checks: str = ""
    plan: PlanWords = field(default_factory=PlanWords)
    path: Path | None = None

"""`MeasuredRun`: a run of which nothing is logged, for items that are measured as agents work."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from agents.api.agent_spec import AgentSpec
from agents.api.budget import Budget, BudgetMeter
from agents.api.events import RunEventType
from agents.api.finding import Finding
from agents.api.usage import Usage
from agents.tools.tool import Taint, Tool, ToolContext, ToolOutput

_TOKENS = 20_000


class MeasuredRun:
    """Implements `agents.steps.model_phase.ModelRun`.

    Attributes:
        spec: the agent.
        meter: a budget that no item needs to the end.
        usage: what was used.
    """

    def __init__(self, spec: AgentSpec, tools: Sequence[Tool] = ()) -> None:
        self.spec = spec
        self.meter = BudgetMeter(Budget(tokens=_TOKENS), started=0.0)
        self.usage = Usage()
        self._tools = list(tools)

    @property
    def tools(self) -> "MeasuredRun":
        """Itself."""
        return self

    @property
    def card(self) -> str:
        """The role card."""
        return self.spec.card

    def check_input(self, where: str, text: str) -> str:
        """The text: the items are harmless."""
        return text

    def permitted(self) -> list[Tool]:
        """All tools."""
        return self._tools

    def add_taint(self, labels: frozenset[Taint]) -> None:
        """Nothing: its tools read what the items say."""

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        """Call a tool."""
        tool = next(one for one in self._tools if one.name == name)
        checked = tool.arguments.model_validate(dict(arguments))
        return await tool.call(checked, ToolContext(root=Path()))

    async def findings_about(self, output: Any, source: str) -> list[Finding]:
        """Nothing: each item has a check of its own."""
        return []

    def untimed(self) -> AbstractContextManager[None]:
        """Its time does not count."""
        return nullcontext()

    def record(self, kind: RunEventType, **data: Any) -> None:
        """Nothing is logged."""

    def note(self, text: str) -> None:
        """Nobody is told."""

    def check_cancelled(self) -> None:
        """It is cancelled by cancelling its task."""

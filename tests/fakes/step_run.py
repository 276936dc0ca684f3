"""A run for tests of steps: real budget and event log, tools without approvals."""

from collections.abc import Mapping
from typing import Any

from agents.api.agent_spec import AgentSpec
from agents.api.budget import Budget, BudgetMeter
from agents.api.errors import Cancelled
from agents.api.events import RunEvent, RunEventType
from agents.api.usage import Usage
from agents.runs.event_log import EventLog
from agents.tools.tool import Taint, Tool, ToolContext, ToolOutput
from agents.workspace.workspace import Workspace


class FakeStepRun:
    """Implements `agents.steps.react.StepRun`.

    Attributes:
        calls: every tool call that was made.
        all_tools: the tools of the run.
        errors: raised by the calls of a tool, by its name.
    """

    def __init__(
        self,
        tools: tuple[Tool, ...] = (),
        *,
        tokens: int = 100_000,
        tool_calls: int = 100,
        **spec: Any,
    ) -> None:
        given = {"max_turns": 5, "output_schema": "Answer"} | spec
        self.spec = AgentSpec(
            key="tester",
            category="audit",
            description="Tests.",
            card="You test.",
            tools=tuple(tool.name for tool in tools),
            detectors=(),
            **given,
        )
        self.meter = BudgetMeter(Budget(tokens=tokens, tools=tool_calls), started=0.0)
        self.usage = Usage()
        self.tools = self
        self.log = EventLog("run-1", clock=lambda: 0.0)
        self.notes: list[str] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.errors: dict[str, Exception] = {}
        self.cancelled = False
        self.taint: frozenset[Taint] = frozenset()
        self.all_tools = tools

    def permitted(self) -> list[Tool]:
        return list(self.all_tools) if self.meter.tools_left > 0 else []

    def add_taint(self, labels: frozenset[Taint]) -> None:
        self.taint |= labels

    async def permit(self, name: str, arguments: Mapping[str, Any], *, reason: str) -> None:
        if name in self.errors:
            raise self.errors[name]

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        self.meter.use_tool()
        self.calls.append((name, dict(arguments)))
        if name in self.errors:
            raise self.errors[name]
        tool = next(one for one in self.all_tools if one.name == name)
        context = ToolContext(root=Workspace.of_texts({}).root)
        return await tool.call(tool.arguments.model_validate(dict(arguments)), context)

    @property
    def card(self) -> str:
        return self.spec.card

    def check_input(self, where: str, text: str) -> str:
        return text

    def record(self, kind: RunEventType, **data: Any) -> None:
        self.log.append(kind, agent=self.spec.key, **data)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def check_cancelled(self) -> None:
        if self.cancelled:
            raise Cancelled("The run was cancelled.")

    def events(self, kind: RunEventType) -> list[RunEvent]:
        return [event for event in self.log.since(0) if event.type is kind]

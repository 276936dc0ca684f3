"""`Procedure`: the part of an agent that needs no model, from a task to its output.

A procedure runs first, whether a model is loaded or not. The model then confirms, words or extends its output
(`agents.steps`).
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from agents.api.agent_spec import AgentSpec
from agents.api.finding import Finding
from agents.outputs.base import Output
from agents.tools.tool import Tool
from agents.workspace.workspace import Workspace

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class AgentTask:
    """What a run is asked to do.

    Attributes:
        text: the user's words; may be empty for auditors.
        workspace: the files to work on; may have none.
        document: a text to work on, such as standard input or an earlier result; may be empty.
        inputs: outputs of earlier nodes and other structured values by name, as JSON values.
        base: root of the state before the change, for comparisons, or None.
        conversation: id of the conversation that asked, within which "always" approvals hold; empty limits
            them to the run.
    """

    text: str = ""
    workspace: Workspace = field(default_factory=lambda: Workspace.of_texts({}))
    document: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    base: Path | None = None
    conversation: str = ""


class ProcedureContext(Protocol):
    """What a procedure may use. Calls are made from the event loop's thread."""

    @property
    def spec(self) -> AgentSpec:
        """The agent's specification."""
        ...

    async def detect(self, *names: str) -> list[Finding]:
        """Findings of detectors over the task's workspace, merged; of all the agent's if none is named.

        Raises:
            UnknownAgent: there is no such detector.
            Cancelled: the run was cancelled.
        """
        ...

    async def in_thread(self, function: Callable[..., Result], *args: Any) -> Result:
        """Run a function that computes for long or blocks on a worker thread."""
        ...

    @property
    def available_tools(self) -> Mapping[str, Tool]:
        """The tools that the agent may call, by name."""
        ...

    async def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call one of the agent's tools through permissions and budget; its output as JSON members.

        Raises:
            PermissionDenied: the agent may not call it, or an approver denied it.
            BudgetExhausted: no tool call is left.
            InvalidTask: the arguments do not match the tool's schema.
        """
        ...

    def note(self, text: str) -> None:
        """Tell the user something once, such as that a tool is missing."""
        ...

    def check_cancelled(self) -> None:
        """Raises `Cancelled` if the run was cancelled."""
        ...


Procedure = Callable[[AgentTask, ProcedureContext], Awaitable[Output]]

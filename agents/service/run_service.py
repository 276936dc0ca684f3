"""`RunService`: the interface of front ends to running agents, in this process or in a server."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from agents.api.agent_spec import PermissionMode
from agents.api.events import RunEvent
from agents.runs.approvals import ApprovalRequest, Decision
from agents.service.run_request import RunRequest
from agents.service.run_view import RunView
from agents.tool_loop.opening import ToolChoices
from agents.tool_loop.values import LoopEvent, ToolLoopRequest
from engine.api.tools import OpenTools

MAX_RUNS = 100
"""Finished runs that a service remembers."""


class RunService(Protocol):
    """The calls. Every method may be called from any thread and none waits for a run."""

    def start(self, request: RunRequest) -> str:
        """Start a run; its id.

        Raises:
            UnknownAgent: there is no such agent or pipeline.
            InvalidTask: a path is outside what the service may read, or too many runs are active.
        """
        ...

    def cancel(self, run: str) -> None:
        """Stop a run; unknown and finished ones are ignored."""
        ...

    def runs(self) -> Sequence[RunView]:
        """The active and the last finished runs, newest first."""
        ...

    def events(self, run: str, since: int) -> Sequence[RunEvent]:
        """The events of a run from number `since` on; empty for an unknown run."""
        ...

    def result(self, run: str) -> dict[str, Any] | None:
        """The result as JSON members once the run has finished, else None."""
        ...

    def approvals(self) -> Sequence[ApprovalRequest]:
        """The tool calls that wait for a decision, oldest first."""
        ...

    def decide(self, approval: str, decision: Decision, *, reason: str = "") -> bool:
        """Answer a request; False if somebody else has, or it is unknown. Over HTTP always True."""
        ...

    def catalogue(self) -> Sequence[dict[str, Any]]:
        """Agents, pipelines and the repair: `kind`, `name`, `category`, `description`."""
        ...

    def open_tools(self, wanted: ToolLoopRequest, report: Callable[[LoopEvent], None]) -> OpenTools:
        """Open the tools of an answer to a person; the caller closes them.

        Args:
            wanted: which tools.
            report: is given what happens, on any thread; it must return at once.

        Raises:
            InvalidTask, InvalidSpec: a tool or a server is unknown or cannot be used here.
        """
        ...

    def tool_choices(self, mode: PermissionMode, root: Path | None) -> ToolChoices:
        """Which tools `open_tools` can be asked for. Opens the agents, which reads files, or asks a server.

        Raises:
            InvalidTask: none here.
        """
        ...

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback`, on any thread, when a run or an approval changes; returns how to stop.

        The callback must return at once.
        """
        ...

    def close(self) -> None:
        """Stop all runs."""
        ...

"""`ConfinedRunService`: a service whose new runs may read files beneath some folders only.

The screen's own runs read what the person names. The same runs are shown and approved over HTTP, but a
client of that may not choose files as freely.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agents.api.agent_spec import PermissionMode
from agents.api.events import RunEvent
from agents.runs.approvals import ApprovalRequest, Decision
from agents.service.paths import paths_beneath
from agents.service.run_request import RunRequest
from agents.service.run_service import RunService
from agents.service.run_view import RunView
from agents.tool_loop.opening import ToolChoices
from agents.tool_loop.values import LoopEvent, ToolLoopRequest
from engine.api.tools import OpenTools


class ConfinedRunService:
    """A `RunService` over another one, which the caller closes."""

    def __init__(self, service: RunService, roots: Sequence[Path]) -> None:
        """Confine a service.

        Args:
            service: runs the agents.
            roots: folders that the paths of new runs must be beneath; without any, no path is allowed.
        """
        self._service = service
        self._roots = [root.resolve() for root in roots]

    def start(self, request: RunRequest) -> str:
        """See `RunService.start`."""
        paths = tuple(str(path) for path in paths_beneath(request.paths, self._roots))
        return self._service.start(replace(request, paths=paths))

    def cancel(self, run: str) -> None:
        """See `RunService.cancel`."""
        self._service.cancel(run)

    def runs(self) -> Sequence[RunView]:
        """See `RunService.runs`."""
        return self._service.runs()

    def events(self, run: str, since: int) -> Sequence[RunEvent]:
        """See `RunService.events`."""
        return self._service.events(run, since)

    def result(self, run: str) -> dict[str, Any] | None:
        """See `RunService.result`."""
        return self._service.result(run)

    def approvals(self) -> Sequence[ApprovalRequest]:
        """See `RunService.approvals`."""
        return self._service.approvals()

    def decide(self, approval: str, decision: Decision, *, reason: str = "") -> bool:
        """See `RunService.decide`."""
        return self._service.decide(approval, decision, reason=reason)

    def catalogue(self) -> Sequence[dict[str, Any]]:
        """See `RunService.catalogue`."""
        return self._service.catalogue()

    def open_tools(self, wanted: ToolLoopRequest, report: Callable[[LoopEvent], None]) -> OpenTools:
        """See `RunService.open_tools`; the root is the first of the folders."""
        return self._service.open_tools(replace(wanted, root=self._root), report)

    def tool_choices(self, mode: PermissionMode, root: Path | None) -> ToolChoices:
        """See `RunService.tool_choices`."""
        return self._service.tool_choices(mode, self._root)

    @property
    def _root(self) -> Path | None:
        return self._roots[0] if self._roots else None

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """See `RunService.on_change`."""
        return self._service.on_change(callback)

    def close(self) -> None:
        """Nothing: the runs are those of the service below, which its owner closes."""

"""A `RunService` whose runs are events that a test appends."""

from collections.abc import Callable, Sequence
from typing import Any

from agents.api.events import RunEvent, RunEventType
from agents.runs.approvals import ApprovalRequest, Decision
from agents.runs.event_log import EventLog
from agents.service.run_request import RunRequest
from agents.service.run_view import RunView, fold

CATALOGUE = (
    {"kind": "agent", "name": "security_audit", "category": "security", "description": "Looks."},
    {"kind": "pipeline", "name": "code-review", "category": "pipeline", "description": "Reviews."},
    {"kind": "repair", "name": "repair", "category": "repair", "description": "Repairs."},
)


class FakeRunService:
    def __init__(self, clock: Callable[[], float] = lambda: 1_700_003_590.0) -> None:
        self.clock = clock
        self.requests: list[RunRequest] = []
        self.logs: dict[str, EventLog] = {}
        self.results: dict[str, dict[str, Any]] = {}
        self.pending: list[ApprovalRequest] = []
        self.decisions: list[tuple[str, Decision]] = []
        self.reasons: list[str] = []
        self.cancelled: list[str] = []
        self._callbacks: list[Callable[[], None]] = []

    # What a test does.

    def append(self, run: str, kind: RunEventType, *, node: str = "", agent: str = "", **data: Any):
        self.logs[run].append(kind, node=node, agent=agent, **data)
        self.changed()

    def changed(self) -> None:
        for callback in self._callbacks:
            callback()

    # RunService.

    def start(self, request: RunRequest) -> str:
        run = f"run-{len(self.requests)}"
        self.requests.append(request)
        self.logs[run] = EventLog(run, clock=self.clock)
        self.append(run, RunEventType.RUN_STATE, state="running")
        return run

    def cancel(self, run: str) -> None:
        self.cancelled.append(run)

    def runs(self) -> Sequence[RunView]:
        return [
            fold(RunView(run, request.name, request.task), log.since(0))
            for (run, log), request in zip(
                reversed(self.logs.items()), reversed(self.requests), strict=True
            )
        ]

    def events(self, run: str, since: int) -> Sequence[RunEvent]:
        return self.logs[run].since(since)

    def result(self, run: str) -> dict[str, Any] | None:
        return self.results.get(run)

    def approvals(self) -> Sequence[ApprovalRequest]:
        return tuple(self.pending)

    def decide(self, approval: str, decision: Decision, *, reason: str = "") -> bool:
        if all(one.id != approval for one in self.pending):
            return False
        self.decisions.append((approval, decision))
        self.reasons.append(reason)
        self.pending = [one for one in self.pending if one.id != approval]
        self.changed()
        return True

    def catalogue(self) -> Sequence[dict[str, Any]]:
        return CATALOGUE

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    def close(self) -> None:
        pass

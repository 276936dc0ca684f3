"""`LocalRunService`: runs agents on an event loop in a thread of its own.

Detectors and tools may compute for long; the thread keeps them off the front end's loop.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.api.agent_spec import PermissionMode
from agents.api.budget import Budget
from agents.api.errors import AgentError, InvalidTask
from agents.api.events import RunEvent, RunState
from agents.runs.approvals import ApprovalRequest, Decision
from agents.runs.event_log import EventLog
from agents.service.loop_thread import LoopThread
from agents.service.paths import paths_beneath
from agents.service.run_request import REPAIR, RunRequest
from agents.service.run_service import MAX_RUNS
from agents.service.run_view import RunView, fold
from agents.service.tool_session import ToolSession
from agents.tool_loop.opening import ToolChoices, chosen_tools, open_loop, tool_choices
from agents.tool_loop.values import LoopEvent, ToolLoopRequest

if TYPE_CHECKING:
    from agents.cluster import Cluster
    from agents.repair.repair_run import RepairOptions

MAX_ACTIVE = 8
MAX_SESSIONS = 32
"""Chats whose tools are open at a time."""
_CLOSE_S = 5.0


@dataclass(slots=True)
class _Run:
    request: RunRequest
    view: RunView
    cancelled: asyncio.Event
    log: EventLog | None = None
    result: dict[str, Any] | None = None
    task: "asyncio.Task[None] | None" = field(default=None, repr=False)


class LocalRunService:
    """A `RunService` over a cluster that is used by nobody else."""

    def __init__(
        self, open_cluster: "Callable[[], Cluster]", *, roots: Sequence[Path] | None = None
    ) -> None:
        """Start the thread.

        Args:
            open_cluster: called once, in the thread, when the first run or catalogue is asked for.
            roots: folders that all paths must be beneath, relative ones beneath the first; None allows
                any path, an empty sequence none.
        """
        self._open_cluster = open_cluster
        self._roots = None if roots is None else [root.resolve() for root in roots]
        self._cluster: Cluster | None = None
        self._opening = threading.Lock()
        self._runs: dict[str, _Run] = {}
        self._sessions: set[ToolSession] = set()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []
        self._loop = LoopThread("agents")

    # RunService.

    def start(self, request: RunRequest) -> str:
        """See `RunService.start`."""
        from agents.pipelines.pipeline_file import (
            find_pipeline,  # the screen's start does not need it
        )

        cluster = self._opened()
        if request.kind == "agent":
            cluster.roster.get(request.name)
        elif request.kind == "pipeline":
            find_pipeline(request.name, cluster.pipelines)
        elif len(request.paths) != 1:
            raise InvalidTask("A repair takes one file or folder.")
        self._paths(request)
        with self._lock:
            if sum(run.result is None for run in self._runs.values()) >= MAX_ACTIVE:
                raise InvalidTask(f"{MAX_ACTIVE} runs are active: wait for one, or stop one.")
        try:
            return self._loop.submit(self._begin(cluster, request)).result()
        except CancelledError:
            raise InvalidTask("The agents have been closed.") from None

    def cancel(self, run: str) -> None:
        """See `RunService.cancel`."""
        found = self._runs.get(run)
        if found is not None:
            self._loop.call_soon(found.cancelled.set)

    def runs(self) -> Sequence[RunView]:
        """See `RunService.runs`."""
        with self._lock:
            for run in self._runs.values():
                if run.log is not None and len(run.log) > run.view.num_events:
                    run.view = fold(run.view, run.log.since(run.view.num_events))
            return [run.view for run in reversed(self._runs.values())]

    def events(self, run: str, since: int) -> Sequence[RunEvent]:
        """See `RunService.events`."""
        found = self._runs.get(run)
        return [] if found is None or found.log is None else found.log.since(max(0, since))

    def result(self, run: str) -> dict[str, Any] | None:
        """See `RunService.result`."""
        found = self._runs.get(run)
        return None if found is None else found.result

    def approvals(self) -> Sequence[ApprovalRequest]:
        """See `RunService.approvals`."""
        return () if self._cluster is None else self._cluster.approvals.pending

    def decide(self, approval: str, decision: Decision, *, reason: str = "") -> bool:
        """See `RunService.decide`."""
        if self._cluster is None:
            return False
        approvals = self._cluster.approvals

        async def answer() -> bool:
            return approvals.decide(approval, decision, reason=reason)

        try:
            return self._loop.submit(answer()).result()
        except CancelledError:
            return False  # closed, and all that waited for an approval with it

    def catalogue(self) -> Sequence[dict[str, Any]]:
        """See `RunService.catalogue`."""
        cluster = self._opened()
        agents = [
            {
                "kind": "agent",
                "name": spec.key,
                "category": spec.category,
                "description": spec.description,
            }
            for spec in cluster.roster
        ]
        pipelines = [
            {
                "kind": "pipeline",
                "name": one.name,
                "category": "pipeline",
                "description": one.description,
            }
            for one in cluster.pipelines.values()
        ]
        repair = {
            "kind": REPAIR,
            "name": REPAIR,
            "category": REPAIR,
            "description": "Audits a project and repairs what its tests can prove, in a copy.",
        }
        return [*agents, *pipelines, repair]

    def open_tools(
        self, wanted: ToolLoopRequest, report: Callable[[LoopEvent], None]
    ) -> ToolSession:
        """See `RunService.open_tools`."""
        wanted = replace(wanted, root=self._root(wanted.root))
        means = self._opened().loop_means
        if wanted.mcp is not None:
            means = replace(means, mcp=wanted.mcp)
        chosen_tools(wanted, means)  # refuses at once
        with self._lock:
            self._sessions = {one for one in self._sessions if not one.closed}
            if len(self._sessions) >= MAX_SESSIONS:
                raise InvalidTask(
                    f"{MAX_SESSIONS} chats are calling tools: wait for one, or stop one."
                )
            session = ToolSession(lambda: open_loop(wanted, means, report), self._loop)
            self._sessions.add(session)
        return session

    def tool_choices(self, mode: PermissionMode, root: Path | None) -> ToolChoices:
        """See `RunService.tool_choices`."""
        return tool_choices(self._opened().loop_means, mode, self._root(root))

    def _root(self, wanted: Path | None) -> Path | None:
        if self._roots is None:
            return wanted
        return self._roots[0] if self._roots else None

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """See `RunService.on_change`."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    def close(self) -> None:
        """See `RunService.close`."""
        for session in tuple(self._sessions):
            session.close()
        for run in tuple(self._runs.values()):
            self._loop.call_soon(run.cancelled.set)
        self._loop.close(self._finish(), within_s=_CLOSE_S)

    # Internal.

    async def _finish(self) -> None:
        """Wait for what runs, but not for long."""
        tasks: list[asyncio.Task[Any]] = [
            run.task for run in self._runs.values() if run.task is not None
        ]
        tasks += [task for one in self._sessions for task in one.tasks]
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSE_S / 2)

    def _opened(self) -> "Cluster":
        with self._opening:
            if self._cluster is None:
                cluster = self._open_cluster()
                cluster.approvals.on_change(self._changed)
                self._cluster = cluster
            return self._cluster

    def _paths(self, request: RunRequest) -> tuple[Path, ...]:
        if self._roots is None:
            return tuple(Path(path) for path in request.paths)
        return paths_beneath(request.paths, self._roots)

    async def _begin(self, cluster: "Cluster", request: RunRequest) -> str:
        started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        run = _Run(request, RunView("", request.name, request.task[:200]), asyncio.Event())
        run.task = asyncio.ensure_future(self._execute(cluster, run, started))
        return await started

    async def _execute(self, cluster: "Cluster", run: _Run, started: "asyncio.Future[str]") -> None:
        request = run.request
        run_id = ""

        def begin(opened: Any) -> None:
            nonlocal run_id
            run_id = opened.id
            run.log = opened.log
            run.view = RunView(run_id, request.name, request.task[:200])
            run.log.follow(lambda event: self._changed())
            self._remember(run_id, run)
            if not started.done():
                started.set_result(run_id)

        budget = _budget(request, cluster)
        paths = self._paths(request)
        try:
            if request.kind == "agent":
                done = await cluster.run(
                    request.name,
                    paths,
                    task=request.task,
                    document=request.document,
                    budget=budget,
                    cancelled=run.cancelled,
                    use_model=request.use_model,
                    mode=request.mode,
                    conversation=request.conversation,
                    on_start=begin,
                )
                run.result = dict(done.fields())
            elif request.kind == "repair":
                repaired = await cluster.repair(
                    paths[0],
                    options=_repair_options(request),
                    within=self._roots,
                    cancelled=run.cancelled,
                    use_model=request.use_model,
                    on_start=begin,
                )
                run.result = dict(repaired.fields())
            else:
                graph = await cluster.run_pipeline(
                    request.name,
                    paths,
                    task=request.task,
                    document=request.document,
                    budget=budget,
                    cancelled=run.cancelled,
                    use_model=request.use_model,
                    mode=request.mode,
                    conversation=request.conversation,
                    on_start=begin,
                )
                run.result = graph.fields()
        except (AgentError, OSError) as error:
            if not started.done():
                started.set_exception(error)
                return
            run.result = {"run": run_id, "state": RunState.FAILED.value, "error": str(error)}
        self._changed()

    def _remember(self, run_id: str, run: _Run) -> None:
        with self._lock:
            finished = [one for one, kept in self._runs.items() if kept.result is not None]
            for one in finished[: max(0, len(self._runs) - MAX_RUNS)]:
                del self._runs[one]
            self._runs[run_id] = run

    def _changed(self) -> None:
        for callback in tuple(self._callbacks):
            callback()


def _repair_options(request: RunRequest) -> "RepairOptions":
    from agents.repair.repair_run import BUDGET, RepairOptions

    budget = BUDGET.tightened(tokens=request.tokens, seconds=request.seconds)
    return RepairOptions(mode=request.mode, budget=budget)


def _budget(request: RunRequest, cluster: "Cluster") -> Budget | None:
    if request.kind == "repair" or (request.tokens is None and request.seconds is None):
        return None
    if request.kind == "agent":
        return cluster.roster.get(request.name).budget.tightened(
            tokens=request.tokens, seconds=request.seconds
        )
    pipeline = cluster.pipelines[request.name]
    return Budget(pipeline.tokens, pipeline.seconds).tightened(
        tokens=request.tokens, seconds=request.seconds
    )

"""`PipelineRun`: runs a pipeline's nodes as their needs finish.

Every node ends in one state of `RunState`; nothing waits for a node that cannot run. A failed required node
skips its dependants at once and fails the run; a failed optional node is a gap that its dependants mention.
Each result is on disk before a dependant starts; if the disk takes no more, the run goes on and says so.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agents.api.agent_spec import PermissionMode
from agents.api.budget import Budget
from agents.api.errors import AgentError, InvalidTask
from agents.api.events import RunEvent, RunEventType, RunState
from agents.api.finding import finding_from_fields
from agents.api.usage import Usage
from agents.pipelines.pipeline import Condition, Node, Pipeline
from agents.pipelines.pipeline_file import find_pipeline
from agents.pipelines.templates import fill
from agents.plugins.registry import Registry
from agents.procedures.procedure import AgentTask
from agents.procedures.reducers import findings
from agents.roster.roster import Roster
from agents.runs.agent_run import AgentRun, ModelPhase, detector_results, inputs_of, new_run_id
from agents.runs.approvals import Approvals
from agents.runs.detection import DetectorResults
from agents.runs.event_log import EventLog
from agents.runs.result import RunResult, result_from_fields
from agents.runs.run_guard import RunGuard
from agents.runs.run_memory import FinishedRun, RunMemory, remembered
from agents.runs.run_store import RunStore
from agents.runs.tool_settings import ToolSettings
from agents.tools.tool import Taint

MAX_DEPTH = 2
RETRY_DELAY_S = 0.5


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """What a pipeline delivers.

    Attributes:
        run: its id.
        pipeline: its name.
        state: how it finished.
        nodes: results by node, in the order of the graph.
        output: name of the node whose output is the run's.
        usage: of all nodes; seconds are wall time.
        error: one sentence if it failed.
    """

    run: str
    pipeline: str
    state: RunState
    nodes: Mapping[str, RunResult]
    output: str
    usage: Usage = field(default_factory=Usage)
    error: str = ""

    @property
    def result(self) -> RunResult | None:
        """The result of the output node, or None if it did not run."""
        return self.nodes.get(self.output)

    @property
    def notes(self) -> list[str]:
        """Of nodes without a result why, and what the nodes had to say, each once."""
        missing = [
            f"{name}: {node.error}"
            for name, node in self.nodes.items()
            if node.state is not RunState.OK and node.error
        ]
        return list(
            dict.fromkeys([*missing, *(n for one in self.nodes.values() for n in one.notes)])
        )

    def fields(self) -> dict[str, Any]:
        """The result as JSON members: those of `pravaha pipelines run --json`."""
        found = findings(self.nodes).model_dump(mode="json")["findings"]
        output = self.result
        return {
            "run": self.run,
            "pipeline": self.pipeline,
            "state": self.state.value,
            "error": self.error or None,
            "findings": found,
            "output": None if output is None else output.fields()["output"],
            "notes": self.notes,
            "nodes": {name: node.fields() for name, node in self.nodes.items()},
            "seconds": round(self.usage.seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class Means:
    """What all runs of a cluster share.

    Attributes:
        registry: detectors, tools, outputs, procedures.
        roster: the agents.
        pipelines: by name.
        approvals: where tool calls wait for a decision.
        mode: permission mode.
        model: the model phase, or None.
        store: where results are kept, or None to keep nothing.
        guard: checks what the model reads and writes, or None.
        memory: where runs recall from and leave an episode, or None.
        settings: what the user decided about tools.
    """

    registry: Registry
    roster: Roster
    pipelines: dict[str, Pipeline]
    approvals: Approvals
    mode: PermissionMode = "ask"
    model: ModelPhase | None = None
    store: RunStore | None = None
    guard: RunGuard | None = None
    memory: RunMemory | None = None
    settings: ToolSettings = field(default_factory=ToolSettings)


class PipelineRun:
    """One run of a pipeline. Use from one event loop."""

    def __init__(
        self,
        pipeline: Pipeline,
        task: AgentTask,
        means: Means,
        *,
        cancelled: asyncio.Event | None = None,
        run: str = "",
        request: Mapping[str, Any] | None = None,
        finished: Mapping[str, Mapping[str, Any]] | None = None,
        parent: str = "",
        depth: int = 1,
        taint: frozenset[Taint] = frozenset({Taint.TRUSTED}),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare a run.

        Args:
            pipeline: a checked pipeline.
            task: what to do.
            means: what runs share.
            cancelled: set to stop the run.
            run: id of a stored run that is resumed; empty begins a new one.
            request: how the run can be opened again, stored with it.
            finished: stored results of a resumed run.
            parent: id of the run that started this one.
            depth: 1, or 2 for a pipeline inside a pipeline.
            taint: labels of what the task's inputs were derived from.
            clock: monotonic seconds.
        """
        self.id = run or new_run_id()
        self.pipeline = pipeline
        self.states = dict.fromkeys(pipeline.order(), RunState.PENDING)
        self.results: dict[str, RunResult] = {}
        self.log = EventLog(self.id, parent=parent)
        self._task = task
        self._means = means
        self._cancelled = cancelled or asyncio.Event()
        self._request = dict(request or {})
        self._depth = depth
        self._taint = taint
        self._clock = clock
        self._began = clock()
        self._tokens_left = pipeline.tokens
        self._detection: DetectorResults = detector_results(task, self._cancelled)
        self._stored_events = 0
        self._store = means.store
        self._reasons: dict[str, str] = {}
        for name, fields in (finished or {}).items():
            if name in self.states and fields["state"] == RunState.OK.value:
                self.results[name] = result_from_fields(fields, means.registry.outputs)
                self.states[name] = RunState.OK

    async def execute(self) -> PipelineResult:
        """Run to the end; what an agent does never raises here."""
        pipeline = self.pipeline
        self._save(
            lambda store: store.begin(
                self.id, pipeline.name, pipeline.source, self._request, now=time.time()
            )
        )
        self._event(
            RunEventType.RUN_STATE,
            state=RunState.RUNNING.value,
            pipeline=self.pipeline.name,
            nodes={name: self.pipeline.nodes[name].agent for name in self.states},
        )
        self._event(
            RunEventType.BUDGET,
            max_tokens=self.pipeline.tokens,
            max_seconds=self.pipeline.seconds,
        )
        state, error = RunState.OK, ""
        running: dict[asyncio.Task[RunResult], str] = {}
        try:
            async with asyncio.timeout(max(0.0, self._seconds_left())):
                await self._run_nodes(running)
        except TimeoutError:
            state, error = (
                RunState.TIMED_OUT,
                f"The budget of {self.pipeline.seconds:g} s is used up.",
            )
        finally:
            await self._stop(running)
        if self._cancelled.is_set():
            state, error = RunState.CANCELLED, "The run was cancelled."
        failed = self._failed_required()
        if state is RunState.OK and failed:
            reason = self.results[failed].error if failed in self.results else self._reasons[failed]
            state, error = RunState.FAILED, f"{failed}: {reason}"
        result = self._result_of(state, error)
        await self._remember(result)
        self._finish(result)
        return result

    async def _remember(self, result: PipelineResult) -> None:
        """Leave the episode of the run."""
        if self._means.memory is None:
            return
        found = findings(result.nodes).findings
        finished = FinishedRun(
            run=self.id,
            origin=self.pipeline.name,
            task=self._task,
            state=result.state,
            error=result.error,
            findings=[finding_from_fields(one.model_dump()) for one in found],
            usage=result.usage,
            events=self.log.since(0),
            taint=self.taint,
        )
        data = await asyncio.to_thread(remembered, self._means.memory, finished)
        if data is not None:
            self._event(RunEventType.MEMORY, **data)

    def _seconds_left(self) -> float:
        return self._began + self.pipeline.seconds - self._clock()

    async def _run_nodes(self, running: dict[asyncio.Task[RunResult], str]) -> None:
        while not self._cancelled.is_set():
            self._start_ready(running)
            if not running:
                return
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                self._settle(running.pop(task), task.result())

    def _start_ready(self, running: dict[asyncio.Task[RunResult], str]) -> None:
        for name in self.states:
            node = self.pipeline.nodes[name]
            if self.states[name] is not RunState.PENDING:
                continue
            if not all(self.states[need].finished for need in node.needs):
                continue
            reason = self._skip_reason(node)
            if reason:
                self._set_state(name, RunState.SKIPPED, reason)
            elif len(running) < self.pipeline.concurrency:
                self._set_state(name, RunState.RUNNING)
                running[asyncio.ensure_future(self._run_node(node))] = name

    def _skip_reason(self, node: Node) -> str:
        for need in node.needs:
            needed = self.pipeline.nodes[need]
            if self.states[need] is not RunState.OK and needed.required and not _asks(node, need):
                return f"{need} did not succeed"
        if node.when is not None and not _holds(node.when, self.results.get(node.when.node)):
            return f"the condition on {node.when.node} does not hold"
        return ""

    async def _run_node(self, node: Node) -> RunResult:
        for attempt in range(node.retries + 1):
            if attempt:
                await asyncio.sleep(RETRY_DELAY_S * 2 ** (attempt - 1))
            try:
                async with asyncio.timeout(node.timeout_s):
                    result = await self._attempt(node)
            except TimeoutError:
                error = f"It did not finish within {node.timeout_s:g} s."
                result = self._result(node, RunState.TIMED_OUT, error)
            except AgentError as failure:
                result = self._result(node, RunState.FAILED, str(failure))
            if result.state in (RunState.OK, RunState.CANCELLED):
                break
        return result

    async def _attempt(self, node: Node) -> RunResult:
        needed = {name: self.results[name] for name in node.needs if name in self.results}
        taint = self._taint.union(*(result.taint for result in needed.values()))
        if node.reduce is not None:
            return replace(self._reduced(node, node.reduce, needed), taint=taint)
        task = self._node_task(node, needed)
        if node.pipeline:
            return await self._run_pipeline(node, task, needed, taint)
        spec = self._means.roster.get(node.agent)
        tokens = min(spec.budget.tokens, self._tokens_left)
        self._tokens_left -= tokens
        own = task.workspace is self._task.workspace
        run = AgentRun(
            spec,
            task,
            self._means.registry,
            results=self._detection if own else detector_results(task, self._cancelled),
            cancelled=self._cancelled,
            approvals=self._means.approvals,
            mode=self._means.mode,
            budget=Budget(tokens, min(spec.budget.seconds, node.timeout_s), spec.budget.tools),
            model=self._means.model if tokens else None,
            guard=self._means.guard,
            memory=self._means.memory,
            records_episode=False,
            log=self.log,
            node=node.name,
            settings=self._means.settings,
            taint=taint,
            clock=self._clock,
        )
        if self._means.model is not None and not tokens:
            run.note("The pipeline's tokens are used up: this ran without the model.")
        for gap in self._gaps(node):
            run.note(gap)
        try:
            result = await run.execute()
            return replace(result, state=_node_state(result))
        finally:
            self._tokens_left += tokens - min(tokens, run.meter.tokens_used)

    def _reduced(self, node: Node, name: str, needed: Mapping[str, RunResult]) -> RunResult:
        """The result of a node that joins others.

        Raises:
            AgentError: the reducer is not registered any more, or it raised.
        """
        try:
            output = self._means.registry.reducers[name](needed)
        except Exception as error:  # a plugin's code: anything may be raised
            raise AgentError(
                f"The reducer {name} failed: {type(error).__name__}: {error!s:.200}."
            ) from error
        return replace(self._result(node, RunState.OK, ""), output=output)

    def _gaps(self, node: Node) -> list[str]:
        return [
            f"The result of {need} is missing: {self._reasons.get(need, 'it failed').rstrip('.')}."
            for need in node.needs
            if self.states[need] is not RunState.OK
        ]

    def _node_task(self, node: Node, needed: Mapping[str, RunResult]) -> AgentTask:
        outputs = inputs_of(needed)
        values = {**outputs, "task": self._task.text, "document": self._task.document}
        inputs = {**self._task.inputs, **outputs}
        gaps = self._gaps(node)
        return replace(
            self._task,
            text=fill(node.task or "{task}", values),
            document=fill(node.document, values) if node.document else self._task.document,
            inputs={**inputs, "gaps": gaps} if gaps else inputs,
        )

    async def _run_pipeline(
        self,
        node: Node,
        task: AgentTask,
        needed: Mapping[str, RunResult],
        taint: frozenset[Taint],
    ) -> RunResult:
        if self._depth >= MAX_DEPTH:
            raise InvalidTask(f"Pipelines may be nested {MAX_DEPTH} deep.")
        name = fill(node.pipeline, inputs_of(needed))
        pipeline = find_pipeline(name, self._means.pipelines)
        inner = PipelineRun(
            replace(pipeline, tokens=min(pipeline.tokens, self._tokens_left)),
            task,
            replace(self._means, store=None, memory=self._inner_memory()),
            cancelled=self._cancelled,
            parent=self.id,
            depth=self._depth + 1,
            taint=taint,
            clock=self._clock,
        )
        inner.log.follow(lambda event: self._relay(node, event))
        result = await inner.execute()
        output = None if result.result is None else result.result.output
        if output is None or not hasattr(output, "findings"):
            output = findings(result.nodes) if output is None else output
        self._tokens_left -= min(self._tokens_left, result.usage.computed_tokens)
        return replace(
            self._result(node, result.state, result.error),
            agent=name,
            output=output,
            usage=result.usage,
            taint=taint.union(*(one.taint for one in result.nodes.values())),
        )

    def _inner_memory(self) -> RunMemory | None:
        """The memory of a pipeline inside of this one, whose episode is this one's."""
        memory = self._means.memory
        return None if memory is None else replace(memory, records=False)

    @property
    def taint(self) -> frozenset[Taint]:
        """Labels of everything that the nodes have read."""
        return self._taint.union(*(result.taint for result in self.results.values()))

    def _relay(self, node: Node, event: RunEvent) -> None:
        name = f"{node.name}/{event.node}" if event.node else node.name
        self.log.append(event.type, node=name, agent=event.agent, **event.data)

    def _result(self, node: Node, state: RunState, error: str) -> RunResult:
        return RunResult(self.id, node.agent or node.name, state, error=error)

    def _settle(self, name: str, result: RunResult) -> None:
        self.results[name] = result
        if result.state is RunState.OK:
            fields = dict(result.stored_fields())
            self._save(
                lambda store: store.put_node(self.id, name, result.state, fields, now=time.time())
            )
        self._set_state(name, result.state, result.error)

    def _set_state(self, name: str, state: RunState, reason: str = "") -> None:
        self.states[name] = state
        if reason:
            self._reasons[name] = reason
        agent = self.pipeline.nodes[name].agent
        self.log.append(
            RunEventType.NODE_STATE, node=name, agent=agent, state=state.value, reason=reason
        )
        self._store_events()

    def _failed_required(self) -> str:
        bad = (RunState.FAILED, RunState.TIMED_OUT, RunState.DENIED, RunState.EXHAUSTED)
        return next(
            (
                name
                for name, state in self.states.items()
                if state in bad and self.pipeline.nodes[name].required
            ),
            "",
        )

    async def _stop(self, running: dict[asyncio.Task[RunResult], str]) -> None:
        """Cancel what still runs; its findings so far are not kept."""
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for name in running.values():
            self._set_state(name, RunState.CANCELLED, "the run ended")
        for name, state in self.states.items():
            if state is RunState.PENDING:
                self._set_state(name, RunState.SKIPPED, "the run ended")

    def _finish(self, result: PipelineResult) -> None:
        self._event(RunEventType.RUN_STATE, state=result.state.value, error=result.error)
        self._save(lambda store: store.finish(self.id, result.state, now=time.time()))
        self._store_events()

    def _result_of(self, state: RunState, error: str) -> PipelineResult:
        usage = Usage()
        for result in self.results.values():
            usage = usage.plus(result.usage)
        return PipelineResult(
            run=self.id,
            pipeline=self.pipeline.name,
            state=state,
            nodes={name: self.results[name] for name in self.states if name in self.results},
            output=self.pipeline.output,
            usage=replace(usage, seconds=self._clock() - self._began),
            error=error,
        )

    def _event(self, kind: RunEventType, **data: Any) -> None:
        self.log.append(kind, **data)

    def _store_events(self) -> None:
        fresh = self.log.since(self._stored_events)
        self._save(lambda store: store.put_events(self.id, fresh))
        self._stored_events += len(fresh)

    def _save(self, write: Callable[[RunStore], None]) -> None:
        """Write to the store, if there is one. After a failure nothing more is written."""
        if self._store is None:
            return
        try:
            write(self._store)
        except sqlite3.Error as error:
            self._store = None
            self._event(
                RunEventType.ERROR,
                text=f"The run is not saved any more ({error}): resuming it would begin at the last node "
                "that was.",
            )


def _asks(node: Node, need: str) -> bool:
    """Whether the node runs when `need` failed, because its condition asks for that."""
    return node.when is not None and node.when.node == need and node.when.failed is True


def _node_state(result: RunResult) -> RunState:
    """A node that ran out of budget after it had an output succeeded, with a note."""
    if result.state is RunState.EXHAUSTED and result.output is not None:
        return RunState.OK
    return result.state


def _holds(condition: Condition, result: RunResult | None) -> bool:
    """Whether a node's condition holds for the result that it looks at."""
    succeeded = result is not None and result.state is RunState.OK
    if condition.failed is not None and condition.failed == succeeded:
        return False
    output = None if result is None else result.output
    if condition.findings is not None:
        found = [] if result is None else result.findings
        if not any(one.severity.at_least(condition.findings) for one in found):
            return False
    if condition.label is not None and getattr(output, "label", None) != condition.label:
        return False
    return condition.passed is None or getattr(output, "passed", None) == condition.passed

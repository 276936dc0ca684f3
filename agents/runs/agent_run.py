"""`AgentRun`: one agent at work on one task, from pending to its result.

The procedure runs first and needs no model. Then the model phase, if there is one and the model is capable
enough, confirms, words or extends its output. If that fails or the budget ends, the procedure's output
stands.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

from agents.api.agent_spec import AgentSpec, PermissionMode
from agents.api.budget import Budget, BudgetMeter
from agents.api.errors import AgentError, BudgetExhausted, Cancelled, PermissionDenied
from agents.api.events import RunEventType, RunState
from agents.api.finding import Finding, finding_fields
from agents.api.usage import Usage
from agents.detectors.detector import DetectorContext
from agents.memory.render import render_memories
from agents.outputs.base import Output
from agents.outputs.findings import FindingRecord, Findings
from agents.plugins.registry import Registry
from agents.procedures.deliver import deliver
from agents.procedures.procedure import AgentTask, Result
from agents.runs.approvals import Approvals
from agents.runs.detection import DetectorResults
from agents.runs.event_log import EventLog
from agents.runs.mcp_tools import RunMcp
from agents.runs.result import RunResult
from agents.runs.run_guard import GuardedText, RunGuard
from agents.runs.run_memory import FinishedRun, RunMemory, remembered
from agents.runs.tool_executor import ToolExecutor, stricter
from agents.runs.tool_settings import ToolSettings
from agents.tools.sensitive import FILE_TAINT, taint_of
from agents.tools.tool import Taint, Tool, ToolContext
from agents.workspace.workspace import Workspace

_LOG = logging.getLogger(__name__)
_STOPPED_WAIT_S = 1.0
"""How long a run whose clock is stopped waits before it looks at the clock again."""


class ModelPhase(Protocol):
    """The part of a run in which the model takes part."""

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    async def __call__(self, task: AgentTask, output: Output, run: "AgentRun") -> Output:
        """The procedure's output as the model confirms, words or extends it; notes go to `run.note`.

        Raises:
            BudgetExhausted: a budget has ended; the procedure's output stands.
            Cancelled: the run was cancelled.
        """
        ...


def new_run_id() -> str:
    """A fresh opaque run id."""
    return f"run-{uuid.uuid4().hex[:12]}"


class AgentRun:
    """A run of one agent; also the `ProcedureContext` of its procedure. Use from one event loop."""

    def __init__(
        self,
        spec: AgentSpec,
        task: AgentTask,
        registry: Registry,
        *,
        results: DetectorResults,
        cancelled: asyncio.Event,
        approvals: Approvals,
        mode: PermissionMode = "ask",
        budget: Budget | None = None,
        model: ModelPhase | None = None,
        guard: RunGuard | None = None,
        memory: RunMemory | None = None,
        records_episode: bool = True,
        log: EventLog | None = None,
        node: str = "",
        settings: ToolSettings | None = None,
        taint: frozenset[Taint] = frozenset({Taint.TRUSTED}),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare a run.

        Args:
            spec: the agent.
            task: what to do.
            registry: where detectors, tools and procedures are found.
            results: findings over the task's workspace, shared with other runs over it.
            cancelled: set to stop the run.
            approvals: where tool calls wait for a decision.
            mode: permission mode; the agent's own may only tighten it.
            budget: bounds; None takes the agent's.
            model: the model phase, or None to run without a model.
            guard: checks what the model reads and writes; None checks nothing.
            memory: where the run recalls from and leaves its episode; None has neither.
            records_episode: whether it leaves one; a pipeline's node does not.
            log: where events go; None begins a log of its own.
            node: the pipeline's node, for events.
            settings: what the user decided about tools; None takes the defaults.
            taint: labels of what the task's inputs were derived from, such as the results of earlier nodes.
            clock: monotonic seconds.
        """
        self.id = new_run_id()
        decided = ToolSettings() if settings is None else settings
        self.task = task
        self.state = RunState.PENDING
        self._usage = Usage()
        self.log = EventLog(self.id) if log is None else log
        self._spec = spec
        self._registry = registry
        self._procedure = registry.procedures.get(spec.key)
        self._results = results
        self._cancelled = cancelled
        self._model = model
        self._guard = guard
        self._memory = memory
        self._records_episode = records_episode
        self._node = node
        self._clock = clock
        self._notes: list[str] = []
        self._detected: dict[str, None] = {}
        self._output: Output | None = None
        self._began = clock()
        self.meter = BudgetMeter(budget or spec.budget, started=self._began)
        self.tools = ToolExecutor(
            spec=spec,
            tools={name: registry.tools[name] for name in spec.tools},
            context=ToolContext(
                root=task.workspace.root,
                run=self.id,
                agent=spec.key,
                memory=None if memory is None else memory.path,
                artifacts=decided.artifacts,
                sandbox=decided.sandbox,
            ),
            log=self.log,
            meter=self.meter,
            approvals=approvals,
            mode=mode,
            node=node,
            conversation=task.conversation or self.log.run,
            rules=decided.rules,
            taint=taint | taint_of(task.text),
            clock=clock,
            guard=guard,
            report=lambda name, found: self._report(f"the output of {name}", found),
        )
        self.card = spec.card
        self._mcp = RunMcp(
            spec,
            registry.mcp,
            approvals,
            self.record,
            self.log.run,
            str(task.workspace.root),
            self.note,
        )

    # ProcedureContext.

    @property
    def spec(self) -> AgentSpec:
        """The agent's specification."""
        return self._spec

    async def detect(self, *names: str) -> list[Finding]:
        """See `ProcedureContext.detect`."""
        wanted = names or self._spec.detectors
        self._detected |= dict.fromkeys(wanted)
        detectors = [self._registry.detector(name) for name in wanted]
        return await self._results.of(detectors)

    async def in_thread(self, function: Callable[..., Result], *args: Any) -> Result:
        """See `ProcedureContext.in_thread`."""
        self.check_cancelled()
        return await asyncio.to_thread(function, *args)

    @property
    def available_tools(self) -> Mapping[str, Tool]:
        """See `ProcedureContext.available_tools`."""
        return self.tools.tools

    async def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        """See `ProcedureContext.tool`."""
        self.check_cancelled()
        output = await self.tools.call(name, arguments, as_read=True)
        return {**output.data, "text": output.text, "failed": output.failed}

    def note(self, text: str) -> None:
        """Tell the user something once."""
        if text not in self._notes:
            self._notes.append(text)
            self.record(RunEventType.NOTE, text=text)

    def check_input(self, where: str, text: str) -> str:
        """A text as the model may read it; what is found becomes an event that names `where`."""
        if self._guard is None or not text:
            return text
        checked = self._guard.check_input(text)
        self._report(where, checked)
        return checked.text

    def _report(self, where: str, checked: GuardedText) -> None:
        if checked.found:
            self.record(
                RunEventType.GUARDRAIL,
                where=where,
                found=dict(checked.found),
                action=checked.action.value,
            )

    async def findings_about(self, output: Any, source: str) -> list[Finding]:
        """See `agents.steps.model_phase.ModelRun.findings_about`."""
        self.check_cancelled()
        inputs = {"source": source, **self.task.inputs, "output": output}
        task = replace(self.task, text="", inputs=inputs)
        if isinstance(output, Mapping) and "content" in output:  # a file that was made
            task = replace(task, workspace=Workspace.of_texts({output["name"]: output["content"]}))
        elif not self._spec.checks:
            return []
        results = detector_results(task, self._cancelled)
        return await results.of([self._registry.detector(name) for name in self._spec.detectors])

    @contextmanager
    def untimed(self) -> Iterator[None]:
        """See `agents.steps.model_phase.ModelRun.untimed`."""
        self.meter.stop_clock(self._clock())
        try:
            yield
        finally:
            self.meter.start_clock(self._clock())

    def check_cancelled(self) -> None:
        """Raises `Cancelled` if the run was cancelled, `BudgetExhausted` if its time is over."""
        if self._cancelled.is_set():
            raise Cancelled("The run was cancelled.")
        if self.meter.seconds_left(self._clock()) <= 0:
            raise BudgetExhausted(f"The budget of {self.meter.budget.seconds:g} s is used up.")

    @property
    def usage(self) -> Usage:
        """What the model's part has used so far. Setting it appends a `budget` event."""
        return self._usage

    @usage.setter
    def usage(self, usage: Usage) -> None:
        self._usage = usage
        self.record(
            RunEventType.BUDGET,
            computed_tokens=usage.computed_tokens,
            cached_tokens=usage.cached_tokens,
            generated_tokens=usage.generated_tokens,
        )

    # The run.

    async def execute(self) -> RunResult:
        """Run to the end. Never raises for what an agent does; only `asyncio.CancelledError` passes."""
        self._set_state(RunState.RUNNING)
        budget = self.meter.budget
        self.record(
            RunEventType.BUDGET,
            max_tokens=budget.tokens,
            max_seconds=budget.seconds,
            max_tools=budget.tools,
            max_steps=self._spec.max_turns,
        )
        work = asyncio.ensure_future(self._work())
        stop = asyncio.ensure_future(self._cancelled.wait())
        try:
            while (left := self.meter.seconds_left(self._clock())) > 0:  # it may grow meanwhile
                wait = max(left, _STOPPED_WAIT_S) if self.meter.is_stopped else left
                done, _ = await asyncio.wait(
                    {work, stop}, timeout=wait, return_when=asyncio.FIRST_COMPLETED
                )
                if done:
                    break
        except asyncio.CancelledError:
            self._finish(RunState.CANCELLED, "The run was cancelled.")
            raise
        finally:
            stop.cancel()
            if not work.done():
                work.cancel()
            try:
                await asyncio.gather(work, return_exceptions=True)
            finally:
                await self._mcp.close()
        state, error = self._outcome(work)
        result = self._result(state, error)
        await self._remember(result)
        self._set_state(state, error=error)
        return result

    async def _work(self) -> None:
        await self._open_mcp()
        self._output = await deliver(self._procedure, self._registry.outputs, self.task, self)
        if self._model is None:
            return
        await self._recall()
        output = await self._model(self.task, self._output, self)
        if self._guard is not None and output is not self._output:
            output, found = self._guard.output(self._output, output)
            self._report("what the model wrote", found)
        self._output = output

    async def _recall(self) -> None:
        """Put the memories that matter before the role card, as quoted data."""
        if self._memory is None:
            return
        entries = await asyncio.to_thread(self._memory.recalled, self._spec, self.task)
        if not entries:
            return
        self.tools.taint = self.tools.taint.union(*(entry.taint for entry in entries))
        self.card = f"{render_memories(entries)}\n\n{self._spec.card}"
        ids = [entry.id for entry in entries]
        self.record(
            RunEventType.MEMORY, action="recalled", entries=ids, taint=sorted(self.tools.taint)
        )

    async def _remember(self, result: RunResult) -> None:
        """Leave the run's episode. A memory that cannot be written is an event, not a failure of the run."""
        if self._memory is None or not self._records_episode:
            return
        finished = FinishedRun(
            run=self.id,
            origin=self._spec.key,
            task=self.task,
            state=result.state,
            error=result.error,
            findings=result.findings,
            usage=result.usage,
            events=self.log.since(0),
            taint=self.tools.taint,
        )
        data = await asyncio.to_thread(remembered, self._memory, finished)
        if data is not None:
            self.record(RunEventType.MEMORY, **data)

    async def _open_mcp(self) -> None:
        """Add the tools of the agent's MCP servers, if anything in this run calls tools."""
        if self._model is None and self._procedure is None:
            return
        if not self._spec.mcp_servers:
            return
        if stricter(self.tools.mode, self._spec.permission_mode) == "deny":
            self.note("MCP servers were not used: the permission mode is deny.")
            return
        opened = await self._mcp.open()
        if opened:  # what their servers say about them is read with the tools
            self.tools.add_taint(frozenset({Taint.UNTRUSTED}))
        self.tools.tools = {**self.tools.tools, **opened}

    def _outcome(self, work: "asyncio.Future[None]") -> tuple[RunState, str]:
        """How the run finished, and one sentence if it did not finish well."""
        if work.cancelled():
            if self._cancelled.is_set():
                return RunState.CANCELLED, "The run was cancelled."
            return RunState.EXHAUSTED, f"The budget of {self.meter.budget.seconds:g} s is used up."
        match work.exception():
            case None:
                return RunState.OK, ""
            case Cancelled() as stopped:
                return RunState.CANCELLED, str(stopped)
            case BudgetExhausted() as ended:
                return RunState.EXHAUSTED, str(ended)
            case PermissionDenied() as denied:
                return RunState.DENIED, str(denied)
            case AgentError() as failure:
                return RunState.FAILED, str(failure)
            case failure:  # an agent's mistake must not end the cluster
                error = f"{type(failure).__name__}: {failure!s:.300}"
                _LOG.error("agent %s failed", self._spec.key, exc_info=failure)
                self.record(RunEventType.ERROR, text=error)
                return RunState.FAILED, error

    def _finish(self, state: RunState, error: str) -> RunResult:
        result = self._result(state, error)
        self._set_state(state, error=error)
        return result

    def _result(self, state: RunState, error: str) -> RunResult:
        """The result, with an event for each of its findings."""
        output = self._output
        only_findings = self._spec.output_schema == Findings.__name__ and self._procedure is None
        if output is None and only_findings:
            found = self._results.finished(self._spec.detectors)
            output = Findings(findings=[FindingRecord.of(finding) for finding in found])
        for text in self._results.notes(self._detected):
            self.note(text)
        for name, reason in ({} if self._guard is None else self._guard.failures).items():
            self.note(f"The guardrail {name} failed and was left out: {reason}.")
        seconds = self._clock() - self._began
        result = RunResult(
            run=self.id,
            agent=self._spec.key,
            state=state,
            output=output,
            model="" if self._model is None else self._model.model,
            notes=tuple(self._notes),
            usage=replace(self._usage, tool_calls=self.meter.tools_used, seconds=seconds),
            error=error,
            taint=self.tools.taint | result_taint(self.task, output),
        )
        for finding in result.findings:
            self.record(RunEventType.FINDING, **finding_fields(finding))
        return result

    def _set_state(self, state: RunState, **data: Any) -> None:
        self.state = state
        self.record(RunEventType.RUN_STATE, state=state.value, **data)

    def record(self, kind: RunEventType, **data: Any) -> None:
        """Append an event of this run to the log."""
        self.log.append(kind, node=self._node, agent=self._spec.key, **data)


def detector_results(task: AgentTask, cancelled: asyncio.Event) -> DetectorResults:
    """Fresh detector results over a task's workspace."""
    context = DetectorContext(
        task=task.text,
        cancelled=cancelled.is_set,
        base=task.base,
        document=task.document,
        inputs=task.inputs,
    )
    return DetectorResults(task.workspace, context)


def result_taint(task: AgentTask, output: Output | None) -> frozenset[Taint]:
    """Labels of an output by what it was made of and by what it says: procedures read files without tools."""
    given = task.document or task.inputs or len(task.workspace)
    read = FILE_TAINT if given else frozenset[Taint]()
    return read if output is None else read | taint_of(output.model_dump_json())


def inputs_of(results: Mapping[str, RunResult]) -> dict[str, Any]:
    """Outputs of earlier runs by node name, as JSON values for `AgentTask.inputs`."""
    return {
        name: result.output.model_dump(mode="json")
        for name, result in results.items()
        if result.output is not None
    }

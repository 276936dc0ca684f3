"""`Cluster`: the Python face of the agents.

from agents import Cluster

cluster = Cluster()
result = await cluster.run("security_audit", ["src"])
for finding in result.findings:
    print(finding.file, finding.line, finding.message)
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.api.agent_spec import PermissionMode
from agents.api.budget import Budget
from agents.api.errors import InvalidTask
from agents.api.events import RunState
from agents.guardrails.guardrails import Guardrails
from agents.guardrails.policy import agent_policy
from agents.pipelines.pipeline import check_pipeline
from agents.pipelines.pipeline_file import find_pipeline, load_pipelines, parse_pipeline
from agents.pipelines.pipeline_run import Means, PipelineResult, PipelineRun
from agents.plugins.registry import Registry, load_registry
from agents.procedures.procedure import AgentTask
from agents.roster.live_roster import LiveRoster
from agents.roster.roster import Roster, load_roster
from agents.runs.agent_run import AgentRun, ModelPhase, detector_results
from agents.runs.approvals import Approvals
from agents.runs.result import RunResult
from agents.runs.run_guard import RunGuard
from agents.runs.run_memory import RunMemory
from agents.runs.run_store import RunStore, StoredRun
from agents.runs.tool_executor import stricter
from agents.runs.tool_settings import ToolSettings, remove_old_artifacts
from agents.tool_loop.opening import LoopMeans
from agents.workspace.workspace import Workspace, open_workspace

if TYPE_CHECKING:
    from agents.model.ask_all import AnyQuestion, Replies
    from agents.repair.repair_run import RepairOptions, RepairRun
    from agents.repair.result import RepairResult
    from engine.clients.engine_client import EngineClient

MAX_SKIPPED_NOTES = 20


class Cluster:
    """Agents over one registry. Use from one event loop."""

    def __init__(
        self,
        *,
        registry: Registry | None = None,
        roster: Roster | LiveRoster | None = None,
        model: ModelPhase | None = None,
        client: "EngineClient | None" = None,
        approvals: Approvals | None = None,
        mode: PermissionMode = "ask",
        store: RunStore | None = None,
        pipeline_folders: Sequence[Path] = (),
        guard: RunGuard | None = None,
        memory: RunMemory | None = None,
        settings: ToolSettings | None = None,
    ) -> None:
        """Open the roster.

        Args:
            registry: what is registered; None loads the built-in parts and the installed plugins.
            roster: the agents; None loads the built-in ones. Runs that start after a change of a live one
                have the changed agents.
            model: the model phase; None runs all agents without a model.
            client: an engine, instead of a model phase: its model takes part by what it is measured to do.
            approvals: where tool calls wait for a decision; None denies them.
            mode: permission mode of all runs.
            store: where pipelines' results are kept, so that a run can be resumed; None keeps nothing.
            pipeline_folders: folders of the user's pipelines.
            guard: checks what the model reads and writes; None takes the recognizers of the registry with
                the defaults for agents.
            memory: where runs recall from and leave episodes; None has neither.
            settings: what the user decided about tools; None takes the defaults.
        """
        self._settings = ToolSettings() if settings is None else settings
        if self._settings.artifacts is not None:
            remove_old_artifacts(self._settings.artifacts)
        self.registry = load_registry() if registry is None else registry
        self._roster = load_roster(self.registry) if roster is None else roster
        self.approvals = Approvals(has_approver=False) if approvals is None else approvals
        self.pipelines, self.pipeline_problems = load_pipelines(
            [*self.registry.pipeline_folders, *pipeline_folders]
        )
        if model is None and client is not None:
            model = _phase(client, self.registry)
        if guard is None:
            guard = RunGuard(Guardrails(agent_policy(), recognizers=self.registry.guardrails))
        self._model = model
        self._guard = guard
        self._memory = memory
        self._mode = mode
        self._means = Means(
            self.registry,
            self.roster,
            self.pipelines,
            self.approvals,
            mode=mode,
            model=model,
            store=store,
            guard=guard,
            memory=memory,
            settings=self._settings,
        )

    @property
    def loop_means(self) -> LoopMeans:
        """What the tool loops of chats need."""
        return LoopMeans(
            self.registry.tools,
            self.registry.mcp,
            self.approvals,
            self._mode,
            self._guard,
            self._settings,
        )

    @property
    def roster(self) -> Roster:
        """The agents as a new run would have them."""
        return self._roster.current() if isinstance(self._roster, LiveRoster) else self._roster

    async def ask_all(
        self, document: str, questions: "Sequence[AnyQuestion]", *, max_tokens: int = 96
    ) -> "Replies":
        """Ask many questions about a document, which is computed once.

        cluster = Cluster(client=client)
        replies = await cluster.ask_all(contract, [
            "Who are the parties?",
            Question("law", "Which law applies?", ("German", "English", "another")),
            Structured("When does it end?", {"type": "object", ...}),
        ])
        for reply in replies.replies:
            print(reply.text)
        print(replies.usage.cached_tokens, "tokens saved")

        Args:
            document: the text; its middle is left out if the context has no room for it.
            questions: texts, `Question`s (one token each, two label orders) or `Structured` ones (JSON).
            max_tokens: limit of each answer that is text or JSON.

        Raises:
            InvalidTask: there is no model, or no question, or too many.
            ModelFailure: the engine refused a question or stopped.
        """
        from agents.model.ask_all import ask_all
        from agents.steps.model_phase import StepsPhase

        if not isinstance(self._model, StepsPhase):
            raise InvalidTask("There is no model to ask: give the cluster a client.")
        layout, decider = self._model.parts()
        session = self._model.session
        document = (await asyncio.to_thread(self._guard.check_input, document)).text
        return await ask_all(session, layout, decider, document, questions, max_tokens=max_tokens)

    async def run(
        self,
        key: str,
        paths: Sequence[str | Path] = (),
        *,
        task: str = "",
        document: str = "",
        inputs: Mapping[str, Any] | None = None,
        base: Path | None = None,
        budget: Budget | None = None,
        cancelled: asyncio.Event | None = None,
        use_model: bool = True,
        mode: PermissionMode = "auto",
        conversation: str = "",
        on_start: Callable[[AgentRun], None] = lambda run: None,
    ) -> RunResult:
        """Run one agent to its end.

        Args:
            key: the agent.
            paths: files and folders to work on; none means that there are no files.
            task: what to do, in the user's words.
            document: a text to work on.
            inputs: structured inputs by name.
            base: root of the state before the change, for comparisons.
            budget: bounds; None takes the agent's.
            cancelled: set to stop the run, which then returns its partial result.
            use_model: whether the cluster's model takes part.
            mode: permission mode of this run; may only tighten the cluster's.
            conversation: id of the conversation that asks; approvals given "always" hold within it.
            on_start: called with the run before it begins, to follow its events.

        Raises:
            UnknownAgent: there is no such agent.
            InvalidTask: a path does not exist or cannot be read.
        """
        spec = self.roster.get(key)
        work = await open_task(
            paths,
            task=task,
            document=document,
            inputs=inputs,
            base=base,
            conversation=conversation,
        )
        stop = asyncio.Event() if cancelled is None else cancelled
        run = AgentRun(
            spec,
            work,
            self.registry,
            results=detector_results(work, stop),
            cancelled=stop,
            approvals=self.approvals,
            mode=stricter(self._mode, mode),
            budget=budget,
            model=self._model if use_model else None,
            guard=self._guard,
            memory=self._memory,
            settings=self._settings,
        )
        on_start(run)
        for skipped in work.workspace.skipped[:MAX_SKIPPED_NOTES]:
            run.note(f"{skipped.path} was left out: {skipped.reason}.")
        return await run.execute()

    async def run_pipeline(
        self,
        name: str,
        paths: Sequence[str | Path] = (),
        *,
        task: str = "",
        document: str = "",
        base: Path | None = None,
        budget: Budget | None = None,
        cancelled: asyncio.Event | None = None,
        use_model: bool = True,
        mode: PermissionMode = "auto",
        conversation: str = "",
        on_start: Callable[[PipelineRun], None] = lambda run: None,
    ) -> PipelineResult:
        """Run a pipeline to its end. Arguments as `run`.

        Raises:
            UnknownAgent: there is no such pipeline.
            InvalidSpec: it has a cycle, or names an agent that does not exist.
            InvalidTask: a path does not exist or cannot be read.
        """
        pipeline = find_pipeline(name, self.pipelines)
        if budget is not None:
            pipeline = replace(
                pipeline,
                tokens=min(pipeline.tokens, budget.tokens),
                seconds=min(pipeline.seconds, budget.seconds),
            )
        roster = self.roster
        check_pipeline(pipeline, roster, self.registry.reducers)
        work = await open_task(
            paths, task=task, document=document, base=base, conversation=conversation
        )
        request = {
            "paths": [_absolute(path) for path in paths],
            "task": task,
            "document": document,
            "base": None if base is None else _absolute(base),
            "tokens": pipeline.tokens,
            "seconds": pipeline.seconds,
        }
        means = replace(
            self._means,
            roster=roster,
            mode=stricter(self._mode, mode),
            model=self._model if use_model else None,
        )
        run = PipelineRun(pipeline, work, means, cancelled=cancelled, request=request)
        store = means.store
        with nullcontext() if store is None else store.hold(run.id):
            on_start(run)
            return await run.execute()

    async def repair(
        self,
        path: str | Path,
        *,
        options: "RepairOptions | None" = None,
        within: Sequence[Path] | None = None,
        cancelled: asyncio.Event | None = None,
        use_model: bool = True,
        on_start: "Callable[[RepairRun], None]" = lambda run: None,
    ) -> "RepairResult":
        """Audit a project and repair what its tests can prove, in a copy of it.

        Args:
            path: a file or folder; the project around it is copied and tested, the rest of it is not audited.
            options: what the user chose; the mode may only tighten the cluster's.
            within: folders that the project must lie in; None allows any.
            cancelled: set to stop the run, which then returns its partial result.
            use_model: whether the cluster's model takes part.
            on_start: called with the run before it begins, to follow its events.

        Raises:
            UnknownAgent: there is no such auditor.
            InvalidTask: there is no such path.
        """
        from agents.repair.project_root import find_project
        from agents.repair.repair_run import RepairOptions, RepairRun
        from agents.steps.model_phase import StepsPhase

        chosen = RepairOptions() if options is None else options
        project = await asyncio.to_thread(find_project, Path(path), within=within)
        run = RepairRun(
            project,
            self.registry,
            self.roster,
            self.approvals,
            options=replace(chosen, mode=stricter(self._mode, chosen.mode)),
            cancelled=cancelled,
            model=self._model if use_model and isinstance(self._model, StepsPhase) else None,
            artifacts=self._settings.artifacts,
        )
        on_start(run)
        return await run.execute()

    async def resume(
        self,
        run_id: str,
        *,
        cancelled: asyncio.Event | None = None,
        on_start: Callable[[PipelineRun], None] = lambda run: None,
    ) -> PipelineResult:
        """Go on with a stored pipeline run at its first unfinished node.

        The files are read anew: results of finished nodes are those of the files as they were.

        Raises:
            InvalidTask: there is no such run, it has succeeded already, another process is at work on it, or
                nothing is stored.
        """
        store = self._means.store
        if store is None:
            raise InvalidTask("No runs are stored here.")
        store.get(run_id)  # refuses an unknown run before there is a lock for it
        with store.hold(run_id):
            return await self._go_on(store.get(run_id), cancelled, on_start)

    async def _go_on(
        self,
        stored: StoredRun,
        cancelled: asyncio.Event | None,
        on_start: Callable[[PipelineRun], None],
    ) -> PipelineResult:
        run_id = stored.id
        if stored.state is RunState.OK:
            raise InvalidTask(f"The run {run_id} has finished; there is nothing to resume.")
        request = stored.request
        pipeline = replace(
            parse_pipeline(stored.source, f"the stored pipeline {stored.pipeline}"),
            tokens=request["tokens"],
            seconds=request["seconds"],
        )
        roster = self.roster
        check_pipeline(pipeline, roster, self.registry.reducers)
        base = request["base"]
        work = await open_task(
            request["paths"],
            task=request["task"],
            document=request["document"],
            base=None if base is None else Path(base),
        )
        run = PipelineRun(
            pipeline,
            work,
            replace(self._means, roster=roster),
            cancelled=cancelled,
            run=run_id,
            request=request,
            finished=stored.nodes,
        )
        on_start(run)
        return await run.execute()


def _phase(client: "EngineClient", registry: Registry) -> ModelPhase:
    from agents.model.session import ModelSession
    from agents.steps.model_phase import StepsPhase

    return StepsPhase(ModelSession(client), registry.catalogue)


async def open_task(
    paths: Sequence[str | Path],
    *,
    task: str = "",
    document: str = "",
    inputs: Mapping[str, Any] | None = None,
    base: Path | None = None,
    conversation: str = "",
) -> AgentTask:
    """The task over files; a single file is also the document, unless there is another.

    Raises:
        InvalidTask: a path does not exist or cannot be read.
    """
    given = [Path(path) for path in paths]
    workspace = Workspace.of_texts({})
    if given:
        workspace = await asyncio.to_thread(open_workspace, given)
    if not document and len(given) == 1 and len(workspace) == 1 and given[0].is_file():
        document = workspace.files[0].text
    return AgentTask(task, workspace, document, dict(inputs or {}), base, conversation)


def _absolute(path: str | Path) -> str:
    """The path as it is stored with a run: a resumed run may have another working folder."""
    return os.path.abspath(path)

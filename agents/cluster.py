"""`Cluster`: the Python face of the agents.

from agents import Cluster

cluster = Cluster()
result = await cluster.run("security_audit", ["src"])
for finding in result.findings:
    print(finding.file, finding.line, finding.message)
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.api.agent_spec import PermissionMode
from agents.api.budget import Budget
from agents.plugins.registry import Registry, load_registry
from agents.procedures.procedure import AgentTask
from agents.roster.roster import Roster, load_roster
from agents.runs.agent_run import AgentRun, ModelPhase, detector_results
from agents.runs.approvals import Approvals
from agents.runs.result import RunResult
from agents.workspace.workspace import open_workspace


class Cluster:
    """Agents over one registry. Use from one event loop."""

    def __init__(
        self,
        *,
        registry: Registry | None = None,
        roster: Roster | None = None,
        model: ModelPhase | None = None,
        approvals: Approvals | None = None,
        mode: PermissionMode = "ask",
    ) -> None:
        """Open the roster.

        Args:
            registry: what is registered; None loads the built-in parts and the installed plugins.
            roster: the agents; None loads the built-in ones.
            model: the model phase; None runs all agents without a model.
            approvals: where tool calls wait for a decision; None denies them.
            mode: permission mode of all runs.
        """
        self.registry = load_registry() if registry is None else registry
        self.roster = load_roster(self.registry) if roster is None else roster
        self.approvals = Approvals(has_approver=False) if approvals is None else approvals
        self._model = model
        self._mode = mode

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
            on_start: called with the run before it begins, to follow its events.

        Raises:
            UnknownAgent: there is no such agent.
            InvalidTask: a path does not exist or cannot be read.
        """
        spec = self.roster.get(key)
        opened = {}
        if paths:
            given = [Path(path) for path in paths]
            opened["workspace"] = await asyncio.to_thread(open_workspace, given)
        work = AgentTask(task, document=document, inputs=dict(inputs or {}), base=base, **opened)
        stop = asyncio.Event() if cancelled is None else cancelled
        run = AgentRun(
            spec,
            work,
            self.registry,
            results=detector_results(work, stop),
            cancelled=stop,
            approvals=self.approvals,
            mode=self._mode,
            budget=budget,
            model=self._model,
        )
        on_start(run)
        for skipped in work.workspace.skipped[:20]:
            run.note(f"{skipped.path} was left out: {skipped.reason}.")
        return await run.execute()

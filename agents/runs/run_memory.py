"""`RunMemory`: what runs remember and recall.

A run of one agent, or of a pipeline as a whole, leaves an episode: its task, what it did, how it ended, the
lesson of its events, its cost and its id. Memories go into the prompts of agents whose specification names a
scope, as quoted data; their labels become those of the run.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.api.agent_spec import AgentSpec
from agents.api.events import RunEvent, RunEventType, RunState, event_fields
from agents.api.finding import Finding
from agents.api.usage import Usage
from agents.memory.entry import USER, Episode, MemoryEntry, Scope, ScopeKind
from agents.memory.recall import recall
from agents.memory.store import MemoryStore
from agents.memory.tool import project_scope
from agents.procedures.audit.self_reflection import lesson_of
from agents.procedures.procedure import AgentTask
from agents.text.text_embedder import TextEmbedder
from agents.tools.tool import Taint
from engine.api.errors import PravahaError

_LOG = logging.getLogger(__name__)

MAX_TASK_CHARS = 2_000
MAX_PLAN_STEPS = 20
_SEVERE = 0.7
_ORDINARY = 0.5
"""Importance of an episode that ended badly, which teaches more, and of others."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """What an episode is made of.

    Attributes:
        run: its id.
        origin: key of the agent, or name of the pipeline.
        task: what was asked.
        state: how it ended.
        error: one sentence if it failed.
        findings: what was found.
        usage: what it cost.
        events: its log.
        taint: labels of everything that was read.
    """

    run: str
    origin: str
    task: AgentTask
    state: RunState
    error: str
    findings: Sequence[Finding]
    usage: Usage
    events: Sequence[RunEvent]
    taint: frozenset[Taint]


@dataclass(frozen=True, slots=True)
class RunMemory:
    """The memory of a cluster's runs.

    Attributes:
        path: the database.
        records: whether runs leave episodes.
        recall_tokens: most tokens of memories in a prompt; 0 recalls none.
        embedder: searches meaning; None searches words alone.
        clock: Unix seconds.
    """

    path: Path
    records: bool = True
    recall_tokens: int = 400
    embedder: TextEmbedder | None = None
    clock: Callable[[], float] = time.time

    def recalled(self, spec: AgentSpec, task: AgentTask) -> tuple[MemoryEntry, ...]:
        """The memories that matter for a task, within the agent's scopes; none if the store cannot be read.

        Blocks.
        """
        query = task.text.strip()
        if spec.memory == "none" or not self.recall_tokens or not query or not self.path.exists():
            return ()
        try:
            with MemoryStore(self.path) as store:
                found = recall(
                    store,
                    query[:MAX_TASK_CHARS],
                    scopes=_scopes(spec, task),
                    now=self.clock(),
                    max_tokens=self.recall_tokens,
                    embedder=self.embedder,
                )
        except PravahaError:
            _LOG.warning("the memory could not be read for %s", spec.key, exc_info=True)
            return ()
        return tuple(one.entry for one in found.memories)

    def remember(self, finished: FinishedRun) -> MemoryEntry | None:
        """Store the episode of a run; None if runs leave none. Blocks until it is on disk.

        Raises:
            MemoryStoreError: the database cannot be written.
        """
        if not self.records or finished.state is RunState.CANCELLED:
            return None
        episode = episode_of(finished)
        importance = _ORDINARY if finished.state is RunState.OK else _SEVERE
        with MemoryStore(self.path, clock=self.clock) as store:
            written = store.store_episode(
                episode,
                scope=_scope(finished.task),
                origin=finished.origin,
                taint=finished.taint,
                importance=importance,
            )
        return written.entry


def episode_of(finished: FinishedRun) -> Episode:
    """The episode of a run, from its events alone."""
    task = finished.task
    names = ", ".join(file.path for file in list(task.workspace)[:5])
    asked = task.text.strip() or (f"work on {names}" if names else "work on a text")
    ending = {"state": finished.state.value, "error": finished.error}
    events = [event_fields(one) for one in finished.events]
    lesson = lesson_of([*events, {"type": "run_state", "agent": finished.origin, "data": ending}])
    summary = finished.state.value
    if finished.findings:
        worst = max(finished.findings, key=lambda one: one.severity.rank)
        number = len(finished.findings)
        summary += f"; {number} findings, the worst {worst.severity.value}: {worst.message}"
    if finished.error:
        summary += f"; {finished.error}"
    return Episode(
        task=f"{finished.origin}: {asked}"[:MAX_TASK_CHARS],
        plan="; ".join(_steps(finished.events))[:MAX_TASK_CHARS],
        outcome=summary[:MAX_TASK_CHARS],
        lesson=lesson.lesson if lesson.repeats or lesson.failures else "",
        tokens=finished.usage.computed_tokens,
        seconds=round(finished.usage.seconds, 3),
        trace=finished.run,
    )


def _steps(events: Iterable[RunEvent]) -> list[str]:
    """The tools that were called, and the nodes that ran, in order."""
    steps: list[str] = []
    for event in events:
        if event.type is RunEventType.TOOL_STARTED:
            steps.append(f"{event.data.get('tool')} {event.data.get('arguments', '')!s:.80}")
        elif event.type is RunEventType.NODE_STATE and event.data.get("state") != "running":
            steps.append(f"{event.node}: {event.data.get('state')}")
    return steps[:MAX_PLAN_STEPS]


def _scopes(spec: AgentSpec, task: AgentTask) -> list[Scope]:
    """The scopes of an agent: the one that it names and the wider ones."""
    scopes = [USER]
    if spec.memory in ("project", "agent"):
        scopes.append(_scope(task))
    if spec.memory == "agent":
        scopes.append(Scope(ScopeKind.AGENT, spec.key))
    return list(dict.fromkeys(scopes))


def _scope(task: AgentTask) -> Scope:
    """The project of a task; the user's own scope if it has no files."""
    return project_scope(task.workspace.root) if len(task.workspace) else USER


def remembered(memory: RunMemory, finished: FinishedRun) -> dict[str, Any] | None:
    """The data of the event that reports an episode; None if runs leave none. Blocks; never raises."""
    try:
        entry = memory.remember(finished)
    except PravahaError as error:
        _LOG.warning("the episode of %s was not stored", finished.run, exc_info=True)
        return {"action": "failed", "error": str(error)}
    return None if entry is None else {"action": "stored", "entries": [entry.id]}

"""`RunView` and `AgentRow`: a run as front ends show it, folded from its events alone.

A view is a function of events, so no front end can show what did not happen, and a remote one shows the same.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from agents.api.events import RunEvent, RunEventType, RunState

_FINDING_ORDER = ("critical", "high", "medium", "low", "info")
_FAILURES = (RunState.FAILED, RunState.TIMED_OUT, RunState.DENIED, RunState.EXHAUSTED)


class RowGroup(StrEnum):
    """What an agent is about, in the order in which a person should look at it."""

    WAITING = "waiting for approval"
    FAILED = "failed"
    TOOL = "in a tool"
    RUNNING = "running"
    QUEUED = "queued"
    DONE = "done"
    STOPPED = "stopped"
    SKIPPED = "skipped"

    @property
    def rank(self) -> int:
        """Its place in that order, from 0."""
        return list(RowGroup).index(self)


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent at work: a row of the agents pane.

    Attributes:
        node: name of the pipeline's node, or empty.
        agent: its key.
        state: of the node or run.
        started: Unix seconds of its first event; 0 before.
        finished: Unix seconds, or None.
        step: number of its last step, from 1; 0 before the first.
        max_steps: its most steps; 0 while it is not known.
        action: what it does now: a tool with its arguments, a question, or empty.
        in_tool: whether a tool of it is at work.
        computed_tokens: prompt and output tokens computed for it.
        cached_tokens: prompt tokens that were found in the prefix cache.
        generated_tokens: output tokens.
        max_tokens: its budget of computed tokens; 0 while it is not known.
        max_seconds: its budget of seconds, likewise.
        max_tools: its budget of tool calls, likewise.
        tool_calls: tool calls so far.
        tokens_per_second: output tokens a second in its last step, or None.
        findings: number of findings.
        waits: whether it waits for an approval.
        reason: why it was skipped or failed.
    """

    node: str
    agent: str
    state: RunState
    started: float
    finished: float | None = None
    step: int = 0
    max_steps: int = 0
    action: str = ""
    in_tool: bool = False
    computed_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0
    max_tokens: int = 0
    max_seconds: float = 0.0
    max_tools: int = 0
    tool_calls: int = 0
    tokens_per_second: float | None = None
    findings: int = 0
    waits: bool = False
    reason: str = ""

    @property
    def group(self) -> RowGroup:
        """What it is about now."""
        if self.waits:
            return RowGroup.WAITING
        if self.state in _FAILURES:
            return RowGroup.FAILED
        if self.state is RunState.RUNNING:
            return RowGroup.TOOL if self.in_tool else RowGroup.RUNNING
        return _GROUPS[self.state]


_GROUPS = {
    RunState.PENDING: RowGroup.QUEUED,
    RunState.OK: RowGroup.DONE,
    RunState.CANCELLED: RowGroup.STOPPED,
    RunState.SKIPPED: RowGroup.SKIPPED,
}


@dataclass(frozen=True, slots=True)
class RunView:
    """A run.

    Attributes:
        id: its id.
        name: of the agent or pipeline.
        goal: the task's first words.
        state: of the run.
        started: Unix seconds.
        finished: Unix seconds, or None.
        rows: its agents; of a pipeline all nodes from the start.
        max_tokens: the run's budget of computed tokens; 0 while it is not known.
        max_seconds: its budget of wall time, likewise.
        severities: number of findings by severity.
        finding_ids: of the findings that are counted: several agents may report the same one.
        error: one sentence, if it failed.
        num_events: how many events the view was folded from.
    """

    id: str
    name: str
    goal: str
    state: RunState = RunState.PENDING
    started: float = 0.0
    finished: float | None = None
    rows: tuple[AgentRow, ...] = ()
    max_tokens: int = 0
    max_seconds: float = 0.0
    severities: Mapping[str, int] = field(default_factory=dict)
    finding_ids: frozenset[str] = field(default=frozenset(), repr=False)
    error: str = ""
    num_events: int = 0

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens that no agent had to compute because another had."""
        return sum(row.cached_tokens for row in self.rows)

    @property
    def computed_tokens(self) -> int:
        """Tokens computed for all agents."""
        return sum(row.computed_tokens for row in self.rows)

    def summary(self) -> str:
        """Counts of its agents, as `summary_of`."""
        return summary_of(self.rows)


def summary_of(rows: Iterable[AgentRow]) -> str:
    """Counts of agents by group, such as `13: 1 waiting for approval · 2 running · 10 done`."""
    groups = [row.group for row in rows]
    counts = [f"{number} {group.value}" for group in RowGroup if (number := groups.count(group))]
    return f"{len(groups)}: {' · '.join(counts)}" if counts else "0"


def fold(view: RunView, events: Iterable[RunEvent]) -> RunView:
    """The view after more events. Events that were folded already are ignored."""
    rows = {(row.node, row.agent): row for row in view.rows}
    found = set(view.finding_ids)
    for event in events:
        if event.sequence < view.num_events:
            continue
        had_finished = view.state.finished
        view = replace(view, num_events=event.sequence + 1)
        if event.type is RunEventType.FINDING:
            view = _count(view, event.data, found)
        else:
            view = _fold_run(view, event)
        if event.node or event.agent:
            key = (event.node, event.agent)
            row = rows.get(key) or AgentRow(*key, RunState.PENDING, event.time)
            row = _fold_row(replace(row, started=row.started or event.time), event)
            rows[key] = _ended(row, view) if had_finished else row
        else:
            for node, agent in event.data.get("nodes", {}).items():
                rows.setdefault((node, agent), AgentRow(node, agent, RunState.PENDING, 0.0))
        if view.state.finished and not had_finished:
            rows = {key: _ended(row, view) for key, row in rows.items()}
    return replace(view, rows=tuple(rows.values()), finding_ids=frozenset(found))


def _ended(row: AgentRow, view: RunView) -> AgentRow:
    """A row of a run that has finished: what has not begun will not, and nothing runs."""
    if row.state.finished or not view.state.finished:
        return row
    state = view.state if row.state is RunState.RUNNING or row.started else RunState.SKIPPED
    finished = row.finished or view.finished
    return replace(row, state=state, finished=finished, action="", in_tool=False, waits=False)


def _count(view: RunView, finding: Mapping[str, Any], found: set[str]) -> RunView:
    """The view with a finding counted, unless another agent has reported it; its id is added to `found`."""
    if finding["id"] in found:
        return view
    found.add(finding["id"])
    severity = finding["severity"]
    counts = {**view.severities, severity: view.severities.get(severity, 0) + 1}
    return replace(
        view, severities={name: counts[name] for name in _FINDING_ORDER if name in counts}
    )


def _fold_run(view: RunView, event: RunEvent) -> RunView:
    if event.type is RunEventType.RUN_STATE and not event.node:
        state = RunState(event.data["state"])
        return replace(
            view,
            state=state,
            started=view.started or event.time,
            finished=event.time if state.finished else None,
            error=event.data.get("error", ""),
        )
    if event.type is RunEventType.BUDGET and not event.node and "max_tokens" in event.data:
        limits = event.data["max_tokens"], event.data["max_seconds"]
        return replace(view, max_tokens=limits[0], max_seconds=limits[1])
    return view


_BUDGET_MEMBERS = (
    "computed_tokens",
    "cached_tokens",
    "generated_tokens",
    "max_tokens",
    "max_seconds",
    "max_tools",
    "max_steps",
)


def _fold_row(row: AgentRow, event: RunEvent) -> AgentRow:
    data: Mapping[str, Any] = event.data
    match event.type:
        case RunEventType.RUN_STATE | RunEventType.NODE_STATE:
            state = RunState(data["state"])
            return replace(
                row,
                state=state,
                finished=event.time if state.finished else None,
                action="" if state.finished else row.action,
                in_tool=row.in_tool and not state.finished,
                waits=row.waits and not state.finished,
                reason=data.get("reason") or data.get("error") or row.reason,
            )
        case RunEventType.STEP_STARTED:
            return replace(row, step=data.get("step", row.step + 1), action="generates a step")
        case RunEventType.STEP_FINISHED:
            seconds = data.get("end", 0.0) - data.get("start", 0.0)
            speed = data["n_gen"] / seconds if seconds > 0 and data.get("n_gen") else None
            return replace(row, action="", tokens_per_second=speed)
        case RunEventType.BUDGET:
            known = {name: data[name] for name in _BUDGET_MEMBERS if name in data}
            return replace(row, **known)
        case RunEventType.MODEL_TEST:
            finished = data.get("done") == data.get("total")
            return replace(row, action="" if finished else str(data.get("text", "")))
        case RunEventType.TOOL_STARTED:
            action = f"{data['tool']} {data.get('arguments', '')}".strip()
            return replace(row, action=action, in_tool=True, tool_calls=row.tool_calls + 1)
        case RunEventType.TOOL_FINISHED:
            return replace(row, action="", in_tool=False)
        case RunEventType.DECISION:
            return replace(row, action=f"{data.get('question')}: {data.get('label')}")
        case RunEventType.APPROVAL_REQUESTED:
            action = f"{data.get('tool', '')} {data.get('target', '')}".strip()
            return replace(row, waits=True, action=action or row.action)
        case RunEventType.APPROVAL_RESOLVED:
            return replace(row, waits=False, action="")
        case RunEventType.FINDING:
            return replace(row, findings=row.findings + 1)
        case _:
            return row

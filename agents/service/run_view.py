"""`RunView` and `AgentRow`: a run as front ends show it, folded from its events alone.

A view is a function of events, so no front end can show what did not happen, and a remote one shows the same.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agents.api.events import RunEvent, RunEventType, RunState

_FINDING_ORDER = ("critical", "high", "medium", "low", "info")


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent at work: a row of the agents pane.

    Attributes:
        node: name of the pipeline's node, or empty.
        agent: its key.
        state: of the node or run.
        started: Unix seconds of its first event.
        finished: Unix seconds, or None.
        step: number of its last step, from 1; 0 before the first.
        action: what it does now: a tool with its arguments, a question, or empty.
        computed_tokens: prompt and output tokens computed for it.
        cached_tokens: prompt tokens that were found in the prefix cache.
        generated_tokens: output tokens.
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
    action: str = ""
    computed_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0
    findings: int = 0
    waits: bool = False
    reason: str = ""


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
        rows: its agents, in the order in which they began.
        severities: number of findings by severity.
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
    severities: Mapping[str, int] = field(default_factory=dict)
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
        """Counts of states, such as `13: 2 running · 1 waiting for approval · 10 ok`."""
        words: dict[str, int] = {}
        for row in self.rows:
            word = "waiting for approval" if row.waits else row.state.value.replace("_", " ")
            words[word] = words.get(word, 0) + 1
        counts = " · ".join(f"{count} {word}" for word, count in words.items())
        return f"{len(self.rows)}: {counts}" if counts else "0"


def fold(view: RunView, events: Iterable[RunEvent]) -> RunView:
    """The view after more events. Events that were folded already are ignored."""
    rows = {(row.node, row.agent): row for row in view.rows}
    for event in events:
        if event.sequence < view.num_events:
            continue
        view = _fold_run(replace(view, num_events=event.sequence + 1), event)
        key = (event.node, event.agent)
        if event.agent or event.node:
            row = rows.get(key) or AgentRow(*key, RunState.PENDING, event.time)
            rows[key] = _fold_row(row, event)
    return replace(view, rows=tuple(rows.values()))


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
    if event.type is RunEventType.FINDING:
        severity = event.data["severity"]
        counts = {**view.severities, severity: view.severities.get(severity, 0) + 1}
        ordered = {name: counts[name] for name in _FINDING_ORDER if name in counts}
        return replace(view, severities=ordered)
    return view


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
                waits=row.waits and not state.finished,
                reason=data.get("reason") or data.get("error") or row.reason,
            )
        case RunEventType.STEP_STARTED:
            return replace(row, step=data.get("step", row.step + 1), action="thinks")
        case RunEventType.STEP_FINISHED:
            cached = data.get("n_cached", 0)
            return replace(
                row,
                action="",
                cached_tokens=row.cached_tokens + cached,
                computed_tokens=row.computed_tokens
                + data.get("n_prompt", 0)
                - cached
                + data.get("n_gen", 0),
                generated_tokens=row.generated_tokens + data.get("n_gen", 0),
            )
        case RunEventType.TOOL_STARTED:
            return replace(row, action=f"{data['tool']} {data.get('arguments', '')}".strip())
        case RunEventType.TOOL_FINISHED:
            return replace(row, action="")
        case RunEventType.DECISION:
            return replace(row, action=f"{data.get('question')}: {data.get('label')}")
        case RunEventType.APPROVAL_REQUESTED:
            return replace(row, waits=True)
        case RunEventType.APPROVAL_RESOLVED:
            return replace(row, waits=False)
        case RunEventType.FINDING:
            return replace(row, findings=row.findings + 1)
        case _:
            return row

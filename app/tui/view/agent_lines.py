"""Rows of the agents pane: runs with their agents, the trace of one agent, pending approvals.

Everything derives from `RunView`s and events, which derive from the runs' event logs.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from agents.api.events import RunEvent, RunEventType, RunState
from agents.runs.approvals import ApprovalRequest
from agents.service.run_view import AgentRow, RunView
from app.text.safe_text import safe_line, safe_text
from app.tui.glyphs import Glyphs
from app.tui.numbers import clock_time, compact, duration
from app.tui.view.spans import Line, Span, cut, justify
from app.tui.view.wrapping import wrap_cells

Order = Literal["group", "start", "tokens"]
ORDERS: tuple[Order, ...] = ("group", "start", "tokens")
_NAME = 24
_LEFT_CELLS = 56
"""Cells that the left part of a row has at least; figures at the right make room for it."""
_MAX_OBSERVATION_ROWS = 12
_STYLES = {
    RunState.PENDING: "$faint",
    RunState.RUNNING: "$primary",
    RunState.OK: "$success",
    RunState.SKIPPED: "$faint",
    RunState.CANCELLED: "$muted",
}


@dataclass(frozen=True, slots=True)
class RowId:
    """What a row of the pane stands for: a run, or one agent of it."""

    run: str
    node: str = ""
    agent: str = ""


def group_of(row: AgentRow) -> int:
    """Rank of the row's group: waiting for approval, failed, in a tool, running, done."""
    if row.waits:
        return 0
    if row.state in (RunState.FAILED, RunState.TIMED_OUT, RunState.DENIED, RunState.EXHAUSTED):
        return 1
    if row.state is RunState.RUNNING:
        return 2 if row.action and row.action != "thinks" else 3
    return 5 if row.state is RunState.SKIPPED else 4


_SORTS: dict[Order, Callable[[AgentRow], tuple[float, ...]]] = {
    "group": lambda row: (group_of(row), row.started),
    "start": lambda row: (row.started,),
    "tokens": lambda row: (-row.computed_tokens - row.cached_tokens, row.started),
}


def build_agents_head(views: Sequence[RunView], waiting: int, order: Order, cells: int) -> Line:
    """The pane's title: how many runs are active, what waits, and how rows are sorted."""
    active = sum(not view.state.finished for view in views)
    spans = [
        Span("Agents", "bold $primary"),
        Span(f"  {active} active, {len(views) - active} finished", "$muted"),
    ]
    if waiting:
        spans.append(Span(f"  {waiting} waiting for approval", "bold $warning"))
    return justify(spans, [Span(f"sorted by {order}", "$faint")], cells)


def build_empty(cells: int, key: str) -> list[Line]:
    """What to do while there are no runs."""
    return [
        (Span(text, "$muted"),)
        for piece in (
            "No agent has run yet.",
            "@security_audit src in the prompt runs an agent on a folder; /agents lists all of them, "
            "and /agents secure-code-review src runs a pipeline.",
            f"{key} goes back to the conversation.",
        )
        for text in wrap_cells(piece, max(1, cells))
    ]


def build_runs(
    views: Sequence[RunView],
    *,
    now: float,
    order: Order,
    only: str,
    cursor: RowId | None,
    glyphs: Glyphs,
    cells: int,
) -> tuple[list[Line], list[RowId]]:
    """A line for each run and for each of its agents, and what each line stands for.

    Args:
        views: the runs, newest first.
        now: Unix seconds.
        order: how the agents of a run are sorted.
        only: text that the agent's key, its state or its run's name must contain; empty for all.
        cursor: the selected row.
        glyphs: the terminal's glyphs.
        cells: width.
    """
    lines: list[Line] = []
    ids: list[RowId] = []
    for view in views:
        rows = sorted(view.rows, key=_SORTS[order])
        if only:
            wanted = only.casefold()
            rows = [
                row
                for row in rows
                if wanted in f"{row.agent} {row.node} {row.state} {view.name}".casefold()
            ]
            if not rows:
                continue
        own = RowId(view.id)
        lines += [_run_line(view, now, glyphs, cells, selected=cursor == own)]
        ids.append(own)
        if len(view.rows) == 1 and not rows[0].node:
            continue  # the run's own row says it all
        for row in rows:
            row_id = RowId(view.id, row.node, row.agent)
            lines.append(_agent_line(row, now, glyphs, cells, selected=cursor == row_id))
            ids.append(row_id)
    return lines, ids


def _run_line(view: RunView, now: float, glyphs: Glyphs, cells: int, *, selected: bool) -> Line:
    seconds = (view.finished or now) - view.started if view.started else 0.0
    counts = ", ".join(f"{count} {name}" for name, count in view.severities.items())
    facts = [counts] if counts else []
    if view.computed_tokens:
        facts.append(f"{compact(view.computed_tokens)} computed")
    if view.cached_tokens:
        facts.append(f"{compact(view.cached_tokens)} saved by sharing")
    facts.append(duration(seconds))
    left = [
        Span(_cursor(glyphs, selected), "$accent"),
        Span(_glyph(view.state, glyphs), _style(view.state)),
        Span(f" {safe_line(view.name)}", "bold"),
        Span(f"  {safe_line(view.goal)}" if view.goal else "", "$muted"),
        Span(f"  {view.summary()}" if len(view.rows) > 1 else f"  {_words(view.state)}", "$faint"),
        Span(f"  {safe_line(view.error)}" if view.error else "", "$error"),
    ]
    return _with_facts(left, facts, "$muted", cells)


def _agent_line(row: AgentRow, now: float, glyphs: Glyphs, cells: int, *, selected: bool) -> Line:
    name = row.agent or row.node
    seconds = (row.finished or now) - row.started
    doing = "waits for approval" if row.waits else safe_line(row.action or row.reason)
    style = "bold $warning" if row.waits else "$muted"
    facts = []
    if row.findings:
        facts.append(f"{row.findings} found")
    if row.step:
        facts.append(f"step {row.step}")
    if row.computed_tokens:
        facts.append(f"{compact(row.computed_tokens)} tok")
    if row.cached_tokens:
        facts.append(f"{compact(row.cached_tokens)} shared")
    if row.state is not RunState.PENDING:
        facts.append(duration(seconds))
    left = [
        Span(_cursor(glyphs, selected), "$accent"),
        Span(f"  {_glyph(row.state, glyphs)}", _style(row.state)),
        Span(f" {safe_line(name):<{_NAME}}"),
        Span(f"{_words(row.state):<10}", _style(row.state)),
        Span(doing, style),
    ]
    return _with_facts(left, facts, "$faint", cells)


def _with_facts(left: Sequence[Span], facts: Sequence[str], style: str, cells: int) -> Line:
    """A row with figures at its right end; the first ones are left out where there is little room."""
    for skipped in range(len(facts)):
        text = " · ".join(facts[skipped:])
        if cells - len(text) >= _LEFT_CELLS:
            return justify(left, [Span(text, style)], cells)
    return cut(left, cells)


def _cursor(glyphs: Glyphs, selected: bool) -> str:
    return f"{glyphs.bar_selected} " if selected else "  "


def _glyph(state: RunState, glyphs: Glyphs) -> str:
    if state is RunState.RUNNING:
        return glyphs.busy
    if state is RunState.OK:
        return glyphs.dot
    if state in (RunState.PENDING, RunState.SKIPPED):
        return glyphs.ring
    return glyphs.stopped if state is RunState.CANCELLED else glyphs.failed


def _style(state: RunState) -> str:
    return _STYLES.get(state, "$error")


def _words(state: RunState) -> str:
    return state.value.replace("_", " ")


# The trace of one agent.


def build_trace(
    view: RunView, row_id: RowId, events: Sequence[RunEvent], glyphs: Glyphs, cells: int
) -> list[Line]:
    """What one agent did, event by event: steps, tool calls, observations, decisions, findings.

    Args:
        view: the run.
        row_id: the agent, or the run itself for all events of it.
        events: those of the run.
        glyphs: the terminal's glyphs.
        cells: width.
    """
    own = [
        event
        for event in events
        if not row_id.agent or (event.node, event.agent) == (row_id.node, row_id.agent)
    ]
    title = f"{row_id.agent or view.name}  {safe_line(view.goal)}".rstrip()
    lines: list[Line] = [(Span(title, "bold $primary"),)]
    steps = build_step_timeline(own, glyphs, cells)
    lines += [*steps, ()] if steps else [()]
    for event in own:
        lines += _event_lines(event, glyphs, cells)
    return lines


def build_step_timeline(events: Sequence[RunEvent], glyphs: Glyphs, cells: int) -> list[Line]:
    """One row for each model step: when it ran, as a bar, and its tokens; empty without steps.

    A step's event has `start` and `end` in seconds of one clock, `n_prompt`, `n_cached` and `n_gen`.
    """
    steps = [
        event.data
        for event in events
        if event.type is RunEventType.STEP_FINISHED and "end" in event.data
    ]
    if not steps:
        return []
    begin = min(step["start"] for step in steps)
    span = max(max(step["end"] for step in steps) - begin, 1e-9)
    room = max(8, cells - 44)
    lines: list[Line] = []
    for number, step in enumerate(steps, 1):
        left = round((step["start"] - begin) / span * room)
        length = max(1, round((step["end"] - step["start"]) / span * room))
        cached = f", {compact(step['n_cached'])} cached" if step.get("n_cached") else ""
        lines.append(
            cut(
                (
                    Span(f"{number:>3} ", "$faint"),
                    Span(" " * min(left, room - 1)),
                    Span(glyphs.bar_full * min(length, room - min(left, room - 1)), "$primary"),
                    Span(
                        f" {duration(step['end'] - step['start'])}, {compact(step['n_prompt'])} prompt"
                        f"{cached}, {compact(step['n_gen'])} new",
                        "$muted",
                    ),
                ),
                cells,
            )
        )
    return lines


def _event_lines(event: RunEvent, glyphs: Glyphs, cells: int) -> list[Line]:
    data = event.data
    match event.type:
        case RunEventType.RUN_STATE if event.node:
            return []  # the node's own state says the same
        case RunEventType.RUN_STATE | RunEventType.NODE_STATE:
            reason = data.get("reason") or data.get("error") or ""
            return _block(event, data["state"].replace("_", " "), reason, "$muted", cells)
        case RunEventType.STEP_STARTED:
            return _block(event, f"step {data.get('step', '')}", "", "$primary", cells)
        case RunEventType.ACTION_CHOSEN:
            thought = data.get("thought", "")
            action = f"{data.get('action', '')} {_compact_json(data.get('input'))}".rstrip()
            lines = _block(event, "thought", thought, "$muted", cells) if thought else []
            return [*lines, *_block(event, "action", action, "$accent", cells)]
        case RunEventType.TOOL_STARTED:
            text = f"{data['tool']} {data.get('arguments', '')}"
            return _block(event, "tool", text, "$accent", cells)
        case RunEventType.TOOL_FINISHED:
            style = "$error" if data.get("failed") else "$foreground"
            return _block(event, "observed", data.get("text", ""), style, cells)
        case RunEventType.DECISION:
            chosen = f"{data.get('question')}: {data.get('label')}"
            if data.get("abstained"):
                chosen += " (abstained: the detector's value stands)"
            return _block(event, "decided", chosen, "$foreground", cells)
        case RunEventType.FINDING:
            place = f"{data['file']}:{data['line']}"
            text = f"{data['severity']} {place} {data['message']}"
            return _block(event, "found", text, "$warning", cells)
        case RunEventType.APPROVAL_REQUESTED:
            text = f"{data['tool']} {data['target']}"
            return _block(event, "asks", text, "bold $warning", cells)
        case RunEventType.APPROVAL_RESOLVED:
            text = "allowed" if data["allowed"] else f"denied. {data.get('reason', '')}"
            return _block(event, "answer", text, "$foreground", cells)
        case RunEventType.NOTE | RunEventType.ERROR:
            style = "$error" if event.type is RunEventType.ERROR else "$muted"
            return _block(event, event.type.value, data.get("text", ""), style, cells)
        case RunEventType.TOKEN_DELTA | RunEventType.STEP_FINISHED:
            return []
        case _:
            return _block(event, event.type.value, _compact_json(data), "$muted", cells)


def _block(event: RunEvent, word: str, text: str, style: str, cells: int) -> list[Line]:
    head = (
        Span(clock_time(event.time), "$faint"),
        Span(f" {word:<10}", "$muted"),
    )
    indent = 19
    pieces = [
        piece
        for line in safe_text(text).split("\n")
        for piece in wrap_cells(line, max(1, cells - indent))
    ] or [""]
    if len(pieces) > _MAX_OBSERVATION_ROWS:
        left = len(pieces) - _MAX_OBSERVATION_ROWS
        pieces = [*pieces[:_MAX_OBSERVATION_ROWS], f"… {left} more rows"]
    first, *others = pieces
    return [
        cut((*head, Span(first, style)), cells),
        *(cut((Span(" " * indent), Span(piece, style)), cells) for piece in others),
    ]


def _compact_json(value: object) -> str:
    if value in (None, "", {}):
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# Approvals.


def build_approvals(
    pending: Sequence[ApprovalRequest], cursor: int, glyphs: Glyphs, cells: int, keys: str
) -> list[Line]:
    """The approvals pane: one row for each call that waits."""
    head = f"{len(pending)} waiting" if pending else "nothing waits"
    lines: list[Line] = [
        justify(
            [Span("Approvals", "bold $primary"), Span(f"  {head}", "$muted")],
            [Span(keys if pending else "", "$faint")],
            cells,
        ),
        (),
    ]
    for number, one in enumerate(pending):
        effects = ", ".join(sorted(one.effects))
        lines.append(
            cut(
                (
                    Span(_cursor(glyphs, number == cursor), "$accent"),
                    Span(f"{safe_line(one.agent)} ", "bold"),
                    Span(f"{safe_line(one.tool)} ({effects}) ", "$warning"),
                    Span(safe_line(one.target or one.arguments), "$foreground"),
                ),
                cells,
            )
        )
    return lines


def build_approval(request: ApprovalRequest, cells: int) -> list[Line]:
    """The text of the dialog: who wants to do what, where, why it is asked, and the arguments or a detail."""
    effects = ", ".join(sorted(request.effects))
    lines: list[Line] = [
        (
            Span(safe_line(request.agent), "bold $primary"),
            Span(" wants to call "),
            Span(safe_line(request.tool), "bold $warning"),
            Span(f" ({effects})", "$muted"),
        ),
        cut((Span("in ", "$muted"), Span(safe_line(request.folder))), cells),
    ]
    if request.reason:
        lines.append(cut((Span(f"asked because {safe_line(request.reason)}", "$muted"),), cells))
    lines.append(())
    for line in safe_text(request.detail or _pretty(request.arguments)).split("\n"):
        lines += [(Span(piece),) for piece in wrap_cells(line, max(1, cells))]
    return lines


def _pretty(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False, indent=2)
    except ValueError:
        return arguments
